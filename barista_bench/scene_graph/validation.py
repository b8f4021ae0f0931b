"""Looks at everything a data root holds, masks and videos included, and lists every problem."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from barista_bench.core.worker_processes import worker_processes
from barista_bench.errors import DataError
from barista_bench.media.video import open_reader
from barista_bench.scene_graph.masks import Rle, mask_boxes, parse_segmentation, run_problems
from barista_bench.scene_graph.problems import Problem, ProblemLog
from barista_bench.scene_graph.release import ANNOTATION_FILE, MALFORMED, VIDEO_FILE
from barista_bench.scene_graph.scene_graph import SceneGraph
from barista_bench.scene_graph.video_graph import VideoGraph

_RLE = msgspec.json.Decoder(Rle)
_LEAST_IOU = 0.5
"""Below it, who finds an object exactly as its mask shows it has missed its box, by the laxest of the COCO thresholds.

Annotation tools derive boxes from masks, so that sound ones are at 1 (all of the real clips that we measured are).
"""
_ROUNDING = 2
"""Pixels that a side may be off, whatever the IoU: rounding alone halves that of an object of few pixels."""
_MASK_REMEDY = "write a COCO mask of the frame's size"


@dataclass(frozen=True, slots=True)
class VideoValidation:
    """What one video folder holds. Counts are of the records that can be used."""

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
    """The outcome for a whole root: `problems` that belong to no readable video, and one entry a video."""

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


def validate(root: str | Path, *, num_proc: int = 1, progress: bool = False) -> Validation:
    """Check every annotation record, every mask and every video file under a data root.

    Raises:
        DataError: there is no video under the root at all.
    """
    graph = SceneGraph(root)
    jobs = [(str(root), video_id) for video_id in graph.video_ids]
    videos: list[VideoValidation] = []
    root_problems = list(graph.problems)
    for outcome in tqdm(_map(jobs, num_proc), total=len(jobs), desc="validating", unit="video", disable=not progress):
        if isinstance(outcome, VideoValidation):
            videos.append(outcome)
        else:
            root_problems.append(outcome)
    return Validation(str(root), tuple(videos), tuple(root_problems))


def _map(jobs: list[tuple[str, str]], num_proc: int) -> Iterable[VideoValidation | Problem]:
    if num_proc <= 1:
        return map(_validate_video, jobs)
    return _map_in_processes(jobs, num_proc)


def _map_in_processes(jobs: list[tuple[str, str]], num_proc: int) -> Iterator[VideoValidation | Problem]:
    with worker_processes(num_proc) as pool:
        yield from pool.map(_validate_video, jobs)


def _validate_video(job: tuple[str, str]) -> VideoValidation | Problem:
    root, video_id = job
    scene = SceneGraph(root, cache_videos=1)
    graphs = list(scene.videos([video_id]))
    if not graphs:
        return scene.problems[-1]
    return validate_video(graphs[0], scene.video_path(video_id))


def validate_video(graph: VideoGraph, path: Path) -> VideoValidation:
    """Check every mask of a video, and its file at `path`; what reading found is among the problems."""
    log = ProblemLog(f"{graph.video_id}/{ANNOTATION_FILE}")
    _report_repeated_keys(path.with_name(ANNOTATION_FILE), log)
    _check_masks(graph, log)
    video_log = ProblemLog(f"{graph.video_id}/{VIDEO_FILE}")
    _check_video(graph, path, video_log)
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


def _report_repeated_keys(path: Path, log: ProblemLog) -> None:
    """Warn of keys that stand twice in one object: whoever reads the file takes the last one, without a word."""
    objects_with: Counter[str] = Counter()

    def note(pairs: list[tuple[str, object]]) -> None:
        if len(dict(pairs)) < len(pairs):
            names = Counter(name for name, _ in pairs)
            objects_with.update(name for name, count in names.items() if count > 1)

    try:
        json.loads(path.read_bytes(), object_pairs_hook=note)
    except (OSError, ValueError, RecursionError):
        return  # reading has named it
    for name, count in sorted(objects_with.items()):
        log.warning("", f"key {name!r} stands twice in {count} object(s): the last one counts", "keep one")


def _check_masks(graph: VideoGraph, log: ProblemLog) -> None:
    size = (graph.video.height, graph.video.width)
    rows, counts = _sound_masks(graph, size) or _masks_one_by_one(graph, size, log)
    problems = run_problems(counts, size[0] * size[1])
    for row, problem in zip(rows, problems, strict=True):
        if problem:
            log.error(f"annotations[{row}].segmentation.counts", f"{problem}: the mask is refused", _MASK_REMEDY)
    if any(problems):
        rows = [row for row, problem in zip(rows, problems, strict=True) if not problem]
        counts = [text for text, problem in zip(counts, problems, strict=True) if not problem]
    _compare_boxes(graph, rows, mask_boxes(counts, *size), log)


def _compare_boxes(graph: VideoGraph, rows: Sequence[int], drawn: NDArray[np.float64], log: ProblemLog) -> None:
    """Warn of boxes that have little to do with their masks (`drawn` are those around the masks), and empty masks."""
    read = graph.read
    stated = read.annotation_columns().bbox[np.searchsorted(read.annotation_rows(), rows)]
    low, high = stated[:, :2], stated[:, :2] + stated[:, 2:]
    drawn_low, drawn_high = drawn[:, :2], drawn[:, :2] + drawn[:, 2:]
    shared = np.clip(np.minimum(high, drawn_high) - np.maximum(low, drawn_low), 0, None).prod(axis=1)
    union = stated[:, 2:].prod(axis=1) + drawn[:, 2:].prod(axis=1) - shared
    off = np.maximum(np.abs(low - drawn_low), np.abs(high - drawn_high)).max(axis=1, initial=0)
    is_empty = drawn[:, 2] == 0
    # Without a division: a box of negative width has an IoU of 0 too.
    is_odd = ~is_empty & (off > _ROUNDING) & ~((shared > 0) & (shared >= _LEAST_IOU * union))
    for place in np.flatnonzero(is_empty | is_odd).tolist():
        key = f"annotations[{rows[place]}]"
        if is_empty[place]:
            log.warning(
                f"{key}.segmentation", "the mask has no pixel: kept as it is", "draw it, or leave the object out"
            )
        else:
            log.warning(
                f"{key}.bbox",
                f"box {stated[place].tolist()} is not that of its mask, {drawn[place].tolist()}: kept as it is",
                "give the box [x, y, width, height] of the mask, in pixels",
            )


_Masks = tuple[Sequence[int], list[str]]
"""Indices in the file of annotations whose runs are still to be checked, and their `counts`."""


def _sound_masks(graph: VideoGraph, size: tuple[int, int]) -> _Masks | None:
    """All masks of a video, if each is an encoding of the frame's size that has a box; None: look at each."""
    raws = [annotation.segmentation for annotation in graph.read.release.annotations]
    if not graph.read.annotation_columns().boxed.all() or not all(isinstance(raw, msgspec.Raw) for raw in raws):
        return None
    try:
        rles = [_RLE.decode(raw) for raw in raws if isinstance(raw, msgspec.Raw)]
    except MALFORMED:
        return None
    if not {rle.size for rle in rles} <= {size}:
        return None
    return graph.read.annotation_rows().tolist(), [rle.counts for rle in rles]


def _masks_one_by_one(graph: VideoGraph, size: tuple[int, int], log: ProblemLog) -> _Masks:
    rows, counts = [], []
    for position, annotation in enumerate(graph.read.release.annotations):
        row = graph.read.row("annotations", position)
        key = f"annotations[{row}]"
        if annotation.bbox is None:
            log.warning(f"{key}.bbox", "no box: the release's rules pass over this annotation", "add the box")
        elif not isinstance(annotation.segmentation, msgspec.Raw):
            log.error(f"{key}.segmentation", "missing: tasks that draw the mask lose this frame", "add the mask")
        else:
            rle = _parse(annotation.segmentation, size, f"{key}.segmentation", log)
            if rle is not None:
                rows.append(row)
                counts.append(rle.counts)
    return rows, counts


def _parse(raw: msgspec.Raw, size: tuple[int, int], key: str, log: ProblemLog) -> Rle | None:
    """The encoding whose runs are still to be checked; polygons are drawn."""
    try:
        rle = _RLE.decode(raw)
    except MALFORMED:
        try:
            return parse_segmentation(raw, *size)
        except DataError as error:
            log.error(key, f"{error}: the mask is refused", _MASK_REMEDY)
        return None
    if rle.size != size:
        what = f"mask size {list(rle.size)} is not the frame's {list(size)}: the mask is refused"
        log.error(f"{key}.size", what, _MASK_REMEDY)
        return None
    return rle


def _check_video(graph: VideoGraph, path: Path, log: ProblemLog) -> None:
    declared = graph.video
    if not path.is_file():
        log.error("", "missing: no frame of this video can be shown", "fetch the video")
        return
    try:
        with open_reader(path) as reader:
            frames, size = len(reader), reader.size
            reader.read([frames - 1])
    except DataError as error:
        what, _, remedy = str(error).partition(". Remedy: ")
        log.error("", what, remedy or "fetch the video again")
        return
    if frames != declared.frame_count:
        what = f"holds {frames} frames where the annotation says {declared.frame_count}"
        log.error("", what, "fetch the video that belongs to this annotation")
    if size != (declared.width, declared.height):
        what = f"is {size[0]}x{size[1]} where the annotation says {declared.width}x{declared.height}"
        log.error("", what, "fetch the video that belongs to this annotation")
