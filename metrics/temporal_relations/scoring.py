"""Score relations over time. Each is a (subject, relation, object) triplet with the interval in which it holds.

A predicted relation hits a reference relation of the same triplet if the intersection of their times is at least half
of the union (a temporal IoU of 0.5, as in video relation detection: Shang et al., ACM MM 2017,
doi:10.1145/3123266.3123380, with time in place of box tracks). Predictions choose in their order, the most confident
first. Each prediction takes the free reference with the highest IoU. At a tie it takes the first reference. Each
reference is taken at most once. Texts are compared without surrounding white space and without case. Scores range from
0 to 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

RANKS = (10, 20, 50)
"""Numbers of predictions per example that count for recall."""
MIN_IOU = 0.5
MAX_TIME = 1e300
"""Maximum absolute time. Sums of times stay finite."""

Floats = NDArray[np.float64]


class TimedRelation(NamedTuple):
    """A relation that holds from `start` to the later `end`. All relations of an example share a unit of time."""

    subject: str
    relation: str
    object: str
    start: float
    end: float

    @property
    def triplet(self) -> tuple[str, str, str]:
        return self[:3]


RawRelation = Mapping[str, Any] | Sequence[Any]


def normalise(text: str) -> str:
    """Return the text in the form for comparison."""
    return text.strip().casefold()


def as_relations(raw: Sequence[RawRelation], where: str = "example") -> list[TimedRelation]:
    """Normalise the relations of an example, given as mappings with the five fields or as 5-sequences.

    Raises TypeError or ValueError; the message starts with `where` and names the relation and the field.

    >>> as_relations([["Hand", "holds", "cup", 0, 2.5]])
    [TimedRelation(subject='hand', relation='holds', object='cup', start=0.0, end=2.5)]
    """
    if isinstance(raw, str | bytes | Mapping) or not isinstance(raw, Sequence):
        raise TypeError(f"{where}: is {raw!r} ({type(raw).__name__}); give a list of relations, [] for none")
    return [_as_relation(relation, f"{where}[{index}]") for index, relation in enumerate(raw)]


def _as_relation(raw: RawRelation, where: str) -> TimedRelation:
    names = TimedRelation._fields
    if isinstance(raw, Mapping) and set(names) <= raw.keys():
        values = [raw[name] for name in names]
    elif isinstance(raw, Sequence) and not isinstance(raw, str | bytes) and len(raw) == len(names):
        values = list(raw)
    else:
        raise ValueError(f"{where}: is {raw!r:.80}; give {', '.join(names)}, as a dict or in this order")
    for index, (name, value) in enumerate(zip(names, values, strict=True)):
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not (isinstance(value, str) if index < 3 else is_number and -MAX_TIME <= values[index] <= MAX_TIME):
            wanted = "a text" if index < 3 else f"a number of at most {MAX_TIME:g}"
            raise TypeError(f"{where}: {name} is {value!r} ({type(value).__name__}); give {wanted}")
    start, end = map(float, values[3:])
    if start >= end:
        raise ValueError(f"{where}: start is {values[3]}, end {values[4]}; give an end after the start")
    subject, relation, target = map(normalise, values[:3])
    return TimedRelation(subject, relation, target, start, end)


def matches(prediction: Sequence[TimedRelation], reference: Sequence[TimedRelation]) -> list[int | None]:
    """Return the index of the reference that each predicted relation hits, or None without a hit.

    >>> held, again = (TimedRelation("hand", "holds", "cup", start, start + 4) for start in (0, 6))
    >>> matches([again, held, again], [held, again])
    [1, 0, None]
    """
    unmatched: dict[int | None, TimedRelation] = dict(enumerate(reference))
    matched: list[int | None] = []
    for relation in prediction:
        ious = {index: _iou(relation, true) for index, true in unmatched.items() if true.triplet == relation.triplet}
        close_enough = [index for index, iou in ious.items() if iou >= MIN_IOU]
        matched.append(max(close_enough, key=ious.__getitem__, default=None))
        unmatched.pop(matched[-1], None)
    return matched


def _iou(first: TimedRelation, second: TimedRelation) -> float:
    both = min(first.end, second.end) - max(first.start, second.start)
    return max(0.0, both) / (first.end - first.start + second.end - second.start - max(0.0, both))


def example_sums(prediction: Sequence[TimedRelation] | None, reference: Sequence[TimedRelation]) -> dict[str, float]:
    """Return an example's contribution to the sums of `compute_metrics`.

    If `prediction` is None, no answer is usable.
    """
    relations = prediction or ()
    matched = matches(relations, reference)
    either = _sum_covered_time([*relations, *reference])
    return {
        "n": 1,
        "failed": prediction is None,
        "predicted": len(relations),
        "references": len(reference),
        **{f"hits@{rank}": sum(index is not None for index in matched[:rank]) for rank in RANKS},
        "either": either,
        "both": _sum_covered_time(relations) + _sum_covered_time(reference) - either,
    }


def _sum_covered_time(relations: Sequence[TimedRelation]) -> float:
    """Return the time that the relations of each triplet cover, summed over triplets."""
    covered, ends = 0.0, dict[tuple[str, str, str], float]()
    for relation in sorted(relations, key=lambda each: each.start):
        start = max(relation.start, ends.get(relation.triplet, relation.start))
        covered += max(0.0, relation.end - start)
        ends[relation.triplet] = max(relation.end, start)
    return covered


def compute_metrics(sums: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the scores (D,) of `temporal_relations`, without counts, from sums (D,) over examples.

    NaN without examples.
    """
    examples = np.where(sums["n"] > 0, sums["n"], np.nan)
    # Without references, an empty answer is perfect, but a missing answer is not.
    looked = np.where(sums["failed"] < sums["n"], 1.0, 0.0)
    pairs = {f"recall_at_{rank}": (sums[f"hits@{rank}"], sums["references"]) for rank in RANKS}
    pairs["segment_iou"] = sums["both"], sums["either"]
    fractions = {
        name: np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), looked)
        for name, (part, whole) in pairs.items()
    }
    return {**fractions, "coverage": 1 - sums["failed"] / examples}


def counts(sums: Mapping[str, float]) -> dict[str, int]:
    """Return `n`, `n_failed`, `n_predicted`, `n_reference` from the sums over all examples."""
    parts = {"n": "n", "n_failed": "failed", "n_predicted": "predicted", "n_reference": "references"}
    return {name: int(sums[part]) for name, part in parts.items()}


def temporal_relations(
    predictions: Sequence[Sequence[RawRelation] | None], references: Sequence[Sequence[RawRelation]]
) -> dict[str, Any]:
    """Score all examples. `predictions[i]` answers `references[i]`; None means that there is no usable answer.

    Each example is a list of relations. The most confident predictions come first. A relation is a dict with subject,
    relation, object, start and end, or a 5-sequence in this order.

    Returned:
    * `recall_at_10`, `recall_at_20`, `recall_at_50`: the fraction of all references that the first K predictions of
      their example hit, pooled over all examples.
    * `segment_iou`: the time when a triplet is both predicted and true, over the time when it is either, pooled over
      the triplets of all examples.
    * `n`, `n_failed`, `coverage`: the number of examples, the number without an answer, and the fraction with an
      answer.
    * `n_predicted`, `n_reference`: the numbers of relations.

    The references of a failed example count as missed.

    Raises ValueError for no examples, unequal lengths, missing fields or an empty interval, and TypeError for wrong
    types.

    >>> held, on = ("hand", "holds", "cup", 0, 4), ("cup", "on", "table", 0, 8)
    >>> result = temporal_relations([[held, ("cup", "on", "table", 0, 2)], None], [[held, on], [on]])
    >>> round(result["recall_at_10"], 3), result["segment_iou"], result["coverage"]
    (0.333, 0.3, 0.5)
    """
    answers, expected = check_columns(predictions, references)
    if not expected:
        raise ValueError("predictions and references are empty: there is nothing to score; give >= 1 example")
    totals: Counter[str] = Counter()
    for prediction, reference in zip(answers, expected, strict=True):
        totals.update(example_sums(prediction, reference))
    values = compute_metrics({name: np.array([float(total)]) for name, total in totals.items()})
    return {**{name: float(value[0]) for name, value in values.items()}, **counts(totals)}


def check_columns(
    predictions: Any,  # noqa: ANN401
    references: Any,  # noqa: ANN401
) -> tuple[list[list[TimedRelation] | None], list[list[TimedRelation]]]:
    """Check and normalise both columns.

    Raises TypeError unless both are lists of examples, and ValueError unless both are equally long.
    """
    for name, column in (("predictions", predictions), ("references", references)):
        if isinstance(column, str | bytes | Mapping) or not isinstance(column, Sequence):
            raise TypeError(f"{name}: is of type {type(column).__name__}; give a list with one entry per example")
    if len(predictions) != len(references):
        raise ValueError(
            f"there are {len(predictions)} predictions for {len(references)} references; "
            "give one prediction per reference, None where there is no usable answer"
        )
    return (
        [None if raw is None else as_relations(raw, f"predictions[{index}]") for index, raw in enumerate(predictions)],
        [as_relations(raw, f"references[{index}]") for index, raw in enumerate(references)],
    )
