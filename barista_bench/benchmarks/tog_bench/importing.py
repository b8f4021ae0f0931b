"""Other annotation layouts through a field map: each record becomes a task in our format, or a named problem."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

import msgspec

from barista_bench.benchmarks.clock_times import clock_seconds
from barista_bench.benchmarks.tog_bench.annotations import MAX_BOXES, MAX_TASKS, TaskRecord, VideoRecord
from barista_bench.benchmarks.tog_bench.field_map import (
    BoxMap,
    FieldMap,
    IntervalMap,
    Lookup,
    Node,
    ObjectMap,
    TimeUnit,
    Where,
)
from barista_bench.errors import DataError
from barista_bench.scene_graph.problems import ProblemLog

_REMEDY = "correct the file or its field map"
_Raw = dict[str, object]


def import_records(content: object, field_map: FieldMap, log: ProblemLog) -> tuple[list[VideoRecord], list[TaskRecord]]:
    """All videos and tasks of one decoded file. A record that cannot be used is left out and logged.

    Raises:
        DataError: the way to the records leads nowhere, or there are more than `MAX_TASKS`.
    """
    videos: dict[str, VideoRecord] = {}
    tasks: dict[str, _Raw] = {}
    seen: dict[str, int] = {}
    for count, record in enumerate(Node(content).each(field_map.records)):
        if count >= MAX_TASKS:
            raise DataError(f"{log.file}: more than {MAX_TASKS} records. Remedy: split the file")
        try:
            video = _video(record, field_map)
            task = _task(record, field_map, video)
            known = videos.setdefault(video.id, video)
            if known != video:
                raise DataError(f"says other things of the video {video.id!r} than an earlier record")
            _add(task, tasks, seen, grouped=field_map.grouped)
        except (DataError, msgspec.ValidationError) as error:
            log.error(_place(record), f"{error}; the record is left out", _REMEDY)
    return list(videos.values()), list(_converted(tasks, log))


def _place(node: Node) -> str:
    """Where a record stands in its file, as the logs write it."""
    steps = []
    while node.parent is not None:
        steps.append(f"[{node.key}]" if isinstance(node.key, int) else f".{node.key:.60}")
        node = node.parent
    return "".join(reversed(steps)).removeprefix(".")


def _add(task: _Raw, tasks: dict[str, _Raw], seen: dict[str, int], *, grouped: bool) -> None:
    """File the task under its id; a record of a task that is begun adds its objects."""
    if not task["id"]:
        video = str(task["video"])
        seen[video] = seen.get(video, 0) + 1
        task["id"] = f"{video}/{seen[video]:04d}"
    name = str(task["id"])
    begun = tasks.setdefault(name, task)
    if begun is task:
        return
    if not grouped:
        raise DataError(f"has the id {name!r:.80} of an earlier record")
    if any(begun[key] != task[key] for key in ("video", "instruction", "kind")):
        raise DataError(f"has another video, instruction or kind than an earlier record of {name!r:.80}")
    objects, more = begun["objects"], task["objects"]
    assert isinstance(objects, list)
    assert isinstance(more, list)
    objects.extend(more)


def _converted(tasks: dict[str, _Raw], log: ProblemLog) -> Iterator[TaskRecord]:
    for name, raw in tasks.items():
        try:
            yield msgspec.convert(raw, TaskRecord)
        except msgspec.ValidationError as error:
            log.error(f"task {name:.80}", f"{error}; the task is left out", _REMEDY)


def _video(record: Node, field_map: FieldMap) -> VideoRecord:
    where = field_map.video
    raw: _Raw = {
        "id": _text(record, where.id, "video.id"),
        "width": _whole(_number(_found(record, where.width, "video.width"), "video.width")),
        "height": _whole(_number(_found(record, where.height, "video.height"), "video.height")),
    }
    if where.fps is not None:
        raw["fps"] = _number(_found(record, where.fps, "video.fps"), "video.fps")
    if where.frame_count is not None:
        raw["frame_count"] = _whole(_number(_found(record, where.frame_count, "video.frame_count"), "frame_count"))
    if where.scene is not None:
        raw["scene"] = _text(record, where.scene, "video.scene")
    return msgspec.convert(raw, VideoRecord)


def _task(record: Node, field_map: FieldMap, video: VideoRecord) -> _Raw:
    where = field_map.task
    objects = [raw for part in field_map.objects for raw in _objects(record, part, video)]
    return {
        "id": "" if where.id is None else _text(record, where.id, "task.id"),
        "video": video.id,
        "instruction": _text(record, where.instruction, "task.instruction"),
        "kind": _text(record, where.kind, "task.kind"),
        "objects": objects,
    }


def _objects(record: Node, where: ObjectMap, video: VideoRecord) -> Iterator[_Raw]:
    if not where.many:
        yield _object(record.at(where.at), where, video)
        return
    try:
        holder = record.at(where.at)
    except DataError:  # a task without objects of this kind
        return
    if holder.value is not None:
        for node in holder.children():
            yield _object(node, where, video)


def _object(node: Node, where: ObjectMap, video: VideoRecord) -> _Raw:
    raw: _Raw = {
        "category": _text(node, where.category, "objects.category"),
        "intervals": [_interval(item, where.intervals, video) for item in _intervals(node, where.intervals)],
        "boxes": [_box(item, where.boxes, video) for item in _several(node.at(where.boxes.at), "boxes")],
    }
    if where.kind is not None:
        raw["kind"] = _text(node, where.kind, "objects.kind")
    if where.synonyms is not None:
        raw["synonyms"] = node.at(where.synonyms).value
    if where.id is not None:
        raw["id"] = _text(node, where.id, "objects.id")
    return raw


def _intervals(node: Node, where: IntervalMap) -> Sequence[Node]:
    found = node.at(where.at)
    return _several(found, "intervals") if where.many else [found]


def _several(node: Node, what: str) -> Sequence[Node]:
    found = list(node.children())
    if len(found) > MAX_BOXES:
        raise DataError(f"has {len(found)} {what}, more than {MAX_BOXES}")
    return found


def _interval(node: Node, where: IntervalMap, video: VideoRecord) -> list[float]:
    return [_seconds(node.at(path).value, where.unit, video) for path in (where.start, where.end)]


def _box(node: Node, where: BoxMap, video: VideoRecord) -> _Raw:
    if isinstance(where.box, str):
        found = node.at(where.box).value
        values: Sequence[object] = found if isinstance(found, list) else [found]
    else:
        values = [node.at(path).value for path in where.box]
    if len(values) != 4:
        raise DataError(f"a box has {len(values)} numbers, not 4")
    numbers = [_number(value, "a box") for value in values]
    time = _seconds(node.at(where.time).value, where.unit, video)
    return {"time": time, "box": _corners(numbers, where, video)}


def _corners(numbers: list[float], where: BoxMap, video: VideoRecord) -> list[float]:
    """[x0, y0, x1, y1] in pixels."""
    a, b, c, d = numbers
    if where.order == "yxyx":
        a, b, c, d = b, a, d, c
    elif where.order == "xywh":
        c, d = a + c, b + d
    elif where.order == "cxcywh":
        a, b, c, d = a - c / 2, b - d / 2, a + c / 2, b + d / 2
    if where.scale is None:
        return [a, b, c, d]
    wide, high = video.width / where.scale, video.height / where.scale
    return [a * wide, b * high, c * wide, d * high]


def _seconds(value: object, unit: TimeUnit, video: VideoRecord) -> float:
    if unit == "clock":
        clock = clock_seconds(value) if isinstance(value, str) else None
        if clock is None:
            raise DataError(f"a time is {_shown(value)}, not mm:ss")
        return clock
    number = _number(value, "a time")
    if unit == "milliseconds":
        return number / 1000
    if unit == "frames":
        if video.fps is None:
            raise DataError("times are frame numbers, and the video has no fps")
        return number / video.fps
    return number


def _found(node: Node, where: Where, name: str) -> object:
    """The value that a map leads to, through its own words where it has some."""
    if isinstance(where, str):
        return node.at(where).value
    return _looked_up(where.value if where.at is None else node.at(where.at).value, where, name)


def _looked_up(value: object, where: Lookup, name: str) -> object:
    if where.stem:
        if not isinstance(value, str):
            raise DataError(f"{name} is {_shown(value)}, not a path")
        value = PurePosixPath(value.replace("\\", "/")).stem
    if where.values is not None:
        if str(value) not in where.values:
            raise DataError(f"{name} is {_shown(value)}, which the field map has no word for")
        value = where.values[str(value)]
    return f"{value}{where.add}" if where.add else value


def _text(node: Node, where: Where, name: str) -> str:
    value = _found(node, where, name)
    if isinstance(value, int) and not isinstance(value, bool):  # ids are often numbers
        return str(value)
    if not isinstance(value, str):
        raise DataError(f"{name} is {_shown(value)}, not text")
    return value


def _number(value: object, name: str) -> float:
    """A finite number, or one written as text, as CSV-born files have them."""
    if isinstance(value, str) and len(value) < 40:
        try:
            value = float(value)
        except ValueError:
            raise DataError(f"{name} holds {_shown(value)}, not a number") from None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e12:
        raise DataError(f"{name} holds {_shown(value)}, not a number")
    if not math.isfinite(value):
        raise DataError(f"{name} holds {value}, not a number")
    return float(value)


def _whole(number: float) -> int | float:
    return int(number) if number.is_integer() else number


def _shown(value: object) -> str:
    return f"{value!r:.60}" if isinstance(value, str | int | float | bool) or value is None else type(value).__name__
