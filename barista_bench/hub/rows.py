"""Read the rows of a submission from run folders. Every score is computed again, since only the log is trusted."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from barista_bench.core.task import Task
from barista_bench.errors import DataError
from barista_bench.hub.answer_checks import check_adapter, check_answers, check_verdicts
from barista_bench.hub.checks import count_open_verdicts, is_floor, leaderboard_name, round_for_publication
from barista_bench.hub.log_checks import refuse_difference, refuse_other_scores
from barista_bench.judging.judge_folder import read_judge
from barista_bench.judging.results import MEAN, JudgedResults, read_judged
from barista_bench.judging.scoring import read_judged_run
from barista_bench.runs.score.results import RESULTS_FILE, SCORES_FILE, MetricValue, Results, read_results
from barista_bench.runs.score.scoring import ScoredRun, read_scored, score_lines

JUDGED_PATTERN: Final = f"judges/*/{RESULTS_FILE}"


def _judge_file(run: ScoredRun, judge: str | None) -> Path:
    """Return the results file of the judge whose scores represent a run."""
    folder = run.folder
    paths = sorted(folder.glob(JUDGED_PATTERN))
    if not paths:
        raise DataError(
            f"{folder}: {run.results.primary} counts shared words: a floor, and no number to publish for "
            f"{run.task.name}. Fix: have it judged first: "
            f"`barista-bench judge {shlex.quote(str(folder))} --judge ...`"
        )
    judges = {path: read_judged(path).judge.name for path in paths}
    if judge is None and len(paths) > 1:
        # With one real judge beside a judge that counts shared words, the real judge is used.
        judges = {path: name for path, name in judges.items() if name != "lexical"}
    elif judge is not None:
        judges = {path: name for path, name in judges.items() if judge in (name, path.parent.name)}
    if len(judges) != 1:
        names = ", ".join(sorted(path.parent.name for path in (judges or paths)))
        trouble = "has no judge" if judge is not None and not judges else "has several judges"
        raise DataError(f"{folder}: {trouble}{f' {judge!r}' if judge else ''}. Fix: give --judge, one of {names}")
    (path,) = judges
    return path


@dataclass(frozen=True, slots=True)
class SubmissionRow:
    """The results of one task. If judges score the task, `judged` replaces the run's score."""

    folder: Path
    task: type[Task]
    results: Results
    judged: JudgedResults | None

    @property
    def metric_value(self) -> MetricValue:
        return self.judged.metrics[MEAN] if self.judged else self.results.metrics[self.results.primary]

    @property
    def metric(self) -> str:
        return "judge_score" if self.judged else self.results.primary

    @property
    def value(self) -> float:
        """Return the published value, from 0 to 100."""
        return round_for_publication(self.metric_value.mean)

    @property
    def task_id(self) -> str:
        """Return the name of the leaderboard. Results that are not comparable have separate leaderboards."""
        return leaderboard_name(self.results.comparability)

    @property
    def gaps(self) -> dict[str, str]:
        """Map each gap of the row to its remedy. Gaps are missing samples, verdicts or examples."""
        coverage, limit = self.results.coverage, self.results.dataset.limit
        gaps = {}
        if not coverage.is_complete:
            n_missing = coverage.missing
            gaps[f"{n_missing} of {coverage.expected} samples missing"] = "finish the run and score it"
        if self.judged:
            judged, remedy = self.judged.coverage, "finish `barista-bench judge`"
            if judged.judged < judged.expected:
                gaps[f"{judged.expected - judged.judged} of {judged.expected} answers not judged"] = remedy
            if verdicts := count_open_verdicts(self.judged):
                gaps[f"{verdicts} verdicts missing"] = remedy
        if limit is not None:
            gaps[f"cut to {limit} examples"] = "run without --limit"
        return gaps


def read_row(
    folder: Path,
    *,
    judge: str | None = None,
    data: str | Path | None = None,
    root: str | Path | None = None,
    dataset: str | Path | None = None,
    adapter: str | None = None,
) -> SubmissionRow:
    """Read a run folder as a row, and score its log again. No file is written.

    Args:
        folder: a folder with `run.json`, the log and, if the run is scored, `results.json`. This file must equal the
            results from the log to the last digit.
        judge: name of the judge whose scores count, if a run has several judges.
        data: current location of the dataset that was run, if it has moved.
        root: current location of the videos of a linked set, if they have moved.
        dataset: the published dataset: a built folder, or a name as in `open_examples`. It replaces the dataset that
            was run, including references and pictures.
        adapter: folder or Hub id of the adapter that was run. None trusts `run.json`.

    Raises:
        DataError, ConfigError: a file is missing or invalid, or the log, scores, settings and dataset disagree.
    """
    path = folder / RESULTS_FILE
    stored = read_results(path) if path.exists() else None
    run = read_scored(folder, data=data if dataset is None else dataset, root=root, options={})
    check_answers(run, published=dataset)
    if stored is not None:
        refuse_difference(stored, run.results, path)
        refuse_other_scores(folder / SCORES_FILE, score_lines(run.samples))
    if adapter is not None:
        check_adapter(run, adapter)
    judged = None
    if is_floor(run.results):
        path = _judge_file(run, judge)
        check_verdicts(run, path.parent, read_judge(path.parent))
        judged_run = read_judged_run(run, path.parent)
        judged = judged_run.results
        refuse_difference(read_judged(path), judged, path)
        refuse_other_scores(path.parent / SCORES_FILE, judged_run.score_lines())
    return SubmissionRow(folder, type(run.task), run.results, judged)
