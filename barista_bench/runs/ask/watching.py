"""Score a fixed part of a dataset at every training checkpoint, by `run watch CHECKPOINTS DATA` or by a callback."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from barista_bench.errors import DataError
from barista_bench.files.writing import write_whole
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.opening import open_tasks
from barista_bench.runs.ask.runner import run_config
from barista_bench.runs.score.results import Results, read_results
from barista_bench.runs.score.scoring import score_tasks
from barista_bench.tables import Cell, RangedScore, Row, Table, interval, number_columns, to_csv

if TYPE_CHECKING:
    from transformers import TrainerCallback

POLL = 20.0
"""Seconds between two searches for new checkpoints."""
_NUMBER = re.compile(r"(\d+)$")


class WatchConfig(RunConfig):
    """Settings of `run` for every checkpoint in a folder. Settings such as `limit` choose the part that is asked."""

    checkpoints: Path = Field(description="Folder of checkpoint folders, such as checkpoint-500.")
    model: str = ""
    follow: bool = Field(False, description="Wait for further checkpoints until Ctrl-C.")


def checkpoints_in(folder: Path) -> list[tuple[int, Path]]:
    """Return the complete checkpoints in a folder, in the order of the numbers at the end of their names."""
    found = [
        (int(number[1]), path)
        for path in sorted(folder.iterdir() if folder.is_dir() else ())
        if (number := _NUMBER.search(path.name))
        and (path / "config.json").is_file()
        and any(next(path.glob(pattern), None) for pattern in ("*.safetensors", "*.bin"))
    ]
    return sorted(found)


def watch(config: WatchConfig, tell: Callable[[str], None] = lambda line: None) -> Table:
    """Run and score every checkpoint, and write OUT/curve.csv after each checkpoint. A second call resumes.

    Raises:
        DataError: there is no checkpoint, or a run cannot be scored.
        ConfigError, ModelError, BudgetError: the same as `run`.
    """
    done: set[Path] = set()
    while True:
        for step, path in checkpoints_in(config.checkpoints):
            if path not in done:
                done.add(path)
                _score_checkpoint(config, path)
                tell(f"step {step}: {path.name} is scored")
                write_whole(config.out / "curve.csv", to_csv(checkpoint_rows(config.out)))
        if not config.follow:
            break
        time.sleep(POLL)
    if not done:
        raise DataError(f"{config.checkpoints}: no complete checkpoint, such as checkpoint-500. Fix: name their folder")
    return checkpoint_rows(config.out)


def _score_checkpoint(config: WatchConfig, path: Path) -> None:
    settings = {name: getattr(config, name) for name in config.model_fields_set if name in RunConfig.model_fields}
    own = RunConfig(**{**settings, "model": str(path), "name": path.name, "out": config.out / path.name})
    opened_tasks = open_tasks(own)
    run_config(own, opened_tasks)
    _, unscored = score_tasks(opened_tasks, own.root)
    for error in unscored.values():
        raise error


def checkpoint_rows(out: Path) -> Table:
    """Return one row per scored checkpoint, with each task's primary score and its interval."""
    by_step: dict[int, dict[str, Results]] = {}
    for path in out.glob("*/*/results.json"):
        if number := _NUMBER.search(path.parent.parent.name):
            by_step.setdefault(int(number[1]), {})[path.parent.name] = read_results(path)
    tasks = sorted({task for results in by_step.values() for task in results})
    rows: list[Row] = [
        (step, *(_cell(results.get(task)) for task in tasks)) for step, results in sorted(by_step.items())
    ]
    table = Table.of("Score at each checkpoint", number_columns("", "step", *tasks), rows)
    return Table(table.title, table.columns, table.rows, table.note, drawn="line")


def _cell(results: Results | None) -> Cell:
    metric = results.primary_metric if results else None
    if metric is None or metric.low is None or metric.high is None:
        return Cell(None if metric is None else metric.mean)
    return Cell(RangedScore(metric.mean, metric.low, metric.high), notes=(interval(metric.low, metric.high),))


def trainer_callback(**settings: Any) -> TrainerCallback:  # noqa: ANN401  (fields of `WatchConfig`)
    """Return a callback for `transformers.Trainer(callbacks=[...])`. It scores each checkpoint when the checkpoint is
    saved.

    The saved checkpoint is loaded next to the model in training. Scores are added to `state.log_history`.

    Args:
        settings: fields of `WatchConfig` except `checkpoints`.
    """
    from transformers import TrainerCallback as Callback

    class Scorer(Callback):
        def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ANN401
            if state.is_world_process_zero:
                table = watch(WatchConfig(checkpoints=Path(args.output_dir), **settings))
                last, heads = table.rows[-1], table.heads
                scores = {f"barista_{name}": cell.value for name, cell in list(_values(heads, last))[1:]}
                state.log_history.append({"step": state.global_step, **scores})

    return Scorer()


def _values(heads: tuple[str, ...], row: tuple[Cell, ...]) -> Iterator[tuple[str, Cell]]:
    for name, cell in zip(heads, row, strict=True):
        yield name, Cell(cell.value.value) if isinstance(cell.value, RangedScore) else cell
