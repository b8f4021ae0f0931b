"""The Python API: `evaluate` a model, `load_results` of run folders, and `compare` models, as pandas frames.

`register` teaches `datasets.load_dataset` linked frames and releases.

from barista_bench import compare, evaluate, load_results

chance = evaluate("dataset", "chance", task="relations")
chance.to_frame()
compare(["runs/chance/relations", "runs/oracle/relations"])
"""

from __future__ import annotations

import html
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pandas as pd

from barista_bench.core.intervals import CONFIDENCE, PERMUTATIONS
from barista_bench.core.plugins import load_plugin
from barista_bench.core.settings import check_settings
from barista_bench.core.status import Status
from barista_bench.data.register import register as register
from barista_bench.diagnosis.conditions import PLAIN
from barista_bench.diagnosis.records import DIAGNOSIS_FILE, Diagnosis, adjusted_p_values, diagnosis_table
from barista_bench.diagnosis.running import DiagnoseConfig, diagnose as make_diagnoses
from barista_bench.diagnosis.sentences import finding_sentences
from barista_bench.errors import BaristaError, ConfigError, DataError, TaskError
from barista_bench.files import text_out
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.opening import open_tasks, with_built_release
from barista_bench.runs.ask.runner import run_config
from barista_bench.runs.ask.shard import Shard
from barista_bench.runs.run_folder import CONFIG_FILE, Location
from barista_bench.runs.score.result_files import options_of_each
from barista_bench.runs.score.results import summary_line
from barista_bench.runs.score.samples import TaskOptions
from barista_bench.runs.score.scoring import ScoredRun, read_scored, score_tasks, split_stopped
from barista_bench.stats import compare_runs
from barista_bench.stats.tables import breakdown_table, comparison_table, headline_table, metric_table, with_labels
from barista_bench.tables import Table, to_html, to_text

if TYPE_CHECKING:
    from types import ModuleType

    from evaluate import EvaluationModule
    from matplotlib.figure import Figure

log = logging.getLogger(__name__)

_MAX_ROWS = 40
"""Maximum number of rows in the display of an evaluation."""
RUNS = Path("runs")
"""Default folder in which `evaluate` creates run folders."""


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Scored runs as pandas frames and figures. `runs` holds the original objects for `barista_bench.stats`.

    `stopped` holds the runs that stopped early. They have a decision and no score (`results.stopped`). `unscored` maps
    each task without a score to the reason. `faults` lists the samples on which a task's code raised an error.
    """

    runs: tuple[ScoredRun, ...]
    unscored: Mapping[str, str] = field(default_factory=dict)
    stopped: tuple[ScoredRun, ...] = ()

    @classmethod
    def of(cls, runs: Iterable[ScoredRun], unscored: Mapping[str, BaristaError]) -> Evaluation:
        complete, stopped = split_stopped(runs)
        return cls(tuple(complete), {name: str(error) for name, error in unscored.items()}, tuple(stopped))

    def __repr__(self) -> str:
        return f"{to_text(self._headlines)}\n{self._remarks}".rstrip()

    def _repr_html_(self) -> str:
        remarks = f"<p>{html.escape(self._remarks)}</p>" if self._remarks else ""
        return to_html(self._headlines) + remarks

    @property
    def _headlines(self) -> Table:
        table = headline_table(self.runs)
        return replace(table, rows=table.rows[:_MAX_ROWS])

    @property
    def _remarks(self) -> str:
        lines = [f"and {len(self.runs) - _MAX_ROWS} more: see to_frame()"] if len(self.runs) > _MAX_ROWS else []
        lines += [text_out.one_line(summary_line(run.results)) for run in self.stopped]
        lines += [f"not scored: {text_out.one_line(f'{name}: {why}')}" for name, why in self.unscored.items()]
        if faults := self.faults:
            lines.append(f"{len(faults)} samples not scored, first: {text_out.one_line(faults[0])}")
        return "\n".join(lines)

    @property
    def faults(self) -> tuple[str, ...]:
        """Return the errors that the code of tasks raised, one line per sample.

        Such samples have the status `task_error` and do not count in scores.
        """
        samples = (sample.record for run in self.runs for sample in run.samples)
        return tuple(str(record.error) for record in samples if record.status is Status.TASK_ERROR)

    def to_frame(self) -> pd.DataFrame:
        """Return `metrics`."""
        return self.metrics

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """Return one row per model, task and score, with interval and coverage (see `stats.tables.metric_table`)."""
        return metric_table(self.runs)

    @cached_property
    def samples(self) -> pd.DataFrame:
        """Return one row per sample.

        The columns are example, video, first frame, repetition, status, original answer, and one column per score.

        Scores are missing after infrastructure errors, unless the task counts such errors as unreadable answers.
        """
        return pd.DataFrame(
            {
                **labels,
                "example_id": sample.example.example_id,
                "video_id": sample.example.video_id,
                "frame": sample.example.frames[0].frame_index,
                "repetition": sample.record.repetition,
                "status": str(sample.record.status),
                "text": sample.record.text,
                **(sample.scores if sample.is_counted else {}),
            }
            for run, labels in with_labels(self.runs)
            for sample in run.samples
        )

    @cached_property
    def breakdowns(self) -> pd.DataFrame:
        """Return the primary metric by every key of `stats.breakdowns.breakdown_keys`, without intervals."""
        return self.breakdown(intervals=False)

    def breakdown(self, keys: Iterable[str] | None = None, *, intervals: bool = True) -> pd.DataFrame:
        """Return the primary metric by these keys. Runs without a key have no rows for this key.

        Args:
            keys: keys from `stats.breakdowns.breakdown_keys`, or None for all keys.
            intervals: whether to compute intervals. This takes longer.
        """
        return breakdown_table(self.runs, keys, intervals=intervals)

    def plot(self, figure: str | None = None, *, out: str | Path | None = None) -> Figure:
        """Return a figure of `report --figures`, by the name of its file. Needs the extra `viz`.

        Args:
            figure: a name from `plots`. The default is the first figure: the primary metrics with 95% intervals, one
                panel per task.
            out: folder for `<figure>.svg` and `.pdf`, and for the numbers as `.csv` and `.tex`. None writes no files.

        Raises:
            ConfigError: these runs have no such figure. The message names the available figures.
            ModelError: Matplotlib is not installed.
        """
        from barista_bench.plots import draw, write_figure

        name = next(iter(self.plots)) if figure is None else figure
        if name not in self.plots:
            raise ConfigError(f"these runs have no figure {name!r}. Fix: name one of {', '.join(self.plots)}")
        if out is not None:
            Path(out).mkdir(parents=True, exist_ok=True)
            write_figure(self.plots[name], Path(out), name)
        return draw(self.plots[name])

    @cached_property
    def plots(self) -> Mapping[str, Table]:
        """Return the numbers of all figures that `plot` can draw for these runs, by name."""
        from barista_bench.reporting.figures import figures_of

        return figures_of(self.runs)


def evaluate(
    data: str | Path, model: str = "oracle", *, out: str | Path | None = None, **settings: object
) -> Evaluation:
    """Run a model and score its answers. Samples already answered in a run folder are not asked again.

    If a task's code raises an error on a sample, the error is logged and listed in `faults`. Other samples are not
    affected. A task that cannot be scored is listed in `unscored`.

    Args:
        data: a folder written by `build`, a name in the `datasets` cache, a Hub dataset id, or a frozen JSONL file. It
            may also be a release (folder or Hub id). A release is built once with the published settings
            (`dataset_of`).
        model: a value of `barista-bench run --model`.
        out: folder of the run folders. Each is named after its task. None means `runs/<model>`.
        settings: fields of `runs.ask.config.RunConfig`, e.g. `task="relations"`, `repetitions=3`, `limit=100`.

    Raises:
        ConfigError: a setting cannot be used, a run folder belongs to another run, or there are several processes.
        DataError, ModelError: the data or the model cannot be used, or no task could be scored.
        BudgetError: the remaining requests do not fit `max_cost` or `max_tokens_total`. All answers so far are logged.
    """
    Shard.refuse_several()
    parent = RUNS / (re.sub(r"[^\w.-]+", "_", model).strip(".") or "_") if out is None else Path(out)
    config = with_built_release(
        check_settings(RunConfig, {**settings, "data": str(data), "model": model, "out": parent})
    )
    opened_tasks = open_tasks(config)
    run_config(config, opened_tasks)
    runs, unscored = score_tasks(opened_tasks, config.root)
    if not runs:
        raise next(iter(unscored.values()))
    for name, error in unscored.items():
        log.warning("not scored: %s: %s", name, error)
    return Evaluation.of(runs, unscored)


@dataclass(frozen=True, repr=False)
class Diagnoses:
    """The diagnoses of a model, one per task (`diagnosis.records`)."""

    diagnoses: tuple[Diagnosis, ...]

    def __repr__(self) -> str:
        return "\n".join([to_text(self.table), *("\n".join(["", *lines]) for lines in self.sentences.values())])

    def _repr_html_(self) -> str:
        return to_html(self.table)

    @property
    def table(self) -> Table:
        """Return one row per task and level, with the level's share of the score and its interval."""
        return diagnosis_table(self.diagnoses)

    @property
    def sentences(self) -> dict[str, list[str]]:
        """Return the findings of each task."""
        pairs = zip(self.diagnoses, adjusted_p_values(self.diagnoses), strict=True)
        return {each.task: finding_sentences(each, adjusted) for each, adjusted in pairs}


def diagnose(data: str | Path, model: str, *, out: str | Path, **settings: object) -> Diagnoses:
    """Find out why a model fails, like `barista-bench diagnose`. Answered samples are not asked again.

    Args:
        data: a folder written by `build`, with its graph tables.
        model: a value of `barista-bench run --model`.
        out: folder for `diagnosis.json` and for the runs, one per condition and task.
        settings: fields of `diagnosis.running.DiagnoseConfig`, e.g. `task="relations"`, `design="paths"`.

    Raises:
        ConfigError, DataError, ModelError, BudgetError: the same as in `evaluate`.
    """
    config = check_settings(DiagnoseConfig, {**settings, "data": str(data), "model": model, "out": Path(out)})
    return Diagnoses(tuple(make_diagnoses(config)))


def load_metric(name: str) -> EvaluationModule:
    """Return the `evaluate` metric with this name: one of ours (`tuple_f1`, `mean_ap`, ...) or a plug-in's metric.

    Raises:
        ConfigError: there is no such metric (`core/plugins.py`).
    """
    import evaluate as metrics

    module = load_plugin("metrics", name)
    return metrics.load(str(Path(cast("ModuleType", module).__file__ or "").parent))


def load_results(
    folders: str | Path | Sequence[str | Path],
    *,
    data: Location = None,
    root: Location = None,
    options: TaskOptions = None,
) -> Evaluation:
    """Compute the scores of run folders again from their logs. No file is written and no model is asked.

    Args:
        folders: run folders, or folders that contain run folders at any depth.
        data: current location of the dataset, if it has moved.
        root: current location of the videos of a linked set, if they have moved.
        options: task options. Each task takes the options that it has. None takes the options of the scores saved in
            the folder, or of the run if several sets of scores are saved.

    Raises:
        ConfigError: an option changes the questions, or no task has it.
        DataError: there is no run, or a run cannot be scored.
        TaskError: the tasks of all runs raise errors when they are scored. If only some raise errors, `unscored` lists
            them.
    """
    paths = run_folders(folders)
    runs, unscored = [], dict[str, TaskError]()
    for folder, own_options in zip(paths, options_of_each(paths, options), strict=True):
        try:
            runs.append(read_scored(folder, data=data, root=root, options=own_options))
        except TaskError as error:
            unscored[str(folder)] = error
            log.error("%s", error)
    if not runs:
        raise next(iter(unscored.values()))
    return Evaluation.of(runs, unscored)


def compare(
    runs: Sequence[str | Path | ScoredRun | Evaluation], *, permutations: int = PERMUTATIONS, level: float = CONFIDENCE
) -> pd.DataFrame:
    """Compare every pair of models task by task. The frame has one row per pair and the fields of `stats.Comparison`.

    The plain run of a diagnosis is left out if another run of the model has its examples, as in the command.

    Args:
        runs: run folders (or folders that contain run folders), scored runs or evaluations.
        permutations: maximum number of permutations of the test.
        level: confidence level of the intervals.

    Raises:
        DataError: no two runs have the same task, or two runs of a task have different examples.
    """
    from barista_bench.reporting.aided import find_diagnoses

    scored: list[ScoredRun] = []
    for item in runs:
        if isinstance(item, ScoredRun):
            scored.append(item)
        else:
            scored += item.runs if isinstance(item, Evaluation) else load_results(item).runs
    shown, _ = find_diagnoses(scored)
    return comparison_table(compare_runs(shown, permutations=permutations, level=level))


def is_aided_condition(run: Path) -> bool:
    """Return whether a run folder belongs to a diagnosis and its model was given an aid or a view."""
    return (run.parent.parent / DIAGNOSIS_FILE).is_file() and run.parent.name != PLAIN


def run_folders(folders: str | Path | Sequence[str | Path]) -> list[Path]:
    """Return each run folder among or below `folders` once, in order. Of a diagnosis, only the plain run counts.

    Raises:
        DataError: a folder holds no run.
    """
    runs: dict[Path, None] = {}
    for folder in [folders] if isinstance(folders, str | Path) else folders:
        path = Path(folder)
        inside = [path] if (path / CONFIG_FILE).is_file() else sorted(p.parent for p in path.rglob(CONFIG_FILE))
        inside = [run for run in inside if run == path or not is_aided_condition(run)]
        if not inside:
            raise DataError(f"{path}: no run here. Fix: name a folder that `barista-bench run` made")
        runs.update(dict.fromkeys(inside))
    return list(runs)
