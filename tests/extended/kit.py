"""Long hand-made videos without pictures, with the activities or steps that a test names."""

from collections.abc import Sequence
from pathlib import Path

from barista_bench.core.boxes import BoxFormat
from tests.releases import document, span, write_release

BOXES = BoxFormat()
Named = tuple[int, int, str]
"""Frames [start, end) and name."""


def video(
    root: Path,
    *,
    activities: Sequence[Named] = (),
    steps: Sequence[Named] = (),
    frames: int = 900,
    fps: float | None = 30.0,
    video_id: str = "v1",
) -> Path:
    content = document()
    content["video_metadata"][0] |= {"frame_count": frames, "fps": fps}
    for part, segments in (("activities", activities), ("process_steps", steps)):
        content[part] = [
            {
                "image_range": span(start, end),
                "activity_class_id": name.lower().replace(" ", "-") or None,
                "display_name": name,
            }
            for start, end, name in segments
        ]
    return write_release(root, video_id, content, video=False)
