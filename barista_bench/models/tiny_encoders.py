"""Tiny encoders with random weights, made offline: two towers of images or videos and texts, and one of sentences.

As `tiny`: nonsense for answers, but real models of real families.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from barista_bench.models.tiny import Saveable, make_checkpoint, train_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

VIDEO_FRAMES = 4
"""Frames that the tiny X-CLIP takes; the published ones take 8, 16 or 32."""
TEXT_TOKENS = 32
"""Tokens of a text that the tiny encoders read, both ends included."""

_SPECIAL = ["<pad>", "</s>", "<s>", "<mask>"]
# Wide weights, as in `tiny`: with narrow ones all images, and all texts, would lie in nearly one direction.
_LAYERS = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "initializer_range": 0.2,
}
_CLIP_FACTOR = 5.0  # CLIP multiplies its own widths by it
_VISION = {**_LAYERS, "image_size": 32, "patch_size": 8}
_IMAGE = {"height": 32, "width": 32}


def make_tiny_clip(folder: Path, seed: int = 0) -> Path:
    """A CLIP of about 1 MB in `folder`; see `tiny.make_tiny_model`. Raises ModelError."""
    return make_checkpoint(folder, "clip", _clip, seed)


def make_tiny_siglip(folder: Path, seed: int = 0) -> Path:
    """A SigLIP, likewise."""
    return make_checkpoint(folder, "siglip", _siglip, seed)


def make_tiny_xclip(folder: Path, seed: int = 0) -> Path:
    """An X-CLIP, which takes `VIDEO_FRAMES` frames at once, likewise."""
    return make_checkpoint(folder, "xclip", _xclip, seed)


def make_tiny_sentence_encoder(folder: Path, seed: int = 0) -> Path:
    """A BERT for sentence embeddings, likewise."""
    return make_checkpoint(folder, "sentence_encoder", _sentence_encoder, seed)


def _text(tokenizer: PreTrainedTokenizerFast) -> dict[str, object]:
    return {
        **_LAYERS,
        "vocab_size": len(tokenizer),
        "max_position_embeddings": TEXT_TOKENS,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }


def _tokenizer() -> PreTrainedTokenizerFast:
    tokenizer = train_tokenizer(_SPECIAL, side="right")
    tokenizer.model_max_length = TEXT_TOKENS
    return tokenizer


def _clip() -> tuple[Saveable, ...]:
    from transformers import CLIPConfig, CLIPModel, CLIPProcessor
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    tokenizer = _tokenizer()
    wide = {"initializer_factor": _CLIP_FACTOR}
    config = CLIPConfig(
        text_config={**_text(tokenizer), **wide},
        vision_config={**_VISION, **wide},
        projection_dim=32,
        initializer_factor=_CLIP_FACTOR,
    )
    pictures = CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=_IMAGE)
    return CLIPModel(config), CLIPProcessor(pictures, tokenizer)  # type: ignore[no-untyped-call]


def _siglip() -> tuple[Saveable, ...]:
    from transformers import SiglipConfig, SiglipModel, SiglipProcessor
    from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

    tokenizer = _tokenizer()
    tokenizer.init_kwargs["model_input_names"] = ["input_ids"]  # as published: it was trained on padding too
    config = SiglipConfig(
        text_config={**_text(tokenizer), "projection_size": 64},
        vision_config=_VISION,
    )
    return SiglipModel(config), SiglipProcessor(SiglipImageProcessorPil(size=_IMAGE), tokenizer)  # type: ignore[no-untyped-call]


def _xclip() -> tuple[Saveable, ...]:
    from transformers import XCLIPConfig, XCLIPModel, XCLIPProcessor
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    tokenizer = _tokenizer()
    wide = {"initializer_factor": _CLIP_FACTOR}
    integrator = {
        "mit_hidden_size": 32,
        "mit_intermediate_size": 64,
        "mit_num_attention_heads": 4,
        "num_frames": VIDEO_FRAMES,
    }
    config = XCLIPConfig(
        text_config={**_text(tokenizer), **wide},
        vision_config={**_VISION, **integrator, **wide},
        projection_dim=32,
        prompt_num_attention_heads=4,
        initializer_factor=_CLIP_FACTOR,
    )
    pictures = CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=_IMAGE)
    return XCLIPModel(config), XCLIPProcessor(pictures, tokenizer)  # type: ignore[no-untyped-call]


def _sentence_encoder() -> tuple[Saveable, ...]:
    from transformers import BertConfig, BertModel

    tokenizer = _tokenizer()
    config = BertConfig(**_text(tokenizer))  # type: ignore[arg-type]
    return BertModel(config, add_pooling_layer=False), tokenizer
