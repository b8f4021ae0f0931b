"""What the readers of released BARISTA examples share: frame sizes, boxes on the grid, and the example itself."""

from __future__ import annotations

from barista_bench.benchmarks.released import Record, ReleasedExample, ReleaseRoot
from barista_bench.boxes import GRID, four_numbers
from barista_bench.errors import DataError
from barista_bench.task import Example, Fields, Task

UNTOLD = "unknown"
"""Stands for what a released line does not say and analysis groups by."""

_COMMON: Fields = {
    "preparation": UNTOLD,
    "split": UNTOLD,
    "activities": [],
    "steps": [],
    "device": UNTOLD,
    "frame_count": 0,
    "fps": 0.0,
}
LARGEST_SIDE = 16384
"""Pixels; more is a mistake or an attack, as in `scene_graph.release`."""
_WIDTH = ("frame_width", "image_width", "width")
_HEIGHT = ("frame_height", "image_height", "height")


def make_example(
    task: type[Task],
    line: ReleasedExample,
    *,
    label: str,
    inputs: Fields,
    target: Fields,
    metadata: Fields,
    evidence: Fields,
) -> Example:
    return Example(
        example_id=line.example_id,
        benchmark=task.benchmark,
        task=task.name,
        label=label,
        frames=line.frames,
        inputs=inputs,
        target=target,
        metadata=line.kept_metadata({**_COMMON, **metadata}),
        evidence=evidence,
    )


def empty(*names: str) -> Fields:
    return {name: [] for name in names}


def optional_text(record: Record, *names: str) -> str:
    return record.text(*names) if record.find(*names) else ""


def frame_size(line: ReleasedExample, root: ReleaseRoot) -> Fields:
    for record in (line.data, line.metadata):
        if record.find(*_WIDTH) and record.find(*_HEIGHT):
            width, height = record.integer(*_WIDTH), record.integer(*_HEIGHT)
            if not (1 <= width <= LARGEST_SIDE and 1 <= height <= LARGEST_SIDE):
                raise record.wrong(_WIDTH, f"the width of a frame of 1 to {LARGEST_SIDE} pixels a side")
            return {"frame_width": width, "frame_height": height}
    width, height = root.frame_size(line.video_id)
    return {"frame_width": width, "frame_height": height}


def check_grid(data: Record) -> None:
    """Refuse boxes that say of themselves that they are not xyxy on the grid."""
    for names, wanted in ((("bbox_format",), "xyxy"), (("bbox_scale",), GRID)):
        if data.find(*names) and data.get(*names) != wanted:
            raise data.wrong(names, f"{wanted!r}, as released files have it")


def grid_box(value: object, place: str) -> list[int]:
    """Four numbers on the grid; integers, as the release freezes them."""
    numbers = four_numbers(value)
    if numbers is None or not all(0 <= number <= GRID and number == int(number) for number in numbers):
        raise DataError(
            f"{place} is {str(value)[:80]}, not [x0, y0, x1, y1] of integers from 0 to {GRID}. Remedy: correct it"
        )
    return [int(number) for number in numbers]
