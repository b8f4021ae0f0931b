"""Long hand-made videos without pictures, with the activities or steps that a test names."""

from collections.abc import Sequence
from pathlib import Path

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.deriving import GraphTask
from barista_bench.core.example import SkippedExample
from barista_bench.core.options import Sampling
from barista_bench.core.task import Example
from barista_bench.scene_graph import SceneGraph
from tests.graph_examples import graph_examples
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


def derived(task: GraphTask, root: Path, sampling: Sampling) -> tuple[list[Example], list[SkippedExample]]:
    items = list(graph_examples(task, SceneGraph(root), sampling))
    return [item for item in items if isinstance(item, Example)], [
        item for item in items if isinstance(item, SkippedExample)
    ]
