"""Requests, and what tests of the transformers runner look at."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from barista_bench.models.base import Completion, Failure, GenerationConfig, Request

GREEDY = GenerationConfig(temperature=0, max_new_tokens=8)
SAMPLED = GenerationConfig(temperature=0.7, max_new_tokens=8)


def change_json(file: Path, **changes: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | changes), encoding="utf-8")


@contextmanager
def changing_tensors(file: Path) -> Iterator[dict[str, Any]]:
    """The tensors of a safetensors file; changes to them are written to the file again."""
    from safetensors.torch import load_file, save_file

    tensors = load_file(file)
    yield tensors
    save_file(tensors, file, metadata={"format": "pt"})


def picture(seed: int, size: tuple[int, int]) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def request_of(number: int, images: int, text: str, seeds=(0,), system: str = "") -> Request:
    pictures = tuple(picture(10 * number + k, (60 + 20 * k, 40 + 15 * number)) for k in range(images))
    parts = (*(ImagePart(k) for k in range(images)), TextPart(text))
    return Request(f"example-{number}", Prompt(system, parts), pictures, tuple(seeds))


def mixed_requests(seeds=(0,)) -> list[Request]:
    """Images of different sizes and counts, texts of different lengths."""
    return [
        request_of(0, 1, "Which hand holds the cup?", seeds),
        request_of(1, 3, "left or right", seeds, system="Answer in JSON."),
        request_of(2, 2, "milk " * 20, seeds),
        request_of(3, 1, "yes or no", seeds),
    ]


def many_requests(seeds=(0,)) -> list[Request]:
    """Ten of them, 1 to 5 images each."""
    return [request_of(n, 1 + n % 5, "the cup and the jug " * (1 + n % 3), seeds) for n in range(10)]


def texts(answers: list[list[Completion | Failure]]) -> list[list[str]]:
    return [[completion.text for completion in completions] for completions in answers]


def alike(answers: list[list[Completion | Failure]]) -> list[list[Completion | Failure]]:
    """Answers without the size of their batch and its cached tokens: the parts that batches must not change."""
    return [
        [
            replace(completion, batch_size=None, cached_tokens=None)
            if isinstance(completion, Completion)
            else completion
            for completion in each
        ]
        for each in answers
    ]


def fail_where(
    monkeypatch: pytest.MonkeyPatch, model, is_too_much: Callable[[int, dict], bool], error: Exception
) -> list[int]:
    """`generate` raises where this holds of the number of samples and what else it is given; samples of each call."""
    generate, calls = model._engine.model.generate, []

    def generate_or_fail(**kwargs):
        shared = kwargs.get("custom_generate")
        calls.append(len(shared.keywords["rows"] if shared else kwargs["input_ids"]))
        if is_too_much(calls[-1], kwargs):
            raise error
        return generate(**kwargs)

    monkeypatch.setattr(model._engine.model, "generate", generate_or_fail)
    return calls


def watch(monkeypatch: pytest.MonkeyPatch, model, look: Callable[[dict], None]) -> None:
    """Show `look` the arguments of each call of `generate`."""
    made = model._engine.model.generate
    monkeypatch.setattr(model._engine.model, "generate", lambda **kwargs: (look(kwargs), made(**kwargs))[1])


def written_tokens(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The tokens of each row, in the order in which rows are read from now on."""
    from barista_bench.models.answers import AnswerReader

    rows: list[list[int]] = []
    made = AnswerReader.read
    monkeypatch.setattr(
        AnswerReader, "read", lambda self, row, stop: (rows.append(row.tokens), made(self, row, stop))[1]
    )
    return rows
