"""Makes tiny models with random weights for tests, demos and dry runs, offline: a generator and a dual encoder.

Their answers are random, but the models have real architectures, with the same classes, processors and padding.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from barista_bench.errors import ModelError
from barista_bench.files.checkpoints import require_libraries

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast, ProcessorMixin


Builder = Callable[[], "tuple[PreTrainedModel | ProcessorMixin | PreTrainedTokenizerFast, ...]"]

_RECIPE = 1  # increase this number when a change below changes the models
_MARKER = "tiny_model.json"
_VOCABULARY = 512
_CORPUS = (
    "The barista holds the milk jug with the left hand and the cup with the right hand.",
    "The portafilter is on the grinder; the coffee falls into the portafilter below it.",
    "Steam rises from the jug while milk pours into the cup, next to the kettle and the scale.",
    "left of, right of, above, below, behind, in front of, inside, holding, pouring, touching",
    '{"relations": [["cup", "on", "table"]], "boxes": [{"label": "cup", "bbox": [0, 125, 640, 1000]}]}',
    "Question: which object does the hand touch? Answer: yes, no, A, B, C, D, none of them.",
)
TURN = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}IMAGE{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_LAYERS = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
# Ten times the usual width. With flatter scores, neither the images nor the prompt would change an answer. With narrow
# weights, the vectors of all images, and of all texts, would have nearly the same direction.
_WIDE_LAYERS = {**_LAYERS, "initializer_range": 0.2}
_TEXT_LAYERS = {**_WIDE_LAYERS, "num_key_value_heads": 2, "max_position_embeddings": 8192}
_VISION_LAYERS = {**_LAYERS, "image_size": 64, "patch_size": 16}
ENCODER_VISION = {**_WIDE_LAYERS, "image_size": 32, "patch_size": 8}
ENCODER_IMAGE = {"height": 32, "width": 32}
CLIP_FACTOR = 5.0  # CLIP multiplies its own widths by this factor
TEXT_TOKENS = 32
"""Length of the texts that tiny encoders read, in tokens; start and end tokens count."""


def make_tiny_model(folder: Path, seed: int = 0) -> Path:
    """Make a Gemma 3 of about 1 MB in `folder`, which the Auto classes can load; see `make_checkpoint`."""
    return make_checkpoint(folder, "gemma3", _gemma3, seed)


def make_tiny_clip(folder: Path, seed: int = 0) -> Path:
    """Make a CLIP of about 1 MB in `folder`, with one encoder for images and one for texts; see `make_checkpoint`."""
    return make_checkpoint(folder, "clip", _clip, seed)


def make_checkpoint(folder: Path, architecture: str, builder: Builder, seed: int = 0) -> Path:
    """Save the result of `builder` in `folder` atomically, and return the folder.

    The same architecture and seed give the same bytes. If an earlier call with the same arguments completed the folder,
    the folder is reused.

    Args:
        architecture: distinguishes the folder from other builders' folders.
        builder: makes a model and its processor or tokenizer, using the current torch seed.
        seed: seed of the weights. The global random state stays unchanged.

    Raises:
        ModelError: torch or transformers is missing, or the folder holds something that is not a tiny model.
    """
    require_libraries()
    import transformers

    folder = Path(folder)
    marker = {"architecture": architecture, "seed": seed, "recipe": _RECIPE, "transformers": transformers.__version__}
    if _read_marker(folder) == marker:
        return folder
    if folder.exists() and _read_marker(folder) is None and any(folder.iterdir()):
        raise ModelError(f"{folder}: holds files that are no tiny model. Fix: choose another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as scratch:
        new_folder = Path(scratch) / "model"
        _build(new_folder, builder, seed)
        (new_folder / _MARKER).write_text(json.dumps(marker))
        if folder.exists():
            folder.rename(Path(scratch) / "replaced")
        try:
            new_folder.rename(folder)
        except OSError:  # if another process made the same model first, its result stays
            if _read_marker(folder) != marker:
                raise
    return folder


def _build(folder: Path, builder: Builder, seed: int) -> None:
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # seeds only the CPU's generator, which the fork restores
        for part in builder():
            part.save_pretrained(folder)


def _read_marker(folder: Path) -> dict[str, str | int] | None:
    try:
        marker: dict[str, str | int] = json.loads((folder / _MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return marker


def train_tokenizer(
    special: list[str], names: dict[str, str] | None = None, *, side: Literal["left", "right"] = "left"
) -> PreTrainedTokenizerFast:
    """Train byte-level BPE on a built-in text.

    The first three special tokens are used to pad, to end and to begin a text.

    Args:
        special: special tokens; their ids are 0, 1, 2, ...
        side: the side to pad. Use the right side for texts to embed, which then have their start and end tokens.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_VOCABULARY,
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    bpe.train_from_iterator(_CORPUS, trainer)
    if side == "right":
        ends = [(special[2], 2), (special[1], 1)]
        bpe.post_processor = processors.TemplateProcessing(f"{special[2]} $A {special[1]}", special_tokens=ends)
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        pad_token=special[0],
        eos_token=special[1],
        bos_token=special[2],
        padding_side=side,
        extra_special_tokens=names or {},
    )


def token_id(tokenizer: PreTrainedTokenizerFast, token: str) -> int:
    number = tokenizer.convert_tokens_to_ids(token)
    assert isinstance(number, int)
    return number


def _text_config(tokenizer: PreTrainedTokenizerFast, layers: Mapping[str, object] = _TEXT_LAYERS) -> dict[str, object]:
    return {
        **layers,
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": tokenizer.bos_token_id,
    }


def _gemma3() -> tuple[PreTrainedModel, ProcessorMixin]:
    import torch
    from transformers import Gemma3Config, Gemma3ForConditionalGeneration, Gemma3Processor
    from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil

    image = {"boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>"}
    tokenizer = train_tokenizer(["<pad>", "<eos>", "<bos>", "<|im_start|>", "<|im_end|>", *image.values()], image)
    ids = {name: token_id(tokenizer, token) for name, token in image.items()}
    text = {
        **_text_config(tokenizer),
        "head_dim": 16,
        "sliding_window": 64,
        "tie_word_embeddings": False,
        "query_pre_attn_scalar": 1,  # the default of 256 makes attention so even that order has no effect
    }
    config = Gemma3Config(
        text_config=text,
        vision_config=_VISION_LAYERS,
        mm_tokens_per_image=4,
        boi_token_index=ids["boi_token"],
        eoi_token_index=ids["eoi_token"],
        image_token_index=ids["image_token"],
        tie_word_embeddings=False,  # with tied random weights, the model would repeat its last token forever
    )
    processor = Gemma3Processor(
        Gemma3ImageProcessorPil(size={"height": 64, "width": 64}),
        tokenizer,
        image_seq_length=4,
        chat_template=TURN.replace("IMAGE", "<start_of_image>"),
    )
    model = Gemma3ForConditionalGeneration(config)
    # transformers sets this projection to zero, and images would have no effect
    torch.nn.init.normal_(model.model.multi_modal_projector.mm_input_projection_weight, std=0.2)
    return model, processor


def text_tower(tokenizer: PreTrainedTokenizerFast) -> dict[str, object]:
    return _text_config(tokenizer, {**_WIDE_LAYERS, "max_position_embeddings": TEXT_TOKENS})


def encoder_tokenizer() -> PreTrainedTokenizerFast:
    tokenizer = train_tokenizer(["<pad>", "</s>", "<s>", "<mask>"], side="right")
    tokenizer.model_max_length = TEXT_TOKENS
    return tokenizer


def _clip() -> tuple[PreTrainedModel, ProcessorMixin]:
    from transformers import CLIPConfig, CLIPModel, CLIPProcessor
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    tokenizer = encoder_tokenizer()
    wide = {"initializer_factor": CLIP_FACTOR}
    config = CLIPConfig(
        text_config={**text_tower(tokenizer), **wide},
        vision_config={**ENCODER_VISION, **wide},
        projection_dim=32,
        initializer_factor=CLIP_FACTOR,
    )
    pictures = CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=ENCODER_IMAGE)
    return CLIPModel(config), CLIPProcessor(pictures, tokenizer)
