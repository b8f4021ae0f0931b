"""Collect the pictures of a report: small JPEGs, each stored once, as many as the page's size allows."""

from __future__ import annotations

import hashlib
import io
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from PIL import Image

from barista_bench.core.guarding import note_fault
from barista_bench.core.task import Task
from barista_bench.data.dataset import ExampleSet
from barista_bench.errors import BaristaError, TaskError
from barista_bench.reporting.samples import Sample

LARGE, SMALL = (960, 1440), (640, 960)
"""Maximum width and height of pictures in pixels, for reports with few samples and with many samples."""
FEW = 150
"""Maximum number of samples for large pictures."""
STRIP = 4
"""Number of a sample's images up to which each image has this size. More images share the space of this many."""
LEAST = 192
"""Minimum width of pictures in pixels."""
QUALITY = 80
NO_ROOM = "No pictures for this sample: the report has reached its size limit."


@dataclass(frozen=True, slots=True)
class PlacedPicture:
    """A picture of a sample: its file in the album, and the size in pixels of the image that the model saw."""

    file: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class SamplePictures:
    """The pictures of one sample, in the order of its images. Without pictures, `problem` is the reason."""

    pictures: tuple[PlacedPicture, ...] = ()
    problem: str = ""


@dataclass(slots=True)
class Album:
    """JPEG files, each stored once, and the files that each sample shows.

    A sample that lacks pictures for reasons of space says so.
    """

    files: list[bytes] = field(default_factory=list)
    samples: dict[int, SamplePictures] = field(default_factory=dict)

    def of_sample(self, number: int) -> SamplePictures:
        return self.samples.get(number, SamplePictures(problem=NO_ROOM))


Sources = Sequence[tuple[ExampleSet, Task]]
"""For each section of the report, its examples and the task that makes their images."""


def make_album(samples: Sequence[Sample], sources: Sources, budget: int) -> Album:
    """Add pictures until `budget` bytes of base64 are used.

    Tasks take turns. The first samples of a task are evenly spread over its set, however many get pictures. After a
    sample follow all other samples of its frame. So questions about a frame can be seen side by side, and a shared
    picture is stored once.
    """
    new_album = Album()
    numbers: dict[bytes, int] = {}
    size = LARGE if len(samples) <= FEW else SMALL
    for number in _picture_order(samples):
        examples, task = sources[samples[number].section]
        budget = _add_pictures(new_album, numbers, number, examples, samples[number].index, task, size, budget)
        if budget < 0:
            break
    return new_album


def _picture_order(samples: Sequence[Sample]) -> Iterator[int]:
    """Yield the position of each sample once, in the order in which samples receive pictures."""
    sections: dict[int, list[int]] = defaultdict(list)
    frames: dict[tuple[str, int], list[int]] = defaultdict(list)
    for number, sample in enumerate(samples):
        sections[sample.section].append(number)
        frames[_first_frame(sample)].append(number)
    turns = zip_longest(*([members[index] for index in spread_order(len(members))] for members in sections.values()))
    placed: set[int] = set()
    for number in (number for turn in turns for number in turn if number is not None):
        if number not in placed:
            same_frame = frames[_first_frame(samples[number])]
            together = [number, *(other for other in same_frame if other not in placed | {number})]
            placed.update(together)
            yield from together


def _first_frame(sample: Sample) -> tuple[str, int]:
    return sample.frames[0].video_id, sample.frames[0].frame_index


def _add_pictures(
    album: Album,
    numbers: dict[bytes, int],
    number: int,
    examples: ExampleSet,
    index: int,
    task: Task,
    size: tuple[int, int],
    budget: int,
) -> int:
    """Add one sample's pictures if they fit. If the images cannot be decoded, the sample says so.

    Returns the remaining bytes, which are below 0 if the sample did not fit.
    """
    try:
        images = examples[index].images(task)
    except (BaristaError, OSError) as error:
        if isinstance(error, TaskError):
            note_fault(task, str(error))
        album.samples[number] = SamplePictures(problem=f"The images could not be read: {error}")
        return budget - 256
    placed, new_files = [], list[bytes]()
    new_numbers: dict[bytes, int] = {}
    for image in images:
        key = hashlib.sha256(repr((image.mode, image.size)).encode() + image.tobytes()).digest()
        if key not in numbers and key not in new_numbers:
            new_numbers[key] = len(album.files) + len(new_files)
            small, file = image.convert("RGB"), io.BytesIO()
            small.thumbnail(_shrunk_size(size, len(images)), Image.Resampling.LANCZOS)
            small.save(file, "JPEG", quality=QUALITY, optimize=True)
            new_files.append(file.getvalue())
        placed.append(PlacedPicture(numbers.get(key, new_numbers.get(key, 0)), *image.size))
    budget -= 256 + sum(4 * len(file) // 3 + 96 for file in new_files)
    if budget >= 0:
        numbers.update(new_numbers)
        album.files.extend(new_files)
        album.samples[number] = SamplePictures(tuple(placed))
    return budget


def _shrunk_size(size: tuple[int, int], count: int) -> tuple[int, int]:
    """
    >>> _shrunk_size((640, 960), 4), _shrunk_size((640, 960), 16), _shrunk_size((640, 960), 100)
    ((640, 960), (320, 480), (192, 288))
    """
    fraction = max(min(1.0, math.sqrt(STRIP / max(count, 1))), LEAST / size[0])
    return round(size[0] * fraction), round(size[1] * fraction)


def spread_order(count: int) -> Iterable[int]:
    """Return all of range(count) in an order that halves the gaps in each round, by reversing the bits of a counter.

    >>> list(spread_order(6))
    [0, 4, 2, 1, 5, 3]
    """
    bits = max(1, (count - 1).bit_length())
    reversed_bits = (int(f"{number:0{bits}b}"[::-1], 2) for number in range(2**bits))
    return (number for number in reversed_bits if number < count)
