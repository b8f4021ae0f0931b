"""Turn the rows of `barista-bench export --format prompts` into a taskset of verifiers (API `v1`), with equal rewards.

    barista-bench export DATA --format prompts --box-format xyxy/1000 --out rows
    vf-eval barista-bench-verifiers --env.taskset.rows rows --env.agent.harness.id null --model MODEL

The model sees the prompt and the images of a row. The reference stays in the task's data. The last reply of a rollout
gets the reward, and the parts of the reward are metrics.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import verifiers.v1 as vf
from pydantic import Field

from barista_bench.core.guarding import raise_faults
from barista_bench.training.exporting import PARQUET
from barista_bench.training.reward_rows import REFERENCE, read_reference
from barista_bench.training.task_rewards import DEFAULT_WEIGHTS, TaskReward, answer_text, task_reward

__all__ = ["RowTaskset"]
_PNG = b"\x89PNG"


class RowData(vf.TaskData):
    reference: str
    """The reference of the row, as JSON."""


class RowConfig(vf.TaskConfig):
    weights: dict[str, float] = Field(default_factory=lambda: dict(DEFAULT_WEIGHTS))
    """Weights of the parts of a reward. Set them with `--env.taskset.task.weights`."""
    options: dict[str, str] = Field(default_factory=dict)
    """Options of the task, the same as for `score`."""


class RowTask(vf.Task[RowData, vf.State, RowConfig]):
    """One row. Its key is the id of its example."""

    @property
    def key(self) -> str:
        return str(self.data.id)

    @vf.reward(weight=1.0)
    async def task(self, trace: vf.Trace) -> float:
        """Return the reward of the last reply, and record its parts as metrics. Raises TaskError if the task fails."""
        reference = read_reference(self.data.reference)
        settings = (tuple(sorted(values.items())) for values in (self.config.weights, self.config.options))
        reward = _reward(reference.benchmark, reference.task, *settings)
        (parts,) = reward.parts([answer_text(trace.last_reply)], [reference])
        if parts is None:
            raise_faults(reward.faults)
            raise AssertionError("a task that gives no parts notes its fault")
        trace.record_metrics(parts)
        return reward.total(parts)


@cache
def _reward(
    benchmark: str, task: str, weights: Sequence[tuple[str, float]], options: Sequence[tuple[str, str]]
) -> TaskReward:
    return task_reward(task, benchmark=benchmark, weights=dict(weights), options=dict(options))


class RowsConfig(vf.TasksetConfig):
    rows: Path = Path("training_set")
    """The folder that `export` wrote."""
    task: RowConfig = RowConfig()


class RowTaskset(vf.Taskset[RowTask, RowsConfig]):
    def load(self) -> Iterator[RowTask]:
        file = pq.ParquetFile(self.config.rows / PARQUET)
        for batch in file.iter_batches(batch_size=16):
            for row in batch.to_pylist():
                yield RowTask(row_data(row), self.config.task)


def row_data(row: Mapping[str, Any]) -> RowData:
    """Return the task's data of a row, its images as data URLs in the prompt."""
    images = iter(row["images"])
    turns = []
    for turn in row["prompt"]:
        content = []
        for part in turn["content"]:
            if part["type"] == "text":
                content.append({"type": "text", "text": part["text"]})
            else:
                stored = next(images)["bytes"]
                kind = "png" if stored.startswith(_PNG) else "jpeg"  # as `build` stores pictures
                url = f"data:image/{kind};base64,{b64encode(stored).decode()}"
                content.append({"type": "image_url", "image_url": {"url": url}})
        turns.append({"role": turn["role"], "content": content})
    return RowData(id=row["example_id"], name=row["example_id"], prompt=turns, reference=row[REFERENCE])
