"""The `evaluate` metric TemporalRelations. scoring.py defines its rules. Needs only numpy and `evaluate`.

`evaluate` reads this file line by line to find the files to copy, so keep each import statement on one line.
"""

import json
from collections.abc import Sequence
from typing import Any

import datasets
import evaluate

from .scoring import check_columns, temporal_relations

_DESCRIPTION = """\
Temporal relations compares the relations that a model reports for a clip with the annotated ones. A relation is a
triplet (subject, relation, object) with the stretch of time in which it holds. recall@K asks how many annotated
relations the first K reported ones hit (the same triplet, a temporal IoU of 0.5); segment IoU compares all times.
"""

_CITATION = """\
@inproceedings{shang2017video,
  title = {Video Visual Relation Detection},
  author = {Shang, Xindi and Ren, Tongwei and Guo, Jingfan and Zhang, Hanwang and Chua, Tat-Seng},
  booktitle = {ACM International Conference on Multimedia},
  year = {2017},
  doi = {10.1145/3123266.3123380}
}
"""


class TemporalRelations(evaluate.Metric):
    """recall@K and segment IoU of relations over time."""

    def _info(self) -> evaluate.MetricInfo:
        # Store one JSON text per example, since evaluate refuses a bare null as the first prediction of a batch.
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=temporal_relations.__doc__,
            features=datasets.Features({name: datasets.Value("string") for name in ("predictions", "references")}),
            reference_urls=["https://doi.org/10.1145/3123266.3123380"],
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

    def _compute(self, predictions: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
        return temporal_relations(*(list(map(json.loads, column)) for column in (predictions, references)))
