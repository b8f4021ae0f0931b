"""The annotation format of ToG-Bench as we define it, and V-STaR's files in it.

The official annotations are not published; `docs/tog_bench.md` describes this format and `schema.json` is its JSON
Schema (2020-12), exported from the records below. That page also shows how another layout is converted.

Times are seconds from the first frame. Boxes are [x0, y0, x1, y1] in pixels of a frame of the width and height that
the video's record states, with x0 < x1 and y0 < y1 (continuous corners: the width is x1 - x0).

V-STaR (github.com/V-STaR-Bench/V-STaR):
One object a question, named by `answer`, one interval, boxes in pixels at whole seconds. Questions name no object by
its task, so all count as explicit. Facts: docs/upstream/tog_bench.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Literal, TypeAlias

import msgspec

from barista_bench.scene_graph.problems import ProblemLog

FORMAT = "tog_bench"
MAX_SECONDS = 360_000.0
"""The longest video, in seconds (100 hours): more is a mistake or an attack."""
MAX_SIZE = 16_384
MAX_VIDEOS = 100_000
MAX_TASKS = 1_000_000
MAX_OBJECTS = 100
MAX_INTERVALS = 1_000
MAX_BOXES = 100_000
MAX_SYNONYMS = 100
NAME_LENGTH = 200
"""Characters of a category, a synonym or an id."""

Kind: TypeAlias = Literal["explicit", "implicit"]
Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_LENGTH)]
Seconds: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=MAX_SECONDS)]
Pixels: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=MAX_SIZE)]
# Half a frame outside on either side: trackers overshoot, and reading cuts boxes at the frame.
Coordinate: TypeAlias = Annotated[float, msgspec.Meta(ge=-MAX_SIZE, le=2 * MAX_SIZE)]
Corners: TypeAlias = tuple[Coordinate, Coordinate, Coordinate, Coordinate]


class Record(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, frozen=True):
    """Base of all records: a key that the format does not know is an error, not ignored."""


class BoxAt(Record, frozen=True):
    """One box: where the object is at `time` seconds."""

    time: Seconds
    box: Corners


class ObjectRecord(Record, frozen=True):
    """An object that the task takes.

    Args:
        category: its name.
        intervals: [[start, end], ...] in seconds, start <= end: when the object matters to the task.
        boxes: where it is, once a second, each time once.
        kind: whether the instruction names the object; the task's kind if left out.
        synonyms: other names that are right too.
        id: of the physical object, where several tasks share it.
    """

    category: Name
    intervals: Annotated[list[tuple[Seconds, Seconds]], msgspec.Meta(min_length=1, max_length=MAX_INTERVALS)]
    boxes: Annotated[list[BoxAt], msgspec.Meta(min_length=1, max_length=MAX_BOXES)]
    kind: Kind | None = None
    synonyms: Annotated[list[Name], msgspec.Meta(max_length=MAX_SYNONYMS)] = []
    id: Name | None = None


class TaskRecord(Record, frozen=True):
    """An instruction. `explicit` ones name what they take, `implicit` ones only say what is to be achieved."""

    id: Name
    video: Name
    instruction: Annotated[str, msgspec.Meta(min_length=1, max_length=10_000)]
    kind: Kind
    objects: Annotated[list[ObjectRecord], msgspec.Meta(min_length=1, max_length=MAX_OBJECTS)]


class VideoRecord(Record, frozen=True):
    """The video that boxes and times refer to.

    Args:
        id: the file's name below the media folder; `.mp4` is added to one without a suffix, and a folder of frames is
            called `<name>.frames`.
        width: of the frames that boxes are drawn on, in pixels.
        height: likewise.
        fps: frames a second; needed where the media are folders of frames.
        frame_count: frames.
        scene: kind of place, e.g. `Office`.
    """

    id: Name
    width: Pixels
    height: Pixels
    fps: Annotated[float, msgspec.Meta(gt=0, le=1000)] | None = None
    frame_count: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)] | None = None
    scene: Name | None = None


class AnnotationFile(Record, frozen=True):
    """One whole file."""

    format: Literal["tog_bench"]
    version: Literal[1]
    videos: Annotated[list[VideoRecord], msgspec.Meta(max_length=MAX_VIDEOS)]
    tasks: Annotated[list[TaskRecord], msgspec.Meta(max_length=MAX_TASKS)]


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
    """All videos and tasks of one decoded file. A record that cannot be used is left out and logged; so is a file of
    more than `MAX_TASKS`."""
    if len(content) > MAX_TASKS:
        log.error("", f"more than {MAX_TASKS} records; the file is left out", "split the file")
        return [], []
    videos: dict[str, VideoRecord] = {}
    tasks: list[TaskRecord] = []
    numbers: Counter[str] = Counter()
    for key, raw in content.items() if isinstance(content, dict) else enumerate(content):
        where = f"[{key}]" if isinstance(key, int) else f"{key:.60}"
        name = str(raw.get("vid")) if isinstance(raw, dict) else ""
        try:
            video, task = converted_record(raw, numbers[name] + 1)
        except msgspec.ValidationError as error:
            log.error(where, f"{error!s:.300}; the record is left out", "correct it")
            continue
        if videos.setdefault(video.id, video) != video:
            what = f"says other things of the video {video.id!r:.80} than an earlier record; the record is left out"
            log.error(where, what, "correct it")
            continue
        numbers[name] += 1
        tasks.append(task)
    return list(videos.values()), tasks
