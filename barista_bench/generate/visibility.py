"""What can be seen of one video: named objects and hands, their visibility, and whether their names are unique."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property, lru_cache, wraps
from math import ceil
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco
from scipy.ndimage import maximum_filter

from barista_bench.errors import DataError
from barista_bench.generate.spans import OF, SIDES, NamedObject, names_of
from barista_bench.scene_graph import Rle, VideoGraph, decode_mask
from barista_bench.scene_graph.domain import Domain, Side
from barista_bench.scene_graph.video_graph import Box, Instance

P = ParamSpec("P")
T = TypeVar("T")
SceneT = TypeVar("SceneT", bound="VisibleObjects")
SMALLEST = 0.0004
"""Minimum share of the frame that the mask of a visible object covers: 15 x 15 pixels of 640 x 360."""
UNCOVERED = 0.4
"""Minimum share of an object's median area. Below it, the object is mostly hidden, or outside the picture."""
APART = 0.01
"""Minimum distance between two objects that clearly do not touch, as a fraction of the frame's width."""


def cached_by_scene(compute: Callable[Concatenate[SceneT, P], T]) -> Callable[Concatenate[SceneT, P], T]:
    """Cache the results of `compute` by its arguments, for as long as the scene exists.

    Each result is needed thousands of times.
    """

    @wraps(compute)
    def recall(scene: SceneT, /, *args: P.args, **kwargs: P.kwargs) -> T:
        key = compute, args, tuple(kwargs.items())
        if key not in scene.memo:
            scene.memo[key] = compute(scene, *args, **kwargs)
        value: T = scene.memo[key]
        return value

    return recall


class VisibleObjects:
    """One video's graph. Its parts are computed when they are first needed.

    Args:
        video: the graph. Frame ranges are `[start, end)`, and boxes are (x, y, width, height) in pixels.
        domain: the domain, which defines names and values.

    Raises:
        DataError: the video has no frame rate, so that frames cannot be converted to seconds.
    """

    def __init__(self, video: VideoGraph, domain: Domain) -> None:
        if not video.video.fps:
            raise DataError(f"{video.video_id}: has no fps. Fix: give it in video_metadata")
        self.video = video
        self.domain = domain
        self.coverage = video.coverage
        self.fps: float = video.video.fps
        self.frame_count = video.frame_count
        self.memo: dict[object, Any] = {}
        self.boxes: Callable[[int], dict[str, Box]] = lru_cache(maxsize=64)(video.boxes)
        """Returns the boxes of a frame's annotated objects by object id, as (x, y, width, height) in pixels."""
        self._instances: Callable[[int], dict[str, Instance]] = lru_cache(maxsize=64)(
            lambda frame: {instance.object.id: instance for instance in video.instances(frame)}
        )
        self._mask: Callable[[Instance], NDArray[np.bool_] | None] = lru_cache(maxsize=32)(self._readable_mask)
        self._index = {item.id: index for index, item in enumerate(video.objects)}

    @property
    def video_id(self) -> str:
        return self.video.video_id

    def frames_in(self, seconds: float) -> int:
        """Convert seconds to a whole number of frames, at least one."""
        return max(1, round(seconds * self.fps))

    def frames_of_action(self, shown_fps: float) -> int:
        """Return the fewest frames of a clip that shows an action, if `shown_fps` frames per second are shown."""
        lengths = self.domain.lengths
        pictures = ceil(lengths.action_frames * max(1.0, self.fps / shown_fps))
        return max(pictures, self.frames_in(lengths.action_min))

    @cached_property
    def margin(self) -> int:
        """Return the number of frames around a moment on which a claim about the moment must hold too."""
        return self.frames_in(self.domain.lengths.margin)

    @cached_property
    def things(self) -> dict[str, NamedObject]:
        """Return all objects with a name, except hands, by id."""
        names = names_of(self.video, self.domain, self.wholes, self.owners)
        return {item.id: NamedObject(item.id, name, item.category) for item, name in names.items()}

    @cached_property
    def hands(self) -> dict[Side, list[str]]:
        """Return, for each side, the ids of the objects that are the hand of this side."""
        objects = self.video.objects
        return {side: [item.id for item in objects if self.domain.side(item.category) == side] for side in SIDES}

    def frames_of(self, object_id: str) -> NDArray[np.int32]:
        """Return the sorted frames on which an object is annotated."""
        return self.video.frames_of(self._index[object_id])

    def is_visible(self, object_id: str, frame: int) -> bool | None:
        """Return whether an object is clearly visible on a frame.

        Return None if too little of the object is visible, or in a short gap. Return None, too, if the object is not
        annotated and objects in view may lack annotation.
        """
        frames, areas, median = self._areas(object_id)
        index = int(np.searchsorted(frames, frame))
        if index < len(frames) and frames[index] == frame:
            area = areas[index]
            is_large = area >= SMALLEST * self.video.video.width * self.video.video.height
            return True if is_large and area >= UNCOVERED * median else None
        gap = self.frames_in(self.domain.lengths.gap)
        is_near = (index > 0 and frame - frames[index - 1] <= gap) or (
            index < len(frames) and frames[index] - frame <= gap
        )
        category = self.video.objects[self._index[object_id]].category
        return None if is_near or not self.coverage.covers_category(category, frame, frame + 1) else False

    def hidden_fraction(self, object_id: str, frame: int) -> float | None:
        """Return the share of an object's median area that is missing on a frame; None without annotation there."""
        frames, areas, median = self._areas(object_id)
        index = int(np.searchsorted(frames, frame))
        if index == len(frames) or frames[index] != frame or not median:
            return None
        return max(0.0, 1 - float(areas[index]) / median)

    def is_hand_visible(self, side: Side, frame: int) -> bool | None:
        """Return whether the hand of a side is visible, as in `is_visible`; None if several objects are that hand."""
        hand = self.hand_id(side)
        return self.is_visible(hand, frame) if hand else None if self.hands[side] or self.coverage.is_partial else False

    def hand_id(self, side: Side) -> str | None:
        """Return the id of the object that is the hand of a side, or None unless there is exactly one."""
        return self.hands[side][0] if len(self.hands[side]) == 1 else None

    def hands_at(self, frame: int) -> list[str]:
        """Return the ids of the hands that are annotated on a frame."""
        return [hand for side in SIDES if (hand := self.hand_id(side)) and self.is_annotated(hand, frame)]

    @cached_by_scene
    def _areas(self, object_id: str) -> tuple[NDArray[np.int32], NDArray[np.float64], float]:
        """Return the sorted frames of an object, its mask areas in pixels, and their median.

        The area of the box replaces the area of an unreadable mask.
        """
        table = self.video.instances_table
        positions = np.flatnonzero(table.object == self._index[object_id])
        instances = [self.video.instance(int(index)) for index in positions]
        areas = np.array([item.bbox[2] * item.bbox[3] for item in instances], dtype=np.float64)
        for index, rle in enumerate(self.video.rles(instances)):
            if isinstance(rle, Rle):
                areas[index] = float(coco.area({"counts": rle.counts, "size": rle.size}))
        return table.frame[positions], areas, float(np.median(areas)) if len(areas) else 0.0

    @cached_by_scene
    def are_apart(self, first: str, second: str, frame: int) -> bool:
        """Return whether two objects that are both annotated on a frame clearly do not touch.

        They do not touch if their masks, or even their boxes, are at least `APART` from each other. The result is False
        if the boxes are near and a mask cannot be read.
        """
        instances = self._instances(frame)
        if first not in instances or second not in instances:
            return False
        gap = max(1, round(APART * self.video.video.width))
        pair = [instances[first], instances[second]]
        (x, y, w, h), (a, b, c, d) = (item.bbox for item in pair)
        if x + w + gap < a or a + c + gap < x or y + h + gap < b or b + d + gap < y:
            return True
        masks = [mask for mask in map(self._mask, pair) if mask is not None]
        if len(masks) < len(pair):
            return False
        # The part of the second box that is near the first box contains all pixels that can touch the first object.
        rows = slice(max(0, int(y) - gap), int(y + h) + gap + 1)
        columns = slice(max(0, int(x) - gap), int(x + w) + gap + 1)
        second_near = masks[1][rows, columns]
        if not second_near.any():
            return True
        first_grown = maximum_filter(masks[0][rows, columns].astype(np.uint8), size=2 * gap + 1, mode="constant")
        return not bool((first_grown.astype(bool) & second_near).any())

    def _readable_mask(self, instance: Instance) -> NDArray[np.bool_] | None:
        (rle,) = self.video.rles([instance])
        return decode_mask(rle) if isinstance(rle, Rle) else None

    def is_unique(self, thing: NamedObject, frames: Collection[int]) -> bool:
        """Return whether an object's name could mean no other object on any of the frames.

        The result is False if objects of the same category may be in view without annotation.
        """
        if not all(self.coverage.covers_category(thing.category, frame, frame + 1) for frame in frames):
            return False
        namesakes = self.namesakes(thing.id)
        return not any(object_id in self.boxes(frame) for frame in frames for object_id in namesakes)

    @cached_by_scene
    def namesakes(self, object_id: str) -> tuple[str, ...]:
        """Return the ids of other objects that the object's name could also mean."""
        thing = self.things[object_id]
        ids = [item.id for item in self.video.objects if item.id not in self.things and item.category == thing.name]
        for other in self.things.values():
            # The name "lid" can mean the lid of the jar, but "jar" cannot.
            name = other.name if OF in thing.name else other.noun
            could_be = name == thing.name or name.endswith(f" {thing.name}") or other.category.lower() == thing.name
            if could_be and other.id != thing.id:
                ids.append(other.id)
        return tuple(ids)

    @cached_property
    def wholes(self) -> dict[str, frozenset[str]]:
        """Map an object's id to the ids of all objects that it is a part of at any time."""
        return self._targets_of({predicate for predicate, words in self.domain.places.items() if words.is_part})

    @cached_property
    def owners(self) -> dict[str, frozenset[str]]:
        """Map an object's id to the ids of all objects that it belongs to at any time."""
        return self._targets_of({predicate for predicate, words in self.domain.places.items() if words.belongs})

    def _targets_of(self, predicates: Collection[str]) -> dict[str, frozenset[str]]:
        """Map an object's id to the ids of the objects to which it has one of the relations at any time."""
        related: dict[str, set[str]] = {}
        for relation in self.video.relations():
            if relation.type == self.domain.place_type and relation.value in predicates:
                related.setdefault(relation.source.id, set()).add(relation.target.id)
        return {object_id: frozenset(ids) for object_id, ids in related.items()}

    def is_part_of_other(self, first: str, second: str) -> bool:
        """Return whether one of two objects is a part of the other at any time.

        Such objects do not count as two objects.
        """
        return second in self.wholes.get(first, ()) or first in self.wholes.get(second, ())

    def _annotated_within(self, object_id: str, start: int, end: int) -> int:
        return int(np.diff(np.searchsorted(self.frames_of(object_id), [start, end]))[0])

    def is_annotated(self, object_id: str, frame: int) -> bool:
        """Return whether an object has a box on a frame."""
        return self._annotated_within(object_id, frame, frame + 1) > 0
