"""Trackers of SAM 2 and SAM 3, and a detector, with at most a million random weights, as folders."""

import json
from pathlib import Path
from typing import Any

import torch
import transformers

from barista_bench.models import tiny

_MEMORY = {
    "memory_attention_hidden_size": 128,
    "memory_attention_num_layers": 1,
    "memory_attention_feed_forward_hidden_size": 32,
    "memory_encoder_hidden_size": 128,
    "memory_encoder_output_channels": 64,  # a constant in transformers' code
    "mask_downsampler_embed_dim": 128,
    "memory_fuser_embed_dim": 128,
    "memory_fuser_num_layers": 1,
    "memory_fuser_intermediate_dim": 32,
    "num_maskmem": 3,
    "max_object_pointers_in_encoder": 4,
}
_DECODER = {
    "hidden_size": 128,
    "mlp_dim": 32,
    "num_hidden_layers": 1,
    "iou_head_hidden_dim": 32,
    "num_attention_heads": 2,
}


def sam2_config() -> Any:
    backbone = transformers.Sam2HieraDetConfig(
        hidden_size=8,
        num_attention_heads=1,
        image_size=[128, 128],
        blocks_per_stage=[1, 1, 2, 1],
        embed_dim_per_stage=[8, 16, 32, 64],
        num_attention_heads_per_stage=[1, 1, 1, 1],
        window_size_per_stage=[4, 4, 4, 4],
        global_attention_blocks=[3],
        window_positional_embedding_background_size=[4, 4],
    )
    vision = transformers.Sam2VisionConfig(
        backbone_config=backbone,
        backbone_channel_list=[64, 32, 16, 8],
        fpn_hidden_size=128,
        backbone_feature_sizes=[[32, 32], [16, 16], [8, 8]],
    )
    return transformers.Sam2VideoConfig(
        vision_config=vision,
        image_size=128,
        memory_attention_rope_feat_sizes=[8, 8],
        prompt_encoder_config={"hidden_size": 128, "image_size": 128, "mask_input_channels": 4},
        mask_decoder_config=_DECODER,
        **_MEMORY,
    )


def sam3_vision(side: int, width: int, fpn_width: int) -> dict[str, Any]:
    """Settings of an encoder of square pictures of `side` px."""
    patches = side // 14
    backbone = {"model_type": "sam3_vit_model", **_layers(width), "num_hidden_layers": 2, "window_size": 2}
    backbone |= {"image_size": side, "pretrain_image_size": side, "patch_size": 14, "global_attn_indexes": [1]}
    sizes = [[scale * patches] * 2 for scale in (4, 2, 1)]
    return {"backbone_config": backbone, "fpn_hidden_size": fpn_width, "backbone_feature_sizes": sizes}


def sam3_detector(vision: dict[str, Any], width: int, vocabulary: int) -> Any:
    """The config of a SAM 3 that reads so many tokens."""
    ends = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    text = {"model_type": "clip_text_model", "vocab_size": vocabulary, **_layers(width), "num_hidden_layers": 1, **ends}
    part = {**_layers(width), "num_layers": 1}
    return transformers.Sam3Config(
        vision_config=vision,
        text_config={**text, "projection_dim": width, "max_position_embeddings": 32},
        geometry_encoder_config=part,
        detr_encoder_config=part,
        detr_decoder_config={**part, "num_queries": 6},
        mask_decoder_config={"hidden_size": width, "num_upsampling_stages": 3, "num_attention_heads": 2},
    )


def _layers(width: int) -> dict[str, Any]:
    return {"hidden_size": width, "intermediate_size": 64, "num_attention_heads": 2}


def sam3_config() -> Any:
    return transformers.Sam3TrackerVideoConfig(
        vision_config={"model_type": "sam3_vision_model", **sam3_vision(112, 32, 128)},
        image_size=112,
        memory_attention_rope_feat_sizes=[8, 8],
        prompt_encoder_config={"hidden_size": 128, "image_size": 112, "patch_size": 14, "mask_input_channels": 4},
        mask_decoder_config=_DECODER,
        **_MEMORY,
    )


def sam3_video_config() -> Any:
    """The same tracker beside a detector, as one checkpoint."""
    tracker = sam3_config()
    detector = sam3_detector(tracker.vision_config.to_dict(), 32, 60)
    return transformers.Sam3VideoConfig(detector_config=detector.to_dict(), tracker_config=tracker.to_dict())


def write_checkpoint(folder: Path, kind: str) -> Path:
    """A checkpoint of `sam2_video`, `sam3_tracker_video` or `sam3_video`, with an image processor's pixel settings."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if kind == "sam2_video":
            model = tracker = transformers.Sam2VideoModel(sam2_config())
        elif kind == "sam3_tracker_video":
            model = tracker = transformers.Sam3TrackerVideoModel(sam3_config())
        else:
            model = transformers.Sam3VideoModel(sam3_video_config())
            tracker = model.tracker_model
        # Without this every object counts as absent, and every mask is empty.
        torch.nn.init.ones_(tracker.mask_decoder.pred_obj_score_head.proj_out.bias)
        model.save_pretrained(folder)
    settings = {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.5, 0.25, 0.2], "rescale_factor": 1 / 255}
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    return folder


def write_detector(folder: Path) -> None:
    """An OWLv2."""
    from transformers.models.owlv2.image_processing_pil_owlv2 import Owlv2ImageProcessorPil

    tokenizer = tiny.encoder_tokenizer()
    layers = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.Owlv2Config(
        text_config={**tiny.text_tower(tokenizer), **layers, "max_position_embeddings": 16},
        vision_config={**layers, "image_size": 64, "patch_size": 16},
        projection_dim=32,
    )
    tokenizer.model_max_length = 16
    pictures = Owlv2ImageProcessorPil(size={"height": 64, "width": 64})
    transformers.Owlv2ForObjectDetection(config).save_pretrained(folder)
    transformers.Owlv2Processor(pictures, tokenizer).save_pretrained(folder)
