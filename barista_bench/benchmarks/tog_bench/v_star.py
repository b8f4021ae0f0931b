"""V-STaR's annotation files (github.com/V-STaR-Bench/V-STaR) in our format.

One object a question, named by `answer`, one interval, boxes in pixels at whole seconds. Questions name no object by
its task, so all count as explicit. Facts: docs/upstream/tog_bench.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from barista_bench.benchmarks.tog_bench.annotations import MAX_TASKS, BoxAt, ObjectRecord, TaskRecord, VideoRecord
from barista_bench.errors import DataError
from barista_bench.scene_graph import ProblemLog

RECOGNISED_BY = frozenset({"vid", "question", "answer", "timestamps", "bboxes"})
"""Keys that every record has."""


class VStarBox(msgspec.Struct, frozen=True):
    """One box: seconds, and corners in pixels."""

    timestamp: float
    xmin: float
    ymin: float
    xmax: float
    ymax: float


class VStarRecord(msgspec.Struct, frozen=True):
    """One question; keys that are not named are not read."""

    vid: str | int
    width: int
    height: int
    fps: float
    frame_count: int
    question: str
    answer: str
    timestamps: tuple[float, float]
    bboxes: list[VStarBox]


def is_v_star(content: object) -> bool:
    """Whether a decoded file is V-STaR's, by its first record."""
    records: Iterable[object] = (
        content.values() if isinstance(content, dict) else content if isinstance(content, list) else ()
    )
    first: object = next(iter(records), None)
    return isinstance(first, dict) and first.keys() >= RECOGNISED_BY


def converted_record(raw: object, number: int) -> tuple[VideoRecord, TaskRecord]:
    """The video and the task of one record, which is question `number` of its video.

    Raises:
        msgspec.ValidationError: a field is absent, of another kind or out of range; names it.
    """
    theirs = msgspec.convert(raw, VStarRecord, strict=False)
    name = str(theirs.vid)
    boxes = [BoxAt(box.timestamp, (box.xmin, box.ymin, box.xmax, box.ymax)) for box in theirs.bboxes]
    item = ObjectRecord(theirs.answer, intervals=[theirs.timestamps], boxes=boxes)
    task = TaskRecord(f"{name}/{number:04d}", name, theirs.question, "explicit", [item])
    video = VideoRecord(name, theirs.width, theirs.height, theirs.fps, theirs.frame_count)
    # A struct is checked when it is read, not when it is made.
    return msgspec.convert(msgspec.to_builtins((video, task)), tuple[VideoRecord, TaskRecord])


def read_v_star(
    content: dict[str, object] | list[object], log: ProblemLog
) -> tuple[list[VideoRecord], list[TaskRecord]]:
    """All videos and tasks of one decoded file. A record that cannot be used is left out and logged.

    Raises:
        DataError: there are more than `MAX_TASKS`.
    """
    if len(content) > MAX_TASKS:
        raise DataError(f"{log.file}: more than {MAX_TASKS} records. Remedy: split the file")
    videos: dict[str, VideoRecord] = {}
    tasks: list[TaskRecord] = []
    numbers: Counter[str] = Counter()
    for key, raw in content.items() if isinstance(content, dict) else enumerate(content):
        where = f"[{key}]" if isinstance(key, int) else f"{key:.60}"
        name = str(raw.get("vid")) if isinstance(raw, dict) else ""
        try:
            video, task = converted_record(raw, numbers[name] + 1)
            if videos.setdefault(video.id, video) != video:
                raise DataError(f"says other things of the video {video.id!r:.80} than an earlier record")
        except (DataError, msgspec.ValidationError) as error:
            log.error(where, f"{error!s:.300}; the record is left out", "correct it")
        else:
            numbers[name] += 1
            tasks.append(task)
    return list(videos.values()), tasks
