"""Tiny models of further families, for tests and measurements: as `barista_bench.models.tiny` makes its own two."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from barista_bench.models import tiny

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast, ProcessorMixin

Architecture = Literal["gemma3", "llava", "idefics3"]
VIDEO_FRAMES = 4
"""Frames that the tiny X-CLIP takes; the published ones take 8, 16 or 32."""


def make_tiny_model(folder: Path, architecture: Architecture = "gemma3", seed: int = 0) -> Path:
    """A vision-language model of a family; see `tiny.make_checkpoint`."""
    return tiny.make_checkpoint(folder, architecture, _BUILDERS[architecture], seed)


def make_tiny_siglip(folder: Path, seed: int = 0) -> Path:
    """A SigLIP."""
    return tiny.make_checkpoint(folder, "siglip", _siglip, seed)


def make_tiny_xclip(folder: Path, seed: int = 0) -> Path:
    """An X-CLIP, which takes `VIDEO_FRAMES` frames at once."""
    return tiny.make_checkpoint(folder, "xclip", _xclip, seed)


def make_tiny_sentence_encoder(folder: Path, seed: int = 0) -> Path:
    """A BERT for sentence embeddings."""
    return tiny.make_checkpoint(folder, "sentence_encoder", _sentence_encoder, seed)


def make_served_model(folder: Path, *, spaced: bool, seed: int = 0) -> Path:
    """An Idefics 3 as vLLM takes it on a CPU, which refuses narrow heads.

    Args:
        spaced: its tokenizer writes spaces at the beginnings of tokens and adds a beginning to a text, as SentencePiece
        does; its chat template leaves that to it.
    """
    builder = partial(_idefics3, width=256, spaced=spaced)
    return tiny.make_checkpoint(folder, f"idefics3 for vLLM, spaced={spaced}", builder, seed)


def make_text_model(folder: Path, seed: int = 0) -> Path:
    """A Llama, which reads only text, with heads as wide as vLLM wants them on a CPU."""
    return tiny.make_checkpoint(folder, "llama", _llama, seed)


def _llama() -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    from tokenizers import processors
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = tiny.train_tokenizer(["<pad>", "<eos>", "<bos>", "<|im_start|>", "<|im_end|>"])
    tokenizer.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    # Added to plain texts, not to conversations.
    beginning = processors.TemplateProcessing("<bos> $A", special_tokens=[("<bos>", 2)])
    tokenizer.backend_tokenizer.post_processor = beginning
    layers = {"hidden_size": 128, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    ids = {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 2}
    config = LlamaConfig(vocab_size=len(tokenizer), num_key_value_heads=2, initializer_range=0.2, **layers, **ids)
    return LlamaForCausalLM(config), tokenizer


def _spaced_tokenizer(special: list[str]) -> PreTrainedTokenizerFast:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE(byte_fallback=True))
    bpe.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    bpe.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    letters = [chr(code) for code in range(33, 127)]
    trainer = trainers.BpeTrainer(
        vocab_size=512, special_tokens=special, initial_alphabet=[*letters, "\n"], show_progress=False
    )
    bpe.train_from_iterator(tiny._CORPUS, trainer)
    bpe.post_processor = processors.TemplateProcessing(f"{special[2]} $A", special_tokens=[(special[2], 2)])
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=bpe, pad_token=special[0], eos_token=special[1], bos_token=special[2], padding_side="left"
    )


def _llava() -> tuple[PreTrainedModel, ProcessorMixin]:
    from transformers import LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor
    from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

    tokenizer = tiny.train_tokenizer(["<pad>", "</s>", "<s>", "<|im_start|>", "<|im_end|>", "<image>"])
    config = LlavaConfig(
        text_config={**tiny._text_config(tokenizer), "model_type": "llama"},
        vision_config={**tiny._VISION_LAYERS, "model_type": "siglip_vision_model"},
        image_token_index=tiny.token_id(tokenizer, "<image>"),
        image_seq_length=16,
        vision_feature_select_strategy="full",
        vision_feature_layer=-1,
    )
    processor = LlavaProcessor(  # type: ignore[no-untyped-call]
        SiglipImageProcessorPil(size={"height": 64, "width": 64}),
        tokenizer,
        patch_size=16,
        vision_feature_select_strategy="full",
        num_additional_image_tokens=0,
        chat_template=tiny.TURN.replace("IMAGE", "<image>"),
    )
    return LlavaForConditionalGeneration(config), processor


def _idefics3(width: int = 64, *, spaced: bool = False) -> tuple[PreTrainedModel, ProcessorMixin]:
    """`width` is the width of the text model, whose heads have a fourth of it."""
    from transformers import Idefics3Config, Idefics3ForConditionalGeneration, Idefics3Processor
    from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil

    image = ["<fake_token_around_image>", "<image>", "<global-img>", "<end_of_utterance>"]
    special = ["<pad>", "<eos>", "<bos>", "<|im_start|>", "<|im_end|>", *image]
    tokenizer = _spaced_tokenizer(special) if spaced else tiny.train_tokenizer(special)
    config = Idefics3Config(
        text_config={**tiny._text_config(tokenizer), "hidden_size": width, "model_type": "llama"},
        vision_config=tiny._VISION_LAYERS,
        image_token_id=tiny.token_id(tokenizer, "<image>"),
        scale_factor=2,
    )
    pictures = Idefics3ImageProcessorPil(
        size={"longest_edge": 64}, max_image_size={"longest_edge": 64}, do_image_splitting=False
    )
    chat = tiny.TURN.replace("IMAGE", "<image>")
    return Idefics3ForConditionalGeneration(config), Idefics3Processor(
        pictures, tokenizer, image_seq_len=4, chat_template=chat
    )


def _siglip() -> tuple[PreTrainedModel, ProcessorMixin]:
    from transformers import SiglipConfig, SiglipModel, SiglipProcessor
    from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

    tokenizer = tiny.encoder_tokenizer()
    tokenizer.init_kwargs["model_input_names"] = ["input_ids"]  # as published: it was trained on padding too
    config = SiglipConfig(
        text_config={**tiny.text_tower(tokenizer), "projection_size": 64}, vision_config=tiny.ENCODER_VISION
    )
    return SiglipModel(config), SiglipProcessor(SiglipImageProcessorPil(size=tiny.ENCODER_IMAGE), tokenizer)  # type: ignore[no-untyped-call]


def _xclip() -> tuple[PreTrainedModel, ProcessorMixin]:
    from transformers import XCLIPConfig, XCLIPModel, XCLIPProcessor
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    tokenizer = tiny.encoder_tokenizer()
    wide = {"initializer_factor": tiny.CLIP_FACTOR}
    integrator = {
        "mit_hidden_size": 32,
        "mit_intermediate_size": 64,
        "mit_num_attention_heads": 4,
        "num_frames": VIDEO_FRAMES,
    }
    config = XCLIPConfig(
        text_config={**tiny.text_tower(tokenizer), **wide},
        vision_config={**tiny.ENCODER_VISION, **integrator, **wide},
        projection_dim=32,
        prompt_num_attention_heads=4,
        initializer_factor=tiny.CLIP_FACTOR,
    )
    pictures = CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=tiny.ENCODER_IMAGE)
    return XCLIPModel(config), XCLIPProcessor(pictures, tokenizer)  # type: ignore[no-untyped-call]


def _sentence_encoder() -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    from transformers import BertConfig, BertModel

    tokenizer = tiny.encoder_tokenizer()
    config = BertConfig(**tiny.text_tower(tokenizer))  # type: ignore[arg-type]
    return BertModel(config, add_pooling_layer=False), tokenizer


_BUILDERS: dict[Architecture, tiny.Builder] = {"gemma3": tiny._gemma3, "llava": _llava, "idefics3": _idefics3}
