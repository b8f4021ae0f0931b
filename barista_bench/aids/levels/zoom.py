"""Show the objects of a question's evidence in full size: parts of the first and the last frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from barista_bench.aids.facts import Fact, Finder, QuestionScene
from barista_bench.aids.graph_rows import Box
from barista_bench.aids.level import Level, pictures_below_lines
from barista_bench.aids.places import common_area, elsewhere, widened
from barista_bench.core.example import evidence_objects

_MARGIN = 0.2
"""Margin on each side of a part, as a fraction of the width or height of the object's box."""
_LARGEST_PART = 0.25
"""Maximum size of a part, as a fraction of the frame. A larger part does not show where to look."""
_MOST_PARTS = 4


def zoom_into(scene: QuestionScene, boxes: Callable[[int], Iterable[Box]]) -> list[Fact]:
    """Return the parts of the end frames around boxes, or none if the parts are too many or too large.

    Args:
        boxes: maps a frame to the boxes to show.
    """
    width, height = scene.video.size
    parts = [_part(frame, widened(box, _MARGIN, (width, height))) for frame in scene.ends for box in boxes(frame)]
    largest = _LARGEST_PART * width * height
    is_small = all(fact.box and common_area(fact.box, fact.box) <= largest for fact in parts)
    return parts if len(parts) <= _MOST_PARTS and is_small else []


def _zoom(scene: QuestionScene) -> list[Fact]:
    ids = set(evidence_objects(scene.example))
    return zoom_into(scene, lambda frame: [row.box for row in scene.boxes(frame, ids)])


def _part(frame: int, box: Box) -> Fact:
    return Fact((), ("a part of the frame",), (frame, frame + 1), ("part", str(frame), str(box)), box)


def _other_parts(scene: QuestionScene, needed: Sequence[Fact], _: Finder) -> list[Fact]:
    others = []
    for fact in needed:
        evidence = [each.box for each in needed if each.box and each.span == fact.span]
        assert fact.box is not None
        place = elsewhere(fact.box, evidence, scene.video.size, f"{scene.example.example_id} {fact.box}")
        if place is None:
            return []
        others.append(_part(fact.span[0], place))
    return others


ZOOM = Level(
    heading="Parts of frames in full size:",
    given="the evidence in full size",
    verb="is",
    fill="#0e7490",
    facts=_zoom,
    inert=_other_parts,
    pictures=pictures_below_lines,
    has_false=False,  # a look elsewhere implies no answer
)
