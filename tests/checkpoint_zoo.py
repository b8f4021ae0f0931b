"""A tiny checkpoint of random weights for each image-text-to-text type of transformers: its own configuration, shrunk.

Nothing is downloaded. Sizes shrink by the names that configurations give them. `checkpoint_architectures.py` has
what else an architecture needs. A processor is written as its settings, not as an object, which needs no torchvision.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForImageTextToText, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.image_processing_auto import (
    IMAGE_PROCESSOR_MAPPING_NAMES,
    get_image_processor_class_from_name,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES
from transformers.models.auto.processing_auto import PROCESSOR_MAPPING_NAMES
from transformers.models.auto.video_processing_auto import VIDEO_PROCESSOR_MAPPING_NAMES

from barista_bench.errors import ModelError
from barista_bench.models.local.inputs import MODEL_ERRORS
from barista_bench.models.local.processors import load_processor
from tests.checkpoint_architectures import FAMILIES, NAMED_TOKENS, Family, merged, token_id, tokenizer

TYPES = tuple(MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES)
_MOST_PARAMETERS = 8_000_000

# Sizes by their names in configurations, at any depth; only whole numbers.
_NAMES_OF_SIZES = {
    1: "n_group topk_group first_k_dense_replace resampler_depth pretraining_tp",
    2: """num_hidden_layers depth layers n_layers num_layers encoder_layers decoder_layers num_decoder_layers
        num_global_layers num_key_value_heads swa_num_key_value_heads num_experts_per_tok moe_topk moe_k
        linear_num_key_heads index_n_heads n_groups""",
    4: """num_attention_heads num_heads attention_heads encoder_attention_heads decoder_attention_heads num_experts
        num_sliding_attention_heads swa_num_attention_heads resampler_n_heads n_routed_experts num_local_experts
        moe_num_experts linear_num_value_heads linear_num_heads mamba_num_heads num_query_tokens resampler_n_latents
        latent_query_num mm_tokens_per_image""",
    16: """head_dim global_head_dim swa_head_dim linear_key_head_dim linear_value_head_dim linear_head_dim q_lora_rank
        kv_lora_rank qk_nope_head_dim qk_rope_head_dim v_head_dim index_head_dim resampler_head_dim d_kv mamba_head_dim
        ssm_state_size patch_size hc_lowrank""",
    32: """moe_intermediate_size share_expert_dim shared_expert_intermediate_size shared_experts_intermediate_size
        moe_shared_expert_intermediate_size base_channels downsample_hidden_size output_channels d_rel num_embeddings
        hidden_size_per_layer_input latent_channels codebook_size qk_head_dim""",
    64: """hidden_size d_model embed_dim out_hidden_size projection_dim text_hidden_size vision_hidden_size output_dim
        projector_hidden_size projection_hidden_size projection_hidden_dim alignment_intermediate_size adapter_in_dim
        adapter_out_dim adapter_input_size encoder_hidden_size decoder_hidden_size image_text_hidden_size
        word_embed_proj_dim projector_input_dim projector_output_dim vision_output_dim merged_hidden_size
        moe_hidden_size image_token_embed_dim post_conv_out_channels image_size sliding_window
        num_position_embeddings""",
    128: """intermediate_size intermediate_size_mlp ffn_dim encoder_ffn_dim decoder_ffn_dim d_ff mlp_dim
        projection_intermediate_size dense_intermediate_size shared_intermediate_size""",
    4096: "max_position_embeddings",
}
_SMALL = {name: size for size, names in _NAMES_OF_SIZES.items() for name in names.split()}
# Made again from the number of layers, which is another one.
_OF_LAYERS = frozenset(
    {"layer_types", "mlp_layer_types", "no_rope_layers", "moe_layers", "full_attn_idxs", "indexer_types"}
    | {"kv_source_layers", "layer_rope_theta", "activation_sparsity_pattern", "rope_scaling_layers", "per_layer_config"}
)


def template(family: Family) -> str:
    return (
        "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
        "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
        f"{{% if part['type'] == 'image' %}}{family.image}{{% elif part['type'] == 'video' %}}{family.video}"
        "{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )


def build(model_type: str, folder: Path) -> Path:
    """A checkpoint of the type, in `folder`; the same bytes each time.

    Raises:
        ValueError: the family cannot be built tiny here; says why.
    """
    family = FAMILIES.get(model_type, Family())
    if family.reason:
        raise ValueError(family.reason)
    folder.mkdir(parents=True)
    _write_processor(model_type, family, folder)
    model = _model(model_type, family, folder)
    model.save_pretrained(folder)
    return folder


def _write_processor(model_type: str, family: Family, folder: Path) -> None:
    tokenizer(family.image_token).save_pretrained(folder)
    (folder / "chat_template.jinja").write_text(template(family))
    kind = family.kind or PROCESSOR_MAPPING_NAMES.get(model_type)
    names = IMAGE_PROCESSOR_MAPPING_NAMES.get(model_type) or {}
    pictures = family.pictures or names.get("torchvision") or names.get("pil")
    images = {
        "image_processor_type": pictures,
        **({"feature_extractor_type": family.sounds} if family.sounds else {}),
        **_picture_sizes(names.get("pil") or f"{pictures}Pil"),
        **family.images,
    }
    videos = VIDEO_PROCESSOR_MAPPING_NAMES.get(model_type, {}).get("torchvision")
    _write(folder / "processor_config.json", {"processor_class": kind, **family.processor})
    _write(folder / "preprocessor_config.json", images)
    if videos:
        _write(folder / "video_preprocessor_config.json", {**images, "video_processor_type": videos})


def _picture_sizes(kind: str) -> dict[str, Any]:
    """Small sizes for an image processor, in the terms of its defaults."""
    defaults = getattr(get_image_processor_class_from_name(kind), "size", None) or {}
    crop = getattr(get_image_processor_class_from_name(kind), "crop_size", None)
    sizes: dict[str, Any] = {"size": dict.fromkeys(defaults, 64)} if defaults and isinstance(defaults, dict) else {}
    return sizes | ({"crop_size": {"height": 64, "width": 64}} if crop else {})


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def _model(model_type: str, family: Family, folder: Path) -> PreTrainedModel:
    config_class = CONFIG_MAPPING[model_type]
    ids = _token_ids(folder)
    shrunk = merged(_shrunk(config_class().to_dict(), ids), family.config)
    config = config_class.from_dict(shrunk)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        with torch.device("meta"):
            size = sum(p.numel() for p in AutoModelForImageTextToText.from_config(config).parameters())
        if size > _MOST_PARAMETERS:
            raise ValueError(f"it has {size / 1e6:.0f} M parameters")
        model = AutoModelForImageTextToText.from_config(config)
        for name, weight in model.named_parameters():
            if weight.ndim >= 2:
                weight.data.normal_(0, 0.15)
            elif "gate" in name:
                weight.data.fill_(0.5)
    model.generation_config.eos_token_id, model.generation_config.pad_token_id = 1, 0
    return model


def _token_ids(folder: Path) -> dict[str, int]:
    """The id of each token, by the names that configurations have for it."""
    named = {name: token_id(token) for name, token in NAMED_TOKENS.items()}
    try:
        processor = load_processor(str(folder), wants_video=False, trust_remote_code=False, revision="main")
    except (ModelError, *MODEL_ERRORS):  # what the checkpoint demonstrates: its processor is not available here
        processor = None
    for name in list(vars(processor)) if processor else []:
        token = getattr(processor, name)
        if name.endswith("_token") and isinstance(token, str):
            named[name] = token_id(token)
    return {f"{name}{end}": number for name, number in named.items() for end in ("_id", "_index")} | {
        **{f"{end}_token_id": number for number, end in enumerate(("pad", "eos", "bos"))},
        "decoder_start_token_id": 2,
        "forced_eos_token_id": 1,
    }


def _shrunk(config: Mapping[str, Any], ids: Mapping[str, int]) -> dict[str, Any]:
    small: dict[str, Any] = {}
    for name, value in config.items():
        if name in _OF_LAYERS or name in ("transformers_version", "dtype", "architectures"):
            continue
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if isinstance(value, dict):
            small[name] = _shrunk(value, ids)
        elif name in ids and not isinstance(value, list):
            small[name] = ids[name]
        elif name in ("vocab_size", "vocab_size_per_layer_input") and is_number:
            small[name] = len(tokenizer())
        elif name in _SMALL and is_number:
            small[name] = _SMALL[name]
        elif name in _SMALL and isinstance(value, list) and name in ("image_size", "patch_size"):
            small[name] = [_SMALL[name]] * len(value)
        else:
            small[name] = value
    return small
