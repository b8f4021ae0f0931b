"""Score relation tuples (source id, target id, relation type, value) by exact multiset matching.

The rule follows the BARISTA paper (arXiv 2605.12074, section A.3.2). A predicted relation is right if all four fields
equal a reference relation of the same example. Each reference relation is matched at most once. Strings are compared
without surrounding white space and without case. Fractions range from 0 to 1. Needs only numpy.

Every score is computed in two steps: each example adds to sums (`example_sums`), and `compute_metrics` and `tables`
turn the sums into results. Code that resamples examples uses the same functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray


class RelationTuple(NamedTuple):
    """One normalised relation between two numbered objects of an image."""

    source_id: int
    target_id: int
    relation_type: str
    value: str


RawRelation = Mapping[str, Any] | Sequence[Any]
RawExample = Sequence[RawRelation]
GroupsOf = Literal["all", "answered"]


def normalise(text: str) -> str:
    """Strip and case-fold a string for comparison. Inner white space stays unchanged.

    >>> normalise("  Attached To ")
    'attached to'
    """
    return text.strip().casefold()


def as_relation(raw: RawRelation, where: str = "relation") -> RelationTuple:
    """Normalise a mapping with the four fields (further keys are ignored) or a 4-sequence.

    Raises TypeError or ValueError; the message starts with `where` and names the field.

    >>> as_relation({"source_id": 1, "target_id": 2, "relation_type": "Position", "value": "ON"})
    RelationTuple(source_id=1, target_id=2, relation_type='position', value='on')
    >>> as_relation([1, "2", "position", "on"], "predictions[3][0]")
    Traceback (most recent call last):
        ...
    TypeError: predictions[3][0]: target_id is '2' (str), not an integer; give the object's number as an int
    """
    fields = _fields(raw, where)
    for index, name in enumerate(RelationTuple._fields):
        value = fields[name]
        # In Python a bool is an int and a numpy integer is not, so test for Integral without bool.
        is_right = isinstance(value, Integral) and not isinstance(value, bool) if index < 2 else isinstance(value, str)
        if not is_right:
            wanted = "an integer; give the object's number as an int" if index < 2 else "a string; give its name"
            raise TypeError(f"{where}: {name} is {value!r} ({type(value).__name__}), not {wanted}")
    source, target, relation_type, value = (fields[name] for name in RelationTuple._fields)
    return RelationTuple(int(source), int(target), normalise(relation_type), normalise(value))


def _fields(raw: RawRelation, where: str) -> Mapping[str, Any]:
    names = RelationTuple._fields
    if isinstance(raw, Mapping):
        missing = [name for name in names if name not in raw]
        if missing:
            raise ValueError(f"{where}: {', '.join(missing)} is missing; give {', '.join(names)}")
        return raw
    if not isinstance(raw, Sequence) or isinstance(raw, str | bytes):
        raise TypeError(f"{where}: is {raw!r} ({type(raw).__name__}); give a dict with {', '.join(names)}")
    if len(raw) != len(names):
        raise ValueError(f"{where}: has {len(raw)} elements instead of 4; give {', '.join(names)} in this order")
    return dict(zip(names, raw, strict=True))


def as_relations(raw: RawExample, where: str = "example") -> list[RelationTuple]:
    """Normalise all relations of an example. Raises TypeError or ValueError like `as_relation`."""
    if isinstance(raw, str | bytes | Mapping) or not isinstance(raw, Sequence):
        raise TypeError(f"{where}: is {raw!r} ({type(raw).__name__}); give a list of relations, [] for none")
    return [as_relation(relation, f"{where}[{index}]") for index, relation in enumerate(raw)]


_PARTS = ("tp", "n_predicted", "n_reference")
Sums = Mapping[Hashable, NDArray[np.float64]]
"""For each name in `example_sums`, the sums (D,) over all examples of D samples of examples."""
Example = tuple["Counter[RelationTuple] | None", "Counter[RelationTuple]"]
"""Answer and reference as multisets. An unusable answer is None."""


def example_sums(
    prediction: Counter[RelationTuple] | None, reference: Counter[RelationTuple], *, groups_of: GroupsOf = "all"
) -> dict[Hashable, float]:
    """Return an example's counts in total, by relation type and by "type/value" label."""
    predicted: Mapping[RelationTuple, int] = {} if prediction is None else prediction
    hits = {item: min(count, reference[item]) for item, count in predicted.items() if item in reference}
    sums: dict[Hashable, float] = {"n": 1, "failed": int(prediction is None)}
    for part, relations in zip(_PARTS, (hits, predicted, reference), strict=True):
        sums[part] = sum(relations.values())
        for relation, count in relations.items() if prediction is not None or groups_of == "all" else ():
            for name in _group_names(relation.relation_type, relation.value, part):
                sums[name] = sums.get(name, 0) + count
    sums["f1"] = 0.0 if prediction is None else _f1(sums["tp"], sums["n_predicted"], sums["n_reference"])
    return sums


@lru_cache(4096)
def _group_names(relation_type: str, value: str, part: str) -> tuple[Hashable, Hashable]:
    return ("relation_type", relation_type, part), ("value", f"{relation_type}/{value}", part)


def _f1(tp: float, predicted: float, reference: float) -> float:
    precision = tp / predicted if predicted else float(not reference)
    recall = tp / reference if reference else float(not predicted)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def compute_metrics(sums: Sums) -> dict[str, NDArray[np.float64]]:
    """Return the scores (D,) of `tuple_f1` without its tables. NaN without examples."""
    n, failed = sums["n"], sums["failed"]
    # Without references, an empty answer is perfect, but a missing answer is not.
    looked = np.where(failed < n, 1.0, 0.0)
    precision, recall, _ = (looked * values for values in _fractions(*(sums[part] for part in _PARTS)))
    examples = np.where(n > 0, n, np.nan)
    return {
        "micro_precision": precision,
        "micro_recall": recall,
        "micro_f1": _compute_harmonic_mean(precision, recall),
        "mean_example_f1": sums["f1"] / examples,
        "macro_f1": _macro_f1(sums, "relation_type", n),
        "macro_value_f1": _macro_f1(sums, "value", n),
        "coverage": 1 - failed / examples,
    }


def tables(sums: Mapping[Hashable, float]) -> dict[str, Any]:
    """Return the tables of `tuple_f1` from the sums over all examples."""
    return {
        "per_relation_type": _group_tables(sums, "relation_type"),
        "per_value": _group_tables(sums, "value"),
        "n": int(sums["n"]),
        "n_failed": int(sums["failed"]),
        **{part: int(sums[part]) for part in _PARTS},
    }


def _groups(sums: Mapping[Hashable, Any], kind: str) -> list[str]:
    return sorted({key[1] for key in sums if isinstance(key, tuple) and key[0] == kind})


def _group_tables(sums: Mapping[Hashable, float], kind: str) -> dict[str, dict[str, Any]]:
    """Return counts and fractions of each group, sorted by group. `support` counts the reference relations."""
    tables = {}
    for group in _groups(sums, kind):
        counts = [sums.get((kind, group, part), 0.0) for part in _PARTS]
        fractions = _fractions(*(np.array([count]) for count in counts))
        tables[group] = {
            **{name: float(values[0]) for name, values in zip(("precision", "recall", "f1"), fractions, strict=True)},
            **{name: int(count) for name, count in zip(("tp", "n_predicted", "support"), counts, strict=True)},
        }
    return tables


def _macro_f1(sums: Sums, kind: str, n: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of the pooled f1 over all groups with a reference relation, or 0 without such groups."""
    nothing = np.zeros_like(n)
    total, present = nothing, nothing
    for group in _groups(sums, kind):
        counts = [sums.get((kind, group, part), nothing) for part in _PARTS]
        has_support = counts[2] > 0
        total = total + np.where(has_support, _fractions(*counts)[2], 0.0)
        present = present + has_support
    return np.asarray(total / np.maximum(present, 1))


def _fractions(
    tp: NDArray[np.float64], predicted: NDArray[np.float64], reference: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return precision, recall and f1.

    If both sides are empty, all three are 1. If only one side is empty, all three are 0.
    """
    precision = np.where(predicted > 0, tp / np.maximum(predicted, 1), reference == 0)
    recall = np.where(reference > 0, tp / np.maximum(reference, 1), predicted == 0)
    return precision, recall, _compute_harmonic_mean(precision, recall)


def _compute_harmonic_mean(precision: NDArray[np.float64], recall: NDArray[np.float64]) -> NDArray[np.float64]:
    total = precision + recall
    return np.asarray(np.where(total > 0, 2 * precision * recall / np.where(total > 0, total, 1.0), 0.0))


def _label(relation: RelationTuple) -> str:
    return f"{relation.relation_type}/{relation.value}"


def tuple_f1(
    predictions: Sequence[RawExample | None], references: Sequence[RawExample], *, groups_of: GroupsOf = "all"
) -> dict[str, Any]:
    """Score all examples. `predictions[i]` answers `references[i]`; None means that there is no usable answer.

    Each example is a list of relations. A relation is a dict with source_id, target_id, relation_type and value, or a
    4-sequence in this order.

    Returned:
    * `micro_precision`, `micro_recall`, `micro_f1`: counts pooled over all examples. The relations of a failed
      example stay in the reference count, so a failure lowers recall.
    * `mean_example_f1`: mean over all examples; failed examples count 0.
    * `macro_f1`, `macro_value_f1`: mean of the pooled f1 over the relation types, and over the "type/value" labels,
      that have a reference relation, with equal weights; 0 without any.
    * `per_relation_type`, `per_value`: per relation type, and per "type/value", the pooled precision, recall, f1,
      tp, n_predicted and support (reference relations); a fraction of nothing is 0. `groups_of="answered"` (the
      release's rule) pools these, and the macro scores, over the examples that have a prediction. The micro scores
      always cover all examples.
    * `n`, `n_failed`: the number of examples, and of examples without a prediction.
    * `coverage`: the fraction of examples with a prediction.
    * `tp`, `n_predicted`, `n_reference`: pooled counts of relations.

    Raises ValueError for no examples, unequal lengths, missing fields or an unknown `groups_of`, and TypeError for
    wrong types.

    >>> on, under = (1, 2, "position", "on"), (2, 1, "position", "under")
    >>> result = tuple_f1(predictions=[[on], None], references=[[on, under], [on]])
    >>> result["micro_precision"], round(result["micro_recall"], 3), round(result["mean_example_f1"], 3)
    (1.0, 0.333, 0.333)
    >>> result["n"], result["n_failed"], result["coverage"]
    (2, 1, 0.5)
    """
    if groups_of not in ("all", "answered"):
        raise ValueError(f"groups_of is {groups_of!r}; give 'all' or 'answered'")
    totals: Counter[Hashable] = Counter()
    for example in as_examples(predictions, references):
        totals.update(example_sums(*example, groups_of=groups_of))
    values = compute_metrics({name: np.array([float(total)]) for name, total in totals.items()})
    return {**{name: float(value[0]) for name, value in values.items()}, **tables(totals)}


def as_examples(predictions: Sequence[RawExample | None], references: Sequence[RawExample]) -> list[Example]:
    """Check all examples. Raises TypeError or ValueError, also if there are no examples."""
    answers, expected = check_columns(predictions, references)
    if not expected:
        raise ValueError("predictions and references are empty: there is nothing to score; give >= 1 example")
    pairs = zip(answers, expected, strict=True)
    return [(None if answer is None else Counter(answer), Counter(reference)) for answer, reference in pairs]


def check_columns(
    predictions: Any,  # noqa: ANN401
    references: Any,  # noqa: ANN401
) -> tuple[list[list[RelationTuple] | None], list[list[RelationTuple]]]:
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


NOTHING = "(nothing)"
"""Label in a confusion if a pair of objects has no answer or no reference."""


def tuple_confusion(
    predictions: Sequence[RawExample | None], references: Sequence[RawExample]
) -> dict[str, dict[str, int]]:
    """Count which relations were answered in place of the reference relations.

    Returns "type/value" of the reference -> "type/value" answered -> count. Within an example, relations between the
    same two objects in the same direction are paired. Equal relations are paired first, then the remaining relations in
    the order of their labels. Relations without a partner, and all relations of a failed example, are paired with
    `(nothing)`. Errors are the same as in `tuple_f1`.

    >>> on, under, inside = ((1, 2, "position", value) for value in ("on", "under", "inside"))
    >>> tuple_confusion([[on], [inside], []], [[on], [under], [on]])
    {'position/on': {'(nothing)': 1, 'position/on': 1}, 'position/under': {'position/inside': 1}}
    """
    counts: Counter[tuple[str, str]] = Counter()
    for prediction, reference in as_examples(predictions, references):
        predicted = prediction or Counter()
        counts.update((_label(relation),) * 2 for relation in (predicted & reference).elements())
        wrong, missed = _by_pair(predicted - reference), _by_pair(reference - predicted)
        for pair in wrong.keys() | missed.keys():
            counts.update(zip_longest(missed.get(pair, ()), wrong.get(pair, ()), fillvalue=NOTHING))
    confusion: dict[str, dict[str, int]] = {}
    for (truth, answered), count in sorted(counts.items()):
        confusion.setdefault(truth, {})[answered] = count
    return confusion


def _by_pair(relations: Counter[RelationTuple]) -> dict[tuple[int, int], list[str]]:
    labels: dict[tuple[int, int], list[str]] = {}
    for relation in sorted(relations.elements()):
        labels.setdefault(relation[:2], []).append(_label(relation))
    return labels
