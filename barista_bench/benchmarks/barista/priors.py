"""What is usual: answers made from the truths of other videos alone, for the `prior` model.

A benchmark whose examples are alike can be answered without looking. How well, is what these answers measure: they
know how the truths of other videos are distributed, and of the example only what its question says. Nothing here takes
an example's own target, and the examples handed in are of other videos than its own.

What a set of examples says is worked out once for every tuple of them (`remembered`), so a caller that hands the same
tuple to all examples of one video pays for it once a video.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from itertools import product
from typing import TypeVar, cast

import numpy as np

from barista_bench.benchmarks.barista.box_answers import on_usual_grid, truth_scale
from barista_bench.benchmarks.barista.lexical import content_words
from barista_bench.core.task import Example

KEPT = 256
"""Sets of examples of which the outcome is kept: more than a benchmark has videos."""
CENTRE = (250.0, 250.0, 750.0, 750.0)
"""The middle of an image, half as wide and half as high, on the release's grid of 0..1000."""

Result = TypeVar("Result")
Name = TypeVar("Name", str, int, tuple[str, ...])
Boxes = list[list[float]]
Cell = tuple[str, str, str, str]
"""Categories of source and target, relation type, value."""


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
        said = words[text].total() * len(texts)
        return 2 * sum(having[word] for word in _numbered(words[text])) / (said + length) if said else 0.0

    return max(sorted(words), key=expected)


def _numbered(words: Counter[str]) -> list[tuple[str, int]]:
    """Every word with its first, second, ... occurrence: a multiset as a set."""
    return [(word, number) for word, count in words.items() for number in range(count)]


@remembered
def boxes_by_category(examples: Sequence[Example]) -> dict[str, Boxes]:
    """Usual boxes of grounding's categories, on the grid; under the empty name those of all categories together."""
    found: dict[str, list[Boxes]] = defaultdict(list)
    for example in examples:
        boxes = [
            on_usual_grid(box, truth_scale(example.target))
            for box in cast("Boxes", example.target["ground_truth_boxes"])
        ]
        for name in (str(example.inputs["category"]), ""):
            found[name].append(boxes)
    return {name: usual_boxes(answers) for name, answers in found.items()}


@remembered
def class_counts(examples: Sequence[Example]) -> Counter[str]:
    """How often each activity class is the truth."""
    return Counter(str(example.target["class_id"]) for example in examples)


@remembered
def typical_sentence(examples: Sequence[Example]) -> str | None:
    """Referring's most typical reference sentence; None where there are no examples."""
    sentences = [str(example.target["sentence"]) for example in examples]
    return most_typical(sentences) if sentences else None


@remembered
def answers_by_question(examples: Sequence[Example]) -> dict[str, str]:
    """Temporal VQA's questions, word for word, and the most typical answer to each."""
    found: dict[str, list[str]] = defaultdict(list)
    for example in examples:
        found[str(example.inputs["question"])].append(str(example.target["answer"]))
    return {question: most_typical(answers, set(content_words(question))) for question, answers in found.items()}


@remembered
def likely_relations(examples: Sequence[Example]) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """By the categories of a pair of objects, the (type, value) worth answering for every such pair.

    A rule says: between each two objects of these categories, in this direction, answer this relation. Rules are taken
    by the share of pairs for which they are true, down to where the pooled F1 over `examples` is highest: as F1 grows
    with each rule that is right for more than half of the F1 so far, no other choice of rules has a higher one.
    """
    seen: Counter[tuple[tuple[str, int], ...]] = Counter()
    true: Counter[Cell] = Counter()
    total = 0
    for example in examples:
        names = marked_categories(example)
        seen[tuple(sorted(Counter(names.values()).items()))] += 1
        relations = cast("Sequence[Mapping[str, object]]", example.target["relations"])
        total += len(relations)
        true.update(cell for relation in relations if (cell := _cell(relation, names)) is not None)
    # Many frames show the same categories: pairs are counted once for all of them.
    pairs: Counter[tuple[str, str]] = Counter()
    for categories, frames in seen.items():
        for (first, here), (second, there) in product(categories, repeat=2):
            pairs[first, second] += frames * here * (there - (first == second))
    chosen: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for first, second, kind, value in _best_rules(true, pairs, total):
        chosen[first, second].append((kind, value))
    return dict(chosen)


def marked_categories(example: Example) -> dict[int, str]:
    """Mark to category of the objects of a relations example."""
    objects = cast("Sequence[Mapping[str, object]]", example.inputs["objects"])
    return {cast("int", item["mark"]): str(item["category"]) for item in objects}


def _cell(relation: Mapping[str, object], names: Mapping[int, str]) -> Cell | None:
    """None for a relation that no pair of different marks has."""
    source, target = cast("int", relation["source_id"]), cast("int", relation["target_id"])
    if source == target or source not in names or target not in names:
        return None
    return names[source], names[target], str(relation["relation_type"]), str(relation["value"])


def _best_rules(true: Counter[Cell], pairs: Mapping[tuple[str, str], int], total: int) -> list[Cell]:
    ranked = sorted(true, key=lambda cell: (-true[cell] / pairs[cell[:2]], cell))
    hits = said = best = 0
    highest = 0.0
    for count, cell in enumerate(ranked, start=1):
        hits, said = hits + true[cell], said + pairs[cell[:2]]
        f1 = 2 * hits / (said + total)
        if f1 > highest:
            highest, best = f1, count
    return ranked[:best]
