"""What tiny checkpoints of single families need beside their shrunk default configurations (`checkpoint_zoo.py`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from transformers import PreTrainedTokenizerFast

from barista_bench.models.tiny import train_tokenizer

# Tokens that tokenizers know by a name; processors ask for them, else for the tokens of `_SPECIAL`.
NAMED_TOKENS = {
    "image_token": "<image>",
    "video_token": "<video>",
    "audio_token": "<audio>",
    "boi_token": "<boi>",
    "eoi_token": "<eoi>",
    "boa_token": "<boa>",
    "eoa_token": "<eoa>",
    "img_line_break_token": "<line>",
    "image_wrapper_token": "<wrapper>",
    "eof_token": "<eof>",
    "image_break_token": "<break>",
    "start_image_token": "<img>",
    "end_image_token": "</img>",
    "context_image_token": "<IMG_CONTEXT>",
    "image_boundary_token": "<fake_token_around_image>",
    "fake_image_token": "<fake_token_around_image>",
    "global_image_token": "<global-img>",
    "end_of_utterance_token": "<end_of_utterance>",
    **{
        f"{what}_{end}_token": f"<|{what}_{end}|>"
        for what in ("vision", "image", "video", "slice", "image_id")
        for end in ("start", "end")
    },
    **{f"{what}_{end}_token": f"<|{what}_{end}|>" for what in ("vision", "audio") for end in ("bos", "eos")},
}
_SPECIAL = (
    *("<pad>", "<eos>", "<bos>", "<|im_start|>", "<|im_end|>", "<unk>"),
    *dict.fromkeys(NAMED_TOKENS.values()),
    *("<|image_pad|>", "<|video_pad|>", "<|IMAGE_PAD|>", "<|VIDEO_PAD|>", "<|VISION_START|>", "<|VISION_END|>"),
    *("<|imgpad|>", "<|audio_comp_pad|>", "<imgpad>", "<image_soft_token>", "<|image|>", "<|video|>", "<|audio|>"),
    *("<|begin_of_image|>", "<|end_of_image|>", "<|begin_of_video|>", "<|end_of_video|>", "<row_1_col_1>"),
    *("[IMG]", "[IMG_BREAK]", "[IMG_END]", "<|START_OF_IMG|>", "<|END_OF_IMG|>", "<|IMG_PATCH|>", "<|IMG_LINE_BREAK|>"),
    *("TILE_GLOBAL", *(f"TILE_{n}" for n in range(1, 10)), "<racm3:break>", "<eoss>", "<image_placeholder>"),
    *("<IMG_ATOM>", "<IMG_START>", "<IMG_GRID>", "<IMG_COL>", "<IMG_ROW>", "<IMG_END>", "<|patch|>"),
    *("<|tile_x_separator|>", "<|tile_y_separator|>", "<im_patch>", "<im_start>", "<im_end>", "<im_col>", "<im_low>"),
    *("<low_res_im_start>", "<frame_start>", "<frame_end>", "<|img_thumbnail|>", "<patch_newline>", "</image>"),
    *("<|media_pad|>", "<|media_begin|>", "<|media_content|>", "<|media_end|>", "<|kimi_k25_video_placeholder|>"),
    *("<|unused_200053|>", "<|unused_200054|>", "<|content_image|>", "<|content_audio_input|>", "<|video_duration|>"),
    *("|SPEAKER|", "|NEWLINE|", "<s>", "</s>", "<0x00>", "<0x01>", "<0x02>", "<0x03>", "<0x04>", "<|extra_201|>"),
    *("<image_soft>", "<|vid_start|>", "<|vid_end|>", "<|vid_frame_separator|>", "<slice>", "</slice>"),
)


@dataclass(frozen=True)
class Family:
    """The settings that the checkpoint of one type needs beside its shrunk default configuration.

    Args:
        config: changes of its configuration, merged into it at any depth.
        image: the text of its template for an image; `video` for a video.
        kind: its processor's class, where transformers' table names none.
        processor: settings of its processor; `images` of its image processor, and of its video processor.
        pictures: class of its image processor, where transformers' table names none.
        image_token: what its tokenizer calls so, if anything.
        sounds: class of its feature extractor, where it has one.
        reason: why it cannot be built here.
    """

    config: Mapping[str, Any] = field(default_factory=dict)
    image: str = "<image>"
    image_token: str | None = "<image>"
    video: str = "<video>"
    kind: str | None = None
    pictures: str | None = None
    sounds: str | None = None
    processor: Mapping[str, Any] = field(default_factory=dict)
    images: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None


@cache
def tokenizer(image_token: str | None = "<image>") -> PreTrainedTokenizerFast:
    """It knows every token that a processor asks for; `image_token` is the name of the image token, if it has one."""
    names = {name: token for name, token in (NAMED_TOKENS | {"image_token": image_token}).items() if token}
    made = train_tokenizer(list(dict.fromkeys(_SPECIAL)), names)
    made.model_max_length, made.unk_token = 4096, "<unk>"
    return made


def token_id(token: str) -> int:
    number = tokenizer().convert_tokens_to_ids(token)
    assert isinstance(number, int)
    return number


def _codes() -> dict[str, int]:
    """Chameleon's image tokens are named by their number in letters, Emu 3's in digits."""
    letters = {"<image>": token_id("<image>"), "<|extra_200|>": token_id("<|extra_201|>")}
    for n in range(32):
        letters[f"IMGIMG{''.join('ABCDEFGHIJ'[int(digit)] for digit in str(n))}Z"] = 200 + n
        letters[f"<|visual token {n:06d}|>"] = 200 + n
    return letters


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `changes`, mapping by mapping."""
    both = dict(base)
    for name, value in changes.items():
        inner = both.get(name)
        both[name] = merged(inner, value) if isinstance(value, Mapping) and isinstance(inner, dict) else value
    return both


def _mrope(*sections: int, **others: Any) -> dict[str, Any]:
    """Positions of several axes; the sections add up to half of the 16 dimensions of a head that turn."""
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": list(sections)}
    return {"text_config": {"rope_parameters": rope | others}}


def _qwen(config: Mapping[str, Any], patch_size: int = 16, **others: Any) -> Family:
    """Qwen's form of images: grids of patches, four of which become one token."""
    size = {"shortest_edge": 4 * (2 * patch_size) ** 2, "longest_edge": 32 * (2 * patch_size) ** 2}
    parts = {"patch_size": patch_size, "merge_size": 2, "temporal_patch_size": 2}
    vision = {"vision_config": {"patch_size": patch_size}}
    return Family(
        **{
            "config": merged(vision, config),
            "image": "<|vision_start|><image><|vision_end|>",
            "video": "<|vision_start|><video><|vision_end|>",
            "images": {"size": size, **parts},
            **others,
        }
    )


_QWEN3_5 = merged(
    _mrope(2, 1, 1, mrope_interleaved=True, partial_rotary_factor=0.5),
    {"text_config": {"layer_types": ["linear_attention", "full_attention"]}},
)
_GLM_VIDEO = "<|begin_of_video|><video><|end_of_video|>"
_OMNI = {
    "pictures": "Qwen2VLImageProcessor",
    "sounds": "WhisperFeatureExtractor",
    "image": "<|vision_bos|><image><|vision_eos|>",
    "video": "<|vision_bos|><video><|vision_eos|>",
}
_OMNI_IDS = {
    f"vision_{end}_token_id": token_id(f"<|vision_{name}|>") for end, name in (("start", "bos"), ("end", "eos"))
}
_QSA = {
    "text_config": {
        "indexer_budget": 8,
        "indexer_compress_ratio": 2,
        "indexer_n_heads": 2,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 16,
    }
}
_QWEN3 = {"vision_config": {"deepstack_visual_indexes": [0, 1]}}
_TILED = {"image_grid_pinpoints": [[64, 128], [128, 64], [128, 128]]}
_IMAGE_INDEX = {"image_token_index": token_id("<image>")}
_IDEFICS = {"max_image_size": {"longest_edge": 64}, "size": {"longest_edge": 64}, "do_image_splitting": False}
_FLAT_PATCHES = {"temporal_patch_size": 1, "patch_size": 16, "merge_size": 2}
_GEMMA4_PATCHES = {"patch_size": 16, "pooling_kernel_size": 2, "max_soft_tokens": 70}
_GEMMA4 = {
    "text_config": {"layer_types": ["sliding_attention", "full_attention"]},
    "vision_config": {
        "model_type": "gemma4_vision",
        **dict.fromkeys(("hidden_size", "position_embedding_size"), 64),
        **dict.fromkeys(("num_attention_heads", "num_key_value_heads"), 4),
        **dict.fromkeys(("head_dim", "patch_size"), 16),
        **{"intermediate_size": 128, "num_hidden_layers": 2, "pooling_kernel_size": 2},
    },
}
_SLICES = {"patch_size": 16, "scale_resolution": 64, "max_slice_nums": 2}
_LLAVA = {"patch_size": 16, "vision_feature_select_strategy": "default", "num_additional_image_tokens": 1}

FAMILIES: dict[str, Family] = {
    "aria": Family(
        config={"vision_config": {"image_size": 980, "patch_size": 14}, "projector_patch_to_query_dict": {"4900": 8}},
        images={"max_image_size": 980, "min_image_size": 336},
        processor={"size_conversion": {"980": 8}},
    ),
    "aya_vision": Family(
        config={"vision_feature_layer": -1, "image_token_index": token_id("<|IMG_PATCH|>")},
        processor={"patch_size": 16, "img_size": 64, "downsample_factor": 2},
        images={"crop_to_patches": True, "min_patches": 1, "max_patches": 4},
    ),
    "chameleon": Family(
        config={
            "vq_config": {"resolution": 64, "channel_multiplier": [1, 1], "num_res_blocks": 1, "embed_dim": 16},
            "vocabulary_map": _codes(),
        },
        processor={"image_seq_length": 256},
        images={"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}},
    ),
    "cohere_compass": _qwen(
        {"text_config": {"rope_parameters": {"full_attention": _mrope(2, 3, 3)["text_config"]["rope_parameters"]}}},
        image="<|VISION_START|><|IMAGE_PAD|><|VISION_END|>",
        image_token="<|IMAGE_PAD|>",
        video="<|VISION_START|><|VIDEO_PAD|><|VISION_END|>",
    ),
    "cosmos3_edge": _qwen(_mrope(2, 3, 3), images=_FLAT_PATCHES),
    "cosmos3_omni": _qwen(_QWEN3, kind="Qwen3VLProcessor"),
    "deepseek_vl": Family(processor={"num_image_tokens": 16}, images={"size": {"height": 64, "width": 64}}),
    "deepseek_ocr2": Family(reason="its tokens an image are fixed for pictures of 768 and 1024 pixels"),
    "deepseek_vl_hybrid": Family(
        config={"high_res_vision_config": {"global_attn_indexes": [1]}},
        processor={"num_image_tokens": 16},
        images={"high_res_size": {"height": 64, "width": 64}},
    ),
    "diffusion_gemma": Family(reason="writes whole blocks of text by diffusion; its sizes have no defaults"),
    "dots3_note": _qwen(
        {"text_config": {"num_key_value_heads": 4}, "vision_config": {"per_layer_config": {}}},
        image="<|imgpad|>",
        image_token="<|imgpad|>",
        video="<|video_pad|>",
        images=_FLAT_PATCHES,
        sounds="WhisperFeatureExtractor",
    ),
    "emu3": Family(
        config={
            "vq_config": {
                "channel_multiplier": [1, 1, 1, 1],
                "num_res_blocks": 1,
                "attn_resolutions": [],
                "base_channels": 64,
                "embed_dim": 4,
                "latent_channels": 4,
            },
            "vocabulary_map": _codes(),
        },
        images={"min_pixels": 1024, "max_pixels": 4096},
    ),
    "ernie4_5_vl_moe": _qwen(_mrope(3, 3, 2), images=_FLAT_PATCHES),
    "florence2": Family(
        config={
            "vision_config": {
                "embed_dim": [16] * 4,
                "num_heads": [2] * 4,
                "num_groups": [2] * 4,
                "depths": [1] * 4,
                "max_temporal_embeddings": 4,
                "max_position_embeddings": 8,
            }
        }
    ),
    "evolla": Family(reason="takes proteins, not images"),
    "exaone4_5": _qwen({}),
    "fast_vlm": Family(reason="its vision tower is timm's, which is not a dependency"),
    "fuyu": Family(
        config={"patch_size": 30},
        images={"size": {"height": 90, "width": 120}, "patch_size": {"height": 30, "width": 30}},
    ),
    "gemma3": Family(
        image="<boi>",
        config=_IMAGE_INDEX | {"text_config": {"query_pre_attn_scalar": 1}},
        processor={"image_seq_length": 4},
    ),
    "gemma4": Family(config=_GEMMA4, images=_GEMMA4_PATCHES, sounds="Gemma4AudioFeatureExtractor", video="<|video|>"),
    "gemma4_unified": Family(video="<|video|>"),
    "gemma3n": Family(reason="its vision tower is timm's, which is not a dependency"),
    "glm5_next": _qwen(
        merged(
            _mrope(2, 3, 3),
            {
                "text_config": {
                    "num_key_value_heads": 4,
                    "qk_rope_head_dim": 0,
                    "qk_head_dim": 16,
                    "layer_types": ["linear_attention", "full_attention"],
                }
            },
        )
    ),
    "granite4_vision": Family(reason="no small sizes were found that its downsampler takes"),
    "hunyuan_vl": _qwen(
        merged(_mrope(2, 2, 2, 2), {"text_config": {"head_dim": 16}}),
        image="<|image_start|><image><|image_end|>",
        images=_FLAT_PATCHES,
    ),
    "glm46v": _qwen(_mrope(2, 3, 3), video=_GLM_VIDEO),
    "glm4v": _qwen(_mrope(2, 3, 3), video=_GLM_VIDEO),
    "glm4v_moe": _qwen(_mrope(1, 1, 2), pictures="Glm4vImageProcessor"),
    "glm_ocr": _qwen(_mrope(2, 3, 3), kind="Glm46VProcessor", pictures="Glm46VImageProcessor"),
    "glmga": _qwen(_mrope(2, 3, 3), kind="Glm46VProcessor", video=_GLM_VIDEO),
    "got_ocr2": Family(
        image="<img><imgpad></img>",
        config={"vision_config": {"global_attn_indexes": [1], "image_size": 1024}},
        images={"size": {"height": 1024, "width": 1024}},
    ),
    "granite_docling": Family(processor={"image_seq_len": 1}),
    "hyperclovax_vision_v2": _qwen({}),
    "idefics2": Family(processor={"image_seq_len": 4}, images={"do_image_splitting": False}),
    "idefics3": Family(config={"scale_factor": 2}, processor={"image_seq_len": 4}, images=_IDEFICS),
    "instructblip": Family(image="", image_token=None, processor={"num_query_tokens": 4}),
    "blip-2": Family(image="", image_token=None, processor={"num_query_tokens": 4}),
    "internvl": Family(image="<IMG_CONTEXT>", processor={"image_seq_length": 4}),
    "janus": Family(image="<image>", processor={"num_image_tokens": 16}),
    "kosmos-2": Family(kind="Kosmos2Processor", config={"latent_query_num": 64}),
    "kosmos-2.5": Family(reason="makes 4096 patches of every picture, too many for a test"),
    "lfm3_vl": _qwen({"text_config": {"layer_types": ["conv", "full_attention"]}}),
    "llava": Family(processor=_LLAVA),
    "llava_next": Family(processor=_LLAVA, config=_TILED, images=_TILED),
    "llava_next_video": Family(processor=_LLAVA, config=_TILED, images=_TILED),
    "llava_onevision": Family(
        processor={"num_image_tokens": 16, "vision_feature_select_strategy": "full"}, config=_TILED, images=_TILED
    ),
    "mistral3": Family(image="[IMG]", processor={"patch_size": 16, "spatial_merge_size": 2}),
    "mistral_large4": Family(
        image="[IMG]",
        config={"text_config": {"num_key_value_heads": 4}},
        processor={"patch_size": 16, "spatial_merge_size": 2},
    ),
    "minicpmv4_6": Family(config=_QWEN3_5, images=_SLICES),
    "minicpmv4_7": Family(config=_QWEN3_5, images=_SLICES),
    "mllama": Family(
        config={
            "text_config": {"cross_attention_layers": [1]},
            "vision_config": {"intermediate_layers_indices": [0], "vision_output_dim": 128},
        }
    ),
    "molmo2": Family(
        config={
            "vision_config": {"patch_size": 14, "image_size": [56, 56], "num_position_embeddings": 16},
            "adapter_config": {"vision_feature_layer": [-1, -2], "num_key_value_heads": 4},
            "image_patch_id": token_id("<im_patch>"),
        },
        images={"size": {"height": 56, "width": 56}, "max_crops": 2, "overlap_margins": [0, 0], "patch_size": 14},
    ),
    "muse_glimmer": Family(video="<|video|>"),
    "muse_spark": Family(
        images={"patch_size": 16}, config={"audio_config": {"num_hidden_layers": 4, "hidden_sizes": [16] * 4}}
    ),
    "minicpm_ocr": Family(images={"patch_size": 16}),
    "kimi_k25": Family(images={"patch_size": 16}),
    "ovis2": Family(
        config={
            "image_token_id": token_id("<IMG_ATOM>"),
            "visual_indicator_token_ids": [
                token_id(f"<IMG_{part}>") for part in ("START", "GRID", "COL", "ROW", "END")
            ],
        },
        processor={"image_seq_length": 16},
    ),
    "paddleocr_vl": _qwen(_mrope(2, 3, 3), images=_FLAT_PATCHES),
    "pi0": Family(reason="a policy for robots: it writes actions, no text"),
    "paligemma": Family(images={"image_seq_length": 16}),
    "perception_lm": Family(reason="its vision tower is timm's, which is not a dependency"),
    "qianfan_ocr": Family(processor={"image_seq_length": 4}),
    "qwen2_5_omni_thinker": _qwen(_mrope(2, 3, 3) | _OMNI_IDS, 14, kind="Qwen2_5OmniProcessor", **_OMNI),
    "qwen2_5_vl": _qwen(_mrope(2, 3, 3), 14),
    "qwen2_vl": _qwen(_mrope(2, 3, 3), 14),
    "qwen3_5": _qwen(_QWEN3_5),
    "qwen3_5_moe": _qwen(_QWEN3_5),
    "qwen3_omni_moe_thinker": _qwen(_QWEN3 | _OMNI_IDS, kind="Qwen3OmniMoeProcessor", **_OMNI),
    "qwen3_vl": _qwen(_QWEN3),
    "qwen3_vl_moe": _qwen(_QWEN3, pictures="Qwen2VLImageProcessor"),
    "qwen4_exp": _qwen(merged(_QWEN3_5, _QSA)),
    "smolvlm": Family(config={"scale_factor": 2}, processor={"image_seq_len": 4}, images=_IDEFICS),
    "shieldgemma2": Family(reason="a classifier, which is loaded as another class than it is saved as"),
    "video_llama_3": _qwen({}, images={"patch_size": 16, "size": {"shortest_edge": 4096, "longest_edge": 65536}}),
    "video_llava": Family(
        processor=_LLAVA, images={"size": {"shortest_edge": 64}, "crop_size": {"height": 64, "width": 64}}
    ),
    "vision-encoder-decoder": Family(kind="TrOCRProcessor", pictures="ViTImageProcessor"),
    "vipllava": Family(processor=_LLAVA, config={"vision_feature_layers": [-2, -1]}),
    "mistral4": Family(reason="a language model: it takes no images"),
}
