"""The references of rows for reinforcement learning: one JSON text a row, in a column that no prompt shows."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import msgspec

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.task import Example, FrameRef, Task
from barista_bench.errors import ConfigError, DataError
from barista_bench.runs.log.inputs import asks_in_steps

REFERENCE = "reference"
"""The column of the references."""


class _Frame(msgspec.Struct):
    video_id: str
    frame_index: int


class RowReference(msgspec.Struct, frozen=True, dict=True):
    """All that a reward knows of a row beside the answer.

    Attributes:
        version: of the task, when the row was written.
        protocol: of the dataset.
        box_format: how the prompt asks for boxes.
        floor: the score up to which an answer earns nothing: the best of references of other videos.
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
        """The example, made once: a task remembers its evidence in it."""
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
    """Return the reference of one row. Raises DataError if the text is none."""
    try:
        return msgspec.json.decode(text, type=RowReference)
    except msgspec.MsgspecError as error:
        raise DataError(
            f"{REFERENCE} {text[:80]!r}: {error}. Fix: take the rows of `barista-bench export --format prompts`"
        ) from error


def why_untrainable(task: Task) -> str:
    """Return the reason why no text answers a task correctly; empty if a text can."""
    if not task.answered_by_text:
        return "no text answers it"
    return "asks on after an answer that has no reference" if asks_in_steps(task) else ""


def refuse_untrainable(task: Task) -> None:
    """Raise ConfigError if no text answers a task correctly."""
    if why_not := why_untrainable(task):
        raise ConfigError(f"{task.name}: {why_not}. Fix: leave the task out")
