"""Compare, widen and move boxes. Boxes are corners (x0, y0, x1, y1) in pixels, and sizes are (width, height)."""

from __future__ import annotations

from collections.abc import Sequence

from barista_bench.aids.facts import content_digest
from barista_bench.aids.graph_rows import Box

_OVERLAP = 0.1
"""Maximum fraction of an area elsewhere that may be evidence."""
_STEPS = 16


def elsewhere(box: Box, evidence: Sequence[Box], size: tuple[int, int], key: str) -> Box | None:
    """Return an area of the box's size of which at most a tenth is evidence, or None if the frame has no such area.

    `key` determines the choice among possible areas.
    """
    width, height = box[2] - box[0], box[3] - box[1]
    places = [(x, y, x + width, y + height) for x in _steps(size[0] - width) for y in _steps(size[1] - height)]
    most = _OVERLAP * width * height
    free = [place for place in places if all(common_area(place, other) <= most for other in evidence)]
    return min(free, key=lambda place: content_digest(key, place), default=None)


def _steps(room: float) -> list[float]:
    return [float(int(room * step / _STEPS)) for step in range(_STEPS + 1)] if room >= 0 else []


def common_area(a: Box, b: Box) -> float:
    """Return the area that two boxes have in common."""
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def widened(box: Box, margin: float, size: tuple[float, float]) -> Box:
    """Return the box with a margin on each side, inside the frame. `margin` is a fraction of the box's own sides."""
    across, down = margin * (box[2] - box[0]), margin * (box[3] - box[1])
    x0, y0, x1, y1 = box[0] - across, box[1] - down, box[2] + across, box[3] + down
    return max(0.0, x0), max(0.0, y0), min(size[0], x1), min(size[1], y1)
