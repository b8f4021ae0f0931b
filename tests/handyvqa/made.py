"""Small HanDyVQA releases and answers, made by hand: every number in them is known."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from barista_bench.benchmarks import RecordedAnswers
from barista_bench.benchmarks.handyvqa.release import HandyvqaRelease
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example, FrameRef, Json, SkippedExample
from barista_bench.core.task import Task
from barista_bench.scene_graph import encode_mask
from tests.answering import answered

BOXES = BoxFormat()
WIDTH, HEIGHT = 96, 64
CUPS = ["a white cup", "a red cup", "a blue cup", "a green cup", "a black cup"]


def record(item_id: str = "action_0000", **changes: Any) -> dict[str, Any]:
    """A valid record; a change to None leaves a key out."""
    content = {"id": item_id, "question": "Which cup is lifted?", "options": CUPS, "correct_idx": [1]} | changes
    return {key: value for key, value in content.items() if value is not None}


def write_lines(path: Path, records: Sequence[object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def write_folder(folder: Path, frames: int = 20, size: tuple[int, int] = (WIDTH, HEIGHT)) -> Path:
    """Frame i is grey of the value 10 * i."""
    folder.mkdir(parents=True)
    for index in range(frames):
        Image.new("RGB", size, (10 * index,) * 3).save(folder / f"{index:06d}.png")
    return folder


def rectangle(x0: int, y0: int, x1: int, y1: int, size: tuple[int, int] = (HEIGHT, WIDTH)) -> NDArray[np.bool_]:
    mask = np.zeros(size, dtype=bool)
    mask[y0:y1, x0:x1] = True
    return mask


def rle(mask: NDArray[np.bool_]) -> dict[str, Any]:
    encoded = encode_mask(mask)
    return {"size": list(encoded.size), "counts": encoded.counts}


SIZE = [HEIGHT, WIDTH]
DAMAGED_MASKS: list[Any] = [
    *({"size": SIZE, "counts": counts} for counts in ("0", "~~~", "P", "oooooooooooo0", "\x00", "é", "", 7, [1])),
    *({"size": size, "counts": "0"} for size in ([0, WIDTH], [10**6] * 2, [10**9] * 2, [HEIGHT], ["a", None], HEIGHT)),
]
"""Too few runs, outside of the code, cut off, a huge run, no text, no size."""


def target(option: int, mask: NDArray[np.bool_]) -> dict[str, Any]:
    return {"option": option, "segmentation": rle(mask)}


def examples_of(task: Task, release: HandyvqaRelease, **overrides: Any) -> list[Example | SkippedExample]:
    sampling = task.sampling.with_overrides(overrides)
    return list(task.examples(release, sampling))  # type: ignore[attr-defined]


def metrics_of(recorded: RecordedAnswers) -> dict[str, Json]:
    """The figures over the answers without errors."""
    task, answers = recorded.task(), {answer.example_id: answer for answer in recorded.answers}
    pairs = [(example, answers[example.example_id]) for example in recorded.examples]
    return task.aggregate([answered(task, example, answer.text) for example, answer in pairs if not answer.error])


def question(
    task: type[Task], options: Sequence[str], correct: Sequence[int], item_id: str = "q", video: str | None = None
) -> Example:
    """A multiple-choice example, as if it had been built."""
    return Example(
        example_id=item_id,
        benchmark="handyvqa",
        task=task.name,
        label="; ".join(options[index] for index in correct),
        frames=tuple(FrameRef(video or f"{item_id}_frames", index) for index in range(3)),
        inputs={"question": "Which?", "options": list(options)},
        target={"correct": list(correct)},
        metadata={"split": "test", "n_frames": 3},
    )
