"""Exact multiset matching of relation tuples (source id, target id, relation type, value).

The rule is the one of the BARISTA paper (arXiv 2605.12074, section A.3.2): a predicted relation is right when
all four fields equal those of a reference relation of the same example; each reference relation is matched
once at most. Strings are compared without surrounding white space and without case. Shares run from 0 to 1.
Needs the standard library only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from numbers import Integral
from typing import Any, Literal, NamedTuple


class Relation(NamedTuple):
    """One normalised relation between two objects of an image, which are known by their numbers."""

    source_id: int
    target_id: int
    relation_type: str
    value: str


RawRelation = Mapping[str, Any] | Sequence[Any]
RawExample = Sequence[RawRelation]
GroupsOf = Literal["all", "answered"]


def normalise(text: str) -> str:
    """The form in which strings are compared: stripped and case-folded; inner white space stays as it is.

    >>> normalise("  Attached To ")
    'attached to'
    """
    return text.strip().casefold()


def as_relation(raw: RawRelation, where: str = "relation") -> Relation:
    """The normalised form of a mapping with the four fields (further keys are ignored) or of a 4-sequence.

    Raises TypeError or ValueError; the message starts with `where` and names the field.

    >>> as_relation({"source_id": 1, "target_id": 2, "relation_type": "Position", "value": "ON"})
    Relation(source_id=1, target_id=2, relation_type='position', value='on')
    >>> as_relation([1, "2", "position", "on"], "predictions[3][0]")
    Traceback (most recent call last):
        ...
    TypeError: predictions[3][0]: target_id is '2' (str), not an integer; give the object's number as an int
    """
    fields = _fields(raw, where)
    ids = [_integer(fields[name], name, where) for name in Relation._fields[:2]]
    strings = [_string(fields[name], name, where) for name in Relation._fields[2:]]
    return Relation(ids[0], ids[1], strings[0], strings[1])


def _fields(raw: RawRelation, where: str) -> Mapping[str, Any]:
    names = Relation._fields
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


def _integer(value: object, name: str, where: str) -> int:
    # bool is an int to Python, and numpy's integers are not: Integral without bool is what is meant.
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(
            f"{where}: {name} is {value!r} ({type(value).__name__}), not an integer; give the object's number as an int"
        )
    return int(value)


def _string(value: object, name: str, where: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{where}: {name} is {value!r} ({type(value).__name__}), not a string; give its name")
    return normalise(value)


def as_relations(raw: RawExample, where: str = "example") -> list[Relation]:
    """All relations of one example, normalised. Raises TypeError or ValueError, see `as_relation`."""
    if isinstance(raw, str | bytes | Mapping) or not isinstance(raw, Sequence):
        raise TypeError(f"{where}: is {raw!r} ({type(raw).__name__}); give a list of relations, [] for none")
    return [as_relation(relation, f"{where}[{index}]") for index, relation in enumerate(raw)]


def _ratio(hits: int, total: int, other_total: int) -> float:
    """hits / total. Nothing to find and nothing found is perfect (1), only one of both empty is wrong (0)."""
    if total == 0:
        return 1.0 if other_total == 0 else 0.0
    return hits / total


def f1_score(precision: float, recall: float) -> float:
    """The harmonic mean of two shares; 0 when both are 0.

    >>> round(f1_score(0.655, 0.697), 3)
    0.675
    """
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


@dataclass(frozen=True, slots=True)
class ExampleScore:
    """Counts of one example. `failed` says that it has no prediction at all: all its shares are then 0."""

    tp: int
    n_predicted: int
    n_reference: int
    failed: bool = False

    @property
    def precision(self) -> float:
        return 0.0 if self.failed else _ratio(self.tp, self.n_predicted, self.n_reference)

    @property
    def recall(self) -> float:
        return 0.0 if self.failed else _ratio(self.tp, self.n_reference, self.n_predicted)

    @property
    def f1(self) -> float:
        return f1_score(self.precision, self.recall)


def _count(predicted: Counter[Relation], reference: Counter[Relation], failed: bool) -> ExampleScore:
    tp = (predicted & reference).total()
    return ExampleScore(tp, predicted.total(), reference.total(), failed)


def score_example(prediction: RawExample | None, reference: RawExample) -> ExampleScore:
    """Match one example's relations as multisets. A prediction of None marks a failed example.

    >>> on, under = (1, 2, "position", "on"), (2, 1, "position", "under")
    >>> score = score_example([on, on], [on, under])
    >>> score.tp, score.precision, score.recall
    (1, 0.5, 0.5)
    >>> score_example([], []).f1, score_example(None, []).f1
    (1.0, 0.0)
    """
    predicted = Counter(as_relations(prediction or [], "prediction"))
    return _count(predicted, Counter(as_relations(reference, "reference")), prediction is None)


_Example = tuple[Counter[Relation], Counter[Relation], bool]


def tuple_f1(
    predictions: Sequence[RawExample | None], references: Sequence[RawExample], *, groups_of: GroupsOf = "all"
) -> dict[str, Any]:
    """Score all examples; `predictions[i]` answers `references[i]`, None says that there is no usable answer.

    Each example is a list of relations: dicts with source_id, target_id, relation_type and value, or
    4-sequences in this order.

    Returned:
    * `micro_precision`, `micro_recall`, `micro_f1`: counts pooled over all examples. The relations of a
      failed example stay in the reference count, so a failure lowers recall.
    * `mean_example_f1`: mean over all examples, failed ones count 0.
    * `macro_f1`, `macro_value_f1`: mean of the pooled f1 over relation types, and over "type/value" labels, that have
      a reference relation, each with the same weight; 0 if there is none.
    * `per_relation_type`, `per_value`: per relation type, and per "type/value", the pooled precision, recall,
      f1, tp, n_predicted and support (reference relations); a share of nothing is 0.
      `groups_of="answered"` (the release's rule) pools these, and the macro figures, over the examples that have a
      prediction; the micro figures are over all examples in either case.
    * `n`, `n_failed`: examples; `coverage`: the share of examples with a prediction.
    * `tp`, `n_predicted`, `n_reference`: pooled counts of relations.

    Raises ValueError for no examples, unequal lengths, missing fields or an unknown `groups_of`, TypeError for wrong
    types.

    >>> on, under = (1, 2, "position", "on"), (2, 1, "position", "under")
    >>> result = tuple_f1(predictions=[[on], None], references=[[on, under], [on]])
    >>> result["micro_precision"], round(result["micro_recall"], 3), round(result["mean_example_f1"], 3)
    (1.0, 0.333, 0.333)
    >>> result["n"], result["n_failed"], result["coverage"]
    (2, 1, 0.5)
    """
    if groups_of not in ("all", "answered"):
        raise ValueError(f"groups_of is {groups_of!r}; give 'all' or 'answered'")
    examples = _examples(predictions, references)
    scores = [_count(*example) for example in examples]
    grouped = [example for example in examples if groups_of == "all" or not example[2]]
    n_failed = sum(score.failed for score in scores)
    tp = sum(score.tp for score in scores)
    n_predicted = sum(score.n_predicted for score in scores)
    n_reference = sum(score.n_reference for score in scores)
    per_type = _pooled_by(grouped, lambda relation: relation.relation_type)
    per_value = _pooled_by(grouped, _label)
    # Nothing to find and nothing found is perfect only if somebody looked.
    pooled = ExampleScore(tp, n_predicted, n_reference, failed=n_failed == len(scores))
    return {
        "micro_precision": pooled.precision,
        "micro_recall": pooled.recall,
        "micro_f1": pooled.f1,
        "mean_example_f1": sum(score.f1 for score in scores) / len(scores),
        "macro_f1": _macro_f1(per_type),
        "macro_value_f1": _macro_f1(per_value),
        "per_relation_type": per_type,
        "per_value": per_value,
        "n": len(scores),
        "n_failed": n_failed,
        "coverage": 1 - n_failed / len(scores),
        "tp": tp,
        "n_predicted": n_predicted,
        "n_reference": n_reference,
    }


def _examples(predictions: Sequence[RawExample | None], references: Sequence[RawExample]) -> list[_Example]:
    check_columns(predictions, references)
    if not len(references):
        raise ValueError("predictions and references are empty: there is nothing to score; give >= 1 example")
    return [
        (
            Counter(as_relations([] if raw is None else raw, f"predictions[{index}]")),
            Counter(as_relations(reference, f"references[{index}]")),
            raw is None,
        )
        for index, (raw, reference) in enumerate(zip(predictions, references, strict=True))
    ]


def check_columns(
    predictions: Sequence[RawExample | None] | None, references: Sequence[RawExample] | None
) -> tuple[Sequence[RawExample | None], Sequence[RawExample]]:
    """Both columns. Raises TypeError unless they are lists of examples, ValueError unless equally long."""
    for name, column in (("predictions", predictions), ("references", references)):
        if isinstance(column, str | bytes | Mapping) or not isinstance(column, Sequence):
            kind = type(column).__name__
            raise TypeError(f"{name}: is of type {kind}; give a list with one entry per example")
    assert predictions is not None
    assert references is not None
    if len(predictions) != len(references):
        raise ValueError(
            f"there are {len(predictions)} predictions for {len(references)} references; "
            "give one prediction per reference, None where there is no usable answer"
        )
    return predictions, references


def _pooled_by(examples: Iterable[_Example], key: Callable[[Relation], str]) -> dict[str, dict[str, Any]]:
    """Counts and shares per group of relations, sorted by group; `support` counts the reference relations."""
    tp: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    support: Counter[str] = Counter()
    for prediction, reference, _ in examples:
        for counts, total in ((prediction & reference, tp), (prediction, predicted), (reference, support)):
            for relation, count in counts.items():
                total[key(relation)] += count
    return {
        group: _group_figures(tp[group], predicted[group], support[group])
        for group in sorted(predicted.keys() | support.keys())
    }


def _group_figures(tp: int, n_predicted: int, support: int) -> dict[str, Any]:
    precision, recall = _ratio(tp, n_predicted, support), _ratio(tp, support, n_predicted)
    return {
        "precision": precision,
        "recall": recall,
        "f1": f1_score(precision, recall),
        "tp": tp,
        "n_predicted": n_predicted,
        "support": support,
    }


def _macro_f1(groups: Mapping[str, Mapping[str, Any]]) -> float:
    values = [figures["f1"] for figures in groups.values() if figures["support"]]
    return sum(values) / len(values) if values else 0.0


def _label(relation: Relation) -> str:
    return f"{relation.relation_type}/{relation.value}"


def score_examples(predictions: Sequence[RawExample | None], references: Sequence[RawExample]) -> list[ExampleScore]:
    """One score an example, in order. Raises as `tuple_f1` does.

    >>> on = (1, 2, "position", "on")
    >>> [score.f1 for score in score_examples([[on], None], [[on], [on]])]
    [1.0, 0.0]
    """
    return [_count(*example) for example in _examples(predictions, references)]


NOTHING = "(nothing)"
"""In a confusion: nothing was answered for the pair of objects, or there was nothing to answer."""


def tuple_confusion(
    predictions: Sequence[RawExample | None], references: Sequence[RawExample]
) -> dict[str, dict[str, int]]:
    """What was answered in place of what: "type/value" of the reference -> "type/value" answered -> count.

    Within an example, relations between the same two objects in the same direction answer for each other: equal ones
    first, the rest in order of their labels. What is left over is answered by, or answers for, `(nothing)`; so is all
    of a failed example. Raises as `tuple_f1` does.

    >>> on, under, inside = ((1, 2, "position", value) for value in ("on", "under", "inside"))
    >>> tuple_confusion([[on], [inside], []], [[on], [under], [on]])
    {'position/on': {'(nothing)': 1, 'position/on': 1}, 'position/under': {'position/inside': 1}}
    """
    counts: Counter[tuple[str, str]] = Counter()
    for predicted, reference, _ in _examples(predictions, references):
        counts.update((_label(relation),) * 2 for relation in (predicted & reference).elements())
        wrong, missed = _by_pair(predicted - reference), _by_pair(reference - predicted)
        for pair in wrong.keys() | missed.keys():
            counts.update(zip_longest(missed.get(pair, ()), wrong.get(pair, ()), fillvalue=NOTHING))
    confusion: dict[str, dict[str, int]] = {}
    for (truth, answered), count in sorted(counts.items()):
        confusion.setdefault(truth, {})[answered] = count
    return confusion


def _by_pair(relations: Counter[Relation]) -> dict[tuple[int, int], list[str]]:
    found: dict[tuple[int, int], list[str]] = {}
    for relation in sorted(relations.elements()):
        found.setdefault(relation[:2], []).append(_label(relation))
    return found
