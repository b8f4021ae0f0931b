"""Propose attributes and relations from masks and keyframes; a person must accept them.

Masks show contacts. A hand reaches into the picture over an edge, and its far end is the part farthest from that edge.
If the far end is at an object and does not sweep over it, the hand touches the object. If hand and object also move
together against the rest of the picture, the hand holds the object. Boxes show which objects stand on other objects or
lie inside them. Depth is unknown: a hand in front of an object counts as touching the object, and an object behind
another counts as inside it. Keyframes give a person's attributes, which are carried forward.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from barista_bench.annotate.records import AcceptedKeyframe, Claim, Layers, Range, TrackLine
from barista_bench.scene_graph.coverage import extend_ranges
from barista_bench.scene_graph.domain import Domain
from barista_bench.scene_graph.masks import Rle, decode_mask, mask_boxes

_SAMPLES = 10  # frames examined per second
_GAP_S, _SHORTEST_S = 0.3, 0.3
_NEAR = 0.005  # of the width: a hand at this distance touches the object
# Of the width, around the point of a hand farthest from the edge: this contains the fingers, not the arm.
_FAR_END = 0.05
_SWEEPS = 0.02  # of the width: a hand that moves this far against the object between two samples sweeps over it
_MOVED = 0.006  # of the width: an object that moves this far between two samples is moving
_FARTHEST = 0.97  # quantile of the distances, since the largest may come from single wrong pixels
_INSIDE = 0.9
_TOUCHES, _HOLDS, _ON, _IN = "touches", "holds", "on", "inside"
Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]


class _FrameObjects(NamedTuple):
    """A frame's objects.

    Boxes are `[x, y, width, height]`; centres and far ends of hands are `[x, y]`; all in pixels.
    """

    names: list[str]
    boxes: Floats
    centres: dict[str, Floats]
    far_ends: dict[str, Floats]
    """The far end of each hand that reaches into the picture over an edge."""


def propose_layers(
    tracks: Iterable[TrackLine],
    keyframes: Sequence[AcceptedKeyframe],
    categories: Mapping[str, str],
    domain: Domain,
    size: tuple[int, int],
    fps: float,
) -> Layers:
    """Return proposals for a complete video.

    Args:
        tracks: all frames in order.
        keyframes: keyframes with the ids of the tracks.
        categories: the category of each object.
        size: (height, width) in pixels.
        fps: frames per second.
    """
    step = max(1, round(fps / _SAMPLES))
    ranges: dict[Claim, list[Range]] = {}
    hands = {name for name, category in categories.items() if domain.side(category) is not None}
    before, count = None, 0
    held: set[tuple[str, str]] = set()
    for line in tracks:
        count = line.frame + 1
        if line.frame % step:
            continue
        hand_masks = {name: decode_mask(Rle(line.masks[name].counts, size)) for name in hands & line.masks.keys()}
        now = _frame_objects(line, hand_masks, size)
        contacts = _contacts(line, now, before, hand_masks, size)
        held = {pair for pair in contacts if pair in held or (before and _moves_along(pair, before, now, size))}
        claims: list[Claim] = [(pair, domain.contact_type, _HOLDS if pair in held else _TOUCHES) for pair in contacts]
        for claim in [*claims, *_places(now, categories, domain)]:
            extend_ranges(ranges.setdefault(claim, []), line.frame, line.frame + step, round(_GAP_S * fps))
        before = now
    words = {*domain.contacts, *domain.places}
    lasting = {
        claim: [(start, min(end, count)) for start, end in spans if end - start >= _SHORTEST_S * fps]
        for claim, spans in ranges.items()
        if claim[2] in words
    }
    return Layers.of({claim: spans for claim, spans in lasting.items() if spans} | carry_forward(keyframes, count))


def carry_forward(keyframes: Sequence[AcceptedKeyframe], count: int) -> dict[Claim, list[Range]]:
    """Return the ranges of all statements on keyframes about objects.

    A statement holds until the next keyframe with statements about the same object. The first statements about an
    object also hold before their keyframe.

    Args:
        count: number of frames of the video.
    """
    stated: dict[str, dict[int, set[Claim]]] = {}
    for keyframe in keyframes:
        for attribute in keyframe.attributes:
            by_frame = stated.setdefault(attribute.object, {})
            by_frame.setdefault(keyframe.frame, set()).add(((attribute.object,), attribute.type, attribute.value))
    return {claim: spans for by_frame in stated.values() for claim, spans in until_next(by_frame, count).items()}


def until_next(stated: Mapping[int, Collection[Claim]], count: int) -> dict[Claim, list[Range]]:
    """Return the ranges of statements; a statement holds until the next frame with statements.

    The first statements also hold before their frame.

    Args:
        stated: claims by frame, for at least one frame.
        count: number of frames of the video.
    """
    frames = sorted(stated)
    ranges: dict[Claim, list[Range]] = {}
    for start, end in zip([0, *frames[1:]], [*frames[1:], count], strict=True):
        for claim in stated[max(start, frames[0])]:
            extend_ranges(ranges.setdefault(claim, []), start, end, 0)
    return ranges


def _frame_objects(line: TrackLine, hand_masks: Mapping[str, Mask], size: tuple[int, int]) -> _FrameObjects:
    names = sorted(line.masks)
    boxes = mask_boxes([line.masks[name].counts for name in names], *size)
    far_ends = {name: far_end for name, mask in hand_masks.items() if (far_end := _far_end(mask)) is not None}
    return _FrameObjects(names, boxes, dict(zip(names, boxes[:, :2] + boxes[:, 2:] / 2, strict=True)), far_ends)


def _far_end(mask: Mask) -> Floats | None:
    """Return the mask's point farthest from its part at the picture's edge; None if the mask is not at the edge."""
    rim = np.zeros_like(mask)
    rim[[0, -1]], rim[:, [0, -1]] = True, True
    at_edge = np.argwhere(mask & rim)
    if not len(at_edge):
        return None
    points = np.argwhere(mask)
    distances = np.linalg.norm(points - at_edge.mean(axis=0), axis=1)
    far_points = points[distances >= np.quantile(distances, _FARTHEST)]
    return np.asarray(far_points.mean(axis=0)[::-1])


def _contacts(
    line: TrackLine,
    now: _FrameObjects,
    before: _FrameObjects | None,
    hand_masks: Mapping[str, Mask],
    size: tuple[int, int],
) -> list[tuple[str, str]]:
    """Return pairs of a hand and an object that the hand's far end reaches without sweeping over it."""
    reach = max(2, round(_NEAR * size[1]))
    pairs = []
    for row, hand in enumerate(now.names):
        if hand not in hand_masks:
            continue
        nearby = [now.names[other] for other in np.flatnonzero(_overlaps(now.boxes, row, reach))]
        fingers = cv2.dilate(hand_masks[hand].astype(np.uint8), np.ones((2 * reach + 1, 2 * reach + 1), np.uint8))
        if hand in now.far_ends:
            disc = np.zeros_like(fingers)
            centre = np.rint(now.far_ends[hand]).astype(int).tolist()
            cv2.circle(disc, centre, max(1, round(_FAR_END * size[1])), 1, thickness=-1)
            fingers &= disc
        for name in nearby:
            if name in hand_masks or (
                before is not None and _motion_against(hand, name, before, now) > _SWEEPS * size[1]
            ):
                continue
            if (fingers.astype(bool) & decode_mask(Rle(line.masks[name].counts, size))).any():
                pairs.append((hand, name))
    return pairs


def _motion_against(hand: str, name: str, before: _FrameObjects, now: _FrameObjects) -> float:
    """Return how many pixels a hand has moved against an object since the last sample; 0 if unknown."""
    ends = (before.far_ends, now.far_ends) if hand in before.far_ends and hand in now.far_ends else None
    start, end = ends or (before.centres, now.centres)
    if hand not in start or name not in before.centres:
        return 0.0
    return float(np.linalg.norm((end[hand] - start[hand]) - (now.centres[name] - before.centres[name])))


def _overlaps(boxes: Floats, row: int, reach: int) -> NDArray[np.bool_]:
    low, high = boxes[:, :2], boxes[:, :2] + boxes[:, 2:]
    return ((low <= high[row] + reach) & (high >= low[row] - reach)).all(axis=1)


def _moves_along(pair: tuple[str, str], before: _FrameObjects, now: _FrameObjects, size: tuple[int, int]) -> bool:
    """Return True if an object moves with the hand rather than with the rest of the picture."""
    if not all(name in before.centres for name in pair):
        return False
    other_motions = [now.centres[n] - before.centres[n] for n in now.names if n in before.centres and n not in pair]
    background = np.median(other_motions, axis=0) if other_motions else np.zeros(2)
    hand, object_motion = (now.centres[name] - before.centres[name] for name in pair)
    is_moving = float(np.linalg.norm(object_motion - background)) > _MOVED * size[1]
    return is_moving and float(np.linalg.norm(object_motion - hand)) < float(np.linalg.norm(object_motion - background))


def _places(objects: _FrameObjects, categories: Mapping[str, str], domain: Domain) -> list[Claim]:
    """Return the objects, except hands, that are on or in other objects; the smallest fitting place counts."""
    rows = [row for row, name in enumerate(objects.names) if domain.side(categories[name]) is None]
    claims: list[Claim] = []
    for row in rows:
        x, y, width, height = objects.boxes[row]
        fitting: list[tuple[float, str, str]] = []
        for other in rows:
            left, top, other_width, other_height = objects.boxes[other]
            if other == row or other_width * other_height <= width * height:
                continue
            shared_x = min(x + width, left + other_width) - max(x, left)
            shared_y = min(y + height, top + other_height) - max(y, top)
            if shared_x <= 0 or shared_y < 0:
                continue
            area = float(other_width * other_height)
            if shared_x * shared_y >= _INSIDE * width * height:
                fitting.append((area, objects.names[other], _IN))
            elif shared_x >= width / 2 and y < top and shared_y <= height / 2:
                fitting.append((area, objects.names[other], _ON))
        if fitting:
            _, target, value = min(fitting)
            claims.append(((objects.names[row], target), domain.place_type, value))
            words = domain.places.get(value)
            if words and words.inverse:
                claims.append(((target, objects.names[row]), domain.place_type, words.inverse))
    return claims
