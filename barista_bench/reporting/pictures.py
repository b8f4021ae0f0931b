"""The pictures of a report: small JPEGs, as many as its size allows."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from PIL import Image

from barista_bench.errors import BaristaError
from barista_bench.reporting.samples import Examples
from barista_bench.task import Task

MAX_SIZE = (960, 1440)
"""Width and height in pixels that pictures are scaled down to."""
QUALITY = 80


@dataclass(frozen=True, slots=True)
class Pictures:
    """The JPEG files of one sample; `problem` says why there is none."""

    files: tuple[bytes, ...] = ()
    problem: str = ""


def sample_pictures(examples: Examples, index: int, task: Task) -> Pictures:
    """What the model saw, scaled down. A sample that cannot be decoded says so instead."""
    try:
        return Pictures(tuple(_jpeg(image) for image in examples[index].images(task)))
    except (BaristaError, OSError) as error:
        return Pictures(problem=f"The images could not be read: {error}")


def _jpeg(image: Image.Image) -> bytes:
    small = image.convert("RGB")
    small.thumbnail(MAX_SIZE, Image.Resampling.LANCZOS)
    file = io.BytesIO()
    small.save(file, "JPEG", quality=QUALITY, optimize=True)
    return file.getvalue()


def within_budget(sources: Sequence[tuple[Examples, int, Task]], budget: int) -> list[Pictures | None]:
    """Pictures by sample, until they would take more than `budget` bytes as base64; None for those left out.

    Samples are taken in an order of which every beginning is evenly spread, so that those left out are, too.
    """
    found: list[Pictures | None] = [None] * len(sources)
    for place in spread_order(len(sources)):
        pictures = sample_pictures(*sources[place])
        budget -= sum(4 * len(file) // 3 + 64 for file in pictures.files) + 256
        if budget < 0:
            break
        found[place] = pictures
    return found


def spread_order(count: int) -> Iterable[int]:
    """All of range(count), halving the gaps each round: bits of the counter, reversed.

    >>> list(spread_order(6))
    [0, 4, 2, 1, 5, 3]
    """
    bits = max(1, (count - 1).bit_length())
    reversed_bits = (int(f"{number:0{bits}b}"[::-1], 2) for number in range(2**bits))
    return (number for number in reversed_bits if number < count)
