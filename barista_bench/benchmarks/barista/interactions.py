"""Hand-object interactions: reads them from the graph, from examples, and from answers under either protocol.

The objects, the hands and their action depend only on relations, not on boxes (`actions_at`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import mode
from typing import cast

import numpy as np

from barista_bench.benchmarks.kinds.box_answers import (
    on_usual_grid,
    read_pixels,
    released_number,
    released_pixels,
    usual_boxes,
)
from barista_bench.benchmarks.kinds.frames import FrameArrays
from barista_bench.benchmarks.parsing import (
    cut_array,
    json_arrays,
    refuse_unbounded,
    released_array,
    strip_fence,
    whole_array,
)
from barista_bench.core.boxes import GRID, BoxFormat, four_numbers
from barista_bench.core.example import Example, Fields, GridBox, ParseError, PixelBox, Prediction, Target, TypedFields
from barista_bench.core.remembering import remember
from barista_bench.metrics.interaction_f1.inputs import HAND_TYPES
from barista_bench.scene_graph import VideoGraph
from barista_bench.scene_graph.video_graph import HAND_RELATION, HANDS


class BoxedInteraction(TypedFields):
    """An interaction with boxes [x0, y0, x1, y1].

    Predictions have boxes in pixels. Exemplars have boxes on the grid of 0..1000.
    """

    hand_boxes: list[PixelBox]
    object_box: PixelBox
    hand_type: str


class BoxedInteractions(TypedFields):
    """The interactions of a prediction."""

    interactions: list[BoxedInteraction]


class TrueInteraction(TypedFields):
    """A true interaction with boxes on the grid of 0..`bbox_scale` and in pixels.

    Released files lack the boxes in pixels.
    """

    object_id: str
    category: str
    hand_type: str
    hand_boxes: list[GridBox]
    object_box: GridBox
    hand_pixels: list[PixelBox] | None = None
    object_pixels: PixelBox | None = None


class InteractionTarget(Target):
    interactions: list[TrueInteraction]
    bbox_format: str = "xyxy"
    bbox_scale: int = GRID


EXEMPLARS: dict[str, list[BoxedInteraction]] = {
    "one_hand": [BoxedInteraction([[588, 431, 742, 655]], [471, 282, 640, 560], "right")],
    "both_hands": [BoxedInteraction([[96, 612, 251, 828], [719, 604, 884, 817]], [183, 506, 797, 742], "both")],
    "two_objects": [
        BoxedInteraction([[212, 540, 366, 731]], [318, 455, 477, 698], "left"),
        BoxedInteraction([[530, 268, 688, 441]], [409, 330, 561, 574], "right"),
    ],
}
"""The three exemplars in the prompt, on the grid (paper, A.2.2: right hand, both hands, two interactions)."""


def answered_interactions(prediction: Prediction | None) -> list[BoxedInteraction]:
    return BoxedInteractions.read(prediction.value).interactions if prediction else []


@remember
def usual_interactions(examples: Sequence[Example]) -> list[BoxedInteraction]:
    """Return the most frequent combination of hand types, each interaction at its mean place on the grid.

    Only frames with this combination count. Their interactions are paired by hand type, then from left to right. Hands
    are paired as in `usual_boxes`. Without examples, the list is empty.
    """
    frames = []
    for target in map(InteractionTarget.of, examples):
        on_grid = partial(on_usual_grid, scale=target.bbox_scale)
        items = [map_boxes(item, on_grid) for item in target.interactions]
        frames.append(sorted(items, key=lambda item: (item.hand_type, item.object_box)))
    if not frames:
        return []
    types = mode(sorted(tuple(item.hand_type for item in frame) for frame in frames))
    matching = [frame for frame in frames if tuple(item.hand_type for item in frame) == types]
    return [
        BoxedInteraction(
            usual_boxes([item.hand_boxes for item in column]),
            usual_boxes([[item.object_box] for item in column])[0],
            column[0].hand_type,
        )
        for column in zip(*matching, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class HandAction:
    """A contact of hands with one object. `target` and `hands` are indices in `VideoGraph.objects`."""

    target: int
    hands: tuple[int, ...]
    hand_type: str
    verbs: frozenset[str]
    rows: frozenset[int]


def hand_side(category: str) -> str | None:
    """Return the side of a hand, left or right; None if the category is not a hand.

    >>> hand_side(" Left hand"), hand_side("handle")
    ('left', None)
    """
    return HANDS.get(category.strip().lower())


def contact_ranges(video: VideoGraph, relation_type: str = HAND_RELATION) -> list[int]:
    """Return the positions in the relations table where a hand acts on an object, in the order of the file."""
    table = video.relations_table
    kinds = [i for i, (kind, _) in enumerate(table.labels) if kind == relation_type]
    hands = [i for i, item in enumerate(video.objects) if hand_side(item.category)]
    return np.flatnonzero(np.isin(table.label, kinds) & np.isin(table.source, hands)).tolist()


def actions_at(arrays: FrameArrays, frame: int, contacts: Sequence[int]) -> list[HandAction]:
    """Return the actions of hands on a frame, one per object. Several hands on one object are one interaction.

    `contacts` is the result of `contact_ranges`.
    """
    by_target: dict[int, list[int]] = defaultdict(list)
    for number in np.flatnonzero(arrays.active_relations(contacts, np.array([frame]))).tolist():
        by_target[int(arrays.video.relations_table.target[contacts[number]])].append(contacts[number])
    return [_action(arrays.video, target, positions) for target, positions in by_target.items()]


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


@refuse_unbounded
def read_released(text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
    """Read the complete answer as a JSON list, else the first list that contains only interactions.

    An empty list means no interactions. `written` holds the interactions as the model wrote them.
    """
    body = strip_fence(text, plain_tag=True)
    whole_list = released_array(body)
    for entries in json_arrays(body, nested=True) if whole_list is None else [whole_list]:
        interactions = _read_entries(entries, lambda listed: _released_boxes(listed, box_format))
        if interactions is not None:
            pixels = [map_boxes(item, lambda box: released_pixels(box, inputs, box_format)) for item in interactions]
            return Prediction({**BoxedInteractions(pixels).write(), "written": [item.write() for item in interactions]})
    return _NO_LIST


def read_by_paper(text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
    """Read interactions like `read_released`, but only JSON numbers within bounds count, and nested arrays are ignored.

    A truncated list is read up to its last complete entry.
    """
    body = strip_fence(text)
    whole_list, cut = whole_array(body), cut_array(text)
    arrays = [(array, 0) for array in (json_arrays(body) if whole_list is None else [whole_list])]
    for entries, unfinished in (*arrays, *([(cut.entries, cut.unfinished)] if cut else [])):
        interactions = _read_entries(entries, _strict_boxes)
        if interactions is not None:
            pixels = [map_boxes(item, lambda box: read_pixels(box, inputs, box_format)) for item in interactions]
            return Prediction(BoxedInteractions(pixels).write(), dropped=unfinished)
    return _NO_LIST


_NO_LIST = ParseError("the answer holds no JSON array of valid interactions")


def map_boxes(
    item: BoxedInteraction | TrueInteraction, convert: Callable[[Sequence[float]], Sequence[float]]
) -> BoxedInteraction:
    """Return the interaction with converted boxes. For a true interaction, the boxes on the grid are converted."""
    hands = [list(convert(box)) for box in item.hand_boxes]
    return BoxedInteraction(hands, list(convert(item.object_box)), item.hand_type)


def _read_entries(
    entries: Sequence[object], read_boxes: Callable[[list[object]], list[list[float]] | None]
) -> list[BoxedInteraction] | None:
    """Read the entries of an answer, converting boxes with `read_boxes`; None unless all entries are valid."""
    interactions: list[BoxedInteraction] = []
    for entry in entries:
        fields = entry if isinstance(entry, dict) else {}
        hands, target, hand_type = (fields.get(name) for name in ("hand_boxes", "object_box", "hand_type"))
        if not isinstance(hands, list) or not hands or hand_type not in HAND_TYPES:
            return None
        boxes = read_boxes([*hands, target])
        if boxes is None:
            return None
        interactions.append(BoxedInteraction(boxes[:-1], boxes[-1], str(hand_type)))
    return interactions


def _released_boxes(boxes: list[object], box_format: BoxFormat) -> list[list[float]] | None:
    if not all(isinstance(box, list) and len(box) == 4 for box in boxes):
        return None
    try:
        return [[released_number(value, box_format) for value in cast("list[object]", box)] for box in boxes]
    except (TypeError, ValueError):
        return None


def _strict_boxes(boxes: list[object]) -> list[list[float]] | None:
    parsed = [numbers for box in boxes if (numbers := four_numbers(box)) is not None]
    return parsed if len(parsed) == len(boxes) else None
