"""What is usual: answers made from the true answers of other videos alone, for the `prior` model.

A benchmark whose examples are alike can be answered without looking. How well, is what these answers measure: they
know how the true answers of other videos are distributed, and of the example only its question. Nothing here takes
an example's own target, and the examples handed in are of other videos than its own.

What a set of examples gives is worked out once for every tuple of them (`remembered`), so a caller that hands the same
tuple to all examples of one video pays for it once a video.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import TypeVar, cast

import numpy as np

from barista_bench.benchmarks.barista.lexical import content_words
from barista_bench.core.task import Example

KEPT = 256
"""Sets of examples of which the outcome is kept: more than a benchmark has videos."""
CENTRE = (250.0, 250.0, 750.0, 750.0)
"""The middle of an image, half as wide and half as high, on the release's grid of 0..1000."""

Result = TypeVar("Result")
Name = TypeVar("Name", str, int, tuple[str, ...])
Boxes = list[list[float]]


@dataclass(frozen=True, slots=True)
class _Same:
    """A tuple of examples, compared as the very same object: examples have no hash."""

    examples: tuple[Example, ...]

    def __hash__(self) -> int:
        return id(self.examples)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.examples is self.examples


def remembered(make: Callable[[Sequence[Example]], Result]) -> Callable[[Sequence[Example]], Result]:
    """`make`, called once for each of the last `KEPT` tuples; for a list, which may change, every time."""
    kept = lru_cache(KEPT)(lambda same: make(same.examples))

    @wraps(make)
    def call(examples: Sequence[Example]) -> Result:
        return kept(_Same(examples)) if isinstance(examples, tuple) else make(examples)

    return call


def most_frequent(values: Iterable[Name]) -> Name:
    """The value that is there most often; of several the first in sorted order.

    Raises:
        ValueError: there are no values.

    >>> most_frequent(["lid", "cup", "cup", "lid"])
    'cup'
    """
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], value))


def usual_boxes(answers: Sequence[Boxes]) -> Boxes:
    """Of several lists of boxes the one to expect: as many as most lists have, each the mean over those lists.

    Boxes of a list are paired from left to right. At least one list.

    >>> usual_boxes([[[0, 0, 10, 10]], [[20, 0, 30, 20]], [[0, 0, 1, 1], [5, 5, 6, 6]]])
    [[10.0, 0.0, 20.0, 15.0]]
    """
    count = most_frequent(len(boxes) for boxes in answers)
    alike = [sorted(boxes) for boxes in answers if len(boxes) == count]
    return cast("Boxes", np.mean(np.array(alike, dtype=float).reshape(len(alike), count, 4), axis=0).tolist())


def most_typical(texts: Sequence[str], passed: Collection[str] = ()) -> str:
    """The text that shares most words with all texts: the highest expected F1 of content words (`lexical.py`).

    Expected hits are divided by expected lengths, which spares comparing each text with each other one. Words of
    `passed` do not count. Of several the first in sorted order. At least one text.

    >>> most_typical(["a red cup", "a white cup on a table", "the white cup"])
    'the white cup'
    """
    times = Counter(texts)
    words = {text: Counter(word for word in content_words(text) if word not in passed) for text in times}
    having: Counter[tuple[str, int]] = Counter()
    length = 0
    for text, counts in words.items():
        length += times[text] * counts.total()
        for word in _numbered(counts):
            having[word] += times[text]

    def expected(text: str) -> float:
        count = words[text].total() * len(texts)
        return 2 * sum(having[word] for word in _numbered(words[text])) / (count + length) if count else 0.0

    return max(sorted(words), key=expected)


def _numbered(words: Counter[str]) -> list[tuple[str, int]]:
    """Every word with its first, second, ... occurrence: a multiset as a set."""
    return [(word, number) for word, count in words.items() for number in range(count)]
