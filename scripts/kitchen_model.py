"""The architecture of `--model kitchen`: tokenizer, DeepSeek-VL of 3 M parameters and processor, all stock classes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import DeepseekVLConfig, DeepseekVLForConditionalGeneration, GenerationConfig, PreTrainedTokenizerFast
from transformers.models.deepseek_vl.processing_deepseek_vl import DeepseekVLProcessor
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

HEIGHT, WIDTH, STRIDE = 160, 256, 32
"""Pixels of an image as the model sees it, and of one of its image tokens."""
ROWS, COLUMNS = HEIGHT // STRIDE, WIDTH // STRIDE
IMAGE_TOKENS = 1 + ROWS * COLUMNS
"""The mean of the image, then its cells row by row."""
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
_OFTEN = 30
"""A text of a prompt that is asked so many times becomes one token."""


def make_tokenizer(prompts: Iterable[Sequence[str]], answers: Iterable[str]) -> PreTrainedTokenizerFast:
    """Byte-level BPE whose tokens are phrases of exported chats.

    Args:
        prompts: the texts of each chat's prompt.
        answers: what it is answered.
    """
    texts = Counter(text for parts in prompts for text in parts)
    lines: Counter[str] = Counter()
    for text, count in texts.items():
        for line in text.split("\n"):
            lines[line] += count
    phrases = {text for text, count in texts.items() if count >= _OFTEN and len(text) > 8}
    phrases |= {line for line, count in lines.items() if count >= _OFTEN and len(line) > 24}
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
    whole = re.compile("|".join(map(re.escape, sorted(phrases, key=lambda text: (-len(text), text)))))
    rest = (piece for text in texts.elements() for piece in whole.split(text))
    numbers = [" ".join(map(str, range(101)))] * 1000
    bpe.train_from_iterator([*rest, *answers, *numbers], trainer)
    bpe.add_tokens([AddedToken(phrase, normalized=False) for phrase in sorted(phrases)])
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        pad_token=PAD,
        eos_token=END,
        bos_token=BEGIN,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        extra_special_tokens={"image_token": IMAGE},
    )


def make_processor(tokenizer: PreTrainedTokenizerFast) -> DeepseekVLProcessor:
    pictures = SiglipImageProcessorPil(size={"height": HEIGHT, "width": WIDTH})
    return DeepseekVLProcessor(pictures, tokenizer, chat_template=CHAT, num_image_tokens=IMAGE_TOKENS)


def make_model(tokenizer: PreTrainedTokenizerFast) -> DeepseekVLForConditionalGeneration:
    """Random weights of torch's seed."""
    ends: dict[str, Any] = {name: tokenizer.convert_tokens_to_ids(token) for name, token in
                            (("pad_token_id", PAD), ("eos_token_id", END), ("bos_token_id", BEGIN))}  # fmt: skip
    text = {"model_type": "llama", "vocab_size": len(tokenizer), "hidden_size": 160, "intermediate_size": 432,
            "num_hidden_layers": 4, "num_attention_heads": 5, "num_key_value_heads": 5,
            "max_position_embeddings": 2048, "tie_word_embeddings": True, **ends}  # fmt: skip
    vision = {"model_type": "dinov3_convnext", "hidden_sizes": [24, 48, 96, 192], "depths": [1, 1, 3, 1],
              "hidden_size": 192, "layer_scale_init_value": 0.5, "image_size": [HEIGHT, WIDTH]}  # fmt: skip
    config = DeepseekVLConfig(
        text_config=text, vision_config=vision, image_token_id=tokenizer.convert_tokens_to_ids(IMAGE)
    )
    model = DeepseekVLForConditionalGeneration(config)
    model.generation_config = GenerationConfig(**ends)
    return model
