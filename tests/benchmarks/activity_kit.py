"""Videos with activities for the tests of their recognition, and what is asked of them."""

from __future__ import annotations

from pathlib import Path

from barista_bench.benchmarks.barista.activity import Activity
from barista_bench.benchmarks.barista.activity_choices import ActivitySampling
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import SkippedExample
from barista_bench.core.options import Sampling
from barista_bench.core.task import Example
from barista_bench.scene_graph import SceneGraph
from tests.graph_examples import graph_examples
from tests.releases import document, span, write_release

TASK = Activity()
BOXES = BoxFormat()
ALL = ActivitySampling(seed=42, frames=4, choices=25, per_class=None, same_verb=4)
VERBS = ("Open", "Close", "Place", "Remove", "Press")
NOUNS = ("bottle", "lid", "door", "drawer", "coffee cup", "tap")
CLASSES = {f"{verb} {noun}".lower().replace(" ", "-"): f"{verb} {noun}" for verb in VERBS for noun in NOUNS}
"""Class id to display name: 30 classes, 6 of each verb."""


def activity(start: int, end: int, class_id: str | None = "open-lid", name: str | None = None) -> dict:
    name = CLASSES[class_id or "open-lid"] if name is None else name
    return {"image_range": span(start, end), "activity_class_id": class_id, "display_name": name}


def release(root: Path, *activities: dict, video_id: str = "v1", preparation: str = "capsule") -> Path:
    content = document(preparation)
    content["activities"] = list(activities)
    return write_release(root, video_id, content, video=False)


def vocabulary_video(root: Path) -> Path:
    """A video that names all 30 classes, in segments too short to be asked about."""
    return release(root, *(activity(k, k + 1, class_id) for k, class_id in enumerate(CLASSES)), video_id="names")


def derive(root: Path, sampling: Sampling = ALL) -> list[Example | SkippedExample]:
    return list(graph_examples(TASK, SceneGraph(root), sampling))


def ranges(root: Path, sampling: Sampling = ALL) -> list[tuple[str, int, int]]:
    """(video, start, end) of the examples."""
    segments = [e for e in derive(root, sampling) if isinstance(e, Example)]
    return [(e.video_id, e.metadata["segment_start"], e.metadata["segment_end"]) for e in segments]
