"""Read a data root as a sequence of video graphs, one video in memory at a time, and check its files.

The checks cover errors that types cannot express: undeclared ids, frames past the end, boxes outside the frame. An
unusable record is skipped and reported, and the other records of the file stay usable. Unusual but usable records are
kept with a warning, as in the released code. Examples are a second annotation of an object on a frame, a box beyond the
frame, and a segment without a frame.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import numpy as np
from cachetools import LRUCache
from tqdm import tqdm

from barista_bench.errors import DataError
from barista_bench.files.paths import confine, valid_video_id
from barista_bench.files.writing import atomic_write
from barista_bench.scene_graph.limits import refuse_excess, refuse_wrong_length
from barista_bench.scene_graph.reading import MAX_BYTES, Problem, ProblemLog, ReleaseRecords, read_release
from barista_bench.scene_graph.release import (
    ANNOTATION_FILE,
    VIDEO_FILE,
    ReleaseAttribute,
    ReleaseCategory,
    ReleaseRange,
    ReleaseRelation,
    encode,
    restore_non_finite,
)
from barista_bench.scene_graph.video_graph import VideoGraph

_RECORD_KEY = re.compile(r"(\w+)\[(\d+)\]")


class SceneGraph:
    """Every video graph under a data root, read lazily.

    A folder counts as a video if it contains `coco_annotation.json`. Videos are sorted. A bad record is left out and
    listed in `problems` of the video. If a file is bad, its video is left out, and the file is listed in `problems` of
    this object.

    Args:
        root: folder that contains one folder per video.
        strict: raise at the first error instead of leaving out the record.
        cache_videos: number of video graphs that stay in memory.

    Raises:
        DataError: the root does not exist or contains no video.
    """

    def __init__(self, root: str | Path, *, strict: bool = False, cache_videos: int = 2) -> None:
        self.root = Path(root)
        self.strict = strict
        self._cache: LRUCache[str, VideoGraph] = LRUCache(cache_videos)
        self.failed: dict[str, Problem] = {}
        """Videos that cannot be used, as far as they have been read, by id."""
        self.video_ids, self._root_problems = _find_videos(self.root)
        if strict and self._root_problems:
            raise DataError(str(self._root_problems[0]))

    def __getstate__(self) -> dict[str, object]:
        """Return the state without cached graphs, since another process reads the graphs that it needs."""
        return {**self.__dict__, "_cache": LRUCache(self._cache.maxsize)}

    def __len__(self) -> int:
        return len(self.video_ids)

    def __contains__(self, video_id: object) -> bool:
        return video_id in self.video_ids

    def __iter__(self) -> Iterator[VideoGraph]:
        return self.videos()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return the problems of the folders and complete files that were read so far."""
        return (*self._root_problems, *self.failed.values())

    def __getitem__(self, video_id: str) -> VideoGraph:
        """Return the graph of one video.

        Raises:
            DataError: the video is unknown, or its complete annotation file is unusable.
        """
        if video_id not in self._cache:
            if video_id not in self.video_ids:
                raise DataError(f"{self.root}: no video {video_id!r}. Fix: choose one of its {len(self)} videos")
            self._cache[video_id] = self._read(video_id)
        return self._cache[video_id]

    def videos(self, video_ids: Iterable[str] | None = None, *, progress: bool = False) -> Iterator[VideoGraph]:
        """Yield usable video graphs, sorted by id. Unusable graphs are skipped and listed in `problems`."""
        chosen_ids = self.video_ids if video_ids is None else tuple(sorted(set(video_ids)))
        for video_id in tqdm(chosen_ids, desc="reading graphs", unit="video", disable=not progress):
            try:
                graph = self[video_id]
            except DataError as error:
                if self.strict or video_id not in self.video_ids:
                    raise
                what, _, remedy = str(error).partition(". Fix: ")
                what, remedy = f"{what}: the video is left out", remedy or "fetch the video again"
                self.failed[video_id] = Problem("error", video_id, "", what, remedy)
                continue
            yield graph

    def video_path(self, video_id: str) -> Path:
        """Return the path of a video's file. Raises DataError for an id or link that leaves the root."""
        return confine(self.root, video_id, VIDEO_FILE)

    def relation_labels(self) -> tuple[tuple[str, str], ...]:
        """Return the sorted (relation type, value) pairs that hold on some frame of any video."""
        return tuple(sorted({label for graph in self for label in graph.relation_labels()}))

    def _read(self, video_id: str) -> VideoGraph:
        log = ProblemLog(f"{video_id}/{ANNOTATION_FILE}")
        path = confine(self.root, video_id, ANNOTATION_FILE)
        try:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise DataError(f"{log.file}: cannot be read ({error.strerror}). Fix: fetch the file again") from error
        records = read_release(data, log)
        refuse_wrong_length(records.release.video_metadata[0].frame_count, self.video_path(video_id), log.file)
        drop_contradictions(records, log)
        refuse_excess(records, log.file)
        errors = [problem for problem in log if problem.severity == "error"]
        if self.strict and errors:
            raise DataError(str(errors[0]))
        return VideoGraph(video_id, records, tuple(log))


def _find_videos(root: Path) -> tuple[tuple[str, ...], list[Problem]]:
    if not root.is_dir():
        raise DataError(f"{root}: no such folder. Fix: give the folder that holds one folder per video")
    video_ids, problems = [], []
    for entry in sorted(root.iterdir(), key=lambda path: path.name):
        if not entry.is_dir():
            continue
        try:
            if not valid_video_id(entry.name):
                raise DataError(f"{entry.name!r} is not a usable video id. Fix: rename the folder")
            annotation = confine(root, entry.name, ANNOTATION_FILE)
            confine(root, entry.name, VIDEO_FILE)
        except DataError as error:
            what = str(error).partition(". Fix: ")[0]
            problems.append(Problem("error", repr(entry.name), "", f"{what}: left out", "rename it or copy it in"))
            continue
        if annotation.is_file():
            video_ids.append(entry.name)
        elif (entry / VIDEO_FILE).exists():
            what = f"the video has no {ANNOTATION_FILE}: left out"
            problems.append(Problem("error", f"{entry.name}/{ANNOTATION_FILE}", "", what, "fetch the annotation"))
    if not video_ids:
        detail = f" ({problems[0]})" if problems else ""
        raise DataError(
            f"{root}: no folder with a {ANNOTATION_FILE} in it{detail}. "
            "Fix: give the folder that holds one folder a video"
        )
    return tuple(video_ids), problems


_FARTHEST = 1e150
"""Maximum distance of a box from the origin in pixels. Up to this distance, the area of a box is a finite number."""
_ID_REMEDY = "declare it in object_id_to_category_id"


def drop_contradictions(records: ReleaseRecords, log: ProblemLog) -> None:
    """Remove records that contradict the tables of `records`, and boxes whose numbers are not finite.

    Each removal is reported in `log`.
    """
    _check_objects(records, log)
    _check_annotations(records, log)
    for section in ("attributes", "relations"):
        _check_ranges(records, section, log)
    for section in ("activities", "process_steps"):
        _check_segments(records, section, log)


def _check_objects(records: ReleaseRecords, log: ProblemLog) -> None:
    category_ids = {category.id for category in records.release.categories}
    if len(category_ids) < len(records.release.categories):
        log.warning("categories", "an id is declared twice: the last name counts", "declare each id once")
    first_of_name: dict[str, tuple[int, ReleaseCategory]] = {}
    for row, category in zip(records.rows_of("categories"), records.release.categories, strict=True):
        first_row, namesake = first_of_name.setdefault(" ".join(category.name.split()).casefold(), (row, category))
        if namesake.id != category.id:  # readers cannot tell the two names apart
            what = f"{category.name!r} is also the name of categories[{first_row}], {namesake.name!r}: both are kept"
            log.warning(f"categories[{row}].name", what, "give each category a name of its own")
    table = records.release.object_id_to_category_id
    for object_id in [o for o, category_id in table.items() if category_id not in category_ids]:
        what = f"unknown category id {table.pop(object_id)!r}: the object is left out"
        log.error(f"object_id_to_category_id[{object_id!r}]", what, "declare it in categories")


def _check_annotations(records: ReleaseRecords, log: ProblemLog) -> None:
    annotations, video = records.release.annotations, records.release.video_metadata[0]
    columns, rows = records.annotation_columns(), records.rows_of("annotations")
    has_object = columns.object >= 0
    is_late = columns.frame >= video.frame_count
    # NaN compares as false.
    is_bounded = np.all(np.abs(columns.bbox) <= _FARTHEST, axis=1)
    for position in np.flatnonzero(~has_object | is_late | ~is_bounded).tolist():
        annotation, key = annotations[position], f"annotations[{rows[position]}]"
        if not has_object[position]:
            log.error(f"{key}.object_id", f"unknown object id {annotation.object_id!r}: left out", _ID_REMEDY)
        elif is_late[position]:
            what = f"frame {annotation.image_id} is past the end ({video.frame_count} frames): left out"
            log.error(f"{key}.image_id", what, "correct image_id or frame_count")
        else:
            what = f"box {columns.bbox[position].tolist()} is not finite, or far too large: left out"
            log.error(f"{key}.bbox", what, "give [x, y, width, height] in pixels")
    is_usable = has_object & ~is_late & is_bounded
    if not is_usable.all():
        records.keep("annotations", np.flatnonzero(is_usable).tolist())
    _report_odd_boxes(records, log)
    _report_repeated_annotations(records, log)


def _report_odd_boxes(records: ReleaseRecords, log: ProblemLog) -> None:
    columns, video = records.annotation_columns(), records.release.video_metadata[0]
    rows = records.rows_of("annotations")
    x, y, width, height = columns.bbox.T
    inside_width = np.minimum(x + width, video.width) - np.maximum(x, 0)
    inside_height = np.minimum(y + height, video.height) - np.maximum(y, 0)
    outside = ~((inside_width > 0) & (inside_height > 0) & (width > 0) & (height > 0))
    # One pixel is tolerated, since annotation tools round box corners outwards.
    sticks_out = (x < -1) | (y < -1) | (x + width > video.width + 1) | (y + height > video.height + 1)
    for position in np.flatnonzero(columns.boxed & (outside | sticks_out)).tolist():
        key, how = f"annotations[{rows[position]}].bbox", "has no area inside" if outside[position] else "sticks out of"
        what = f"box {columns.bbox[position].tolist()} {how} the {video.width}x{video.height} frame: kept as it is"
        log.warning(key, what, "give [x, y, width, height] in pixels, clipped to the frame")


def _report_repeated_annotations(records: ReleaseRecords, log: ProblemLog) -> None:
    columns, rows = records.annotation_columns(), records.rows_of("annotations")
    key = columns.frame * (int(columns.object.max(initial=0)) + 1) + columns.object
    order = np.argsort(key, kind="stable")
    for position in np.sort(order[1:][np.diff(key[order]) == 0]).tolist():
        annotation = records.release.annotations[position]
        what = f"object {annotation.object_id!r} is already on frame {annotation.image_id}"
        what += ": kept, the last one counts where its box is asked for by id"
        log.warning(f"annotations[{rows[position]}]", what, "keep one")


def _check_ranges(records: ReleaseRecords, section: str, log: ProblemLog) -> None:
    entries: list[ReleaseAttribute | ReleaseRelation] = getattr(records.release, section)
    frame_count = records.release.video_metadata[0].frame_count
    table = records.release.object_id_to_category_id
    kept_positions = []
    for position, (row, entry) in enumerate(zip(records.rows_of(section), entries, strict=True)):
        key = f"{section}[{row}]"
        id_fields = ("object_id",) if isinstance(entry, ReleaseAttribute) else ("source_object_id", "target_object_id")
        unknown_field = next((name for name in id_fields if getattr(entry, name) not in table), None)
        if unknown_field:
            what = f"unknown object id {getattr(entry, unknown_field)!r}: left out"
            log.error(f"{key}.{unknown_field}", what, _ID_REMEDY)
            continue
        if len(entry.image_ranges) > frame_count:
            what = f"{len(entry.image_ranges):,} ranges, more than the video's {frame_count:,} frames: left out"
            log.error(f"{key}.image_ranges", what, "state each stretch of frames once")
            continue
        ranges = [
            _check_range(span, f"{key}.image_ranges[{index}]", frame_count, log)
            for index, span in enumerate(entry.image_ranges)
        ]
        if ranges != entry.image_ranges:
            entry.image_ranges = [span for span in ranges if span]
        kept_positions.append(position)
    if len(kept_positions) < len(entries):
        records.keep(section, kept_positions)


def _check_segments(records: ReleaseRecords, section: str, log: ProblemLog) -> None:
    """Warn of unusual segments. All segments stay unchanged, since example ids contain a segment's frames and file
    index.
    """
    frame_count = records.release.video_metadata[0].frame_count
    for row, segment in zip(records.rows_of(section), getattr(records.release, section), strict=True):
        key = f"{section}[{row}]"
        start, end = segment.image_range.image_id_start, segment.image_range.image_id_end
        if not 0 <= start < end <= frame_count:
            what = f"range [{start}, {end}) is not within the {frame_count} frames: kept as it is"
            log.warning(f"{key}.image_range", what, "give 0 <= start < end <= frame_count")
        if segment.activity_class_id is None:
            log.warning(f"{key}.activity_class_id", "null: no task uses this segment", "give it a class")
        if section == "activities" and " " not in segment.display_name.strip():
            what = f"{segment.display_name!r} is no 'Verb noun' pair"
            log.warning(f"{key}.display_name", what, "name a verb and a noun")


def _check_range(span: ReleaseRange, key: str, frame_count: int, log: ProblemLog) -> ReleaseRange | None:
    """Return the range cut to the video, or None if it lies outside. A range [n, n] has no frame here."""
    start, end = max(0, span.image_id_start), min(span.image_id_end, frame_count)
    text = f"range [{span.image_id_start}, {span.image_id_end})"
    if start >= end:
        log.error(key, f"{text} has no frame among the {frame_count}: left out", "give start < end <= frame_count")
        return None
    if (start, end) == (span.image_id_start, span.image_id_end):
        return span
    what = f"{text} runs past the end: cut to {frame_count} frames"
    log.error(key, what, "give 0 <= start, end <= frame_count")
    return ReleaseRange(start, end)


def release_bytes(graph: VideoGraph) -> bytes:
    """Return the graph's valid records, in the file's order, as the bytes of a `coco_annotation.json`."""
    data = encode(graph.records.release)
    if graph.records.extras:
        document = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        data = msgspec.json.encode(_with_extras(document, graph))
    return restore_non_finite(data)


def write_release(graph: VideoGraph, root: str | Path, *, video: str | Path | None = None) -> Path:
    """Write `<root>/<video_id>/coco_annotation.json`. If `video` is given, copy it beside this file.

    Raises:
        DataError: the folder already exists, or the video id would leave the root.
    """
    if not valid_video_id(graph.video_id):
        raise DataError(f"{graph.video_id!r} is not a usable video id. Fix: rename the video")
    folder = confine(Path(root), graph.video_id)
    if folder.exists():
        raise DataError(f"{folder}: exists already. Fix: write to another root, or remove it first")
    folder.mkdir(parents=True)
    with atomic_write(folder / ANNOTATION_FILE) as partial:
        partial.write_bytes(release_bytes(graph))
        if video is not None:
            shutil.copyfile(video, folder / VIDEO_FILE)
    return folder


def _with_extras(document: dict[str, msgspec.Raw], graph: VideoGraph) -> dict[str, object]:
    by_section: dict[str, dict[int, dict[str, msgspec.Raw]]] = {}
    for key, fields in graph.records.extras.items():
        match = _RECORD_KEY.fullmatch(key)
        if match:
            by_section.setdefault(match[1], {})[int(match[2])] = fields
    merged: dict[str, object] = {**document, **graph.records.extras.get("", {})}
    for section, fields_of_row in by_section.items():
        records = msgspec.json.decode(document[section], type=list[dict[str, msgspec.Raw]])
        merged[section] = [
            {**record, **fields_of_row.get(row, {})}
            for row, record in zip(graph.records.rows_of(section), records, strict=True)
        ]
    return merged
