"""Build one leaderboard per benchmark with models, scores and certainty. No code here is for a single benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from barista_bench.core.leaderboards import mean_rank, ranks
from barista_bench.core.status import Status
from barista_bench.reporting.analyses import Analyses, rank_tier
from barista_bench.reporting.tables import describe_ties, metric_cell, score_heading
from barista_bench.runs.score.results import Results
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.stats import Comparison
from barista_bench.tables import Cell, GapToNext, Row, Table, number, number_columns, text_columns, words

MEAN_RANK = "mean rank"


@dataclass(frozen=True, slots=True)
class TaskStanding:
    """The comparable runs of a task by label, in the order of the leaderboard. People and baselines come last."""

    heading: str
    runs: Mapping[str, ScoredRun]

    @property
    def name(self) -> str:
        """Return the heading without the benchmark."""
        return words(self.heading.partition(" / ")[2] or self.heading)


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """The leaderboard of a benchmark, best model first.

    The last `unranked` rows are models trained on videos of these examples, then people, then baselines. The columns of
    `table` are the model, the mean rank (if several models share several tasks), and one column per task.
    """

    benchmark: str
    title: str
    table: Table
    unranked: int


def leaderboard(benchmark: str, title: str, tasks: Sequence[TaskStanding], analyses: Analyses) -> Leaderboard:
    """Sort models by mean rank over the tasks. Models without a rank in a task come last.

    Scores of different tasks have no common scale, so a mean score has no meaning. Among models with equal mean ranks,
    the model with fewer models ahead by plain scores comes first.
    """
    labels = list(dict.fromkeys(label for task in tasks for label in task.runs))
    tiers = {label: max(rank_tier(task.runs[label]) for task in tasks if label in task.runs) for label in labels}
    parts = [task for task in tasks if any(run.results.dataset.part for run in task.runs.values())]
    ranked_tasks = [task for task in tasks if task not in parts] or tasks  # a part of a set counts in no mean rank
    ranks_by_task = [_ranks(task, tiers) for task in ranked_tasks]
    ahead = [_models_ahead(task, tiers) for task in ranked_tasks]

    def order(label: str) -> tuple[int, int, float, float]:
        models_ahead = sum(by_label.get(label, len(labels)) for by_label in ahead)
        if len(tasks) == 1:
            return tiers[label], 0, 0.0, models_ahead
        known_ranks = [rank for by_label in ranks_by_task if (rank := by_label.get(label)) is not None]
        return tiers[label], -len(known_ranks), (known_ranks and mean_rank(known_ranks)) or 0.0, models_ahead

    names = [f"{task.name}: {score_heading(next(iter(task.runs.values())))}" for task in tasks]
    has_ranks = len(ranked_tasks) > 1 and sum(not tiers[label] for label in labels) > 1
    columns = (*text_columns("model"), *number_columns("", *([MEAN_RANK] if has_ranks else []), *names))
    rows: list[Row] = []
    for label in sorted(labels, key=order):
        rank_cell = _rank_cell([by_label.get(label) for by_label in ranks_by_task], is_ranked=not tiers[label])
        scores = (_score_cell(task.runs.get(label), analyses.comparisons) for task in tasks)
        rows.append((label, *([rank_cell] if has_ranks else []), *scores))
    note = "Primary metric of each task: mean ± standard deviation over repetitions, 95% interval over units."
    by_order = [describe_ties([(label, run.results) for label, run in task.runs.items()]) for task in tasks]
    table = Table.of(f"Leaderboard: {title}", columns, rows, " ".join([note, *filter(None, by_order)]))
    unranked = sum(map(bool, tiers.values()))
    return Leaderboard(benchmark, title, replace(table, drawn="forest", unranked=unranked), unranked)


def without_ranks(board: Table) -> Table:
    """Return a leaderboard with scores only, so that it can be drawn on the scale of the scores."""
    kept = [index for index, column in enumerate(board.columns) if column.name != MEAN_RANK]
    rows = tuple(tuple(row[index] for index in kept) for row in board.rows)
    return replace(board, columns=tuple(board.columns[index] for index in kept), rows=rows)


def _ranks(task: TaskStanding, tiers: Mapping[str, int]) -> dict[str, int | None]:
    """Return the rank of each model within its tier, or None if samples are missing."""
    by_label: dict[str, int | None] = {}
    for wanted in set(tiers.values()):
        labels = [label for label in task.runs if tiers[label] == wanted]
        by_label |= zip(labels, ranks([_ends(task.runs[label]) for label in labels]), strict=True)
    return by_label


def _ends(run: ScoredRun) -> tuple[float, float] | None:
    """Return the ends of the primary score's interval; without interval, the score; None without rank."""
    metric = run.ranking_metric
    if metric is None or not run.results.coverage.is_complete:
        return None
    return (metric.mean, metric.mean) if metric.low is None or metric.high is None else (metric.low, metric.high)


def _models_ahead(task: TaskStanding, tiers: Mapping[str, int]) -> dict[str, int]:
    """Return how many models of its tier have a higher score than each model."""
    means = {label: metric.mean for label, run in task.runs.items() if (metric := run.ranking_metric)}
    return {
        label: sum(means[other] > mean for other in means if tiers[other] == tiers[label])
        for label, mean in means.items()
    }


def _rank_cell(ranks_of_model: Sequence[int | None], *, is_ranked: bool) -> Cell:
    mean = mean_rank(ranks_of_model) if is_ranked else None
    known = sum(rank is not None for rank in ranks_of_model)
    partial = is_ranked and mean is None
    return Cell(None if mean is None else f"{mean:.2f}", notes=(f"{known} of {len(ranks_of_model)} tasks",) * partial)


def _score_cell(run: ScoredRun | None, ahead: Mapping[Path, Comparison]) -> Cell:
    """Return a cell with the score. The number of samples is added only if samples are missing."""
    if run is None:
        return Cell(None)
    results = run.results
    cell = metric_cell(run.ranking_metric)
    incomplete = not results.coverage.is_complete
    trained = (f"trained on {results.trained_on} of its videos: no rank",) if results.trained_on else ()
    notes = (*cell.notes, *(_missing_samples(results) if incomplete else ()), *trained)
    return replace(cell, notes=notes, warn=incomplete or bool(trained), gap=_gap_to_next(ahead.get(run.folder)))


def _gap_to_next(pair: Comparison | None) -> GapToNext | None:
    if pair is None:
        return None
    return GapToNext(pair.second, pair.difference, pair.p_adjusted, pair.certainty, pair.wins, pair.losses)


def _missing_samples(results: Results) -> Iterator[str]:
    coverage = results.coverage
    yield f"{number(coverage.scored)} of {number(coverage.expected)} samples scored"
    for status in (Status.INFRA_ERROR, Status.TASK_ERROR):
        if errors := coverage.statuses.get(str(status), 0):
            yield f"{number(errors)} {words(status)}"
