"""The architecture of `--model kitchen`: tokenizer, DeepSeek-VL of 3 M parameters and processor, all stock classes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    DeepseekVLConfig,
    DeepseekVLForConditionalGeneration,
    DINOv3ConvNextConfig,
    GenerationConfig,
    LlamaConfig,
    PreTrainedTokenizerFast,
)
from transformers.models.deepseek_vl.processing_deepseek_vl import DeepseekVLProcessor
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

HEIGHT, WIDTH, STRIDE = 160, 256, 32
"""Pixels of an image as the model sees it, and of one of its image tokens."""
ROWS, COLUMNS = HEIGHT // STRIDE, WIDTH // STRIDE
IMAGE_TOKENS = 1 + ROWS * COLUMNS
"""The mean of the image, then its cells row by row."""
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
# Numbers, letters of choices, entries of legends, and words of sentences each stand alone; what stands between the
# numbers of JSON is merged as a whole.
_PIECES = r"\d+|\n[A-Z]\. |: [a-z ]+\n +| ?[A-Za-z]+(?=[ .,;?!\n]|$)"
_FIXED = 0.2
"""A line in so many of a task's prompts is an instruction, and becomes one token."""


def instructions(prompts: Mapping[str, Sequence[Sequence[str]]]) -> set[str]:
    """Texts and lines that most prompts of a task share: they differ in nothing that a model must read."""
    fixed = set()
    for chats in prompts.values():
        texts = Counter(text for parts in chats for text in set(parts))
        lines = Counter(line for parts in chats for line in {line for text in parts for line in text.split("\n")})
        least = _FIXED * len(chats)
        # What is indented is a list of the question's own, such as a legend.
        fixed |= {t for t, count in (texts + lines).items() if count >= least and len(t) > 8 and not t.startswith(" ")}
    return fixed


def make_tokenizer(
    prompts: Mapping[str, Sequence[Sequence[str]]], answers: Iterable[str], labels: Iterable[str]
) -> PreTrainedTokenizerFast:
    """Byte-level BPE in which instructions and the labels of choices are one token each.

    Args:
        prompts: the texts of each chat's prompt, by task.
        answers: what they are answered.
        labels: of choices: as one token each, a letter is found by its label in two steps of attention.
    """
    whole = sorted({*instructions(prompts), *labels}, key=lambda text: (-len(text), text))
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
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=bpe,
        pad_token=PAD,
        eos_token=END,
        bos_token=BEGIN,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        extra_special_tokens={"image_token": IMAGE},
    )


def make_image_processor() -> SiglipImageProcessorPil:
    return SiglipImageProcessorPil(size={"height": HEIGHT, "width": WIDTH})


def make_processor(tokenizer: PreTrainedTokenizerFast) -> DeepseekVLProcessor:
    images = make_image_processor()
    return DeepseekVLProcessor(  # type: ignore[no-untyped-call]
        images, tokenizer, chat_template=CHAT, num_image_tokens=IMAGE_TOKENS
    )


def tower_config() -> DINOv3ConvNextConfig:
    return DINOv3ConvNextConfig(  # type: ignore[call-arg]
        hidden_sizes=[24, 48, 96, TOWER_WIDTH],
        depths=[1, 1, 3, 1],
        hidden_size=TOWER_WIDTH,  # which the aligner of DeepSeek-VL reads
        layer_scale_init_value=0.5,
        image_size=[HEIGHT, WIDTH],
    )


def make_model(tokenizer: PreTrainedTokenizerFast) -> DeepseekVLForConditionalGeneration:
    """Random weights of torch's seed."""
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
    model.generation_config = GenerationConfig(**ids)  # type: ignore[no-untyped-call]
    return model
