"""Examples as `datasets` rows and back.

Common columns: position (in the drawn order, over all splits), example_id, benchmark, task, task_version, label,
video_id, video_sha256, frame_indices, inputs, target, metadata, evidence. Frozen sets add `images`: what the model
sees, encoded (JPEG for frames, PNG for overlays). Linked sets add `frames`: {video: path relative to the data root,
indices}, to be cast to `VideoFrames`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from barista_bench.benchmarks import get_benchmark, task_class
from barista_bench.core.released_records import MAX_FRAMES
from barista_bench.core.task import Example, FrameRef, Task

if TYPE_CHECKING:
    from datasets import Features

FramesMode = Literal["frozen", "linked"]


def row_features(task: Task, frames: FramesMode) -> Features:
    from datasets import Features, Image, List, Value

    linked = {"frames": {"video": Value("string"), "indices": List(Value("int32"))}}
    features = task.features()
    if task.follows_paper and task.freezes_by_protocol():
        features["metadata"] = {**features["metadata"], "protocol": Value("string")}
    return Features(
        {
            "position": Value("int32"),
            "example_id": Value("string"),
            "benchmark": Value("string"),
            "task": Value("string"),
            "task_version": Value("int32"),
            "label": Value("string"),
            "video_id": Value("string"),
            "video_sha256": Value("string"),
            "frame_indices": List(Value("int32")),
            **(linked if frames == "linked" else {"images": List(Image())}),
            **features,
        }
    )


def to_row(example: Example, position: int, video_sha256: str) -> dict[str, Any]:
    """All columns but `images`; a linked set keeps `frames` as it stands here."""
    return {
        "position": position,
        "example_id": example.example_id,
        "benchmark": example.benchmark,
        "task": example.task,
        "task_version": task_class(example.benchmark, example.task).version,
        "label": example.label,
        "video_id": example.video_id,
        "video_sha256": video_sha256,
        "frame_indices": [frame.frame_index for frame in example.frames],
        "inputs": example.inputs,
        "target": example.target,
        "metadata": example.metadata,
        "evidence": example.evidence,
    }


def link(example: Example) -> dict[str, Any]:
    """The `frames` column of a linked set."""
    return {
        "video": get_benchmark(example.benchmark).video_file(example.video_id),
        "indices": [frame.frame_index for frame in example.frames],
    }


class BuiltRow(msgspec.Struct):
    """The columns of a row that its example is made of."""

    example_id: str
    benchmark: str
    task: str
    label: str
    video_id: str
    frame_indices: Annotated[list[int], msgspec.Meta(min_length=1, max_length=MAX_FRAMES)]
    inputs: dict[str, Any]
    target: dict[str, Any]
    metadata: dict[str, Any]
    evidence: dict[str, Any]


def from_row(row: Mapping[str, Any]) -> Example:
    """The example that a row was made from. Raises ValueError where a column is missing or of another type."""
    built = msgspec.convert(row, BuiltRow)
    return Example(
        example_id=built.example_id,
        benchmark=built.benchmark,
        task=built.task,
        label=built.label,
        frames=tuple(FrameRef(built.video_id, index) for index in built.frame_indices),
        inputs=built.inputs,
        target=built.target,
        metadata=built.metadata,
        evidence=built.evidence,
    )
