"""What typed decoding cannot see: ids that nothing declares, boxes outside the frame, ranges past the end.

A record that fails is left out and reported; the rest of the file stays usable.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from barista_bench.scene_graph.problems import ProblemLog
from barista_bench.scene_graph.reading import AnnotationColumns, ReadRelease
from barista_bench.scene_graph.release import (
    ReleaseAttribute,
    ReleaseRange,
    ReleaseRelation,
    ReleaseSegment,
    ReleaseVideo,
)

_ID_REMEDY = "declare it in object_id_to_category_id"


def check(read: ReadRelease, log: ProblemLog) -> None:
    """Leave out of `read`, in place, what its own tables contradict; each omission is reported in `log`."""
    _check_objects(read, log)
    _check_annotations(read, log)
    for section in ("attributes", "relations"):
        _check_ranged(read, section, log)
    for section in ("activities", "process_steps"):
        _check_segments(read, section, log)


def _check_objects(read: ReadRelease, log: ProblemLog) -> None:
    known = {category.id for category in read.release.categories}
    if len(known) < len(read.release.categories):
        log.warning("categories", "an id is declared twice: the last name counts", "declare each id once")
    table = read.release.object_id_to_category_id
    for object_id in [o for o, category_id in table.items() if category_id not in known]:
        log.error(
            f"object_id_to_category_id[{object_id!r}]",
            f"unknown category id {table.pop(object_id)!r}: the object is left out",
            "declare it in categories",
        )


def _check_annotations(read: ReadRelease, log: ProblemLog) -> None:
    annotations, video = read.release.annotations, read.release.video_metadata[0]
    columns = read.annotation_columns()
    known = columns.object >= 0
    late = columns.frame >= video.frame_count
    outside = columns.boxed & _outside(columns.bbox, video, log, read)
    repeated = _repeated(columns)
    for position in np.flatnonzero(~known | late | outside | repeated).tolist():
        annotation, key = annotations[position], f"annotations[{read.row('annotations', position)}]"
        if not known[position]:
            log.error(f"{key}.object_id", f"unknown object id {annotation.object_id!r}: left out", _ID_REMEDY)
        elif late[position]:
            log.error(
                f"{key}.image_id",
                f"frame {annotation.image_id} is past the end ({video.frame_count} frames): left out",
                "correct image_id or frame_count",
            )
        elif outside[position]:
            log.error(
                f"{key}.bbox",
                f"box {list(annotation.bbox or ())} has no area inside the {video.width}x{video.height} frame: "
                "left out",
                "give [x, y, width, height] in pixels",
            )
        else:
            log.error(
                key,
                f"object {annotation.object_id!r} is already on frame {annotation.image_id}: left out",
                "keep one",
            )
    bad = ~known | late | outside | repeated
    if bad.any():
        read.keep("annotations", np.flatnonzero(~bad).tolist())


def _outside(boxes: NDArray[np.float64], video: ReleaseVideo, log: ProblemLog, read: ReadRelease) -> NDArray[np.bool_]:
    """Boxes with no area inside the frame. One that only sticks out of it is kept as it is, with a warning."""
    x, y, width, height = boxes.T
    inside_width = np.minimum(x + width, video.width) - np.maximum(x, 0)
    inside_height = np.minimum(y + height, video.height) - np.maximum(y, 0)
    outside = ~((inside_width > 0) & (inside_height > 0) & (width > 0) & (height > 0))
    # A pixel of tolerance: annotation tools round box corners outwards.
    over = ~outside & ((x < -1) | (y < -1) | (x + width > video.width + 1) | (y + height > video.height + 1))
    for position in np.flatnonzero(over).tolist():
        log.warning(
            f"annotations[{read.row('annotations', position)}].bbox",
            f"box {boxes[position].tolist()} sticks out of the {video.width}x{video.height} frame: kept as it is",
            "clip the box to the frame",
        )
    return outside


def _repeated(columns: AnnotationColumns) -> NDArray[np.bool_]:
    """Second and later annotations of one object on one frame; an unknown object is reported for that instead."""
    repeated = np.zeros(len(columns.frame), dtype=bool)
    key = columns.frame * (int(columns.object.max(initial=0)) + 2) + columns.object + 1
    order = np.argsort(key, kind="stable")
    repeated[order[1:]] = np.diff(key[order]) == 0
    return repeated & (columns.object >= 0)


def _check_ranged(read: ReadRelease, section: str, log: ProblemLog) -> None:
    records: list[ReleaseAttribute | ReleaseRelation] = getattr(read.release, section)
    frame_count = read.release.video_metadata[0].frame_count
    table = read.release.object_id_to_category_id
    kept = []
    for position, record in enumerate(records):
        key = f"{section}[{read.row(section, position)}]"
        unknown = [
            (name, getattr(record, name))
            for name in ("object_id", "source_object_id", "target_object_id")
            if getattr(record, name, None) not in table and hasattr(record, name)
        ]
        if unknown:
            name, value = unknown[0]
            log.error(f"{key}.{name}", f"unknown object id {value!r}: left out", _ID_REMEDY)
            continue
        ranges = [
            checked
            for index, span in enumerate(record.image_ranges)
            if (checked := _check_range(span, f"{key}.image_ranges[{index}]", frame_count, log))
        ]
        if len(ranges) < len(record.image_ranges) or any(
            a is not b for a, b in zip(ranges, record.image_ranges, strict=False)
        ):
            record.image_ranges = ranges
        kept.append(position)
    if len(kept) < len(records):
        read.keep(section, kept)


def _check_segments(read: ReadRelease, section: str, log: ProblemLog) -> None:
    segments: list[ReleaseSegment] = getattr(read.release, section)
    frame_count = read.release.video_metadata[0].frame_count
    kept = []
    for position, segment in enumerate(segments):
        key = f"{section}[{read.row(section, position)}]"
        checked = _check_range(segment.image_range, f"{key}.image_range", frame_count, log)
        if checked is None:
            continue
        segment.image_range = checked
        kept.append(position)
        if segment.activity_class_id is None:
            log.warning(f"{key}.activity_class_id", "null: no task uses this segment", "give it a class")
        if section == "activities" and " " not in segment.display_name.strip():
            log.warning(
                f"{key}.display_name",
                f"{segment.display_name!r} is no 'Verb noun' pair",
                "name a verb and a noun",
            )
    if len(kept) < len(segments):
        read.keep(section, kept)


def _check_range(span: ReleaseRange, key: str, frame_count: int, log: ProblemLog) -> ReleaseRange | None:
    """The range cut to the video, or None where nothing of it lies inside. A one-frame [n, n] has no frame here."""
    if span.image_id_start >= frame_count or span.image_id_start >= span.image_id_end:
        log.error(
            key,
            f"range [{span.image_id_start}, {span.image_id_end}) has no frame among the {frame_count}: left out",
            "give start < end <= frame_count",
        )
        return None
    if span.image_id_end > frame_count:
        log.error(
            key,
            f"range [{span.image_id_start}, {span.image_id_end}) runs past the end: cut to {frame_count} frames",
            "give end <= frame_count",
        )
        return ReleaseRange(span.image_id_start, frame_count)
    return span
