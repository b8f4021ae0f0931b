"""Score recognition, temporal and spatial grounding of the objects that a task needs, per object and per task.

The measures follow ToG-Bench (arXiv 2512.03666, sections 4.2 and 7.2). The spatial score follows V-STaR, the code that
the paper cites. At each annotated time stamp of an object, it takes the overlap with the box predicted for this time
stamp. All scores range from 0 to 1. Needs only numpy.

Every score is computed in two steps: each object adds to sums (`object_sums`), and `compute_metrics` turns the sums
into scores. Code that resamples tasks uses the same two functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .parsing import (
    KINDS,
    Box,
    Interval,
    PredictedObject,
    RawAnswer,
    RawTask,
    ReferenceObject,
    ReferenceTask,
    as_prediction,
    as_reference,
)

THRESHOLDS = (0.3, 0.5, 0.7)
MEASURES = (
    "m_tIoU",
    *(f"R1@{t}" for t in THRESHOLDS),
    "m_vIoU",
    *(f"AP@{t}" for t in THRESHOLDS),
    *(f"vIoU@{t}" for t in THRESHOLDS),
)
VIOU = ("reference", "union")
ROUNDING = 1e-12
"""Boxes whose IoU differs from 1 by less are equal: they were converted between pixels and an answer's numbers."""


def temporal_iou(predicted: Sequence[Interval], reference: Sequence[Interval]) -> float:
    """Return the seconds in both sets of intervals divided by the seconds in either set. A set is a union of intervals.

    For a single interval per set, this is V-STaR's max(0, min(e) - max(s)) / (max(e) - min(s)). If two intervals lie
    apart, V-STaR's denominator is longer than ours, but the score is 0 either way. Sets without extent (an object
    annotated at one instant) score 1 if their instants are equal, and 0 otherwise. A missing prediction scores 0.

    >>> temporal_iou([(0, 4)], [(2, 6)]) == 2 / 6
    True
    >>> temporal_iou([(0, 2), (4, 6)], [(1, 5)]), temporal_iou([], [(1, 5)]), temporal_iou([(3, 3)], [(3, 3)])
    (0.3333333333333333, 0.0, 1.0)
    """
    answered, annotated = _merge(predicted), _merge(reference)
    if not answered or not annotated:
        return 0.0
    either = sum(end - start for start, end in _merge([*answered, *annotated]))
    if either == 0:
        return float(answered == annotated)
    both = sum(
        max(0.0, min(end, other_end) - max(start, other)) for start, end in answered for other, other_end in annotated
    )
    return both / either


def _merge(intervals: Sequence[Interval]) -> list[Interval]:
    """Return disjoint intervals, in order, that cover the same seconds."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def box_iou(a: Box, b: Box) -> float:
    """Return the IoU of two boxes x0, y0, x1, y1 with x0 < x1 and y0 < y1. Areas are (x1 - x0) * (y1 - y0).

    >>> box_iou((0, 0, 10, 10), (5, 0, 15, 10)) == 50 / 150
    True
    """
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    both = width * height
    iou = both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)
    return 1.0 if iou > 1 - ROUNDING else iou


def frame_ious(
    predicted: Mapping[float, Sequence[Box]], reference: Mapping[float, Box], viou: str = "reference"
) -> list[float]:
    """Return the best overlap of the predicted boxes at each counted time stamp, or 0 without a box.

    If `viou` is "reference", only annotated time stamps count (V-STaR: boxes at other times cost nothing). If it is
    "union", annotated and predicted time stamps count (HC-STVG, VidSTG: a box at a time without annotation adds a 0).
    vIoU is the mean of the list.

    >>> frame_ious({2: [(0, 0, 9, 9)], 4: [(0, 0, 1, 1), (0, 0, 2, 1)]}, {4: (0, 0, 2, 2), 6: (0, 0, 2, 2)})
    [0.5, 0.0]
    >>> frame_ious({2: [(0, 0, 9, 9)]}, {4: (0, 0, 2, 2)}, viou="union")
    [0.0, 0.0]
    """
    if viou not in VIOU:
        raise ValueError(f"viou is {viou!r}; give {' or '.join(VIOU)}")
    stamps = sorted(reference if viou == "reference" else {*reference, *predicted})
    return [
        max((box_iou(box, reference[stamp]) for box in predicted.get(stamp, ())), default=0.0)
        if stamp in reference
        else 0.0
        for stamp in stamps
    ]


_Floats = NDArray[np.float64]
_NOTHING = np.zeros(len(MEASURES))


def score_object(predicted: PredictedObject | None, reference: ReferenceObject, viou: str = "reference") -> _Floats:
    """Return the measures of a reference object, in the order of MEASURES. They are 0 for an unrecognised object."""
    if predicted is None:
        return _NOTHING
    thresholds = np.array(THRESHOLDS)
    t_iou = temporal_iou(predicted.intervals, reference.intervals)
    ious = np.array(frame_ious(predicted.boxes, reference.boxes, viou))
    v_iou, precision = ious.mean(), [(ious >= t).mean() for t in THRESHOLDS]
    return np.array([t_iou, *(t_iou >= thresholds), v_iou, *precision, *(v_iou > thresholds)], dtype=np.float64)


@dataclass(frozen=True)
class TaskScore:
    """The score of a task: its reference objects, whether each was recognised, and their measures (objects x
    MEASURES).
    """

    reference: ReferenceTask
    recognised: NDArray[np.bool_]
    measures: _Floats
    failed: bool
    n_extra: int
    n_malformed: int

    @property
    def is_correct(self) -> bool:
        """Return True if every object of the task was recognised."""
        return bool(self.recognised.all())


def score_task(
    prediction: Sequence[PredictedObject] | None, reference: ReferenceTask, viou: str = "reference"
) -> TaskScore:
    """Score a task. If the prediction is None, there is no usable answer, and all objects score 0."""
    by_match = {item.match: item for item in prediction or () if item.match is not None}
    pairs = [(by_match.get(index), item) for index, item in enumerate(reference.objects)]
    return TaskScore(
        reference,
        np.array([predicted is not None for predicted, _ in pairs]),
        np.stack([score_object(predicted, item, viou) for predicted, item in pairs]),
        failed=prediction is None,
        n_extra=sum(item.match is None for item in prediction or ()),
        n_malformed=sum(item.malformed for item in prediction or ()),
    )


Sums = Mapping[Hashable, _Floats]
"""For each name in `object_sums`, the sums (D,) over all tasks of D samples of tasks."""


def object_sums(score: TaskScore) -> list[dict[Hashable, float]]:
    """Return a task's contributions to the sums, object by object. The first object also adds the counts per task."""
    rows: list[dict[Hashable, float]] = []
    for item, recognised, measures in zip(score.reference.objects, score.recognised, score.measures, strict=True):
        kind: dict[Hashable, float] = {item.kind: 1.0, f"recognised {item.kind}": float(recognised)}
        rows.append({"objects": 1.0, "recognised": float(recognised), **kind, **_name("O-", measures)})
    means, correct = score.measures.mean(axis=0), float(score.is_correct)
    rows[0] |= {"tasks": 1.0, "failed": float(score.failed), "T-Acc": correct}
    rows[0] |= _name("T-", means) | _name("ST-", means * correct)
    return rows


def _name(prefix: str, values: _Floats) -> dict[Hashable, float]:
    return {prefix + name: value for name, value in zip(MEASURES, values.tolist(), strict=True)}


def compute_metrics(sums: Sums) -> dict[str, _Floats]:
    """Return scores (D,): O- (mean over objects), T- (mean over tasks of their objects' mean) and ST- (strict).

    A mean without values is NaN, for example EAcc or IAcc without an object of this kind.
    """
    objects, tasks = sums["objects"], sums["tasks"]
    nothing = np.zeros_like(tasks)
    recognised = {"O-Acc": _ratio(sums["recognised"], objects)}
    for name, kind in zip(("EAcc", "IAcc"), KINDS, strict=True):
        recognised[name] = _ratio(sums.get(f"recognised {kind}", nothing), sums.get(kind, nothing))
    by_object = {f"O-{name}": _ratio(sums[f"O-{name}"], objects) for name in MEASURES}
    by_task = ("T-Acc", *(f"{level}-{name}" for level in ("T", "ST") for name in MEASURES))
    return {**recognised, **by_object, **{name: _ratio(sums[name], tasks) for name in by_task}}


def _ratio(part: _Floats, whole: _Floats) -> _Floats:
    return np.asarray(np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), np.nan))


def add_up(rows: Iterable[Mapping[Hashable, float]]) -> dict[Hashable, float]:
    """Sum the rows by name."""
    totals: Counter[Hashable] = Counter()
    for row in rows:
        totals.update(row)
    return dict(totals)


def summarise(scores: Sequence[TaskScore]) -> dict[str, Any]:
    """Return the scores of some tasks, `n_tasks` and `n_objects`.

    EAcc and IAcc are None without an object of their kind.
    """
    totals = add_up(row for score in scores for row in object_sums(score))
    values = compute_metrics({name: np.array([total]) for name, total in totals.items()})
    plain = {name: None if np.isnan(value[0]) else float(value[0]) for name, value in values.items()}
    return {**plain, "n_tasks": len(scores), "n_objects": int(totals["objects"])}


def spatio_temporal_grounding(
    predictions: Sequence[RawAnswer | None], references: Sequence[RawTask], *, viou: str = "reference"
) -> dict[str, Any]:
    """Score all tasks. `predictions[i]` answers `references[i]`; None means that there is no usable answer.

    A reference is {kind, objects}, with kind "explicit" or "implicit" and each object {category, intervals, boxes}:
    intervals [[start, end], ...] in seconds, boxes {time stamp in seconds: [x0, y0, x1, y1] in pixels}. An object may
    also have a kind, since an implicit task may also need objects that it names. A prediction is a list of objects
    {match, intervals, boxes}. match is the index of the reference object for which it stands, or None. A time stamp may
    have several boxes. Instead of a dict, boxes may be a list of {timestamp, box}.

    Returned, each a fraction or a mean from 0 to 1:
    * `O-Acc`, `EAcc`, `IAcc`: the fraction of recognised objects: of all, of explicit, and of implicit objects.
    * `O-m_tIoU`, `O-R1@t`, `O-m_vIoU`, `O-AP@t`, `O-vIoU@t` for t = 0.3, 0.5, 0.7: means over all objects of tIoU,
      of tIoU >= t, of vIoU, of the fraction of time stamps with IoU >= t, of vIoU > t. Unrecognised objects count 0.
    * `T-Acc`: tasks with all objects recognised. `T-m_tIoU`, ...: means over the tasks of their objects' means.
    * `ST-m_tIoU`, ...: the same, but 0 for a task with any unrecognised object.
    * `by_kind`, `by_number_of_objects` ("1", "2", "3+"): these scores for the tasks of each group that occurs.
    * `per_category`: Acc, m_tIoU, m_vIoU and n_objects.
    * `n` (= `n_tasks`), `n_failed`, `coverage`, `n_objects`.
    * `n_extra`: predicted objects without a match, which cost nothing.
    * `n_malformed`: predicted objects whose intervals or boxes were partly broken.

    Raises a TypeError or ValueError that names the task, the object and the field.

    >>> cup = {"category": "cup", "intervals": [[2, 6]], "boxes": {2: [0, 0, 10, 10], 4: [0, 0, 10, 10]}}
    >>> task = {"kind": "explicit", "objects": [cup]}
    >>> answer = [{"match": 0, "intervals": [[2, 4]], "boxes": {"2": [0, 0, 10, 8]}}]
    >>> result = spatio_temporal_grounding([answer, None], [task, task])
    >>> result["O-Acc"], result["O-m_tIoU"], result["O-m_vIoU"], result["O-AP@0.5"], result["coverage"]
    (0.5, 0.25, 0.2, 0.25, 0.5)
    """
    answers, tasks = check_columns(predictions, references)
    if viou not in VIOU:
        raise ValueError(f"viou is {viou!r}; give {' or '.join(VIOU)}")
    if not tasks:
        raise ValueError("predictions and references are empty: there is nothing to score; give >= 1 task")
    scores = [score_task(answer, task, viou) for answer, task in zip(answers, tasks, strict=True)]
    n_failed = sum(score.failed for score in scores)
    return summarise(scores) | {
        "by_kind": _group(scores, lambda score: score.reference.kind),
        "by_number_of_objects": _group(scores, lambda score: ("1", "2", "3+")[min(len(score.measures), 3) - 1]),
        "per_category": _per_category(scores),
        "n": len(scores),
        "n_failed": n_failed,
        "coverage": 1 - n_failed / len(scores),
        "n_extra": sum(score.n_extra for score in scores),
        "n_malformed": sum(score.n_malformed for score in scores),
    }


def check_columns(
    predictions: Any,  # noqa: ANN401
    references: Any,  # noqa: ANN401
) -> tuple[list[list[PredictedObject] | None], list[ReferenceTask]]:
    """Check both columns.

    Raises TypeError unless both are lists of tasks, and ValueError unless both are equally long.
    """
    for name, column in (("predictions", predictions), ("references", references)):
        if isinstance(column, str | bytes | Mapping) or not isinstance(column, Sequence):
            raise TypeError(f"{name}: is of type {type(column).__name__}; give a list with one entry per task")
    if len(predictions) != len(references):
        raise ValueError(
            f"there are {len(predictions)} predictions for {len(references)} references; "
            "give one prediction per reference, None where there is no usable answer"
        )
    tasks = [as_reference(raw, f"references[{index}]") for index, raw in enumerate(references)]
    answers = [
        None if raw is None else as_prediction(raw, len(task.objects), f"predictions[{index}]")
        for index, (raw, task) in enumerate(zip(predictions, tasks, strict=True))
    ]
    return answers, tasks


def _group(scores: Sequence[TaskScore], key: Callable[[TaskScore], str]) -> dict[str, dict[str, Any]]:
    groups = sorted({key(score) for score in scores})
    return {group: summarise([score for score in scores if key(score) == group]) for group in groups}


def _per_category(scores: Sequence[TaskScore]) -> dict[str, dict[str, Any]]:
    names = ("m_tIoU", "m_vIoU")
    columns = [MEASURES.index(name) for name in names]
    rows: dict[str, list[list[float]]] = {}
    for score in scores:
        for item, recognised, measures in zip(score.reference.objects, score.recognised, score.measures, strict=True):
            rows.setdefault(item.category, []).append([float(recognised), *measures[columns]])
    metrics = {}
    for category, objects in sorted(rows.items()):
        means = dict(zip(("Acc", *names), np.mean(objects, axis=0).tolist(), strict=True))
        metrics[category] = means | {"n_objects": len(objects)}
    return metrics
