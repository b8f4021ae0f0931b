"""Plan the aids for each example. For an example with k levels:

    full    every set of levels, true and inert: 2 * 2^k - 1 answers
    paths   one order of the levels, true and inert step by step: 2 k + 1 answers

Both designs also ask each false aid separately, which adds one answer per level. Each view adds one answer, and each
aid with the model's own answers adds one. The content of an example determines its order of levels. The orders are as
even as possible within each video.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Final, Literal, TypeAlias

from barista_bench.aids.levels import LEVELS, LevelName
from barista_bench.aids.task_aids import Aid
from barista_bench.aids.texts import AidBook
from barista_bench.aids.views import View
from barista_bench.core.example import Example, content_seed
from barista_bench.core.task import Task

Design: TypeAlias = Literal["full", "paths"]
Condition: TypeAlias = tuple[Aid | View, ...]
LevelSet: TypeAlias = frozenset[LevelName]
PLAIN: Final = "none"
"""Folder name for the answers without aids."""


@dataclass(frozen=True, slots=True)
class PlannedExample:
    """An example with the order of its levels, the levels with a false aid, the aids with own answers, and the
    views.
    """

    example: Example
    order: tuple[LevelName, ...]
    false: tuple[LevelName, ...]
    own: tuple[Aid, ...] = ()
    views: tuple[View, ...] = ()

    def sets(self, design: Design) -> Iterator[LevelSet]:
        """Yield each set of levels that are given together."""
        sizes = range(len(self.order) + 1)
        if design == "paths":
            yield from (frozenset(self.order[:size]) for size in sizes)
        else:
            yield from (frozenset(levels) for size in sizes for levels in combinations(self.order, size))

    def conditions(self, design: Design) -> Iterator[Condition]:
        """Yield each condition of the example once."""
        for levels in self.sets(design):
            yield true_aids(levels)
            if levels:
                yield inert_aids(levels)
        yield from ((Aid(level, "false"),) for level in self.false)
        for aid in self.own:
            yield (aid,)
            if design == "paths" and self.order[0] != aid.level:
                yield true_aids([aid.level])
        yield from ((view,) for view in self.views)


def true_aids(levels: Iterable[LevelName]) -> Condition:
    """Return the true aids of these levels, in prompt order."""
    return tuple(Aid(level) for level in LEVELS if level in set(levels))


def inert_aids(levels: Iterable[LevelName]) -> Condition:
    return tuple(Aid(level, "inert") for level in LEVELS if level in set(levels))


def condition_name(condition: Condition) -> str:
    """Return the folder name of a condition.

    >>> condition_name(()), condition_name(inert_aids(["states", "objects"]))
    ('none', 'objects.inert+states.inert')
    """
    return "+".join(map(_part_name, condition)) or PLAIN


def _part_name(part: Aid | View) -> str:
    if isinstance(part, Aid) and part.variant == "own":
        return f"{part.level}.own"
    return str(part).replace(":", ".")


def default_design(task: Task, levels: Collection[LevelName]) -> Design:
    """Return `paths` for several levels if the primary metric is a mean of sample scores. Ratios and mAP need `full`.

    With one level, both designs ask the same questions.
    """
    return "paths" if len(levels) > 1 and task.primary == task.sample_score else "full"


def plan(
    examples: Iterable[Example],
    book: AidBook,
    levels: Collection[LevelName] = (),
    own: Iterable[Aid] = (),
    views: Collection[View] = (),
) -> list[PlannedExample]:
    """Return the examples with an aid, each with its order of levels.

    Args:
        levels: the levels to give. Empty means the task's usual levels.
        own: aids in which the model's own answers replace the truth, where it answered.
        views: the views to ask. Views that cannot be made are skipped.
    """
    examples, own = list(examples), list(own)
    groups: dict[tuple[str, tuple[LevelName, ...]], list[Example]] = defaultdict(list)
    kept = {example.example_id: given for example in examples if (given := book.levels(example, levels))}
    in_set_order = [example for example in examples if example.example_id in kept]
    for example in in_set_order:
        groups[example.video_id, kept[example.example_id]].append(example)
    orders: dict[str, tuple[LevelName, ...]] = {}
    for (video_id, given), group in groups.items():
        all_orders = sorted(permutations(given), key=lambda order: content_seed("orders", video_id, *order))
        group.sort(key=lambda example: content_seed("order", example.example_id))
        orders |= {e.example_id: all_orders[place % len(all_orders)] for place, e in enumerate(group)}
    return [
        PlannedExample(
            example,
            order,
            tuple(level for level in order if book.false(example, level)),
            tuple(aid for aid in own if aid.level in order and book.own(example, aid.level)),
            _views(example, book, views),
        )
        for example in in_set_order
        for order in [orders[example.example_id]]
    ]


def _views(example: Example, book: AidBook, views: Collection[View]) -> tuple[View, ...]:
    """Return the views of an example. Evidence is not hidden if there is no room for the control."""
    made = tuple(view for view in views if book.viewed(example, view))
    lacks_control = "hide_elsewhere" in views and "hide_elsewhere" not in made
    return tuple(view for view in made if not (lacks_control and view == "hide_evidence"))


def ids_by_condition(planned: Sequence[PlannedExample], design: Design) -> Mapping[Condition, list[str]]:
    """Map each condition to the ids of its examples. The condition without aids comes first."""
    ids: dict[Condition, list[str]] = defaultdict(list)
    for each in planned:
        for condition in each.conditions(design):
            ids[condition].append(each.example.example_id)
    return dict(sorted(ids.items(), key=lambda item: (len(item[0]), condition_name(item[0]))))
