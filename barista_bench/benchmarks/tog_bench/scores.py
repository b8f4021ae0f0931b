"""Score answers by the metric: recognise objects, choose the times that count, and compute scores.

Predicted and true objects are matched by name, one to one. The paper compares embeddings of category names
(all-mpnet-base-v2) and does not state its threshold. `exact` and `synonyms` need no model. A pair counts if its
similarity reaches the threshold. Of all one-to-one assignments, the one with the greatest total similarity is taken
(`scipy.optimize.linear_sum_assignment`). If names are ambiguous, as with two chairs, pairs with more overlap are
preferred, since a task does not define which chair comes first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np

from barista_bench.benchmarks.kinds.spans import as_pairs, snap_to_grid
from barista_bench.benchmarks.name_matching import NameMatcher, plain_name
from barista_bench.benchmarks.sentence_similarity import DECIMALS
from barista_bench.benchmarks.tog_bench.columns import (
    AnsweredObject,
    AnsweredObjects,
    InstructionInputs,
    InstructionMetadata,
    RequiredObject,
    RequiredObjects,
)
from barista_bench.core.boxes import Xyxy, as_xyxy
from barista_bench.core.example import Example, Json, Prediction, Scored
from barista_bench.core.statistics import Floats, Metrics, Sums, SumStatistics, fraction
from barista_bench.files.reading import packaged_data
from barista_bench.metrics.spatio_temporal_grounding import (
    MEASURES,
    PredictedObject,
    ReferenceObject,
    ReferenceTask,
    TaskScore,
    add_up,
    compute_metrics,
    object_sums,
    score_object,
    score_task,
)


@functools.cache
def synonym_groups() -> tuple[tuple[str, ...], ...]:
    """Return the packaged groups of names. The usual name comes first in each group."""
    groups = msgspec.convert(packaged_data(__package__, "synonyms.yaml"), list[list[str]])
    return tuple(tuple(plain_name(name) for name in group) for group in groups)


@functools.cache
def _group_numbers() -> dict[str, int]:
    return {name: number for number, group in enumerate(synonym_groups()) for name in group}


@dataclass(frozen=True, slots=True)
class Recogniser(NameMatcher):
    """Matches names of objects.

    `synonyms` also accepts the true object's synonyms, and names in the group of the object's category.
    """

    def _is_same(self, name: str, right: Sequence[str]) -> bool:
        if self.matcher == "exact":
            return name == right[0]
        group = _group_numbers().get(name)
        return name in right or (group is not None and group == _group_numbers().get(right[0]))


def assign(
    similarity: Floats, threshold: float, overlap: Callable[[int, int], float] = lambda predicted, true: 0.0
) -> list[int | None]:
    """Return, for each predicted object, its true object or None.

    The assignment is one to one and has the greatest total similarity.

    `similarity` is (predicted, true). `threshold` is the minimum for a pair and is above 0. The overlap of pairs, from
    0 to 1, decides between assignments of equal similarity.

    >>> assign(np.array([[0.9, 0.8], [0.9, 0.1]]), 0.5), assign(np.array([[0.4]]), 0.5)
    ([1, 0], [None])
    """
    matches: list[int | None] = [None] * similarity.shape[0]
    is_allowed = similarity >= threshold
    is_contested = is_allowed & ((is_allowed.sum(axis=0) > 1)[None, :] | (is_allowed.sum(axis=1) > 1)[:, None])
    if not is_contested.any():  # there is nothing to decide, as in most answers
        for row, column in zip(*(axis.tolist() for axis in np.nonzero(is_allowed)), strict=True):
            matches[row] = column
        return matches
    from scipy.optimize import linear_sum_assignment  # slow to import, and few commands compute scores

    gain = np.where(is_allowed, np.round(similarity, DECIMALS), 0.0)
    # All overlaps together are worth less than the last decimal of one similarity.
    least = 10.0**-DECIMALS / (2 * min(similarity.shape) + 1)
    for row, column in zip(*(axis.tolist() for axis in np.nonzero(is_contested)), strict=True):
        gain[row, column] += least * overlap(row, column)
    for row, column in zip(*(axis.tolist() for axis in linear_sum_assignment(-gain)), strict=True):
        if is_allowed[row, column]:
            matches[row] = column
    return matches


Viou: TypeAlias = Literal["gt_frames", "union"]
BoxTimes: TypeAlias = Literal["shown", "annotated"]
DURATION_BIN, LONGEST_BIN = 30, 210
"""In seconds: the paper's figure 5 has bins of 30 s up to 210 s."""
T_IOU, V_IOU = MEASURES.index("m_tIoU"), MEASURES.index("m_vIoU")
TASK_SCORES = ("T-Acc", "O-Acc", *(f"{level}-{name}" for level in ("T", "ST") for name in MEASURES))
"""Scores of a single task."""


@dataclass(frozen=True, slots=True)
class ScoringRules:
    """The rules for scoring answers. They hold everything that the task's options change.

    Args:
        recogniser: decides which names mean one object.
        viou: the time stamps over which the overlap of boxes is averaged: those in the reference, as in V-STaR, or
            those in the reference or the answer, as in HC-STVG.
        box_times: the annotated boxes that count as reference: boxes at the shown frames, or all boxes.
    """

    recogniser: Recogniser
    viou: Viou = "gt_frames"
    box_times: BoxTimes = "shown"


@dataclass(frozen=True, slots=True)
class AssessedAnswer:
    """One scored sample. `matches[i]` is the index of the true object of answered object i; None without a match."""

    score: TaskScore
    names: tuple[str, ...]
    matches: tuple[int | None, ...]


def true_objects(example: Example) -> list[RequiredObject]:
    return RequiredObjects.of(example).objects


def shown_times(example: Example) -> list[float]:
    """Return the times of the shown frames in seconds."""
    return InstructionInputs.of(example).times


def answered_objects(prediction: Prediction | None) -> list[AnsweredObject]:
    return [] if prediction is None else AnsweredObjects.read(prediction.value).objects


def box_track(item: RequiredObject, frame_times: Sequence[float], box_times: BoxTimes) -> dict[float, Xyxy]:
    """Return the true boxes of an object that count, by seconds.

    With `shown`, boxes annotated at the time of a shown frame count; of several boxes, the nearest counts. An object
    without a box at a shown frame keeps all its boxes: the object must be found, although its place is not visible.
    """
    boxes = {time: as_xyxy(box) for time, box in zip(item.times, item.boxes, strict=True)}
    nearest: dict[float, float] = {}
    for time in item.times:
        frame = snap_to_grid(time, frame_times)
        if abs(frame - time) < abs(frame - nearest.get(frame, float("inf"))):
            nearest[frame] = time
    counted_times = sorted(nearest[frame] for frame in frame_times if frame in nearest)
    return {time: boxes[time] for time in counted_times} if box_times == "shown" and counted_times else boxes


def assess(sample: Scored, rules: ScoringRules) -> AssessedAnswer:
    """Recognise a sample's objects, then score the sample. Raises ConfigError if the sentence encoder cannot be
    loaded.
    """
    frame_times, true_items = shown_times(sample.example), true_objects(sample.example)
    tracks = [box_track(item, frame_times, rules.box_times) for item in true_items]
    references = [
        ReferenceObject(item.category, item.kind, as_pairs(item.intervals), track)
        for item, track in zip(true_items, tracks, strict=True)
    ]
    reference = ReferenceTask(InstructionMetadata.of(sample.example).kind, references)
    viou = "reference" if rules.viou == "gt_frames" else "union"
    answered_items = answered_objects(sample.prediction)
    names = tuple(item.name for item in answered_items)
    grid = _time_grid(tracks, frame_times)
    # Predicted times count with `union`. Times between the shown frames belong to no scored frame.
    predicted = [_predicted_object(item, grid, only_on_grid=rules.box_times == "shown") for item in answered_items]

    def overlap(row: int, column: int) -> float:
        measures = score_object(predicted[row], reference.objects[column], viou)
        return float(measures[T_IOU] + measures[V_IOU]) / 2

    similarity = rules.recogniser.similarities(names, [item.names for item in true_items])
    matches = assign(similarity, rules.recogniser.threshold, overlap)
    predicted = [item._replace(match=match) for item, match in zip(predicted, matches, strict=True)]
    score = score_task(None if sample.prediction is None else predicted, reference, viou)
    return AssessedAnswer(score, names, tuple(matches))


def _time_grid(tracks: Sequence[Mapping[float, Xyxy]], frame_times: Sequence[float]) -> list[float]:
    """Return the sorted times that a predicted time can mean: times of true boxes and of other shown frames."""
    times = sorted({time for track in tracks for time in track})
    true_times = set(times)
    return sorted({*times, *(time for time in frame_times if snap_to_grid(time, times) not in true_times)})


def _predicted_object(item: AnsweredObject, grid: Sequence[float], *, only_on_grid: bool) -> PredictedObject:
    """Return an answered object with its boxes at times of the grid. Without `only_on_grid`, boxes at other times are
    kept too.
    """
    boxes: dict[float, list[Xyxy]] = {}
    grid_times = set(grid)
    for entry in item.boxes:
        time = snap_to_grid(entry.timestamp, grid)
        if time in grid_times or not only_on_grid:
            boxes.setdefault(time, []).append(as_xyxy(entry.box))
    return PredictedObject(None, as_pairs(item.intervals), boxes, item.malformed)


GROUPS: Mapping[str, Callable[[Example], str]] = {
    "by_kind": lambda example: InstructionMetadata.of(example).kind,
    "by_number_of_objects": lambda example: count_group(len(true_objects(example))),
    "by_duration": lambda example: InstructionMetadata.of(example).duration_bin,
}
"""Maps each table of scores by group to the function that gives the group of an example."""


class GroundingStatistics(SumStatistics):
    """The statistics of a run: sums over the objects of its tasks.

    If every task counts once, objects are added one by one, so that the last digit depends only on the order of the
    objects. `scores` and `groups` have one entry per task, (S,). The groups of a task are given by table.
    """

    def __init__(
        self, scores: Sequence[TaskScore], groups: Sequence[Mapping[str, str]], recogniser: Recogniser
    ) -> None:
        rows = [object_sums(score) for score in scores]
        super().__init__(list(map(add_up, rows)), _compute_metrics, sample_scores={name: name for name in TASK_SCORES})
        self._by_object = SumStatistics([row for task in rows for row in task], _compute_metrics)
        self._scores, self._groups, self._recogniser = scores, groups, recogniser

    def compute_metrics(self, weights: Floats) -> Metrics:
        if len(weights) == 1 and (weights == 1).all():
            return self._by_object.compute_metrics(np.ones((1, self._by_object.size)))
        return super().compute_metrics(weights)

    def subset(self, samples: Sequence[int]) -> GroundingStatistics:
        scores, groups = [self._scores[index] for index in samples], [self._groups[index] for index in samples]
        return GroundingStatistics(scores, groups, self._recogniser)

    def tables(self) -> dict[str, Any]:
        """Return counts, the way in which names were compared, and the scores of each group."""
        return {
            **self._counts(),
            "n": self.size,
            "n_failed": sum(score.failed for score in self._scores),
            "n_extra": sum(score.n_extra for score in self._scores),
            "n_malformed": sum(score.n_malformed for score in self._scores),
            "recognition": self._recogniser.description,
            **{table: self._group_metrics(table) for table in GROUPS},
        }

    def _counts(self) -> dict[str, int]:
        return {"n_tasks": self.size, "n_objects": sum(score.recognised.size for score in self._scores)}

    def _group_metrics(self, table: str) -> dict[str, dict[str, Json]]:
        """Return the scores of each group of a table, by the group's name."""
        positions: dict[str, list[int]] = {}
        for index, groups in enumerate(self._groups):
            positions.setdefault(groups[table], []).append(index)
        grouped: dict[str, dict[str, Json]] = {}
        for name in sorted(positions, key=group_order):
            group = self.subset(positions[name])
            values = {key: float(value[0]) for key, value in group.compute_metrics(np.ones((1, group.size))).items()}
            fractions = {key: value for key, value in values.items() if key != "coverage" and not np.isnan(value)}
            grouped[name] = {**fractions, **group._counts()}
        return grouped


def statistics_of(samples: Sequence[Scored], rules: ScoringRules) -> GroundingStatistics:
    """Return the statistics of a run's samples, after embedding all names together."""
    rules.recogniser.prepare(
        ([item.name for item in answered_objects(s.prediction)], [item.names for item in true_objects(s.example)])
        for s in samples
    )
    scores = [assess(sample, rules).score for sample in samples]
    groups = [{table: group_of(sample.example) for table, group_of in GROUPS.items()} for sample in samples]
    return GroundingStatistics(scores, groups, rules.recogniser)


def _compute_metrics(sums: Sums) -> Metrics:
    return {**compute_metrics(sums), "coverage": 1 - fraction(sums["failed"], sums["tasks"])}


def group_order(name: str) -> tuple[float, str]:
    """Return the sort key of a group. Groups that start with a number are sorted by that number.

    >>> sorted(["120-150 s", "30-60 s", "over 210 s", "0-30 s"], key=group_order)
    ['0-30 s', '30-60 s', '120-150 s', 'over 210 s']
    """
    start = name.partition("-")[0].rstrip("+")
    return (float(start) if start.isdecimal() else float("inf"), name)


def duration_bin(seconds: float) -> str:
    """Return the paper's bin of a video's duration.

    >>> duration_bin(0), duration_bin(30), duration_bin(209.9), duration_bin(210)
    ('0-30 s', '30-60 s', '180-210 s', 'over 210 s')
    """
    if seconds >= LONGEST_BIN:
        return f"over {LONGEST_BIN} s"
    start = int(seconds // DURATION_BIN) * DURATION_BIN
    return f"{start}-{start + DURATION_BIN} s"


def count_group(objects: int) -> str:
    """Return the group for a number of objects: 1, 2 or 3+."""
    return str(objects) if objects < 3 else "3+"
