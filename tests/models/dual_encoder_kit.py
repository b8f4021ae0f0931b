"""Requests for dual encoders, and the scores in their answers."""

from collections.abc import Sequence

import numpy as np
from PIL import Image

from barista_bench.core.example import read_scores
from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from barista_bench.models import Completion, Failure, GenerationConfig, Request
from barista_bench.models.dual_encoders.model import DualEncoder

CONFIG = GenerationConfig()
CHOICES = {"A": "a hand pours milk", "B": "the cup is on the table", "C": "steam rises from the jug"}


def picture(seed: int) -> Image.Image:
    """Blocks of colour: unlike noise, they survive being made small."""
    blocks = np.random.default_rng(seed).integers(0, 256, (3, 4, 3), dtype=np.uint8)
    return Image.fromarray(blocks.repeat(16, axis=0).repeat(16, axis=1))


def request(
    name: str, seeds_of_images: Sequence[int], choices: dict[str, str] | None = None, seeds: tuple[int, ...] = (1,)
) -> Request:
    images = tuple(picture(seed) for seed in seeds_of_images)
    prompt = Prompt("", (*map(ImagePart, range(len(images))), TextPart("Which one?")))
    return Request(name, prompt, images, seeds, choices=CHOICES if choices is None else choices)


def scores(answer: Completion | Failure, choices: dict[str, str] = CHOICES) -> dict[str, float]:
    assert isinstance(answer, Completion), answer
    read = read_scores(answer.text, list(choices))
    assert read is not None
    return read


def ask(encoder: DualEncoder, *requests: Request) -> list[Completion | Failure]:
    return [row[0] for row in encoder.generate(requests, CONFIG)]
