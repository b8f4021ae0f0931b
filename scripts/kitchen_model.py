"""The architecture of `--model kitchen`: tokenizer, DeepSeek-VL of 3 M parameters and processor, all stock classes."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoProcessor,
    DeepseekVLConfig,
    DeepseekVLForConditionalGeneration,
    DINOv3ConvNextConfig,
    GenerationConfig,
    LlamaConfig,
    PreTrainedTokenizerFast,
)
from transformers.models.deepseek_vl.processing_deepseek_vl import DeepseekVLProcessor
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

from barista_bench.aids.levels import LEVELS
from barista_bench.aids.texts import OPENING
from barista_bench.core.boxes import BoxFormat, describe_format

HEIGHT, WIDTH, STRIDE = 160, 256, 32
"""Height and width in pixels of the image that the model sees, and the side in pixels of one image token."""
ROWS, COLUMNS = HEIGHT // STRIDE, WIDTH // STRIDE
IMAGE_TOKENS = 1 + ROWS * COLUMNS
"""Number of image tokens: the mean of the image, then its cells row by row."""
TOWER_WIDTH = 192
PAD, END, BEGIN, USER, ASSISTANT, IMAGE = SPECIAL = ("<pad>", "<end>", "<begin>", "<user>", "<assistant>", "<image>")
CHAT = (
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}<assistant>{% else %}<user>{% endif %}"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% if message['role'] == 'assistant' %}<end>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
VOCABULARY = 1200
LETTERS = string.ascii_uppercase
# Numbers, entries of legends, and words of sentences are single tokens; the JSON between numbers is merged as a whole.
_PIECES = r"\d+|: [a-z ]+\n +| ?[A-Za-z]+(?=[ .,;?!\n]|$)"
CHOICE = re.compile(r"^([A-Z])\. (.+)$", re.MULTILINE)
BOX_FORMAT = BoxFormat.parse("xyxy/100")
AT_THE_FRAME = " (at 0.00)\n"
"""End of each line of an aid, if the question shows a single frame."""
_FIXED = 0.2
"""A line that is in at least this fraction of a task's prompts is an instruction, and becomes one token."""
_LONGEST = 1024
"""Maximum bytes of a token: llguidance, which constrains answers to a schema, reads no longer token."""


def instructions(prompts: Mapping[str, Sequence[Sequence[str]]]) -> set[str]:
    """Return the texts and lines that most prompts of a task share. A model need not read them."""
    fixed = set()
    for chats in prompts.values():
        texts = Counter(text for parts in chats for text in set(parts))
        lines = Counter(line for parts in chats for line in {line for text in parts for line in text.split("\n")})
        least = _FIXED * len(chats)
        # Indented text is a list of the question, such as a legend.
        fixed |= {t for t, count in (texts + lines).items() if count >= least and len(t) > 8 and not t.startswith(" ")}
    return {text for text in fixed if len(text.encode()) <= _LONGEST}


def make_tokenizer(
    prompts: Mapping[str, Sequence[Sequence[str]]], answers: Iterable[str], labels: Iterable[str]
) -> PreTrainedTokenizerFast:
    """Make a byte-level BPE tokenizer in which each instruction and each choice is one token.

    Args:
        prompts: the texts of each chat's prompt, by task.
        answers: the answers of the chats. A line of an answer, such as `ANSWER: C`, is no instruction.
        labels: labels of choices. A label is one token together with the letter before it, or with the text that an
            answer writes after it. So a letter is looked up in one step of attention.
    """
    answers = list(answers)
    answered = {line for answer in answers for line in answer.split("\n")}
    labels = set(labels)
    choices = {f"{letter}. {label}" for label in labels for letter in LETTERS}
    chosen = {f"{label}\nANSWER: " for label in labels}
    whole = sorted(instructions(prompts) - answered | choices | chosen, key=lambda text: (-len(text), text))
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    fixed = re.compile("|".join(map(re.escape, whole)))
    texts = (text for chats in prompts.values() for parts in chats for text in parts)
    numbers = [" ".join(map(str, range(101)))] * 1000
    bpe.train_from_iterator([*(piece for text in texts for piece in fixed.split(text)), *answers, *numbers], trainer)
    bpe.add_tokens([AddedToken(text, normalized=False) for text in whole])
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        pad_token=PAD,
        eos_token=END,
        bos_token=BEGIN,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        extra_special_tokens={"image_token": IMAGE},
    )


def add_aid_tokens(tokenizer: PreTrainedTokenizerFast) -> None:
    """Add a token for each fixed text of aids, so that prompts stay short."""
    headings = (level.heading.replace("{format}", describe_format(BOX_FORMAT)) for level in LEVELS.values())
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in (OPENING, *headings, AT_THE_FRAME)])


@torch.no_grad()
def load_model(checkpoint: Path, tokenizer: PreTrainedTokenizerFast) -> DeepseekVLForConditionalGeneration:
    """Load a checkpoint for a tokenizer with more tokens. A new token starts as the mean of its former tokens."""
    model = DeepseekVLForConditionalGeneration.from_pretrained(checkpoint, dtype=torch.float32)
    known = AutoProcessor.from_pretrained(checkpoint).tokenizer
    before = model.get_input_embeddings().weight.clone()
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    for number in range(len(known), len(tokenizer)):
        pieces = known(tokenizer.decode([number]), add_special_tokens=False)["input_ids"]
        model.get_input_embeddings().weight[number] = before[pieces].mean(dim=0)
    return model


def make_image_processor() -> SiglipImageProcessorPil:
    return SiglipImageProcessorPil(size={"height": HEIGHT, "width": WIDTH})


def make_processor(tokenizer: PreTrainedTokenizerFast) -> DeepseekVLProcessor:
    images = make_image_processor()
    return DeepseekVLProcessor(images, tokenizer, chat_template=CHAT, num_image_tokens=IMAGE_TOKENS)


def tower_config() -> DINOv3ConvNextConfig:
    return DINOv3ConvNextConfig(
        hidden_sizes=[24, 48, 96, TOWER_WIDTH],
        depths=[1, 1, 3, 1],
        hidden_size=TOWER_WIDTH,  # which the aligner of DeepSeek-VL reads
        layer_scale_init_value=0.5,
        image_size=[HEIGHT, WIDTH],
    )


def make_model(tokenizer: PreTrainedTokenizerFast) -> DeepseekVLForConditionalGeneration:
    """Make a model with random weights by torch's seed. It soon learns to copy from these weights."""
    tokens = {"pad_token_id": PAD, "eos_token_id": END, "bos_token_id": BEGIN}
    ids: dict[str, Any] = {name: tokenizer.convert_tokens_to_ids(token) for name, token in tokens.items()}
    text = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=160,
        intermediate_size=432,
        num_hidden_layers=4,
        num_attention_heads=5,
        num_key_value_heads=5,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        **ids,
    )
    image: Any = tokenizer.convert_tokens_to_ids(IMAGE)
    config = DeepseekVLConfig(text_config=text, vision_config=tower_config(), image_token_id=image)
    model = DeepseekVLForConditionalGeneration(config)
    model.generation_config = GenerationConfig(**ids)
    _make_alike_attend(model.model.language_model)
    _make_choices_alike(model.model.language_model.embed_tokens.weight, tokenizer)
    return model


@torch.no_grad()
def _make_alike_attend(text: Any) -> None:  # noqa: ANN401  (a Llama, which transformers does not type)
    """Make tokens attend to equal tokens and copy them (Mimetic Initialization, Trockman and Kolter 2023).

    With the usual initial weights, a model of this size does not learn to look up a letter in thousands of steps.
    """
    torch.nn.init.normal_(text.get_input_embeddings().weight, std=0.08)
    for layer in text.layers:
        attention = layer.self_attn
        for projection in (attention.q_proj, attention.v_proj):
            torch.nn.init.normal_(projection.weight, std=0.1)
        attention.k_proj.weight.copy_(attention.q_proj.weight)
        attention.o_proj.weight.copy_(0.2 * attention.v_proj.weight.T)


@torch.no_grad()
def _make_choices_alike(embeddings: torch.Tensor, tokenizer: PreTrainedTokenizerFast) -> None:
    """Let a choice begin as the sum of its letter's and its label's embeddings. The label is the token in an answer."""
    ids = tokenizer.get_vocab()
    for text, number in ids.items():
        if found := CHOICE.fullmatch(text):
            embeddings[number] = embeddings[ids[found[1]]] + embeddings[ids[f"{found[2]}\nANSWER: "]]
