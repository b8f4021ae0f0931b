"""Read and check ToG-Bench's annotations, in our format or V-STaR's. A bad task is left out and reported by name.

The official annotations are not published. `docs/tog_bench.md` describes our format. `schema.json` is the JSON Schema
(2020-12) of this format, exported from the records below. That page also explains how to convert another layout.

Times are seconds from the first frame. Boxes are [x0, y0, x1, y1] in pixels of a frame with the width and height in the
video's record, with x0 < x1 and y0 < y1 (continuous corners: the width is x1 - x0).

V-STaR (github.com/V-STaR-Bench/V-STaR) has one object per question, named by `answer`, one interval, and boxes in
pixels at integer seconds. Questions do not describe objects by a task, so all objects count as explicit. For facts, see
docs/upstream/tog_bench.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal, TypeAlias

import msgspec

from barista_bench.benchmarks.graph_evidence import read_graph_evidence
from barista_bench.benchmarks.release_records import (
    AnnotationRelease,
    PlacedRecord,
    annotation_files,
    convert_record,
    elements,
    keep_first,
    media_folder,
    read_each,
    read_values,
)
from barista_bench.errors import RecordError
from barista_bench.files.paths import confine, valid_video_id
from barista_bench.scene_graph import Problem, ProblemLog

BEYOND = 1.0
"""Seconds by which times may exceed the end of the video, since annotators round up."""
_REMEDY = "see schema.json and docs/tog_bench.md"

MEDIA = frozenset({".mp4", ".mkv", ".mov", ".webm", ".avi", ".frames"})
"""Suffixes of videos, and of folders of frames (`.frames`)."""

FORMAT = "tog_bench"
MAX_SECONDS = 360_000.0
"""Maximum duration of a video in seconds (100 hours). A longer one is a mistake or an attack."""
MAX_SIZE = 16_384
MAX_VIDEOS = 100_000
MAX_TASKS = 1_000_000
MAX_OBJECTS = 100
MAX_INTERVALS = 1_000
MAX_BOXES = 100_000
MAX_SYNONYMS = 100
NAME_LENGTH = 200
"""Maximum number of characters of a category, a synonym or an id."""

Kind: TypeAlias = Literal["explicit", "implicit"]
Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_LENGTH)]
Seconds: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=MAX_SECONDS)]
Pixels: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=MAX_SIZE)]
# Boxes may lie outside by half a frame on each side: trackers overshoot, and reading cuts boxes at the frame.
Coordinate: TypeAlias = Annotated[float, msgspec.Meta(ge=-MAX_SIZE, le=2 * MAX_SIZE)]
Corners: TypeAlias = tuple[Coordinate, Coordinate, Coordinate, Coordinate]


class Record(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, frozen=True):
    """Base of all records: an unknown key is an error, not ignored."""


class BoxAt(Record, frozen=True):
    """One box: the place of the object at `time` seconds."""

    time: Seconds
    box: Corners


class ObjectRecord(Record, frozen=True):
    """An object that the task takes.

    Args:
        category: its name.
        intervals: [[start, end], ...] in seconds, start <= end: when the object matters to the task.
        boxes: its place, once per second, each time once.
        kind: tells if the instruction names the object; by default the task's kind.
        synonyms: other right names.
        id: of the physical object, if several tasks share it.
    """

    category: Name
    intervals: Annotated[list[tuple[Seconds, Seconds]], msgspec.Meta(min_length=1, max_length=MAX_INTERVALS)]
    boxes: Annotated[list[BoxAt], msgspec.Meta(min_length=1, max_length=MAX_BOXES)]
    kind: Kind | None = None
    synonyms: Annotated[list[Name], msgspec.Meta(max_length=MAX_SYNONYMS)] = []
    id: Name | None = None


class TaskRecord(Record, frozen=True):
    """An instruction. `explicit` instructions name their objects, `implicit` ones only describe the goal."""

    id: Name
    video: Name
    instruction: Annotated[str, msgspec.Meta(min_length=1, max_length=10_000)]
    kind: Kind
    objects: Annotated[list[ObjectRecord], msgspec.Meta(min_length=1, max_length=MAX_OBJECTS)]


class VideoRecord(Record, frozen=True):
    """The annotated video, to which boxes and times refer.

    Args:
        id: the file's name below the media folder; `.mp4` is added to a name without a suffix, and a folder of frames
            is called `<name>.frames`.
        width: of the annotated frames, in pixels.
        height: of the annotated frames, in pixels.
        fps: frames per second; required if the media are folders of frames.
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
    """An annotation file."""

    format: Literal["tog_bench"]
    version: Literal[1]
    videos: Annotated[list[VideoRecord], msgspec.Meta(max_length=MAX_VIDEOS)]
    tasks: Annotated[list[TaskRecord], msgspec.Meta(max_length=MAX_TASKS)]


RECOGNISED_BY = frozenset({"vid", "question", "answer", "timestamps", "bboxes"})
"""Keys that every V-STaR record has."""


class VStarBox(msgspec.Struct, frozen=True):
    """One box: its time in seconds, and its corners in pixels."""

    timestamp: float
    xmin: float
    ymin: float
    xmax: float
    ymax: float


class VStarRecord(msgspec.Struct, frozen=True):
    """One question. Unknown keys are not read."""

    vid: str | int
    width: int
    height: int
    fps: float
    frame_count: int
    question: str
    answer: str
    timestamps: tuple[float, float]
    bboxes: list[VStarBox]


def checked_videos(videos: Iterable[VideoRecord], log: ProblemLog) -> dict[str, VideoRecord]:
    """Return the usable videos by id."""
    by_id: dict[str, VideoRecord] = {}
    for index, video in enumerate(videos):
        if not valid_video_id(video.id):
            log.error(f"videos[{index}].id", f"{video.id!r:.80} is not a file name", "give the name without folders")
        elif video.id in by_id and by_id[video.id] != video:
            log.error(f"videos[{index}]", f"{video.id!r:.80} appears again, but differs", "keep one record a video")
        else:
            by_id[video.id] = video
    return by_id


def checked_task(task: TaskRecord, key: str, videos: Mapping[str, VideoRecord], log: ProblemLog) -> TaskRecord | None:
    """Return the task with boxes cut at the frame.

    If the reference is unreliable, log a problem and return None.
    """
    try:
        if task.video not in videos:
            raise RecordError(f"{key}.video", f"{task.video!r:.80} is not among the videos", "add its record")
        if not task.instruction.strip():
            raise RecordError(f"{key}.instruction", "is empty", "write the instruction")
        if not task.id.isprintable():
            raise RecordError(f"{key}.id", "holds control characters", "give a name that can be printed")
        video = videos[task.video]
        objects = [_checked_object(item, f"{key}.objects[{i}]", video, log) for i, item in enumerate(task.objects)]
    except RecordError as broken:
        log.error(broken.key, f"{broken.what}; the task {task.id!r:.80} is left out", broken.remedy)
        return None
    if task.kind == "explicit" and all(item.kind == "implicit" for item in objects):
        log.warning(f"{key}.kind", "is explicit, but every object is implicit", "check the kinds")
    return msgspec.structs.replace(task, objects=objects)


def _checked_object(item: ObjectRecord, key: str, video: VideoRecord, log: ProblemLog) -> ObjectRecord:
    if not item.category.strip():
        raise RecordError(f"{key}.category", "is empty", "name the object")
    for index, (start, end) in enumerate(item.intervals):
        if start > end:
            raise RecordError(f"{key}.intervals[{index}]", f"ends at {end:g} s before it starts", "swap its ends")
    boxes = _checked_boxes(item.boxes, f"{key}.boxes", video, log)
    last = max([boxes[-1].time, *(end for _, end in item.intervals)])
    if video.fps and video.frame_count and last > video.frame_count / video.fps + BEYOND:
        duration = f"{video.frame_count / video.fps:.1f} s"
        raise RecordError(key, f"has a time of {last:g} s, and the video lasts {duration}", "check the unit of times")
    count = sum(not any(start - 0.5 <= box.time <= end + 0.5 for start, end in item.intervals) for box in boxes)
    if count:
        log.warning(f"{key}.boxes", f"{count} lie outside all intervals, but count", "check times")
    return msgspec.structs.replace(item, boxes=boxes)


def _checked_boxes(boxes: list[BoxAt], key: str, video: VideoRecord, log: ProblemLog) -> list[BoxAt]:
    """Return the boxes, cut at the frame and sorted by time. Times are rounded to milliseconds."""
    by_time: dict[float, BoxAt] = {}
    for index, entry in enumerate(boxes):
        time = round(entry.time, 3)
        x0, y0, x1, y1 = entry.box
        clipped = (max(0.0, x0), max(0.0, y0), min(float(video.width), x1), min(float(video.height), y1))
        if not (clipped[0] < clipped[2] and clipped[1] < clipped[3]):
            what = f"[{x0:g}, {y0:g}, {x1:g}, {y1:g}] has no area in a frame of {video.width}x{video.height}"
            raise RecordError(f"{key}[{index}]", what, "give x0, y0, x1, y1 in pixels")
        if clipped != entry.box:
            log.warning(f"{key}[{index}]", "reaches outside of the frame and is cut", "check the frame's size")
        if time in by_time and by_time[time].box != clipped:
            raise RecordError(f"{key}[{index}]", f"is a second box at {time:g} s", "give one box a time and object")
        by_time[time] = BoxAt(time, clipped)
    return [by_time[time] for time in sorted(by_time)]


@dataclass(frozen=True, slots=True)
class FiledTask:
    """A task and its place. `row` counts from 0 in the task's file."""

    task: TaskRecord
    file: str
    row: int


@dataclass(slots=True)
class TogRelease(AnnotationRelease):
    """Annotations, read and checked.

    Tasks are ordered by video, then by place in the files. Video records are by id.
    """

    tasks: tuple[FiledTask, ...]
    video_records: Mapping[str, VideoRecord]

    def video_path(self, video_id: str) -> Path:
        return confine(self.videos, video_file(video_id))


def video_file(video_id: str) -> str:
    """Return the video's path below the media folder: the id if it has a medium's suffix, otherwise the id with `.mp4`.

    >>> video_file("scene0707_00"), video_file("scene0707_00.mkv"), video_file("scene0707_00.frames")
    ('scene0707_00.mp4', 'scene0707_00.mkv', 'scene0707_00.frames')
    """
    return video_id if PurePosixPath(video_id).suffix.lower() in MEDIA else f"{video_id}.mp4"


def open_release(root: Path, videos: Path | None = None) -> TogRelease:
    """Read one annotation file, or all `*.json` and `*.jsonl` files of a folder. Raises DataError if there are no
    files.

    A file in our format declares the format. V-STaR's files are recognised by the keys of their records. If `videos` is
    None, media are beside the annotations.
    """
    problems: list[Problem] = []
    tasks: dict[str, FiledTask] = {}
    video_records: dict[str, VideoRecord] = {}
    for path in annotation_files(root, "ToG-Bench", lambda path: not path.name.startswith((".", "_")), ("*",)):
        log = ProblemLog(path.name)
        videos_of_file, tasks_of_file = _read_file(path, log)
        for name, video in videos_of_file.items():
            if video_records.setdefault(name, video) != video:
                what = f"{name!r:.80} is described otherwise in another file; its tasks here are left out"
                log.error("videos", what, "keep one record a video")
        for filed in tasks_of_file:
            if video_records[filed.task.video] == videos_of_file[filed.task.video]:
                keep_first(tasks, filed.task.id, filed, log, f"tasks[{filed.row}].id")
        problems += log
    ordered = tuple(sorted(tasks.values(), key=lambda filed: filed.task.video))
    rows = read_graph_evidence(root, problems)
    return TogRelease(root, media_folder(root, videos), tuple(problems), ordered, video_records, graph_rows=rows)


_Records: TypeAlias = tuple[Iterable[VideoRecord], Iterable[tuple[int, TaskRecord]]]
"""Videos, and tasks with row numbers."""


def _read_file(path: Path, log: ProblemLog) -> tuple[dict[str, VideoRecord], list[FiledTask]]:
    """Return videos and tasks of one file. For an unusable file, return none and log a problem."""
    values = list(read_values(path, log))
    is_lines = path.suffix.lower() == ".jsonl"
    if not values and not is_lines:
        return {}, []
    content = [placed.value for placed in values] if is_lines else values[0].value
    try:
        if isinstance(content, dict) and content.get("format") == FORMAT:
            videos, rows = _read_own_format(content, log)
        elif isinstance(content, dict):
            videos, rows = _read_v_star([PlacedRecord(f"{key:.60}", value) for key, value in content.items()], log)
        else:
            videos, rows = _read_v_star(list(elements(content, log)) if isinstance(content, list) else [], log)
    except RecordError as broken:
        log.error(broken.key, f"{broken.what}; the file is left out", broken.remedy)
        return {}, []
    video_records = checked_videos(videos, log)
    checked_tasks = ((row, checked_task(task, f"tasks[{row}]", video_records, log)) for row, task in rows)
    return video_records, [FiledTask(task, path.name, row) for row, task in checked_tasks if task is not None]


def _read_own_format(content: dict[str, object], log: ProblemLog) -> _Records:
    """Read a file in our format record by record, so that a bad record affects no other record."""
    sections = {name: rows for name in ("videos", "tasks") if isinstance(rows := content.get(name), list)}
    without_rows = {name: list[object]() for name, rows in sections.items() if len(rows) <= MAX_TASKS}
    convert_record({**content, **without_rows}, AnnotationFile, _REMEDY)
    video_rows, task_rows = (elements(sections[name], log, name) for name in ("videos", "tasks"))
    videos = read_each(video_rows, lambda row: convert_record(row.value, VideoRecord, _REMEDY), log, "it is left out")
    tasks = read_each(task_rows, lambda row: convert_record(row.value, TaskRecord, _REMEDY), log, "it is left out")
    return [video for _, video in videos], [(placed.row, task) for placed, task in tasks]


def _read_v_star(values: Sequence[PlacedRecord], log: ProblemLog) -> _Records:
    """Read a V-STaR file, which is recognised by its first record. Raises RecordError for other files."""
    first = values[0].value if values else None
    if not (isinstance(first, dict) and first.keys() >= RECOGNISED_BY):
        raise RecordError("", "neither in our format nor in V-STaR's", "convert it as docs/tog_bench.md shows")
    if len(values) > MAX_TASKS:
        raise RecordError("", f"more than {MAX_TASKS} records", "split the file")
    videos: dict[str, VideoRecord] = {}
    numbers: Counter[str] = Counter()

    def convert(placed: PlacedRecord) -> TaskRecord:
        record = convert_record(placed.value, VStarRecord, strict=False)
        name = str(record.vid)
        boxes = [BoxAt(box.timestamp, (box.xmin, box.ymin, box.xmax, box.ymax)) for box in record.bboxes]
        item = ObjectRecord(record.answer, intervals=[record.timestamps], boxes=boxes)
        task = TaskRecord(f"{name}/{numbers[name] + 1:04d}", name, record.question, "explicit", [item])
        video = VideoRecord(name, record.width, record.height, record.fps, record.frame_count)
        # msgspec checks a struct when it is read, not when it is made in code.
        video, task = (
            convert_record(msgspec.to_builtins(video), VideoRecord),
            convert_record(msgspec.to_builtins(task), TaskRecord),
        )
        if videos.setdefault(name, video) != video:
            what = f"the video {name!r:.80} is described otherwise by an earlier record"
            raise RecordError("vid", what, "correct it")
        numbers[name] += 1
        return task

    tasks = [task for _, task in read_each(values, convert, log, "the record is left out")]
    return videos.values(), enumerate(tasks)
