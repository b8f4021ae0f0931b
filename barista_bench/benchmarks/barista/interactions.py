"""Hand-object interactions as answers hold them: their type, made-up exemplars, a schema, and what is usual."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, cast

from barista_bench.benchmarks.barista.box_answers import annotated, grid_pixels, on_usual_grid, truth_scale
from barista_bench.benchmarks.barista.priors import CENTRE, most_frequent, remembered, usual_boxes
from barista_bench.core.task import Example, Fields


class Interaction(TypedDict):
    """Boxes on the release's grid in `target` and exemplars, in pixels in predictions and scores."""

    hand_boxes: list[list[float]]
    object_box: list[float]
    hand_type: str


EXEMPLARS: dict[str, list[Interaction]] = {
    "one_hand": [{"hand_boxes": [[588, 431, 742, 655]], "object_box": [471, 282, 640, 560], "hand_type": "right"}],
    "both_hands": [
        {
            "hand_boxes": [[96, 612, 251, 828], [719, 604, 884, 817]],
            "object_box": [183, 506, 797, 742],
            "hand_type": "both",
        }
    ],
    "two_objects": [
        {"hand_boxes": [[212, 540, 366, 731]], "object_box": [318, 455, 477, 698], "hand_type": "left"},
        {"hand_boxes": [[530, 268, 688, 441]], "object_box": [409, 330, 561, 574], "hand_type": "right"},
    ],
}
"""The three inline exemplars (paper, A.2.2: right hand, both hands, two interactions), on the grid."""


def central_interaction() -> Interaction:
    """One interaction in the middle, on the grid. Hand and object share the box; `right` is the commoner hand."""
    return Interaction(hand_boxes=[list(CENTRE)], object_box=list(CENTRE), hand_type="right")


def true_interactions(example: Example, *, as_annotated: bool) -> list[Interaction]:
    """The truth in pixels: from the grid on which it is frozen, or as annotated.

    Raises:
        DataError: annotated boxes are asked for, and the example has none.
    """
    if as_annotated:
        items = cast("list[Fields]", example.target["interactions"])
        return [
            Interaction(
                hand_boxes=cast("list[list[float]]", annotated(item, "hand_pixels", example.example_id)),
                object_box=cast("list[float]", annotated(item, "object_pixels", example.example_id)),
                hand_type=str(item["hand_type"]),
            )
            for item in items
        ]
    scale = truth_scale(example.target)
    return [
        Interaction(
            hand_boxes=[grid_pixels(box, example.inputs, scale) for box in item["hand_boxes"]],
            object_box=grid_pixels(item["object_box"], example.inputs, scale),
            hand_type=item["hand_type"],
        )
        for item in _items(example)
    ]


@remembered
def usual_interactions(examples: Sequence[Example]) -> list[Interaction]:
    """On the grid: the commonest combination of hand types, each interaction at its mean place in it.

    Interactions of a frame are paired by hand type, then from left to right; hands as in `usual_boxes`. Empty where
    there are no examples.
    """
    frames = [
        sorted(_on_usual_grid(example), key=lambda item: (item["hand_type"], item["object_box"]))
        for example in examples
    ]
    if not frames:
        return []
    types = most_frequent(tuple(item["hand_type"] for item in frame) for frame in frames)
    alike = [frame for frame in frames if tuple(item["hand_type"] for item in frame) == types]
    return [
        Interaction(
            hand_boxes=usual_boxes([item["hand_boxes"] for item in column]),
            object_box=usual_boxes([[item["object_box"]] for item in column])[0],
            hand_type=column[0]["hand_type"],
        )
        for column in zip(*alike, strict=True)
    ]


def _on_usual_grid(example: Example) -> list[Interaction]:
    return [
        Interaction(
            hand_boxes=[on_usual_grid(box, example.target) for box in item["hand_boxes"]],
            object_box=on_usual_grid(item["object_box"], example.target),
            hand_type=item["hand_type"],
        )
        for item in _items(example)
    ]


def _items(example: Example) -> list[Interaction]:
    return cast("list[Interaction]", example.target["interactions"])
