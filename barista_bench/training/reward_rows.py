"""Write and read the references of rows for reinforcement learning: one JSON text per row, in a column of its own."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import msgspec

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example, FrameRef
from barista_bench.core.task import Task
from barista_bench.errors import ConfigError, DataError
from barista_bench.runs.log.inputs import asks_in_steps

REFERENCE = "reference"
"""Name of the column with the references. No prompt shows it."""


class _Frame(msgspec.Struct):
    video_id: str
    frame_index: int


class RowReference(msgspec.Struct, frozen=True, dict=True):
    """All data of a row that a reward uses, except the answer.

    Attributes:
        version: version of the task when the row was written.
        protocol: protocol of the dataset.
        box_format: the format in which the prompt asks for boxes.
        floor: score up to which an answer earns nothing (`task_rewards.floors_of`).
    """

    example_id: str
    benchmark: str
    task: str
    version: int
    protocol: str
    box_format: str
    label: str
    frames: list[_Frame]
    inputs: dict[str, Any]
    target: dict[str, Any]
    metadata: dict[str, Any]
    evidence: dict[str, Any]
    floor: float = 0.0

    @cached_property
    def example(self) -> Example:
        """Return the example. It is made only once, since a task stores its evidence in it."""
        return Example(
            self.example_id,
            self.benchmark,
            self.task,
            self.label,
            tuple(FrameRef(frame.video_id, frame.frame_index) for frame in self.frames),
            self.inputs,
            self.target,
            self.metadata,
            self.evidence,
        )


def write_reference(example: Example, task: Task, box_format: BoxFormat, floor: float = 0.0) -> str:
    """Return the reference of one row, whose answers earn what they score above `floor`."""
    columns = {name: getattr(example, name) for name in ("inputs", "target", "metadata", "evidence")}
    frames = [_Frame(frame.video_id, frame.frame_index) for frame in example.frames]
    row = RowReference(
        example.example_id,
        task.benchmark,
        task.name,
        task.version,
        task.protocol,
        str(box_format),
        example.label,
        frames,
        **columns,
        floor=floor,
    )
    return msgspec.json.encode(row).decode()


@lru_cache(maxsize=64)  # the answers of a group share a reference
def read_reference(text: str) -> RowReference:
    """Return the reference of one row. Raises DataError if the text is not a reference."""
    try:
        return msgspec.json.decode(text, type=RowReference)
    except msgspec.MsgspecError as error:
        raise DataError(
            f"{REFERENCE} {text[:80]!r}: {error}. Fix: take the rows of `barista-bench export --format prompts`"
        ) from error


def why_untrainable(task: Task) -> str:
    """Return why no text can answer a task correctly, or an empty string if a text can."""
    if not task.answered_by_text:
        return "no text answers it"
    return "asks on after an answer that has no reference" if asks_in_steps(task) else ""


def refuse_untrainable(task: Task) -> None:
    """Raise ConfigError if no text can answer a task correctly."""
    if why_not := why_untrainable(task):
        raise ConfigError(f"{task.name}: {why_not}. Fix: leave the task out")
