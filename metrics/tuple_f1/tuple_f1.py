"""The `evaluate` metric TupleF1. scoring.py defines its rule. Needs only `datasets` and `evaluate`.

`evaluate` reads this file line by line to find the files to copy, so keep each import statement on one line.
"""

import json
from collections.abc import Sequence
from typing import Any

import datasets
import evaluate

from .scoring import check_columns, tuple_confusion, tuple_f1

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


class TupleF1(evaluate.Metric):
    """Exact multiset precision, recall and F1 of relation tuples."""

    def _info(self) -> evaluate.MetricInfo:
        # Store one JSON text per example, since evaluate refuses a bare null as the first prediction of a batch.
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=tuple_f1.__doc__,
            features=datasets.Features({name: datasets.Value("string") for name in ("predictions", "references")}),
            reference_urls=["https://arxiv.org/abs/2605.12074"],
        )

    def add(self, *, prediction: object = None, reference: object = None, **kwargs: object) -> None:
        """Add one example. A prediction of None means that there is no usable answer."""
        # evaluate.combine calls add() with the plural names.
        row: dict[str, Any] = {"predictions": prediction, "references": reference} | kwargs
        self.add_batch(**{name: [value] for name, value in row.items()})

    def add_batch(self, *, predictions: object = None, references: object = None, **kwargs: object) -> None:
        """Add examples. Raises a TypeError or ValueError that names the example and the invalid field."""
        answers, expected = check_columns(predictions, references)
        super().add_batch(
            predictions=list(map(json.dumps, answers)), references=list(map(json.dumps, expected)), **kwargs
        )

    def _compute(
        self, predictions: Sequence[str], references: Sequence[str], confusion: bool = False
    ) -> dict[str, Any]:
        rows = [list(map(json.loads, column)) for column in (predictions, references)]
        return tuple_f1(*rows) | ({"confusion": tuple_confusion(*rows)} if confusion else {})
