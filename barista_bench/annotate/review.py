"""Choose the frames that a person should check first."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator

from msgspec.structs import replace
from pycocotools import mask as coco_mask

from barista_bench.annotate.records import Doubt, TrackedMask, TrackLine
from barista_bench.scene_graph.masks import Rle, mask_boxes, mask_ious

_MOST = 100
"""Maximum number of frames per video."""
_APART_S = 0.5
_LOUD = 4.0
"""If an area changes by this factor between two frames, the mask is certainly wrong, or the video has a cut."""
_SMALL = 0.0005
"""Fraction of the picture added to every area. Without it, a few pixels of a tiny object would be a sudden change."""
_VANISHED = 0.8
_EDGE = 2  # pixels


def doubtful_frames(
    tracks: Iterable[TrackLine], annotated: Collection[int], width: int, height: int, fps: float
) -> list[Doubt]:
    """Return the most doubtful frames, at least half a second apart, each with its most doubtful object.

    An object is doubtful if its confidence is low (for example, because the two directions of the propagator disagree),
    if a second propagator disagrees, if its area changes suddenly, or if it vanishes or appears away from the picture's
    edge.

    Args:
        tracks: all frames in order.
        annotated: frames that a person has annotated; they are not doubtful.
        width, height: size of the frames in pixels.
        fps: frames per second.
    """
    worst: list[Doubt] = []
    for doubts in _doubts(tracks, width, height):
        candidates = [doubt for doubt in doubts if doubt.doubt > 0 and doubt.frame not in annotated]
        if candidates:
            worst.append(max(candidates, key=lambda doubt: (doubt.doubt, doubt.object)))
    doubtful: list[Doubt] = []
    blocked: set[int] = set()
    reach = max(1, round(_APART_S * fps))
    for doubt in sorted(worst, key=lambda doubt: (-doubt.doubt, doubt.frame)):
        if doubt.frame not in blocked:
            doubtful.append(doubt)
            blocked.update(range(doubt.frame - reach + 1, doubt.frame + reach))
        if len(doubtful) == _MOST:
            break
    return doubtful


def _doubts(tracks: Iterable[TrackLine], width: int, height: int) -> Iterator[list[Doubt]]:
    areas: dict[str, float] = {}
    inside: dict[str, bool] = {}
    is_first = True
    for line in tracks:
        names = sorted(line.masks)
        new_areas = dict(zip(names, _areas(line, names, height, width), strict=True))
        x, y, w, h = mask_boxes([line.masks[name].counts for name in names], height, width).T
        # Clear of the picture's edge.
        keeps_away = (x > _EDGE) & (y > _EDGE) & (x + w < width - _EDGE) & (y + h < height - _EDGE)
        new_inside = dict(zip(names, keeps_away.tolist(), strict=True))
        doubts = []
        for name in names:
            doubts.append(_doubt(line.frame, name, 1 - line.masks[name].agreement, "propagators disagree"))
            doubts.append(_doubt(line.frame, name, 1 - line.masks[name].confidence, "low confidence"))
            if name in areas:
                change = abs(math.log(new_areas[name] / areas[name])) / math.log(_LOUD)
                doubts.append(_doubt(line.frame, name, change, "area changes"))
            elif new_inside[name] and not is_first:
                doubts.append(_doubt(line.frame, name, _VANISHED, "appears"))
        vanished = (name for name in areas if name not in new_areas and inside[name])
        doubts += [_doubt(line.frame, name, _VANISHED, "vanishes") for name in vanished]
        yield doubts
        areas, inside, is_first = new_areas, new_inside, False


def with_agreement(
    lines: Iterable[TrackLine], second_lines: Iterable[TrackLine], size: tuple[int, int]
) -> Iterator[TrackLine]:
    """Yield frames with the agreement of each mask: its IoU with the second propagator's mask, 0 without such a mask.

    `size` is the (width, height) of the frames in pixels.
    """
    for line, second in zip(lines, second_lines, strict=True):
        masks = {
            name: replace(mask, agreement=_iou(mask, second.masks.get(name), size)) for name, mask in line.masks.items()
        }
        yield replace(line, masks=masks)


def _iou(mask: TrackedMask, other: TrackedMask | None, size: tuple[int, int]) -> float:
    first, *seconds = (Rle(item.counts, size[::-1]) for item in (mask, other) if item)
    return round(float(mask_ious([first], seconds)[0, 0]), 4) if seconds else 0.0


def _doubt(frame: int, name: str, doubt: float, why: str) -> Doubt:
    return Doubt(frame=frame, object=name, doubt=round(min(max(doubt, 0.0), 1.0), 4), why=why)  # type: ignore[arg-type]


def _areas(line: TrackLine, names: list[str], height: int, width: int) -> list[float]:
    codes = [{"size": [height, width], "counts": line.masks[name].counts.encode("ascii")} for name in names]
    return [float(area) + _SMALL * height * width for area in coco_mask.area(codes)] if codes else []
