"""The `evaluate` metric TupleF1: see scoring.py for the rule. Needs only `datasets` and `evaluate`.

`evaluate` finds out what to copy by reading this file line by line: keep each import statement on one line.
"""

from collections.abc import Sequence
from typing import Any

import datasets
import evaluate

from .scoring import RawExample, as_relations, check_columns, tuple_confusion, tuple_f1

_Predictions = Sequence[RawExample | None]
_References = Sequence[RawExample]

_DESCRIPTION = """\
Tuple F1 compares the relations that a model reports for an image with the annotated ones. A relation is the
tuple (source object, target object, relation type, value). It is right when all four parts agree, case and
surrounding white space of the two strings aside, and every annotated relation can be matched once.
`compute(confusion=True)` adds what was answered in place of what.
"""

_CITATION = """\
@misc{barista2026,
  title = {BARISTA: A Multi-Task Egocentric Benchmark for Compositional Visual Understanding},
  year = {2026},
  eprint = {2605.12074},
  archivePrefix = {arXiv},
  note = {Section A.3.2, relation extraction}
}
"""

_RELATION = {
    "source_id": datasets.Value("int64"),
    "target_id": datasets.Value("int64"),
    "relation_type": datasets.Value("string"),
    "value": datasets.Value("string"),
}


class TupleF1(evaluate.Metric):
    """Exact multiset precision, recall and F1 of relation tuples."""

    def _info(self) -> evaluate.MetricInfo:
        # evaluate refuses a bare null as the first prediction of a batch, hence the flag beside the list.
        prediction = {"failed": datasets.Value("bool"), "relations": [_RELATION]}
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=tuple_f1.__doc__,
            features=datasets.Features({"predictions": prediction, "references": [_RELATION]}),
            reference_urls=["https://arxiv.org/abs/2605.12074"],
        )

    def add(
        self, *, prediction: RawExample | None = None, reference: RawExample | None = None, **kwargs: object
    ) -> None:
        """Add one example. A prediction of None says that there is no usable answer."""
        # evaluate.combine calls add() with the plural names.
        row: dict[str, Any] = {"predictions": prediction, "references": reference} | kwargs
        self.add_batch(**{name: [value] for name, value in row.items()})

    def add_batch(
        self,
        *,
        predictions: _Predictions | None = None,
        references: _References | None = None,
        **kwargs: object,
    ) -> None:
        """Add examples. Raises TypeError or ValueError naming the example and the field that is wrong."""
        answers, expected = check_columns(predictions, references)
        super().add_batch(
            predictions=[_as_row(raw, f"predictions[{index}]") for index, raw in enumerate(answers)],
            references=[_as_dicts(raw, f"references[{index}]") for index, raw in enumerate(expected)],
            **kwargs,
        )

    def _compute(
        self, predictions: Sequence[dict[str, Any]], references: _References, confusion: bool = False
    ) -> dict[str, Any]:
        answers = [None if row["failed"] else row["relations"] for row in predictions]
        result = tuple_f1(answers, references)
        return {**result, "confusion": tuple_confusion(answers, references)} if confusion else result


def _as_row(raw: RawExample | None, where: str) -> dict[str, Any]:
    return {"failed": raw is None, "relations": _as_dicts([] if raw is None else raw, where)}


def _as_dicts(raw: RawExample, where: str) -> list[dict[str, Any]]:
    return [relation._asdict() for relation in as_relations(raw, where)]
