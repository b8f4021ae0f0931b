"""What all BARISTA tasks share: their prompt folder, and metadata that analysis groups by."""

from __future__ import annotations

from barista_bench.core.example import Int64, TypedFields
from barista_bench.core.prompt import FROZEN_QUESTION, packaged_prompts
from barista_bench.core.task import Fields, Task
from barista_bench.scene_graph import VideoGraph

PROMPT_PACKAGE = "barista_bench.benchmarks.barista"
WORDING = "release@4086ce5"
"""What the release's own wording is called: its commit."""


class FrameMetadata(TypedFields):
    """What analysis groups by; `split` is filled in by the builder, which sees all videos."""

    preparation: str
    split: str
    activities: list[str]
    steps: list[str]
    device: str
    frame_count: Int64
    fps: float


def frame_metadata(graph: VideoGraph, frame: int) -> Fields:
    """The metadata of an example at one frame."""
    return FrameMetadata(
        preparation=graph.preparation,
        split="",
        activities=[segment.name for segment in graph.activities(frame)],
        steps=[segment.name for segment in graph.steps(frame)],
        device=graph.video.recording_device_type or "unknown",
        frame_count=graph.frame_count,
        fps=graph.video.fps or 0.0,
    ).write()


def frozen_sentence(task: Task, **values: str) -> str:
    """The sentence that the release freezes with an example, in the task's wording, or in ours where that has none."""
    has_it = FROZEN_QUESTION in task.prompts.extra
    texts = task.prompts if has_it else packaged_prompts(task.prompt_package, task.name)
    return texts.text(FROZEN_QUESTION, **values)
