"""Check everything under a data root, including masks and videos, and list every problem."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import get_args

import msgspec
import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from barista_bench.cluster import map_in_processes
from barista_bench.errors import DataError, VideoError
from barista_bench.media.video import FrameReader, open_reader
from barista_bench.media.video.opening import track_note
from barista_bench.media.video.pyav_reader import PyavReader
from barista_bench.scene_graph.masks import Rle, mask_boxes, parse_segmentations
from barista_bench.scene_graph.reading import Problem, ProblemLog
from barista_bench.scene_graph.release import ANNOTATION_FILE, VIDEO_FILE, Layer
from barista_bench.scene_graph.scene_graph import SceneGraph
from barista_bench.scene_graph.video_graph import VideoGraph

_MIN_IOU = 0.5
"""Minimum IoU of a box and its mask's box: the lowest COCO threshold. All boxes of the real clips that we measured have
an IoU of 1, since annotation tools derive them from masks."""
_ROUNDING = 2
"""Error of a side in pixels that is accepted at any IoU, since rounding can halve the IoU of a very small object."""
_FRAMES_AT_ONCE = 32
_MOST_NAMED = 5
_VARYING = re.compile(r"'[^']*'|[0-9]+(\.[0-9]+)?")
"""Parts of a message that differ between two cases of one mistake: indices, numbers and ids."""
_BRACE_OR_TEXT = re.compile(rb'[{}]|"(?P<text>(?:[^"\\]++|\\.)*+)"(?:\s*+(?P<is_key>:))?', re.DOTALL)


@dataclass(frozen=True, slots=True)
class VideoValidation:
    """The content of one video folder. Counts include only usable records."""

    video_id: str
    frames: int
    objects: int
    instances: int
    attributes: int
    relations: int
    activities: int
    steps: int
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Validation:
    """The outcome for a complete root: one entry per readable video, and the problems outside these videos."""

    root: str
    videos: tuple[VideoValidation, ...]
    root_problems: tuple[Problem, ...]

    @property
    def problems(self) -> tuple[Problem, ...]:
        return (*self.root_problems, *(problem for video in self.videos for problem in video.problems))

    @property
    def errors(self) -> int:
        return sum(problem.severity == "error" for problem in self.problems)

    @property
    def warnings(self) -> int:
        return len(self.problems) - self.errors


def validate(root: str | Path, *, decode: bool = False, num_proc: int = 1, progress: bool = False) -> Validation:
    """Check every annotation record, every mask and every video file under a data root.

    Args:
        decode: decode every frame of the videos, not only the last one.

    Raises:
        DataError: there is no video under the root.
    """
    graph = SceneGraph(root, cache_videos=1)
    outcomes = map_in_processes(partial(_validate, graph, decode=decode), graph.video_ids, num_proc)
    videos: list[VideoValidation] = []
    root_problems = list(graph.problems)
    for outcome in tqdm(outcomes, total=len(graph), desc="validating", unit="video", disable=not progress):
        if isinstance(outcome, VideoValidation):
            videos.append(outcome)
        else:
            root_problems.append(outcome)
    return Validation(str(root), tuple(videos), tuple(root_problems))


def _validate(graph: SceneGraph, video_id: str, *, decode: bool) -> VideoValidation | Problem:
    """Return the validation of one video, or the problem if its annotation file is unusable."""
    for video in graph.videos([video_id]):
        return validate_video(video, graph.video_path(video_id), decode=decode)
    return graph.failed[video_id]


def validate_video(graph: VideoGraph, path: Path, *, decode: bool = False) -> VideoValidation:
    """Check every mask of a video and the video file at `path`. Problems found while reading the graph are included.

    With `decode`, every frame is decoded, not only the last one.
    """
    log = ProblemLog(f"{graph.video_id}/{ANNOTATION_FILE}")
    _report_keys(path.with_name(ANNOTATION_FILE), log)
    _check_masks(graph, log)
    video_log = ProblemLog(f"{graph.video_id}/{VIDEO_FILE}")
    _check_video(graph, path, video_log, decode=decode)
    return VideoValidation(
        video_id=graph.video_id,
        frames=graph.frame_count,
        objects=len(graph.objects),
        instances=len(graph.instances_table.frame),
        attributes=len(graph.attributes_table.start),
        relations=len(graph.relations_table.start),
        activities=len(graph.activities()),
        steps=len(graph.steps()),
        problems=(*graph.problems, *log, *video_log),
    )


def _report_keys(path: Path, log: ProblemLog) -> None:
    """Warn of keys that appear twice in one object, and of missing sections if there is no `coverage`.

    JSON readers silently use the last of several equal keys. The file is already known to be JSON, so only braces and
    texts are scanned, and no values are made.
    """
    open_objects: list[dict[bytes, int]] = []
    objects_with: Counter[bytes] = Counter()
    sections: dict[bytes, int] = {}
    for token in _BRACE_OR_TEXT.finditer(path.read_bytes()):
        if token["is_key"]:
            keys, name = open_objects[-1], token["text"]
            if b"\\" in name:
                with suppress(ValueError):  # unread fields may contain characters that JSON does not allow
                    name = json.loads(b'"%s"' % name).encode(errors="surrogatepass")
            keys[name] = keys.get(name, 0) + 1
            if keys[name] == 2:
                objects_with[name] += 1
        elif token[0] == b"{":
            open_objects.append({})
        elif token[0] == b"}":
            sections = open_objects.pop()  # the last object to close is the complete file
    for name, count in sorted(objects_with.items()):
        text = repr(name.decode(errors="replace"))
        log.warning("", f"key {text} stands twice in {count} object(s): the last one counts", "keep one")
    for name in get_args(Layer) if b"coverage" not in sections else ():
        if name.encode() not in sections:
            what = "the section is missing, which says that there is nothing of it in the whole video"
            log.warning(name, what, f'add what there is, write "{name}": [], or say in "coverage" what is complete')


def count_alike(problems: Sequence[Problem]) -> Mapping[Problem, int]:
    """Return the first problem of each kind, with the count of that kind.

    A kind is one mistake in many records and videos.
    """
    kinds: dict[tuple[str, ...], Problem] = {}
    counts: Counter[Problem] = Counter()
    for problem in problems:
        texts = (problem.file.rpartition("/")[2], problem.key, problem.what)
        kind = (problem.severity, *(_VARYING.sub("*", text) for text in texts), problem.remedy)
        counts[kinds.setdefault(kind, problem)] += 1
    return counts


def _check_masks(graph: VideoGraph, log: ProblemLog) -> None:
    records, size = graph.records, (graph.video.height, graph.video.width)
    raws: dict[int, msgspec.Raw] = {}
    for row, annotation in zip(records.annotation_rows().tolist(), records.release.annotations, strict=True):
        key = f"annotations[{row}]"
        if annotation.bbox is None:
            log.warning(f"{key}.bbox", "no box: the release's rules pass over this annotation", "add the box")
        elif isinstance(annotation.segmentation, msgspec.Raw):
            raws[row] = annotation.segmentation
        else:
            log.error(f"{key}.segmentation", "missing: tasks that draw the mask lose this frame", "add the mask")
    counts: dict[int, str] = {}
    for row, mask in zip(raws, parse_segmentations(list(raws.values()), *size), strict=True):
        if isinstance(mask, Rle):
            counts[row] = mask.counts
        else:
            what = f"{mask}: the mask is refused"
            log.error(f"annotations[{row}].segmentation", what, "write a COCO mask of the frame's size")
    _compare_boxes(graph, list(counts), mask_boxes(list(counts.values()), *size), log)


def _compare_boxes(graph: VideoGraph, rows: Sequence[int], tight_boxes: NDArray[np.float64], log: ProblemLog) -> None:
    records = graph.records
    boxes = records.annotation_columns().bbox[np.searchsorted(records.annotation_rows(), rows)]
    low, high = boxes[:, :2], boxes[:, :2] + boxes[:, 2:]
    mask_low, mask_high = tight_boxes[:, :2], tight_boxes[:, :2] + tight_boxes[:, 2:]
    intersection = np.clip(np.minimum(high, mask_high) - np.maximum(low, mask_low), 0, None).prod(axis=1)
    union = boxes[:, 2:].prod(axis=1) + tight_boxes[:, 2:].prod(axis=1) - intersection
    distance = np.maximum(np.abs(low - mask_low), np.abs(high - mask_high)).max(axis=1, initial=0)
    is_empty = tight_boxes[:, 2] == 0
    # This avoids a division, so that a box of negative width also has an IoU of 0.
    is_odd = ~is_empty & (distance > _ROUNDING) & ~((intersection > 0) & (intersection >= _MIN_IOU * union))
    for index in np.flatnonzero(is_empty | is_odd).tolist():
        key = f"annotations[{rows[index]}]"
        if is_empty[index]:
            what, remedy = "the mask has no pixel: kept as it is", "draw it, or leave the object out"
            log.warning(f"{key}.segmentation", what, remedy)
        else:
            what = f"box {boxes[index].tolist()} is not that of its mask, {tight_boxes[index].tolist()}: kept as it is"
            log.warning(f"{key}.bbox", what, "give the box [x, y, width, height] of the mask, in pixels")


def _undecodable_frames(reader: FrameReader, frames: Sequence[int]) -> list[int]:
    undecodable: list[int] = []
    for start in range(0, len(frames), _FRAMES_AT_ONCE):
        batch = frames[start : start + _FRAMES_AT_ONCE]
        try:
            reader.read(batch)
        except VideoError:
            if len(batch) == 1:
                undecodable += batch
            else:
                undecodable += [frame for frame in batch if _undecodable_frames(reader, [frame])]
    return undecodable


def _check_video(graph: VideoGraph, path: Path, log: ProblemLog, *, decode: bool) -> None:
    metadata = graph.video
    if not path.exists():
        log.error("", "missing: no frame of this video can be shown", "fetch the video")
        return
    try:
        with open_reader(path) as reader:
            frames, size = len(reader), reader.size
            if decode and isinstance(reader, PyavReader):
                undecodable = reader.undecodable()
            else:
                undecodable = _undecodable_frames(reader, range(frames) if decode else [frames - 1])
    except DataError as error:
        what, _, remedy = str(error).partition(". Fix: ")
        log.error("", what, remedy or "fetch the video again")
        return
    if undecodable:
        named = ", ".join(map(str, undecodable[:_MOST_NAMED])) + (", ..." if len(undecodable) > _MOST_NAMED else "")
        what = f"{len(undecodable)} of {frames} frames cannot be decoded: {named}"
        log.error("", what, "fetch the video again, or re-encode it and correct its annotation")
    if path.is_file() and (note := track_note(str(path))):
        log.warning("", note, "keep one video track: ffmpeg -i IN -map 0:v:0 -c copy OUT.mp4")
    remedy = "fetch the video that belongs to this annotation"
    if frames != metadata.frame_count:
        log.error("", f"holds {frames} frames where the annotation says {metadata.frame_count}", remedy)
    if size != (metadata.width, metadata.height):
        size_text = f"{metadata.width}x{metadata.height}"
        log.error("", f"is {size[0]}x{size[1]} where the annotation says {size_text}", remedy)
