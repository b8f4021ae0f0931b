"""Rank the models of text tasks by a judge's scores, as in the paper, instead of by word overlap."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from barista_bench.errors import ConfigError
from barista_bench.files.text_out import shared_name
from barista_bench.judging.answers import REASONING
from barista_bench.judging.config import OFFLINE
from barista_bench.judging.judged_run import JudgedRun, raw_scores
from barista_bench.judging.results import MEAN
from barista_bench.runs.score.scoring import JudgedScores, ScoredRun

JudgedRuns = Mapping[Path, Sequence[JudgedRun]]
"""Maps the folder of each run to its judges' results."""


def ranked_by_judge(runs: Sequence[ScoredRun], judged_runs: JudgedRuns, judge: str | None = None) -> list[ScoredRun]:
    """Return the runs. Runs of judged tasks get the scores of one judge (`ScoredRun.judged`).

    Word overlap and verdicts are never compared. So if this judge has judged a run of a task, all other runs of the
    task without its verdicts have no score.

    Args:
        judge: name of the judge, or of its folder in `<run>/judges`. None takes the only language model among the
            judges. If there is not exactly one, the runs stay unchanged.

    Raises:
        ConfigError: no run has verdicts of this judge, or it has judged a run in two ways.
    """
    by_run = {run.folder: [each for each in judged_runs.get(run.folder, ()) if _is_of_answers(each)] for run in runs}
    if judge is None:
        judge = only_language_model(by_run.values())
        if judge is None:
            return list(runs)
    chosen = {folder: _verdicts_of(judge, each) for folder, each in by_run.items()}
    scores = {folder: judged_scores(judged_run) for folder, judged_run in chosen.items() if judged_run is not None}
    if not scores:
        names = ", ".join(sorted({each.results.judge.name for judges in by_run.values() for each in judges}))
        raise ConfigError(f"judge: no run has verdicts of {judge!r}. Fix: name one of {names or 'none: judge a run'}")
    by_task = {(run.task.benchmark, run.task.name): scores[run.folder] for run in runs if run.folder in scores}
    ranked = []
    for run in runs:
        of_task = by_task.get((run.task.benchmark, run.task.name))
        absent = of_task and replace(of_task, metric=None, scores={})
        ranked.append(replace(run, judged=scores.get(run.folder, absent)))
    return ranked


def only_language_model(judges_of_runs: Iterable[Sequence[JudgedRun]]) -> str | None:
    """Return the name of the only language model among the judges, or None if there are several or none.

    A model that has judged a run in two ways counts as several models.
    """
    names: set[str] = set()
    for judges in judges_of_runs:
        models = [each.results.judge.name for each in judges if each.results.judge.name not in OFFLINE]
        if len(models) > 1:
            return None
        names.update(models)
    return names.pop() if len(names) == 1 else None


def judged_scores(judged_run: JudgedRun) -> JudgedScores:
    """Return a judge's mean scores over criteria. The run's protocol defines how missing verdicts count."""
    results = judged_run.results
    on_all_criteria = judged_run.run.task.follows_paper
    scores: dict[tuple[str, int], float] = {}
    for sample, verdicts in judged_run.verdicts.items():
        by_criterion = raw_scores(verdicts)
        fewest = len({verdict.criterion for verdict in verdicts}) if on_all_criteria else 1
        if len(by_criterion) >= max(1, fewest):
            scores[sample] = statistics.fmean(by_criterion.values()) / results.scale
    criteria = results.rubric.criteria
    name = criteria[0] if len(criteria) == 1 else "mean over criteria"
    return JudgedScores(shared_name(results.judge.name), name, results.metrics.get(MEAN), scores)


def _is_of_answers(judged_run: JudgedRun) -> bool:
    """Return whether a judge scored answers. Scores of reasons do not replace scores of answers."""
    return judged_run.results.method != REASONING


def _verdicts_of(judge: str, judges: Sequence[JudgedRun]) -> JudgedRun | None:
    named = [each for each in judges if judge in (each.results.judge.name, each.folder.name)]
    if len(named) > 1:
        folders = ", ".join(each.folder.name for each in named)
        raise ConfigError(f"judge: {judge!r} judged {named[0].run.folder} in two ways. Fix: name one of {folders}")
    return named[0] if named else None
