"""Compute the masks on the frames between two keyframes, at a working size.

Each object's mask is computed from each of the two keyframes, and the two results are blended.

Pictures, masks and flow have the working size: the size of the video, reduced to at most 640 pixels on the longer side.
Masks give the covered fraction of each pixel, 0..1.

Dense optical flow, composed from frame to frame back to a keyframe, tells where a frame's pixels come from. The flow is
DIS (Kroeger et al., ECCV 2016; arXiv 1603.03590) with OpenCV's medium preset. A map gives each pixel's position in the
keyframe. So no blur accumulates, and each object needs only one lookup. Positions are (x, y) in pixels of the working
size, x to the right and y down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from barista_bench.annotate.propagation import decoded_frames
from barista_bench.media.video import FrameReader
from barista_bench.scene_graph.masks import Rle, decode_mask, encode_mask

Gray: TypeAlias = NDArray[np.uint8]
Plane: TypeAlias = NDArray[np.float32]
"""One number per pixel at the working size, shape (height, width)."""

# Forward and backward flow may disagree by the first number of pixels. A further disagreement by the second number
# reduces the confidence to 1/e.
_FREE_DISAGREEMENT, _DISAGREEMENT = 1.0, 8.0
# At this difference in grey levels, the confidence that a pixel shows the keyframe's content has fallen to 1/e.
_GREY_ERROR = 12.0
# A correction moves a pixel by less than the first number, and must improve the agreement with the keyframe by at least
# the second number of grey levels.
_MOST_CORRECTION, _LEAST_GAIN = 6.0, 0.5
_MOST_FLOW_BYTES = 2**28  # bytes of cached flow: 70 pairs of neighbours at 640 x 360


class MapToKeyframe(NamedTuple):
    """The position in the keyframe of each pixel of `frame`.

    `positions` has shape (height, width, 2), `confidence` is 0..1 per pixel.
    """

    frame: int
    positions: Plane
    confidence: Plane


class NeighbourFlows:
    """Dense optical flow between neighbouring frames.

    The pass from the keyframe before and the pass from the keyframe after need the same two flows. So the flows are
    cached for the second pass, as far as memory permits.

    Args:
        grays: grey pictures at the working size, by frame index.
    """

    def __init__(self, grays: Mapping[int, Gray]) -> None:
        self.grays = grays
        self.method = cv2.DISOpticalFlow_create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
        self._kept: dict[tuple[int, int], tuple[Plane, Plane]] = {}

    def flow_between(self, before: int, frame: int) -> tuple[Plane, Plane]:
        """Return the flow from `frame` to its neighbour `before`, and the flow from `before` to `frame`."""
        if kept := self._kept.pop((frame, before), None):
            return kept[1], kept[0]
        back: Plane = self.method.calc(self.grays[frame], self.grays[before], None)
        forth: Plane = self.method.calc(self.grays[before], self.grays[frame], None)
        if len(self._kept) * (back.nbytes + forth.nbytes) < _MOST_FLOW_BYTES:
            self._kept[before, frame] = back, forth
        return back, forth


def maps_to_keyframe(flows: NeighbourFlows, order: Sequence[int]) -> Iterator[MapToKeyframe]:
    """Yield a map to the keyframe for each frame of `order`. The keyframe is the first frame; its map is the identity.

    Args:
        flows: the flows between the frames.
        order: consecutive frames, forward or backward.
    """
    grays = flows.grays
    keyframe = grays[order[0]]
    rows, columns = np.indices(keyframe.shape, dtype=np.float32)
    identity: Plane = np.dstack([columns, rows])
    positions, agreement = identity, np.ones(keyframe.shape, dtype=np.float32)
    yield MapToKeyframe(order[0], positions, agreement)
    for before, frame in pairwise(order):
        gray = grays[frame]
        back, forth = flows.flow_between(before, frame)
        origin = identity + back
        disagreement = _lengths(back + sample_between_pixels(forth, origin))
        excess = np.maximum(disagreement - _FREE_DISAGREEMENT, 0)
        agreement = sample_between_pixels(agreement, origin) * np.exp(-excess / _DISAGREEMENT)
        positions = _correct_drift(sample_between_pixels(positions, origin), identity, keyframe, gray, flows.method)
        error = cv2.boxFilter(_difference(keyframe, positions, gray), -1, (7, 7))
        height, width = keyframe.shape
        x, y = positions[..., 0], positions[..., 1]
        is_inside = (x > -1) & (y > -1) & (x < width) & (y < height)
        yield MapToKeyframe(frame, positions, agreement * np.exp(-error / _GREY_ERROR) * is_inside)


def sample_between_pixels(image: NDArray[np.generic], positions: Plane, *, border: int = cv2.BORDER_REPLICATE) -> Plane:
    """Return the values of an image (height, width[, channels]) at positions between pixels, bilinearly."""
    return cv2.remap(image, positions, None, cv2.INTER_LINEAR, borderMode=border)


def _lengths(vectors: Plane) -> Plane:
    """Return the lengths of vectors (height, width, 2), exactly equal to `np.linalg.norm`, in a third of its time."""
    x, y = vectors[..., 0], vectors[..., 1]
    return np.sqrt(x * x + y * y)


def _correct_drift(positions: Plane, identity: Plane, keyframe: Gray, gray: Gray, flow: cv2.DISOpticalFlow) -> Plane:
    left_over = flow.calc(gray, sample_between_pixels(keyframe, positions), None)
    corrected = sample_between_pixels(positions, identity + left_over)
    gain = _difference(keyframe, positions, gray) - _difference(keyframe, corrected, gray)
    is_better = (cv2.boxFilter(gain, -1, (9, 9)) > _LEAST_GAIN) & (_lengths(left_over) < _MOST_CORRECTION)
    return np.where(is_better[..., None], corrected, positions)


def _difference(keyframe: Gray, positions: Plane, gray: Gray) -> Plane:
    return np.abs(sample_between_pixels(keyframe, positions).astype(np.float32) - gray)


WORKING_SIDE = 640
_LEAST_WEIGHT = 1e-3  # weight of a pixel: one side must win even if neither side can be trusted


class WorkingFrames:
    """Consecutive frames of a video at the working size, all read at the start.

    Args:
        frames: the video.
        span: indices of the frames.
    """

    def __init__(self, frames: FrameReader, span: range) -> None:
        self._width, self._height = frames.size
        scale = min(1.0, WORKING_SIDE / max(frames.size))
        self._size = (max(round(self._width * scale), 1), max(round(self._height * scale), 1))
        self.grays: dict[int, Gray] = {}
        self.flows = NeighbourFlows(self.grays)
        for index, image in decoded_frames(frames, span):
            picture = cv2.resize(image, self._size, interpolation=cv2.INTER_AREA)
            self.grays[index] = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)

    def shrink(self, rle: Rle) -> Plane:
        """Return the fraction of each pixel that a mask covers, 0..1, at the working size."""
        return cv2.resize(decode_mask(rle).astype(np.float32), self._size, interpolation=cv2.INTER_AREA)

    def enlarge(self, coverage: Plane) -> Rle:
        """Return a mask of the video's size, with the pixels that are more than half covered."""
        return encode_mask(cv2.resize(coverage, (self._width, self._height), interpolation=cv2.INTER_LINEAR) > 0.5)


class KnownMask(NamedTuple):
    """The known mask of an object at an end of a stretch: keyframe `source` has it, or it is propagated from there."""

    rle: Rle
    source: int
    confidence: float


class Blend(NamedTuple):
    """The result for an object on a frame: the covered fraction of each pixel, 0..1, and the confidence, 0..1."""

    coverage: Plane
    confidence: float


def blend_frames(
    working: WorkingFrames, span: range, left: Mapping[str, KnownMask], right: Mapping[str, KnownMask]
) -> Iterator[tuple[int, dict[str, Blend]]]:
    """Yield each frame of a stretch with its objects; absent objects cover no pixels.

    Args:
        working: the frames of the stretch, and possibly others.
        span: the frames from one keyframe to the next, or from an end of the video to a keyframe, both included.
        left: objects known on the first frame; empty if the first frame is not a keyframe.
        right: objects known on the last frame; empty if the last frame is not a keyframe.
    """
    from_right = {warped.frame: warped for warped in warp_from_keyframe(working, span[::-1], right)} if right else {}
    from_left = warp_from_keyframe(working, span, left) if left else iter(())
    for frame in span:
        sides = [(next(from_left, None), left), (from_right.pop(frame, None), right)]
        yield frame, _blend_objects(frame, [(warped, masks) for warped, masks in sides if warped is not None])


class WarpedFrame(NamedTuple):
    """A frame computed from one keyframe: its objects, and the confidence of each pixel, 0..255."""

    frame: int
    objects: dict[str, _Crop]
    confidence: NDArray[np.uint8]

    def confidence_within(self, region: NDArray[np.bool_]) -> float:
        """Return the mean confidence of a region that is not empty, 0..1."""
        return float(self.confidence[region].mean()) / 255


class _Crop(NamedTuple):
    """Coverage, 0..255, around an object: full planes for many objects and frames would take gigabytes."""

    top: int
    left: int
    coverage: NDArray[np.uint8]

    @classmethod
    def around(cls, coverage: Plane) -> _Crop:
        levels = np.rint(coverage * 255).astype(np.uint8)
        x, y, width, height = cv2.boundingRect(levels)
        return cls(y, x, levels[y : y + height, x : x + width].copy())

    @property
    def box(self) -> tuple[int, int, int, int]:
        """The top, left, bottom and right edges."""
        height, width = self.coverage.shape
        return self.top, self.left, self.top + height, self.left + width

    def plane(self, shape: tuple[int, ...], corner: tuple[int, int] = (0, 0)) -> Plane:
        """Return the coverage, 0..1, of the full frame, or of a part of this shape with top left `corner`."""
        plane = np.zeros(shape, dtype=np.float32)
        top, left, bottom, right = self.box
        plane[top - corner[0] : bottom - corner[0], left - corner[1] : right - corner[1]] = self.coverage / np.float32(
            255
        )
        return plane


def warp_from_keyframe(working: WorkingFrames, order: range, masks: Mapping[str, KnownMask]) -> Iterator[WarpedFrame]:
    """Yield the frames of `order`, computed from the first of them, with their known objects."""
    coverages = {name: working.shrink(mask.rle) for name, mask in masks.items()}
    for to_keyframe in maps_to_keyframe(working.flows, order):
        objects = {
            name: _Crop.around(sample_between_pixels(mask, to_keyframe.positions, border=cv2.BORDER_CONSTANT))
            for name, mask in coverages.items()
        }
        yield WarpedFrame(to_keyframe.frame, objects, np.rint(to_keyframe.confidence * 255).astype(np.uint8))


def _blend_objects(frame: int, sides: Sequence[tuple[WarpedFrame, Mapping[str, KnownMask]]]) -> dict[str, Blend]:
    blends = {}
    for name in sorted({name for _, known_masks in sides for name in known_masks}):
        pairs = [(warped, known_masks[name]) for warped, known_masks in sides if name in known_masks]
        coverage = np.zeros(pairs[0][0].confidence.shape, dtype=np.float32)
        boxes = [warped.objects[name].box for warped, _ in pairs if warped.objects[name].coverage.size]
        if not boxes:
            blends[name] = Blend(coverage, 0.0)
            continue
        tops, lefts, bottoms, rights = zip(*boxes, strict=True)
        part = slice(min(tops), max(bottoms)), slice(min(lefts), max(rights))
        weighted, total = np.zeros_like(coverage[part]), np.zeros_like(coverage[part])
        for (warped, mask), nearness in zip(pairs, _nearness(frame, [mask.source for _, mask in pairs]), strict=True):
            trust = warped.confidence[part] * np.float32(mask.confidence / 255) + np.float32(_LEAST_WEIGHT)
            weight = np.float32(nearness**2) * trust
            weighted += weight * warped.objects[name].plane(weighted.shape, (min(tops), min(lefts)))
            total += weight
        coverage[part] = weighted / total
        region = coverage > 0.5
        confidence = 0.0
        if region.any():
            agreement = float(np.abs(2 * coverage[region] - 1).mean())
            confidence = agreement * max(warped.confidence_within(region) * mask.confidence for warped, mask in pairs)
        blends[name] = Blend(coverage, confidence)
    return blends


def _nearness(frame: int, sources: Sequence[int]) -> list[float]:
    """Return the nearness of each of one or two keyframes to a frame, 0..1; the sum is 1."""
    if len(sources) == 1:
        return [1.0]
    before, after = sources
    return [(after - frame) / (after - before), (frame - before) / (after - before)]
