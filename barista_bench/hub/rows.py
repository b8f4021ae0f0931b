"""From a run folder to a row of a submission: every figure is made anew from the log, and nothing else is believed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from barista_bench.core.task import Task
from barista_bench.errors import DataError
from barista_bench.hub.checks import is_floor, leaderboard, open_verdicts, published
from barista_bench.hub.evidence import check_answers, check_verdicts, first_difference
from barista_bench.judging.judge_folder import read_judge
from barista_bench.judging.results import MEAN, JudgedResults, read_judged
from barista_bench.judging.scoring import read_judged_run
from barista_bench.runs.score.results import RESULTS_FILE, Figure, Results, read_results
from barista_bench.runs.score.scoring import ScoredRun, read_scored

JUDGED_PATTERN: Final = f"judges/*/{RESULTS_FILE}"


@dataclass(frozen=True, slots=True)
class SubmissionRow:
    """One task's results. `judged` stands for the run's own figure in tasks that judges score."""

    folder: Path
    task: type[Task]
    results: Results
    judged: JudgedResults | None

    @property
    def figure(self) -> Figure:
        return self.judged.figures[MEAN] if self.judged else self.results.figures[self.results.primary]

    @property
    def metric(self) -> str:
        return "judge_score" if self.judged else self.results.primary

    @property
    def value(self) -> float:
        """0 to 100."""
        return published(self.figure.mean)

    @property
    def task_id(self) -> str:
        """The leaderboard. What is not comparable has boards of its own."""
        return leaderboard(self.results.comparability)

    @property
    def missing(self) -> dict[str, str]:
        """What keeps the row from being complete, and the remedy of each: samples, a judge's verdicts, or examples."""
        coverage, limit = self.results.coverage, self.results.dataset.limit
        missing = {}
        if not coverage.complete:
            lacking = coverage.expected - coverage.scored
            missing[f"{lacking} of {coverage.expected} samples missing"] = "finish the run and score it"
        if self.judged:
            judged, remedy = self.judged.coverage, "finish `barista-bench judge`"
            if judged.judged < judged.expected:
                missing[f"{judged.expected - judged.judged} of {judged.expected} answers not judged"] = remedy
            if verdicts := open_verdicts(self.judged):
                missing[f"{verdicts} verdicts missing"] = remedy
        if limit is not None:
            missing[f"cut to {limit} examples"] = "run without --limit"
        return missing


def read_row(
    folder: Path,
    *,
    judge: str | None = None,
    data: str | Path | None = None,
    root: str | Path | None = None,
    dataset: str | Path | None = None,
) -> SubmissionRow:
    """A scored run folder as a row, which is written nowhere.

    Args:
        folder: with `run.json`, the log and `results.json`, which must say what the log says, to the last digit.
        judge: name of the judge whose figures count, where a run has several.
        data: where the dataset that was run lies now, if it has moved.
        root: where the videos of a linked set lie now, if they have moved.
        dataset: the dataset whose truth counts: a built folder, or as `open_examples` takes it; None for that of the
            run alone.

    Raises:
        DataError, ConfigError: a file is missing or broken, or any of log, figures, settings and dataset disagree.
    """
    stored = read_results(folder / RESULTS_FILE)
    run = read_scored(folder, data=data, root=root, options={})
    check_answers(run)
    refuse_difference(stored, run.results, folder / RESULTS_FILE)
    if dataset is not None:
        # The hash of a set leaves out what does not make a question: figures by group may hang on it all the same.
        truth = read_scored(folder, data=dataset, root=root, options={})
        refuse_difference(run.results, truth.results, folder / RESULTS_FILE)
    judged = _judged(run, judge) if is_floor(run.results) else None
    return SubmissionRow(folder, type(run.task), run.results, judged)


def refuse_difference(stored: BaseModel, derived: BaseModel, path: Path) -> None:
    """Raises DataError, which names the first field that a file has otherwise than its log and dataset give it."""
    difference = first_difference(*(json.loads(json.dumps(each.model_dump(mode="json"))) for each in (stored, derived)))
    if difference:
        raise DataError(
            f"{path}: {difference}, which is what the log and the dataset give. Remedy: score the run again"
        )


def _judged(run: ScoredRun, wanted: str | None) -> JudgedResults:
    """The judge's figures that stand for a run whose own are a floor."""
    path = _judge_of(run, wanted)
    check_verdicts(run, path.parent, read_judge(path.parent))
    derived = read_judged_run(run, path.parent).results
    refuse_difference(read_judged(path), derived, path)
    return derived


def _judge_of(run: ScoredRun, wanted: str | None) -> Path:
    folder = run.folder
    paths = sorted(folder.glob(JUDGED_PATTERN))
    if not paths:
        raise DataError(
            f"{folder}: {run.results.primary} counts shared words: a floor, and no number to publish for "
            f"{run.task.name}. Remedy: have it judged first: `barista-bench judge {folder} --judge ...`"
        )
    judges = {path: read_judged(path).judge.name for path in paths}
    if wanted is None and len(paths) > 1:
        # A floor beside one real judge leaves nothing to choose.
        judges = {path: name for path, name in judges.items() if name != "lexical"}
    if wanted is not None:
        judges = {path: name for path, name in judges.items() if wanted in (name, path.parent.name)}
    if len(judges) != 1:
        known = ", ".join(sorted(path.parent.name for path in (judges or paths)))
        trouble = "has no judge" if wanted is not None and not judges else "has several judges"
        raise DataError(f"{folder}: {trouble}{f' {wanted!r}' if wanted else ''}. Remedy: give --judge, one of {known}")
    (path,) = judges
    return path
