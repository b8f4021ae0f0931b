"""Reads annotations, in our format or V-STaR's, and checks them: a bad task costs that task, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeVar

import msgspec

from barista_bench.benchmarks.parsing import is_text
from barista_bench.benchmarks.tog_bench.annotations import (
    FORMAT,
    MAX_TASKS,
    AnnotationFile,
    BoxAt,
    ObjectRecord,
    TaskRecord,
    VideoRecord,
    is_v_star,
    read_v_star,
)
from barista_bench.errors import DataError, RecordError
from barista_bench.files.reading import bounded_bytes, confined, valid_video_id
from barista_bench.scene_graph import Problem, ProblemLog

BEYOND = 1.0
"""Seconds that times may reach past the end of the video: annotators round up."""


def checked_videos(videos: list[VideoRecord], log: ProblemLog) -> dict[str, VideoRecord]:
    """Videos by id, without those that cannot be used."""
    by_id: dict[str, VideoRecord] = {}
    for index, video in enumerate(videos):
        if not valid_video_id(video.id):
            log.error(f"videos[{index}].id", f"{video.id!r:.80} is no file name", "give the name without folders")
        elif video.id in by_id and by_id[video.id] != video:
            log.error(f"videos[{index}]", f"{video.id!r:.80} stands here again, otherwise", "keep one record a video")
        else:
            by_id[video.id] = video
    return by_id


def checked_task(task: TaskRecord, key: str, videos: Mapping[str, VideoRecord], log: ProblemLog) -> TaskRecord | None:
    """The task, with boxes cut at the frame; None, with a problem logged, where its reference cannot be relied on."""
    try:
        if task.video not in videos:
            raise RecordError(f"{key}.video", f"{task.video!r:.80} is not among the videos", "add its record")
        if not task.instruction.strip():
            raise RecordError(f"{key}.instruction", "is empty", "write the instruction")
        if not task.id.isprintable():
            raise RecordError(f"{key}.id", "holds control characters", "give a name that can be printed")
        if not all(map(is_text, _texts(task))):
            raise RecordError(key, "holds text that has no UTF-8 form", "write it again")
        video = videos[task.video]
        objects = [_checked_object(item, f"{key}.objects[{i}]", video, log) for i, item in enumerate(task.objects)]
    except RecordError as broken:
        log.error(broken.key, f"{broken.what}; the task {task.id!r:.80} is left out", broken.remedy)
        return None
    if task.kind == "explicit" and all(item.kind == "implicit" for item in objects):
        log.warning(f"{key}.kind", "is explicit, but every object is implicit", "check the kinds")
    return msgspec.structs.replace(task, objects=objects)


def _texts(task: TaskRecord) -> list[str]:
    names = [name for item in task.objects for name in (item.category, *item.synonyms)]
    return [task.id, task.video, task.instruction, *names]


def _checked_object(item: ObjectRecord, key: str, video: VideoRecord, log: ProblemLog) -> ObjectRecord:
    if not item.category.strip():
        raise RecordError(f"{key}.category", "is empty", "name the object")
    for index, (start, end) in enumerate(item.intervals):
        if start > end:
            raise RecordError(f"{key}.intervals[{index}]", f"ends at {end:g} s before it starts", "swap its ends")
    boxes = _checked_boxes(item.boxes, f"{key}.boxes", video, log)
    last = max([boxes[-1].time, *(end for _, end in item.intervals)])
    if video.fps and video.frame_count and last > video.frame_count / video.fps + BEYOND:
        lasts = f"{video.frame_count / video.fps:.1f} s"
        raise RecordError(key, f"has a time of {last:g} s, and the video lasts {lasts}", "check the unit of times")
    outside = sum(not any(start - 0.5 <= box.time <= end + 0.5 for start, end in item.intervals) for box in boxes)
    if outside:
        log.warning(f"{key}.boxes", f"{outside} lie in none of the intervals; they count all the same", "check times")
    return msgspec.structs.replace(item, boxes=boxes)


def _checked_boxes(boxes: list[BoxAt], key: str, video: VideoRecord, log: ProblemLog) -> list[BoxAt]:
    """Sorted by time, in milliseconds' precision, cut at the frame."""
    by_time: dict[float, BoxAt] = {}
    for index, annotated in enumerate(boxes):
        time = round(annotated.time, 3)
        x0, y0, x1, y1 = annotated.box
        cut = (max(0.0, x0), max(0.0, y0), min(float(video.width), x1), min(float(video.height), y1))
        if not (cut[0] < cut[2] and cut[1] < cut[3]):
            what = f"[{x0:g}, {y0:g}, {x1:g}, {y1:g}] has no area in a frame of {video.width}x{video.height}"
            raise RecordError(f"{key}[{index}]", what, "give x0, y0, x1, y1 in pixels")
        if cut != annotated.box:
            log.warning(f"{key}[{index}]", "reaches outside of the frame and is cut", "check the frame's size")
        if time in by_time and by_time[time].box != cut:
            raise RecordError(f"{key}[{index}]", f"is a second box at {time:g} s", "give one box a time and object")
        by_time[time] = BoxAt(time, cut)
    return [by_time[time] for time in sorted(by_time)]


MAX_BYTES = 2**29
"""Largest annotation file that is read; the published numbers make about 20 MB."""
MAX_FILES = 10_000
MEDIA = frozenset({".mp4", ".mkv", ".mov", ".webm", ".avi", ".frames"})
"""Suffixes of videos, and of folders of frames (`.frames`)."""

RecordT = TypeVar("RecordT", VideoRecord, TaskRecord)


@dataclass(frozen=True, slots=True)
class FiledTask:
    """A task, and where it stands: `row` counts from 0 in its file."""

    task: TaskRecord
    file: str
    row: int


@dataclass(slots=True)
class TogRelease:
    """Annotations that were read and checked.

    Args:
        root: the file or folder of annotations.
        videos: folder of the media.
        problems: what is wrong with the files.
        tasks: in canonical order: by video, then in the order of the files.
        facts: by video id.
    """

    root: Path
    videos: Path
    problems: Sequence[Problem]
    tasks: tuple[FiledTask, ...]
    facts: Mapping[str, VideoRecord]

    def video_path(self, video_id: str) -> Path:
        """Where a video lies or would lie. Raises DataError for one outside of the media folder."""
        return confined(self.videos, video_file(video_id))


def video_file(video_id: str) -> str:
    """The video's path below the media folder: the id itself where it has a medium's suffix, else with `.mp4`.

    >>> video_file("scene0707_00"), video_file("scene0707_00.mkv"), video_file("scene0707_00.frames")
    ('scene0707_00.mp4', 'scene0707_00.mkv', 'scene0707_00.frames')
    """
    return video_id if PurePosixPath(video_id).suffix.lower() in MEDIA else f"{video_id}.mp4"


def open_release(root: Path, videos: Path | None = None) -> TogRelease:
    """Read annotation files: one, or all `*.json` and `*.jsonl` of a folder.

    A file in our format says so itself; V-STaR's are known by the keys of their records.

    Media lie with the annotations where `videos` is None.

    Raises:
        DataError: there are no annotation files.
    """
    folder = root if root.is_dir() else root.parent
    problems: list[Problem] = []
    tasks: dict[str, FiledTask] = {}
    facts: dict[str, VideoRecord] = {}
    for path in _files(root):
        log = ProblemLog(path.name)
        videos_of_file, tasks_of_file = _read(path, log)
        for name, video in videos_of_file.items():
            if facts.setdefault(name, video) != video:
                what = f"{name!r:.80} is described otherwise in another file; its tasks here are left out"
                log.error("videos", what, "keep one record a video")
        for filed in tasks_of_file:
            if facts[filed.task.video] != videos_of_file[filed.task.video]:
                continue
            if filed.task.id in tasks:
                what = f"the id {filed.task.id!r:.80} stands twice; the second task is left out"
                log.error(f"tasks[{filed.row}].id", what, "give every task an id of its own")
            else:
                tasks[filed.task.id] = filed
        problems += log
    ordered = tuple(sorted(tasks.values(), key=lambda filed: filed.task.video))
    return TogRelease(root, videos or folder, tuple(problems), ordered, facts)


def _files(root: Path) -> list[Path]:
    if root.is_file():
        return [root]
    if not root.is_dir():
        raise DataError(f"{root}: no such file or folder. Remedy: name the annotations of ToG-Bench")
    files = sorted(p for p in root.iterdir() if p.suffix in (".json", ".jsonl") and not p.name.startswith((".", "_")))
    if not files:
        raise DataError(f"{root}: holds no *.json or *.jsonl. Remedy: name the folder of the annotation files")
    if len(files) > MAX_FILES:
        raise DataError(f"{root}: holds more than {MAX_FILES} annotation files. Remedy: join them")
    return files


def _read(path: Path, log: ProblemLog) -> tuple[dict[str, VideoRecord], list[FiledTask]]:
    """Videos and tasks of one file; a file that cannot be used has none, and a problem."""
    try:
        content = _content(path)
        if isinstance(content, dict) and content.get("format") == FORMAT:
            videos, rows = _own(content, log)
        elif isinstance(content, dict | list) and is_v_star(content):
            videos, tasks = read_v_star(content, log)
            rows = list(enumerate(tasks))
        else:
            raise RecordError("", "neither in our format nor in V-STaR's", "convert it as docs/tog_bench.md shows")
    except RecordError as broken:
        log.error(broken.key, f"{broken.what}; the file is left out", broken.remedy)
        return {}, []
    facts = checked_videos(videos, log)
    checked = ((row, checked_task(task, f"tasks[{row}]", facts, log)) for row, task in rows)
    return facts, [FiledTask(task, path.name, row) for row, task in checked if task is not None]


def _content(path: Path) -> object:
    """A decoded JSON file; of a JSONL file, the list of its lines. Raises RecordError."""
    try:
        data = bounded_bytes(path, MAX_BYTES)
        if path.suffix == ".jsonl":
            return msgspec.json.decode(b"[" + b",".join(line for line in data.splitlines() if line.strip()) + b"]")
        return msgspec.json.decode(data)
    except OSError as error:
        raise RecordError("", f"cannot be read ({error.strerror})", "check or split the file") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError("", f"not valid JSON ({error})", "correct the file") from error


def _own(content: dict[str, object], log: ProblemLog) -> tuple[list[VideoRecord], list[tuple[int, TaskRecord]]]:
    """A file in our format: record by record, so that a bad one costs no other."""
    tasks, videos = content.get("tasks"), content.get("videos")
    if not isinstance(tasks, list) or not isinstance(videos, list):
        raise RecordError("", "tasks or videos is no list", "see schema.json and docs/tog_bench.md")
    if len(tasks) > MAX_TASKS:
        raise RecordError("", f"has more than {MAX_TASKS} tasks", "split the file")
    _check_outer(content)
    return [video for _, video in _records(videos, "videos", VideoRecord, log)], list(
        _records(tasks, "tasks", TaskRecord, log)
    )


def _check_outer(content: dict[str, object]) -> None:
    """Raise RecordError for what is wrong with the file beside its records."""
    try:
        msgspec.convert({**content, "videos": [], "tasks": []}, AnnotationFile)
    except msgspec.ValidationError as error:
        raise RecordError("", str(error)[:300], "see schema.json and docs/tog_bench.md") from error


def _records(
    rows: Sequence[object], section: str, kind: type[RecordT], log: ProblemLog
) -> Iterator[tuple[int, RecordT]]:
    for index, row in enumerate(rows):
        try:
            yield index, msgspec.convert(row, kind)
        except msgspec.ValidationError as error:
            log.error(f"{section}[{index}]", f"{error!s:.300}; it is left out", "see schema.json and docs/tog_bench.md")
