"""Measure how often errors of different tasks occur together on the same objects and frames.

The examples of all tasks come from one scene graph, and name their objects (`evidence_objects`). Two examples share an
object if both name it and their frames meet: the spans from their first to their last frame overlap (`graph_span`), or,
between benchmarks, are at most `NEAR` frames apart. `Task.failures` lists the failures of an object.

Tasks are analysed in ordered pairs. A unit is one object in one answer to the second task. The same model must have
answered a question of the first task about this object in the same repetition. The first task erred if any of its
answers about the object erred. The odds ratio comes from the pooled 2x2 table with 1/2 added to each cell. Its interval
is over videos. An odds ratio above 1 means that the errors occur together. This does not prove propagation: a common
cause (a small, dark or hidden object) has the same effect.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import numpy as np

from barista_bench.core.deriving import GraphTask
from barista_bench.core.example import evidence_objects, graph_span
from barista_bench.core.intervals import interval_weights, metric_interval
from barista_bench.core.statistics import Floats
from barista_bench.errors import DataError
from barista_bench.runs.score.samples import ScoredSample
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.stats.breakdowns import answer_failures

HALDANE = 0.5
NEAR = 75
"""Largest distance in frames at which two moments of different benchmarks count as the same: 2.5 s in BARISTA's videos.
Each benchmark samples its own frames, so few frames are equal."""
RIGHT = 0.8
"""Minimum score by a judge of a right text: the highest band of the paper's rubrics is 8 to 10 of 10."""


@dataclass(frozen=True, slots=True)
class PropagationEdge:
    """The association of errors in `source` with errors in `target`, on the same object at the same time.

    A unit is an object in one answer of `target`. `source` was also asked about this object, at an overlapping time.
    `both`, `source_only`, `target_only` and `neither` count units by the tasks that erred. `n` is their sum.
    `risk_with` is P(target errs | source erred), and `risk_without` is P(target errs | source did not err). Each is
    None without units. `odds_ratio` adds 1/2 to each cell (Haldane and Anscombe), so it is finite even if a cell is
    empty. It is None if a task always or never erred, since such a task gives no information about the other task.
    [low, high] is Student's interval of the logarithm over videos. It is None if fewer than two videos show a task's
    errors or its successes. An association is no proof of a cause.
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
    """One model's edges between all ordered pairs of `tasks` with common objects."""

    model: str
    tasks: tuple[str, ...]
    edges: tuple[PropagationEdge, ...]


class ObjectError(NamedTuple):
    """The outcome for one object in one answer. `start` and `end` are its first and last frame, both included."""

    start: int
    end: int
    has_erred: bool


ObjectKey = tuple[int, str, str]
"""Repetition, video id, object id."""


def propagation(
    runs: Sequence[ScoredRun], *, sources: Sequence[str] | None = None, label: str | None = None
) -> PropagationGraph:
    """Return a model's graph over the tasks of its runs. Pairs of tasks without common objects have no edge.

    Args:
        runs: runs of one model, one per task.
        sources: tasks at which edges may start, or None for all tasks.
        label: the model's name in the graph. The default is its own name.

    Raises:
        DataError: the runs belong to several models, or two runs belong to one task.
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
    """Return the graph from a scene graph's own tasks to the questions of other benchmarks that were generated from it.

    Args:
        runs: runs of one model over several benchmarks. In the graph, names of tasks include the benchmark.
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


def object_errors(run: ScoredRun) -> dict[ObjectKey, list[ObjectError]]:
    """Return whether each answer erred, for each object of its example."""
    errors: dict[ObjectKey, list[ObjectError]] = defaultdict(list)
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
    source: dict[ObjectKey, list[ObjectError]], target: dict[ObjectKey, list[ObjectError]], *, near: int = 0
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
    """Return the association of two tasks, from their `shared_errors`."""
    by_video = np.array(list(tables.values()))
    both, source_only, target_only, neither = map(int, by_video.sum(axis=0))
    logarithms = np.log(odds_ratio((interval_weights(len(tables)) @ by_video).T))
    # If leaving out a video leaves no information, the value counts as no association. Omitting it would suggest
    # certainty.
    logarithms[1:] = np.nan_to_num(logarithms[1:])
    # Videos with and without errors of each task give information. The smallest of these counts decides.
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
    """Return the odds ratios of (4, ...) cells after adding 1/2 to each cell.

    If a row or column of the 2x2 table is empty, the odds ratio is NaN. Otherwise the halves would make a task that
    always errs seem to err more often when the other task errs.

    >>> odds_ratio(np.array([[9.5, 9], [0.5, 0], [0.5, 1], [9.5, 0]])).tolist()
    [100.0, nan]
    """
    both, source_only, target_only, neither = table + HALDANE
    sums = both + source_only, target_only + neither, both + target_only, source_only + neither
    is_defined = np.min(sums, axis=0) > 2 * HALDANE
    return np.asarray(np.where(is_defined, both * neither / (source_only * target_only), np.nan))


def _fraction(part: int, rest: int) -> float | None:
    return part / (part + rest) if part + rest else None
