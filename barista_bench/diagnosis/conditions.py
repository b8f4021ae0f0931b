"""Designs: which examples are asked with which aids.

    full    every set of levels, true and inert: 2 * 2^k - 1 answers an example with k levels
    paths   one order of the levels an example, true and inert step by step: 2 k + 1 answers

Both ask each false aid alone, which is one more answer a level. The order of an example is fixed by its content, and
the orders of a video's examples are as even as they can be.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Final, Literal, TypeAlias

from barista_bench.aids.levels import LEVELS, Aid, Level
from barista_bench.aids.texts import AidBook
from barista_bench.core.example import content_seed
from barista_bench.core.task import Example, Task

Design: TypeAlias = Literal["full", "paths"]
Condition: TypeAlias = tuple[Aid, ...]
LevelSet: TypeAlias = frozenset[Level]
PLAIN: Final = "none"
"""The folder of the answers without an aid."""


@dataclass(frozen=True, slots=True)
class PlannedExample:
    """An example with the levels that it is told, in its order, and those of which there is a false aid."""

    example: Example
    order: tuple[Level, ...]
    false: tuple[Level, ...]

    def sets(self, design: Design) -> Iterator[LevelSet]:
        """The sets of levels that are told together."""
        sizes = range(len(self.order) + 1)
        if design == "paths":
            yield from (frozenset(self.order[:size]) for size in sizes)
        else:
            yield from (frozenset(levels) for size in sizes for levels in combinations(self.order, size))

    def conditions(self, design: Design) -> Iterator[Condition]:
        """What the example is asked with, each once."""
        for levels in self.sets(design):
            yield true(levels)
            if levels:
                yield inert(levels)
        yield from ((Aid(level, "false"),) for level in self.false)


def true(levels: Iterable[Level]) -> Condition:
    """The true aids of some levels, in the order of prompts."""
    return tuple(Aid(level) for level in LEVELS if level in set(levels))


def inert(levels: Iterable[Level]) -> Condition:
    return tuple(Aid(level, "inert") for level in LEVELS if level in set(levels))


def condition_name(condition: Condition) -> str:
    """The name of a condition's folder.

    >>> condition_name(()), condition_name(inert(["states", "objects"]))
    ('none', 'objects.inert+states.inert')
    """
    return "+".join(str(aid).replace(":", ".") for aid in condition) or PLAIN


def default_design(task: Task) -> Design:
    """`paths` where the primary figure is the mean of sample scores; ratios and mAP need `full`."""
    return "paths" if task.primary == task.sample_score else "full"


def plan(examples: Iterable[Example], book: AidBook) -> list[PlannedExample]:
    """The examples that have an aid, each with its order of levels."""
    groups: dict[tuple[str, tuple[Level, ...]], list[Example]] = defaultdict(list)
    kept = {example.example_id: levels for example in examples if (levels := book.levels(example))}
    in_set_order = [example for example in examples if example.example_id in kept]
    for example in in_set_order:
        groups[example.video_id, kept[example.example_id]].append(example)
    orders: dict[str, tuple[Level, ...]] = {}
    for (video_id, levels), group in groups.items():
        all_orders = sorted(permutations(levels), key=lambda order: content_seed("orders", video_id, *order))
        group.sort(key=lambda example: content_seed("order", example.example_id))
        orders |= {e.example_id: all_orders[place % len(all_orders)] for place, e in enumerate(group)}
    return [
        PlannedExample(example, order, tuple(level for level in order if book.false(example, level)))
        for example in in_set_order
        for order in [orders[example.example_id]]
    ]


def ids_by_condition(planned: Sequence[PlannedExample], design: Design) -> Mapping[Condition, list[str]]:
    """The examples to ask in each condition, the plain one first."""
    ids: dict[Condition, list[str]] = defaultdict(list)
    for each in planned:
        for condition in each.conditions(design):
            ids[condition].append(each.example.example_id)
    return dict(sorted(ids.items(), key=lambda item: (len(item[0]), condition_name(item[0]))))
