"""What the JSON Schema cannot say of a task: what must hold together, or the task is left out."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from barista_bench.benchmarks.parsing import is_text
from barista_bench.benchmarks.tog_bench.annotations import BoxAt, ObjectRecord, TaskRecord, VideoRecord
from barista_bench.files.paths import valid_video_id
from barista_bench.scene_graph import ProblemLog

BEYOND = 1.0
"""Seconds that times may reach past the end of the video: annotators round up."""


class _Broken(ValueError):
    """A task cannot be used: where, what and the remedy."""

    def __init__(self, key: str, what: str, remedy: str) -> None:
        super().__init__(what)
        self.key, self.what, self.remedy = key, what, remedy


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
    """The task, with boxes cut at the frame; None, with a problem logged, where its truth cannot be relied on."""
    try:
        if task.video not in videos:
            raise _Broken(f"{key}.video", f"{task.video!r:.80} is not among the videos", "add its record")
        if not task.instruction.strip():
            raise _Broken(f"{key}.instruction", "is empty", "write the instruction")
        if not task.id.isprintable():
            raise _Broken(f"{key}.id", "holds control characters", "give a name that can be printed")
        if not all(map(is_text, _texts(task))):
            raise _Broken(key, "holds text that has no UTF-8 form", "write it again")
        video = videos[task.video]
        objects = [_checked_object(item, f"{key}.objects[{i}]", video, log) for i, item in enumerate(task.objects)]
    except _Broken as broken:
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
        raise _Broken(f"{key}.category", "is empty", "name the object")
    for index, (start, end) in enumerate(item.intervals):
        if start > end:
            raise _Broken(f"{key}.intervals[{index}]", f"ends at {end:g} s before it starts", "swap its ends")
    boxes = _checked_boxes(item.boxes, f"{key}.boxes", video, log)
    last = max([boxes[-1].time, *(end for _, end in item.intervals)])
    if video.fps and video.frame_count and last > video.frame_count / video.fps + BEYOND:
        lasts = f"{video.frame_count / video.fps:.1f} s"
        raise _Broken(key, f"has a time of {last:g} s, and the video lasts {lasts}", "check the unit of times")
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
            raise _Broken(f"{key}[{index}]", what, "give x0, y0, x1, y1 in pixels")
        if cut != annotated.box:
            log.warning(f"{key}[{index}]", "reaches outside of the frame and is cut", "check the frame's size")
        if time in by_time and by_time[time].box != cut:
            raise _Broken(f"{key}[{index}]", f"is a second box at {time:g} s", "give one box a time and object")
        by_time[time] = BoxAt(time, cut)
    return [by_time[time] for time in sorted(by_time)]
