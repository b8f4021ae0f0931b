"""Find the frames, parts of frames and marks on which a question depends, and equally many controls in the video."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from barista_bench.aids.facts import Fact, QuestionScene, content_digest, other_moments, sort_facts
from barista_bench.aids.graph_rows import Box
from barista_bench.aids.levels import Level
from barista_bench.benchmarks.barista.clips import WINDOW
from barista_bench.core.example import Fields, evidence_objects

MARGIN = 0.2
"""Margin on each side of a full-size part, as a fraction of the width or height of the object's box."""
LARGEST_PART = 0.25
"""Maximum size of a part, as a fraction of the frame. A larger part does not show where to look."""
MOST_PARTS = 4
_OVERLAP = 0.1
"""Maximum fraction of an area elsewhere that may be evidence."""
_STEPS = 16


def picture_facts(level: Level, scene: QuestionScene) -> list[Fact]:
    """Return the facts that the pictures of a level show. Empty if the pictures would give no information."""
    return _PICTURES[level](scene)


def other_pictures(level: Level, scene: QuestionScene, needed: Sequence[Fact]) -> list[Fact]:
    """Return as many other frames, parts or marks as in `needed`, or an empty list if the video lacks them."""
    return _OTHERS[level](scene, needed)


def evidence_boxes(scene: QuestionScene, frame: int) -> list[Box]:
    """Return the boxes of the example's evidence on a frame: its objects and the hands that act on these objects."""
    named = scene.example.evidence
    ids = {*evidence_objects(scene.example), *_texts(named, "hand_ids")}
    return [row.box for row in scene.video.boxes.get(frame, ()) if row.object_id in ids]


def elsewhere(box: Box, evidence: Sequence[Box], size: tuple[int, int], key: str) -> Box | None:
    """Return an area of the box's size of which at most a tenth is evidence, or None if the frame has no such area.

    Args:
        size: (width, height) of the frame in pixels.
        key: determines the choice among possible areas.
    """
    width, height = box[2] - box[0], box[3] - box[1]
    places = [(x, y, x + width, y + height) for x in _steps(size[0] - width) for y in _steps(size[1] - height)]
    free = [place for place in places if all(_common(place, other) <= _OVERLAP * width * height for other in evidence)]
    return min(free, key=lambda place: content_digest(key, place), default=None)


def _steps(room: float) -> list[float]:
    return [float(int(room * step / _STEPS)) for step in range(_STEPS + 1)] if room >= 0 else []


def _common(a: Box, b: Box) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def _texts(fields: Fields, name: str) -> list[str]:
    values = fields.get(name)
    return [str(value) for value in values] if isinstance(values, list) else []


def _moment(scene: QuestionScene) -> list[Fact]:
    """Return the keyframes around the event of the question, unless these are all keyframes."""
    changes: list[dict[str, int]] = scene.example.evidence["changes"]  # type: ignore[assignment]
    frames = {frame for change in changes for frame in (change["start"], change["end"])}
    return [_frame(frame) for frame in sorted(frames)] if frames < set(scene.frames) else []


def _frame(frame: int) -> Fact:
    return Fact((), ("frame",), (frame, frame + 1), ("frame", str(frame)))


def _other_frames(scene: QuestionScene, needed: Sequence[Fact]) -> list[Fact]:
    shown = {frame for fact in needed for frame in range(fact.span[0] - WINDOW, fact.span[1] + WINDOW)}
    others = [frame for frame in range(scene.video.frame_count) if frame not in shown]
    others.sort(key=lambda frame: content_digest(scene.example.example_id, frame))
    return sort_facts(map(_frame, others[: len(needed)])) if len(others) >= len(needed) else []


def _zoom(scene: QuestionScene) -> list[Fact]:
    width, height = scene.video.size
    parts = []
    for frame in dict.fromkeys((scene.frames[0], scene.frames[-1])):
        for x0, y0, x1, y1 in _asked_boxes(scene, frame):
            across, down = MARGIN * (x1 - x0), MARGIN * (y1 - y0)
            box = (max(0.0, x0 - across), max(0.0, y0 - down), min(width, x1 + across), min(height, y1 + down))
            parts.append(_part(frame, box))
    largest = LARGEST_PART * width * height
    is_small = all(fact.box and _common(fact.box, fact.box) <= largest for fact in parts)
    return parts if len(parts) <= MOST_PARTS and is_small else []


def _asked_boxes(scene: QuestionScene, frame: int) -> list[Box]:
    """Return the boxes of the evidence's objects without hands. For referring, return only the box in the question."""
    if scene.example.task == "referring":
        x0, y0, x1, y1 = (float(str(value)) for value in scene.example.inputs["box"])  # type: ignore[union-attr]
        return [(x0, y0, x1, y1)]
    ids = set(evidence_objects(scene.example))
    return [row.box for row in scene.video.boxes.get(frame, ()) if row.object_id in ids]


def _part(frame: int, box: Box) -> Fact:
    return Fact((), ("a part of the frame",), (frame, frame + 1), ("part", str(frame), str(box)), box)


def _other_parts(scene: QuestionScene, needed: Sequence[Fact]) -> list[Fact]:
    others = []
    for fact in needed:
        evidence = [each.box for each in needed if each.box and each.span == fact.span]
        assert fact.box is not None
        place = elsewhere(fact.box, evidence, scene.video.size, f"{scene.example.example_id} {fact.box}")
        if place is None:
            return []
        others.append(_part(fact.span[0], place))
    return others


def _marks(scene: QuestionScene) -> list[Fact]:
    return [
        Fact((row.category,), (f"{number}: ", 0), (frame, frame + 1), (row.object_id, str(frame)), row.box)
        for frame in dict.fromkeys((scene.frames[0], scene.frames[-1]))
        for number, row in enumerate(scene.video.boxes.get(frame, ()), start=1)
    ]


def _other_marks(scene: QuestionScene, needed: Sequence[Fact]) -> list[Fact]:
    """Return as many marks as in `needed`, on frames of another moment."""
    wanted = list(Counter(fact.span for fact in needed).values())
    for frames in other_moments(scene):
        marks = _marks(scene._replace(frames=frames))
        by_frame = [[fact for fact in marks if fact.span == span] for span in dict.fromkeys(f.span for f in marks)]
        if len(by_frame) == len(wanted) and all(len(own) >= n for own, n in zip(by_frame, wanted, strict=True)):
            return [fact for own, n in zip(by_frame, wanted, strict=True) for fact in own[:n]]
    return []


_PICTURES: Mapping[Level, Callable[[QuestionScene], list[Fact]]] = {"moment": _moment, "zoom": _zoom, "marks": _marks}
_OTHERS: Mapping[Level, Callable[[QuestionScene, Sequence[Fact]], list[Fact]]] = {
    "moment": _other_frames,
    "zoom": _other_parts,
    "marks": _other_marks,
}
