"""Errors that occur together across tasks, on the same objects and frames.

The examples of all tasks come from one scene graph, and name their objects (`evidence_objects`). Two examples share an
object if both name it and their frames meet: the spans from their first to their last frame overlap (`graph_span`), or,
between benchmarks, are at most `NEAR` frames apart. `Task.failures` lists the failures of an object.

For an ordered pair of tasks, a unit is one object of one answer of the second task, if the same model in the same run
also answered a question of the first task about that object. The first task erred if any of those answers did. The odds
ratio is the pooled 2x2 table's with 1/2 added to each cell; its interval is over videos. An odds ratio above 1 means
that the errors occur together. A common cause (a small, dark or hidden object) explains this as well as propagation
does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import numpy as np

from barista_bench.core.deriving import GraphTask
from barista_bench.core.example import graph_span
from barista_bench.core.resampling import interval_weights, metric_interval
from barista_bench.core.statistics import Floats
from barista_bench.core.task import evidence_objects
from barista_bench.errors import DataError
from barista_bench.runs.score.samples import ScoredSample
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.stats.breakdowns import answer_failures

HALDANE = 0.5
NEAR = 75
"""Frames between two moments of different benchmarks that count as one: 2.5 s of BARISTA's videos, half a clip of
HanDyVQA. Each benchmark samples its own frames, so that few are equal."""
RIGHT = 0.8
"""Judged score from which a text is right: the highest band of the paper's rubrics, 8 to 10 of 10."""


@dataclass(frozen=True, slots=True)
class PropagationEdge:
    """The association of an error in `source` on an object with an error in `target` on it, at the same time.

    A unit is an object in one answer of `target` that `source` was also asked about, at a shared time. `both`,
    `source_only`, `target_only`, `neither` count units by the tasks that erred; `n` is their sum. `risk_with` is
    P(target errs | source erred), `risk_without` P(target errs | source did not), None for no units. `odds_ratio` adds
    1/2 to each cell (Haldane and Anscombe), so that it is finite if a cell is empty. It is None if one of the tasks
    always or never erred, since this gives no information about the other. [low, high] is Student's interval of its
    logarithm over videos, None with fewer than two videos that show a task's errors, or its successes. Association, not
    proof of cause.
    """

    source: str
    target: str
    n: int
    videos: int
    both: int
    source_only: int
    target_only: int
    neither: int
    risk_with: float | None
    risk_without: float | None
    odds_ratio: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class PropagationGraph:
    """The edges between all ordered pairs of `tasks` with common objects, for one model."""

    model: str
    tasks: tuple[str, ...]
    edges: tuple[PropagationEdge, ...]


class ObjectError(NamedTuple):
    """The outcome of one object in one answer; `start` and `end` are the first and the last frame, both included."""

    start: int
    end: int
    has_erred: bool


Place = tuple[int, str, str]
"""Run, video, object id."""


def propagation(
    runs: Sequence[ScoredRun], *, sources: Sequence[str] | None = None, label: str | None = None
) -> PropagationGraph:
    """Return the graph of one model over the tasks of its runs; pairs of tasks without common objects have no edge.

    Args:
        runs: one per task, all of one model.
        sources: only edges that start at these tasks; None for all.
        label: the model's name in the graph; by default its name.

    Raises:
        DataError: the runs are of several models, or two are of one task.
    """
    models = sorted({run.results.model.label for run in runs})
    tasks = [run.task.name for run in runs]
    if len(models) != 1 or len(set(tasks)) != len(tasks):
        raise DataError(
            f"propagation needs one model, one run per task, not {', '.join(models) or 'none'} on {', '.join(tasks)}. "
            "Fix: name the runs of one model, a task each"
        )
    errors = {run.task.name: object_errors(run) for run in runs}
    edges = []
    for source, target in permutations(tasks, 2):
        if sources is None or source in sources:
            tables = shared_errors(errors[source], errors[target])
            if tables:
                edges.append(edge_of(source, target, tables))
    return PropagationGraph(models[0] if label is None else label, tuple(tasks), tuple(edges))


def cross_propagation(runs: Sequence[ScoredRun], label: str) -> PropagationGraph:
    """Return the graph from tasks over a scene graph to the questions of other benchmarks that were generated from it.

    Args:
        runs: of one model, over several benchmarks; names of tasks include the benchmark.
        label: the model's name in the graph.
    """
    sources = [run for run in runs if isinstance(run.task, GraphTask)]
    targets = [run for run in runs if not isinstance(run.task, GraphTask)]
    errors = {run.folder: object_errors(run) for run in runs}
    edges = [
        edge_of(_qualified_name(source), _qualified_name(target), tables)
        for source in sources
        for target in targets
        if (tables := shared_errors(errors[source.folder], errors[target.folder], near=NEAR))
    ]
    return PropagationGraph(label, tuple(map(_qualified_name, (*sources, *targets))), tuple(edges))


def _qualified_name(run: ScoredRun) -> str:
    return f"{run.task.benchmark} / {run.task.name}"


def object_errors(run: ScoredRun) -> dict[Place, list[ObjectError]]:
    """Return, for each answer and each object of its example, whether the answer erred."""
    errors: dict[Place, list[ObjectError]] = defaultdict(list)
    for sample in (sample for sample in run.samples if sample.record.is_finished):
        wrong = set(_wrong_objects(run, sample))
        video_id, first, last = graph_span(sample.example)
        for name in dict.fromkeys(evidence_objects(sample.example)):
            errors[sample.record.repetition, video_id, name].append(ObjectError(first, last, name in wrong))
    return errors


def _wrong_objects(run: ScoredRun, sample: ScoredSample) -> Iterator[str]:
    """Yield the objects about which an answer erred.

    An answer that cannot be read, or that a judge scored below `RIGHT`, erred about all objects of its example.
    """
    if run.judged is None:
        yield from (name for failure in answer_failures(run.task, sample) for name in failure.objects)
    elif sample.prediction is None or ((score := run.score_of(sample)) is not None and score < RIGHT):
        yield from evidence_objects(sample.example)


def shared_errors(
    source: dict[Place, list[ObjectError]], target: dict[Place, list[ObjectError]], *, near: int = 0
) -> dict[str, Floats]:
    """Return units by video, (4,) each: both erred, only the source, only the target, neither.

    `near`: largest distance in frames of two answers about one object.
    """
    tables: dict[str, Floats] = {}
    for key, answers in target.items():
        for answer in answers:
            start, end = answer.start - near, answer.end + near
            errors_met = [a.has_erred for a in source.get(key, ()) if a.start <= end and start <= a.end]
            if errors_met:
                tables.setdefault(key[1], np.zeros(4))[2 * (not any(errors_met)) + (not answer.has_erred)] += 1
    return dict(sorted(tables.items()))


def edge_of(source: str, target: str, tables: dict[str, Floats]) -> PropagationEdge:
    """Return the association of two tasks, from `shared_errors` of them."""
    by_video = np.array(list(tables.values()))
    both, source_only, target_only, neither = map(int, by_video.sum(axis=0))
    logarithms = np.log(odds_ratio((interval_weights(len(tables)) @ by_video).T))
    # Without information (a video left out), a value counts as no association: omitting it would suggest certainty.
    logarithms[1:] = np.nan_to_num(logarithms[1:])
    # For each task, videos with and without errors give information: the smallest of these counts.
    sides = by_video @ np.array([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]])
    ends = metric_interval(logarithms, None, telling=int((sides > 0).sum(axis=0).min()))
    return PropagationEdge(
        source=source,
        target=target,
        n=int(by_video.sum()),
        videos=len(tables),
        both=both,
        source_only=source_only,
        target_only=target_only,
        neither=neither,
        risk_with=_fraction(both, source_only),
        risk_without=_fraction(target_only, neither),
        odds_ratio=None if np.isnan(logarithms[0]) else float(np.exp(logarithms[0])),
        low=float(np.exp(ends.low)) if ends else None,
        high=float(np.exp(ends.high)) if ends else None,
    )


def odds_ratio(table: Floats) -> Floats:
    """Return the odds ratios of (4, ...) cells, 1/2 added to each; NaN if a row or a column of the 2x2 table is empty.

    Without this NaN, the halves would make a task that always errs seem to err more often when the other errs.

    >>> odds_ratio(np.array([[9.5, 9], [0.5, 0], [0.5, 1], [9.5, 0]])).tolist()
    [100.0, nan]
    """
    both, source_only, target_only, neither = table + HALDANE
    sums = both + source_only, target_only + neither, both + target_only, source_only + neither
    is_defined = np.min(sums, axis=0) > 2 * HALDANE
    return np.asarray(np.where(is_defined, both * neither / (source_only * target_only), np.nan))


def _fraction(part: int, rest: int) -> float | None:
    return part / (part + rest) if part + rest else None
