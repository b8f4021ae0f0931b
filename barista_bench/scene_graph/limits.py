"""Limit the size of one annotation file. If a file exceeds a limit, its video is left out.

For a file within these limits, `build`, `validate` and `show stats` take less than 1 GiB of memory. A full-scale file
of BARISTA has 9 MB, 2,500 frames, about 25 objects and 20,000 annotations.
"""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import numpy as np

from barista_bench.errors import DataError
from barista_bench.media.video import video_facts
from barista_bench.media.video.frame_folder import MAX_PIXELS
from barista_bench.scene_graph.reading import ReleaseRecords

MAX_OBJECTS = 10_000
"""Maximum number of objects, and maximum number of categories."""
MAX_RANGES = 10_000
"""Maximum number of ranges of attributes and relations: almost three per second for an hour. An example names all
ranges of its frame.
"""
MAX_SEGMENTS = 5000
"""Maximum number of activities and process steps. An example names all of them that contain its frame."""
MAX_RELATION_LABELS = 1000
"""Maximum number of pairs of type and value. Each question about relations offers all pairs."""
MAX_CELLS = 100_000_000
"""Maximum of objects times frames with a box: tasks hold one byte for each combination."""
LONG_VIDEO = 100_000
"""Number of frames, about an hour, from which a claimed length is compared with the video file. Time and memory grow
with the claimed length.
"""


def refuse_excess(records: ReleaseRecords, file: str) -> None:
    """Raise DataError if the valid records of a file exceed the limits."""
    release, columns = records.release, records.annotation_columns()
    objects = len(release.object_id_to_category_id)
    ranges = [record.image_ranges for record in release.attributes]
    ranges += [record.image_ranges for record in release.relations]
    labels = {(relation.relation_type, relation.value) for relation in release.relations}
    counts = (
        ("objects", objects, MAX_OBJECTS),
        ("categories", len(release.categories), MAX_OBJECTS),
        ("ranges of attributes and relations", sum(map(len, ranges)), MAX_RANGES),
        ("activities and process steps", len(release.activities) + len(release.process_steps), MAX_SEGMENTS),
        ("kinds of relations", len(labels), MAX_RELATION_LABELS),
        ("objects times frames with a box", objects * len(np.unique(columns.frame[columns.boxed])), MAX_CELLS),
    )
    for what, count, most in counts:
        if count > most:
            _refuse(file, f"holds {count:,} {what}, more than {most:,}")
    width, height = release.video_metadata[0].width, release.video_metadata[0].height
    if width * height > MAX_PIXELS:
        _refuse(file, f"names frames of {width}x{height} pixels, more than {MAX_PIXELS:,}")


def _refuse(file: str, what: str) -> NoReturn:
    raise DataError(f"{file}: {what}. Fix: correct the file, or cut the video into parts")


def refuse_wrong_length(claimed: int, video: Path, file: str) -> None:
    """Raise DataError if the annotation claims a long video, and an existing video file has fewer frames."""
    if claimed > LONG_VIDEO and video.exists() and (held := video_facts(video).frame_count) < claimed:
        what = f"video_metadata[0].frame_count: {claimed:,}, and {video.name} holds {held:,} frames"
        raise DataError(f"{file}: {what}. Fix: correct it, or fetch the video that belongs to this annotation")
