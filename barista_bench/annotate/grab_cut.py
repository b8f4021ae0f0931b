"""Makes masks from boxes, clicks and strokes without weights, by OpenCV's grabCut on a crop; the default segmenter.

Mixtures of Gaussians model the colours inside and outside, and the cut between them follows edges in the picture
(Rother, Kolmogorov, Blake: GrabCut, SIGGRAPH 2004).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import cv2
import numpy as np
from numpy.typing import NDArray

from barista_bench.annotate.proposals import SegmentedMask, ShapePrompt
from barista_bench.models.base import ModelIdentity

_SIDE = 320  # maximum of the crop's longer side, in pixels
_LEAST_SIDE = 160  # minimum of the crop's longer side, for a small object
_MARGIN = 0.25  # margin around the box, as a fraction of its longer side; the colours there are certainly outside
_AROUND_CLICKS = 0.08  # distance to search without a box, as a fraction of the picture's longer side
_TOUCH = 0.03  # radius around a click that certainly has the click's label, as a fraction of the area's longer side
_PATCH = 0.12  # radius for connected pixels of the same colour, as a fraction of the area's longer side
_LIKE = 10  # difference in each channel, of 255, up to which two colours count as the same
_ROUNDS = 4
# Fraction of the mask's area: if clicks would change more, only the patches around the clicks change.
_MOST_CHANGED = 0.7
_FREE_GROWTH = 0.05  # fraction of the mask's area: a later click may add more only if an earlier click changed as much
_SPECK = 0.02  # fraction of the mask's area: smaller parts without clicks are removed

Area = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels, half-open."""
Click = tuple[tuple[int, int], bool]
"""Column and row in the crop, and True if the click marks the inside."""


class GrabCutSegmenter:
    """A `Segmenter` whose score is the IoU of the given box with the box around the mask; 1 if only points are given.

    Pixels outside the box are outside the object, unless a click marks them as inside. If colours do not separate
    object and surroundings, the mask is the box.
    """

    def __init__(self) -> None:
        self.identity = ModelIdentity(
            "grabcut", None, {"opencv": cv2.__version__, "side": _SIDE, "rounds": _ROUNDS, "clicks": 3}
        )

    def segment(self, picture: NDArray[np.uint8], prompts: Sequence[ShapePrompt]) -> list[SegmentedMask]:
        """Return a mask for each prompt; see `Segmenter.segment`."""
        return [_segment(picture, prompt) for prompt in prompts]


def _segment(picture: NDArray[np.uint8], prompt: ShapePrompt) -> SegmentedMask:
    box, points = prompt
    height, width = picture.shape[:2]
    mask = np.zeros((height, width), np.bool_)
    area = _search_area(prompt, width, height)
    if area is None:
        return SegmentedMask(mask, 0.0)
    margin = max(2, round(_MARGIN * max(area[2] - area[0], area[3] - area[1])))
    left, top, right, bottom = _clip_area(
        (area[0] - margin, area[1] - margin, area[2] + margin, area[3] + margin), width, height
    )
    side = max(right - left, bottom - top)
    scale = min(max(1.0, _LEAST_SIDE / side), _SIDE / side)
    how = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    crop = cv2.resize(picture[top:bottom, left:right], None, fx=scale, fy=scale, interpolation=how)

    def scaled(x: float, y: float) -> tuple[int, int]:
        return round((x - left) * scale), round((y - top) * scale)

    marks = np.full(crop.shape[:2], cv2.GC_BGD if box else cv2.GC_PR_BGD, np.uint8)
    cv2.rectangle(marks, scaled(*area[:2]), scaled(area[2] - 1, area[3] - 1), cv2.GC_PR_FGD, cv2.FILLED)
    reach = max(area[2] - area[0], area[3] - area[1]) * scale
    clicks = [(scaled(point.x, point.y), point.inside) for point in points]
    if box:
        inside = _cut(crop, marks.copy())
        starts = [number for number in range(len(clicks)) if _begins_correction(clicks, number, reach)]
        most = math.inf
        for start, end in pairwise([*starts, len(clicks)]):
            before = inside
            # People usually correct the largest error first.
            limit = max(most, _FREE_GROWTH * before.sum()) if clicks[start][1] else math.inf
            inside = _correct(before, crop, marks, clicks[:end], start, reach, limit)
            change = int((inside ^ before).sum())
            most = change if start == 0 else max(most, change)
    else:
        _mark_clicks(crop, marks, clicks, reach)
        inside = _cut(crop, marks)
    size = (right - left, bottom - top)
    mask[top:bottom, left:right] = cv2.resize(inside.astype(np.float32), size, interpolation=cv2.INTER_LINEAR) > 0.5
    return SegmentedMask(mask, _score(mask, box))


def _begins_correction(clicks: Sequence[Click], number: int, reach: float) -> bool:
    """Return True if a click begins a correction, and False if it continues a stroke of several points."""
    (place, is_inside), (previous, was_inside) = clicks[number], clicks[number - 1]
    is_far = np.hypot(place[0] - previous[0], place[1] - previous[1]) > _PATCH * reach
    return number == 0 or is_inside != was_inside or bool(is_far)


def _correct(
    before: NDArray[np.bool_],
    crop: NDArray[np.uint8],
    marks: NDArray[np.uint8],
    clicks: Sequence[Click],
    first: int,
    reach: float,
    most: float,
) -> NDArray[np.bool_]:
    """Return the mask after the clicks from `first` on, which all have the same label.

    Only pixels that are connected to these clicks change. If there are more than `most` such pixels, or if they are a
    large part of the mask, only the patches around the clicks change.
    """
    marked = marks.copy()
    _mark_clicks(crop, marked, clicks, reach)
    after = _cut(crop, marked)
    is_inside = clicks[first][1]
    discs = np.zeros_like(marks)
    for place, _ in clicks[first:]:
        cv2.circle(discs, _pixel(place, marks)[::-1], _touch(reach), 1, cv2.FILLED)
    # `_mark_clicks` keeps inside clicks within the area, and gives touched pixels the label of the clicks.
    touched = (discs > 0) & (marked == (cv2.GC_FGD if is_inside else cv2.GC_BGD))
    changed = (after & ~before if is_inside else before & ~after) | touched
    _, labels = cv2.connectedComponents(changed.astype(np.uint8))
    wanted = changed & np.isin(labels, labels[touched])
    if wanted.sum() > min(_MOST_CHANGED * before.sum(), most):
        wanted = touched
    corrected = before | wanted if is_inside else before & ~wanted
    return corrected if corrected.any() else before


def _pixel(place: tuple[int, int], marks: NDArray[np.uint8]) -> tuple[int, int]:
    """Return the row and column of a point, moved into the crop."""
    return min(max(place[1], 0), marks.shape[0] - 1), min(max(place[0], 0), marks.shape[1] - 1)


def _touch(reach: float) -> int:
    return max(1, round(_TOUCH * reach))


def _mark_clicks(crop: NDArray[np.uint8], marks: NDArray[np.uint8], clicks: Sequence[Click], reach: float) -> None:
    """Mark the pixels around clicks. A patch of one colour never overrides a pixel that another click touches."""
    is_looked_for, smooth = marks == cv2.GC_PR_FGD, cv2.GaussianBlur(crop, (0, 0), 1)
    for radius, is_patch in ((max(2, round(_PATCH * reach)), True), (_touch(reach), False)):
        for place, inside in clicks:
            value = cv2.GC_FGD if inside else cv2.GC_BGD
            pixel = _pixel(place, marks)
            if is_patch and marks[pixel] == value:  # this point of a stroke is covered by the patch of an earlier point
                continue
            reached = cv2.circle(np.zeros_like(marks), pixel[::-1], radius, 1, cv2.FILLED)
            if is_patch:
                walls = np.pad(1 - reached, 1, constant_values=1)
                how = 4 | cv2.FLOODFILL_MASK_ONLY | cv2.FLOODFILL_FIXED_RANGE | (2 << 8)
                cv2.floodFill(smooth, walls, pixel[::-1], 0, (_LIKE,) * 3, (_LIKE,) * 3, how)
                reached = walls[1:-1, 1:-1] == 2
            marks[(reached > 0) & is_looked_for if inside else reached > 0] = value


def _search_area(prompt: ShapePrompt, width: int, height: int) -> Area | None:
    """Return the area in which to search for the object; None if the prompt does not limit the area."""
    box, points = prompt
    around = 0.0 if box else _AROUND_CLICKS * max(width, height)
    inside = [point for point in points if point.inside]
    corners = [(box[0], box[1]), (box[2], box[3])] if box else []
    corners += [(point.x + by, point.y + by) for point in inside for by in (-around, around)]
    if not corners:
        return None
    low, high = np.min(corners, axis=0), np.max(corners, axis=0)
    return _clip_area((int(low[0]), int(low[1]), int(np.ceil(high[0])), int(np.ceil(high[1]))), width, height)


def _clip_area(area: Area, width: int, height: int) -> Area:
    """Return the part of the area within the picture, at least one pixel large."""
    left, top = min(max(area[0], 0), width - 1), min(max(area[1], 0), height - 1)
    return left, top, max(min(area[2], width), left + 1), max(min(area[3], height), top + 1)


def _cut(crop: NDArray[np.uint8], marks: NDArray[np.uint8]) -> NDArray[np.bool_]:
    clicked = marks == cv2.GC_FGD
    is_likely = clicked | (marks == cv2.GC_PR_FGD)
    if is_likely.all() or not is_likely.any():  # nothing to separate
        return is_likely
    cv2.setRNGSeed(0)  # the same prompts give the same mask
    models = np.zeros((2, 1, 65))
    cv2.grabCut(crop, marks, None, models[0], models[1], _ROUNDS, cv2.GC_INIT_WITH_MASK)
    is_inside = (marks == cv2.GC_FGD) | (marks == cv2.GC_PR_FGD)
    if not is_inside.any():
        return is_likely
    _, labels, facts, _ = cv2.connectedComponentsWithStats(is_inside.astype(np.uint8))
    is_kept = facts[:, cv2.CC_STAT_AREA] >= _SPECK * is_inside.sum()
    is_kept[np.unique(labels[clicked])] = True
    is_kept[0] = False
    return is_kept[labels]


def _score(mask: NDArray[np.bool_], box: tuple[float, float, float, float] | None) -> float:
    if not mask.any():
        return 0.0
    if box is None:
        return 1.0
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    mask_box = (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)
    width = max(0.0, min(mask_box[2], box[2]) - max(mask_box[0], box[0]))
    height = max(0.0, min(mask_box[3], box[3]) - max(mask_box[1], box[1]))
    areas = sum((area[2] - area[0]) * (area[3] - area[1]) for area in (mask_box, box))
    return float(width * height / (areas - width * height))
