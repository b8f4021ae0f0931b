"""Clips of a video: a few keyframes, and the graph around each of them as arrays.

The window of a keyframe is the video's frames within a distance of 2. An object is persistent if the first and the last
window each contain at least 2 annotations of the object. An object that no keyframe shows counts as `unknown` in that
clip, unless it is the target of a relation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from barista_bench.core.options import Count, Sampling, Seconds
from barista_bench.errors import DataError
from barista_bench.scene_graph import VideoGraph
from barista_bench.scene_graph.video_graph import HAND_RELATION, HANDS, UNNAMED, WINDOW, Ranges

Keyframes = tuple[int, ...]
"""Frame indices of a clip's keyframes. The first index is also the clip's index."""
MIN_ANNOTATIONS = 2
"""Fewest annotations that a persistent object has in each end window."""
_IDENTIFIER = re.compile(r"\s*\(#[0-9a-f][^)]*\)", re.IGNORECASE)
"""An id within a display name, such as ` (#9492f2cd)`."""


@dataclass(frozen=True, slots=True)
class ClipSampling(Sampling):
    """The sampling of tasks about clips.

    Args:
        frames: number of keyframes of a clip.
        spacing: number of frames from one keyframe to the next.
        seconds: duration from a clip's first keyframe to its last, whatever the frame rate; None uses `spacing`.
    """

    frames: Count = 1
    spacing: Count = 1
    seconds: Seconds | None = None


def clips(video: VideoGraph, sampling: ClipSampling) -> Iterator[Keyframes]:
    """Yield consecutive clips without overlap. The last clip may be shorter, but has at least 2 keyframes.

    If a frame range is sampled, only clips that lie entirely inside it are yielded.
    """
    low, high = sampling.frame_range or (0, video.frame_count)
    spacing = _spacing(video, sampling)
    length = sampling.frames * spacing
    for start in range(0, video.frame_count, length):
        keyframes = tuple(range(start, min(start + length, video.frame_count), spacing))
        if len(keyframes) > 1 and start >= low and keyframes[-1] < high:
            yield keyframes


def clip_span(video: VideoGraph, first: int, sampling: ClipSampling) -> tuple[int, int]:
    """Return the frames [start, stop) of the clip that begins at `first`, including the windows of its keyframes."""
    return first - WINDOW, first + sampling.frames * _spacing(video, sampling) + WINDOW


def _spacing(video: VideoGraph, sampling: ClipSampling) -> int:
    """Return the number of frames between two keyframes: `spacing`, or the value from `seconds` and the frame rate."""
    if sampling.seconds is None:
        return sampling.spacing
    if not video.video.fps:
        raise DataError(f"{video.video_id}: has no fps. Fix: give it in video_metadata, or leave seconds out")
    return max(1, round(sampling.seconds * video.video.fps / max(1, sampling.frames - 1)))


class ActiveRelation(NamedTuple):
    """A relation range, and the frames of the clip on which the relation holds.

    `source` and `target` are indices of `VideoGraph.objects`.
    """

    source: int
    target: int
    type: str
    value: str
    row: int
    frames: NDArray[np.bool_]


class ClipArrays:
    """One clip's part of the graph as arrays for the detectors.

    The arrays have one row per object or range and one column per frame. `frames` are the frames of all windows.
    `end_windows` are the columns of the first window and of the last window. `categories` are the objects' categories
    in this clip, by index of `VideoGraph.objects`. `annotations` counts each object's annotations on each frame.
    """

    def __init__(self, video: VideoGraph, keyframes: Keyframes) -> None:
        self.video, self.keyframes = video, keyframes
        around = (np.array(keyframes)[:, None] + np.arange(-WINDOW, WINDOW + 1)).ravel()
        self.frames = np.unique(around[(around >= 0) & (around < video.frame_count)])
        self.span = (int(self.frames[0]), int(self.frames[-1]) + 1)
        table = video.instances_table
        part = table.slice(self.span)
        inside = np.isin(table.frame[part], self.frames)
        self.annotations = np.zeros((len(video.objects), len(self.frames)), dtype=np.int32)
        columns = np.searchsorted(self.frames, table.frame[part][inside])
        np.add.at(self.annotations, (table.object[part][inside], columns), 1)
        self.is_boxed: NDArray[np.bool_] = self.annotations > 0
        on_keyframe = np.logical_or.reduce(self.is_boxed[:, np.searchsorted(self.frames, keyframes)], axis=1).tolist()
        pairs = zip(video.objects, on_keyframe, strict=True)
        self.categories = tuple(item.category if is_shown else UNNAMED for item, is_shown in pairs)
        self.end_windows = (self.window(keyframes[0]), self.window(keyframes[-1]))
        is_named = np.array([category != UNNAMED for category in self.categories], dtype=bool)
        first, last = (self.annotations[:, window].sum(axis=1) >= MIN_ANNOTATIONS for window in self.end_windows)
        self.persistent: NDArray[np.bool_] = is_named & first & last

    def window(self, first: int, last: int | None = None) -> slice:
        """Return the columns of the windows around keyframes `first` to `last`; `last` defaults to `first`.

        The slice begins `WINDOW` frames before `first` and ends `WINDOW` frames after `last`.
        """
        last = first if last is None else last
        low, high = np.searchsorted(self.frames, [first - WINDOW, last + WINDOW + 1])
        return slice(int(low), int(high))

    def active_frames(self, table: Ranges, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return an array (positions, frames) that is True where a range of an attribute or relation covers a frame."""
        start, end = table.start[positions, None], table.end[positions, None]
        return (start <= self.frames) & (self.frames < end)

    @cached_property
    def relations(self) -> list[ActiveRelation]:
        """Return the relation ranges that hold on some frame with both objects annotated, in the order of the file."""
        table = self.video.relations_table
        positions = table.positions_in(self.span)
        source, target = table.source[positions], table.target[positions]
        holds = self.active_frames(table, positions) & self.is_boxed[source] & self.is_boxed[target]
        relations = []
        for i in np.flatnonzero(holds.any(axis=1)).tolist():
            kind, value, _, _, row = table.entry(int(positions[i]))
            relations.append(ActiveRelation(int(source[i]), int(target[i]), kind, value, row, holds[i]))
        return relations

    @cached_property
    def contacts(self) -> list[ActiveRelation]:
        """Return the relations that are contacts of a hand with an object."""
        return [r for r in self.relations if r.type == HAND_RELATION and self.categories[r.source] in HANDS]

    @cached_property
    def activities(self) -> list[dict[str, list[int]]]:
        """Return, for each keyframe, the names of its activities with their rows in the file."""
        active: list[dict[str, list[int]]] = []
        for keyframe in self.keyframes:
            names: dict[str, list[int]] = {}
            for segment in self.video.activities(keyframe, inclusive=True):
                name = _IDENTIFIER.sub("", segment.name).strip()
                if segment.class_id is not None and name:
                    names.setdefault(name, []).append(segment.row)
            active.append(names)
        return active

    def target(self, relation: ActiveRelation) -> str:
        """Return the category of a relation's target, even if no keyframe shows it."""
        return self.video.objects[relation.target].category

    def ids(self, objects: Iterable[int]) -> list[str]:
        """Return the ids of objects, given by index, without repetitions."""
        return list(dict.fromkeys(self.video.objects[index].id for index in objects))
