"""What hands do on a frame, read from the graph: which objects they act on, with which hands, and how.

Nothing here depends on boxes, only on which relations hold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from barista_bench.benchmarks.barista.frame_arrays import Bools
from barista_bench.scene_graph import VideoGraph
from barista_bench.scene_graph.video_graph import HAND_RELATION, HANDS


@dataclass(frozen=True, slots=True)
class HandAction:
    """What hands do to one object; `target` and `hands` are indices in `VideoGraph.objects`."""

    target: int
    hands: tuple[int, ...]
    hand_type: str
    verbs: frozenset[str]
    rows: frozenset[int]


def hand_side(category: str) -> str | None:
    """left or right; None for what is no hand.

    >>> hand_side(" Left hand"), hand_side("handle")
    ('left', None)
    """
    return HANDS.get(category.strip().lower())


def contact_ranges(video: VideoGraph, relation_type: str = HAND_RELATION) -> list[int]:
    """Positions in the relations table that state a hand acting on an object, in the order of the file."""
    table = video.relations_table
    kinds = [i for i, (kind, _) in enumerate(table.labels) if kind == relation_type]
    hands = [i for i, item in enumerate(video.objects) if hand_side(item.category)]
    return np.flatnonzero(np.isin(table.label, kinds) & np.isin(table.source, hands)).tolist()


def actions_at(video: VideoGraph, frame: int, contacts: Sequence[int], active: Bools) -> list[HandAction]:
    """All that hands do on a frame, by the object acted on: several hands on one object are one interaction.

    Args:
        video: the annotations.
        frame: which frame.
        contacts: as `contact_ranges`.
        active: (contacts, frames) whether each holds.
    """
    by_target: dict[int, list[int]] = defaultdict(list)
    for number in np.flatnonzero(active[:, frame]).tolist():
        by_target[int(video.relations_table.target[contacts[number]])].append(contacts[number])
    return [_action(video, target, positions) for target, positions in by_target.items()]


def _action(video: VideoGraph, target: int, positions: Sequence[int]) -> HandAction:
    table = video.relations_table
    hands = tuple(dict.fromkeys(int(table.source[i]) for i in positions))
    sides = {side for hand in hands if (side := hand_side(video.objects[hand].category))}
    entries = [table.entry(i) for i in positions]
    return HandAction(
        target,
        hands,
        hand_type="both" if len(sides) > 1 else sides.pop(),
        verbs=frozenset(verb for _, verb, _, _, _ in entries),
        rows=frozenset(row for _, _, _, _, row in entries),
    )
