"""Small releases in our annotation format, made from a scene graph: what hands use, when, and where it is then."""

from __future__ import annotations

import functools
import math
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from barista_bench.benchmarks.tog_bench.annotations import (
    AnnotationFile,
    BoxAt,
    Kind,
    ObjectRecord,
    TaskRecord,
    VideoRecord,
    encode,
)
from barista_bench.benchmarks.tog_bench.release import video_file
from barista_bench.core.prompt import xywh_to_xyxy
from barista_bench.errors import DataError
from barista_bench.files.bounded import load_yaml
from barista_bench.scene_graph import SceneGraph, VideoGraph
from barista_bench.scene_graph.video_graph import HAND_RELATION, HANDS, NAMELESS

ANNOTATIONS = "annotations.json"
GAP = 1.0
"""Seconds between two uses of an object that count as one."""
EXPLICIT = 4
"""Explicit instructions of one object that a video gets at the most, and as many of two."""


class _Purpose(msgspec.Struct, frozen=True):
    """What is to be achieved, and the categories that it takes, with their kinds."""

    say: str
    takes: dict[str, Kind]


class _Instructions(msgspec.Struct, frozen=True):
    explicit: dict[str, str]
    together: str
    implicit: list[_Purpose]
    synonyms: dict[str, list[str]]


class _Thing(NamedTuple):
    """An object of a video as a task may take it. `verb` is what hands do to it most, empty for nothing."""

    name: str
    verb: str
    uses: int
    record: ObjectRecord


@functools.cache
def _instructions() -> _Instructions:
    data = resources.files(__package__).joinpath("instructions.yaml").read_bytes()
    return msgspec.convert(load_yaml(data, "instructions.yaml"), _Instructions)


def write_mini(kitchen: Path, out: Path) -> None:
    """Write a small release: `annotations.json`, and the videos beside it.

    Args:
        kitchen: a folder in the BARISTA release layout, such as a mini kitchen.
        out: a folder that does not exist, or is empty.

    Raises:
        DataError: `out` holds something, or no video of the kitchen has an object that hands use.
    """
    if out.exists() and any(out.iterdir()):
        raise DataError(f"{out}: is not empty. Remedy: name a new folder")
    graph = SceneGraph(kitchen)
    file = tasks_of_graph(graph)
    if not file.tasks:
        raise DataError(f"{kitchen}: hands use nothing in its videos. Remedy: name a kitchen with annotated contacts")
    out.mkdir(parents=True, exist_ok=True)
    for video in file.videos:
        shutil.copyfile(graph.video_path(video.id), out / video_file(video.id))
    (out / ANNOTATIONS).write_bytes(encode(file))


def tasks_of_graph(graph: SceneGraph) -> AnnotationFile:
    """Tasks over the videos of a scene graph, with a box a second; deterministic. Raises DataError without fps."""
    videos, tasks = [], []
    for video in graph:
        if not video.video.fps:
            raise DataError(f"{graph.root}: {video.video_id} has no fps. Remedy: add it to video_metadata")
        record = VideoRecord(video.video_id, video.video.width, video.video.height, video.video.fps, video.frame_count)
        videos.append(msgspec.structs.replace(record, scene="Kitchen"))
        for number, (say, kind, objects) in enumerate(_asked(list(_things(video)))):
            tasks.append(TaskRecord(f"{video.video_id}/{number:02d}", video.video_id, say, kind, objects))
    return AnnotationFile("tog_bench", 1, videos, tasks)


def _asked(things: Sequence[_Thing]) -> Iterator[tuple[str, Kind, list[ObjectRecord]]]:
    """(instruction, kind, objects) of one video's tasks."""
    words = _instructions()
    used = sorted((thing for thing in things if thing.verb), key=lambda thing: (-thing.uses, thing.name))
    names = Counter(thing.name for thing in things)
    unambiguous = [thing for thing in used if names[thing.name] == 1]
    for thing in unambiguous[:EXPLICIT]:
        yield words.explicit[thing.verb].replace("{first}", thing.name), "explicit", [_as(thing, "explicit")]
    for first, second in islice(pairwise(unambiguous), EXPLICIT):
        instruction = words.together.replace("{first}", first.name).replace("{second}", second.name)
        yield instruction, "explicit", [_as(first, "explicit"), _as(second, "explicit")]
    by_category: dict[str, _Thing] = {}
    for thing in (*used, *(thing for thing in things if not thing.verb)):
        by_category.setdefault(thing.record.category, thing)
    for purpose in words.implicit:
        if all(category in by_category for category in purpose.takes):
            yield purpose.say, "implicit", [_as(by_category[name], kind) for name, kind in purpose.takes.items()]


def _as(thing: _Thing, kind: Kind) -> ObjectRecord:
    return msgspec.structs.replace(thing.record, kind=kind)


def _things(video: VideoGraph) -> Iterator[_Thing]:
    """The objects of a video that have a box at some second of their time, in the order of its table."""
    colours = {a.object.id: a.value for a in video.attributes() if a.type == "color"}
    count = Counter(item.category for item in video.objects)
    for index, item in enumerate(video.objects):
        if item.category.casefold() in NAMELESS:
            continue
        verb, frames = _uses(video, index)
        tube = _tube(video, index, frames if len(frames) else video.frames_of(index))
        if tube is not None:
            several = count[item.category] > 1 and item.id in colours
            name = f"{colours[item.id]} {item.category}" if several else item.category
            synonyms = _instructions().synonyms.get(item.category, [])
            record = ObjectRecord(item.category, tube.intervals, tube.boxes, synonyms=synonyms, id=item.id)
            yield _Thing(name, verb, len(frames), record)


def _uses(video: VideoGraph, index: int) -> tuple[str, NDArray[np.int32]]:
    """What hands do most to an object, and the frames on which they do anything to it."""
    table = video.relations_table
    verbs: Counter[str] = Counter()
    frames: list[NDArray[np.int32]] = []
    for position in np.flatnonzero(table.target == index).tolist():
        kind, value = table.labels[table.label[position]]
        source = video.objects[int(table.source[position])].category.casefold()
        if kind == HAND_RELATION and source in HANDS and value in _instructions().explicit:
            held_frames = video.relation_frames(position)
            verbs[value] += len(held_frames)
            frames.append(held_frames)
    if not frames or not sum(verbs.values()):
        return "", np.empty(0, np.int32)
    return min(verbs, key=lambda verb: (-verbs[verb], verb)), np.unique(np.concatenate(frames))


@dataclass(frozen=True, slots=True)
class _Tube:
    intervals: list[tuple[float, float]]
    boxes: list[BoxAt]


def _tube(video: VideoGraph, index: int, frames: NDArray[np.int32]) -> _Tube | None:
    """Stretches of these frames that have a box at some whole second, and those boxes; None without any."""
    fps = video.video.fps or 0.0
    table = video.instances_table
    rows = np.flatnonzero(table.object == index)
    row_of = dict(zip(table.frame[rows].tolist(), rows.tolist(), strict=True))
    intervals, boxes = [], []
    for start, end in _stretches(frames, GAP * fps):
        seconds = range(math.ceil(start / fps), math.floor(end / fps) + 1)
        seen = [(second, row_of[round(second * fps)]) for second in seconds if round(second * fps) in row_of]
        if seen:
            intervals.append((round(start / fps, 3), round(end / fps, 3)))
            boxes += [BoxAt(float(second), xywh_to_xyxy(table.bbox[row].tolist())) for second, row in seen]
    return _Tube(intervals, boxes) if intervals else None


def _stretches(frames: NDArray[np.int32], gap: float) -> Iterator[tuple[int, int]]:
    """(first, last) of the runs of sorted frames that lie no further apart than `gap`."""
    if len(frames):
        for run in np.split(frames, np.flatnonzero(np.diff(frames) > gap) + 1):
            yield int(run[0]), int(run[-1])
