"""The `evaluate` metric SpatioTemporalGrounding. scoring.py defines its rules. Needs numpy and `evaluate`.

`evaluate` reads this file line by line to find the files to copy, so keep each import statement on one line.
"""

import json
from collections.abc import Sequence
from typing import Any

import datasets
import evaluate

from .parsing import to_json
from .scoring import check_columns, spatio_temporal_grounding

_DESCRIPTION = """\
Recognition, temporal and spatial grounding of the objects that a task takes, in video: accuracy, tIoU and R1@, vIoU
and AP@, per object, per task and strictly per task, as ToG-Bench reports them.
"""

_CITATION = """\
@misc{togbench2025,
  title = {ToG-Bench: Task-Oriented Spatio-Temporal Grounding in Egocentric Videos},
  year = {2025},
  eprint = {2512.03666},
  archivePrefix = {arXiv}
}
"""


class SpatioTemporalGrounding(evaluate.Metric):
    """Recognition and grounding of task-relevant objects."""

    def _info(self) -> evaluate.MetricInfo:
        # Store tasks as JSON. evaluate refuses a bare null, and its box-by-box encoding of nested features is slow.
        row = datasets.Value("large_string")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=spatio_temporal_grounding.__doc__,
            features=datasets.Features({"predictions": row, "references": row}),
            reference_urls=["https://arxiv.org/abs/2512.03666"],
        )

    def add(self, *, prediction: object = None, reference: object = None, **kwargs: object) -> None:
        """Add one task. A prediction of None means that there is no usable answer."""
        # evaluate.combine calls add() with the plural names.
        row: dict[str, Any] = {"predictions": prediction, "references": reference} | kwargs
        self.add_batch(**{name: [value] for name, value in row.items()})

    def add_batch(self, *, predictions: object = None, references: object = None, **kwargs: object) -> None:
        """Add tasks. Raises a TypeError or ValueError that names the task, the object and the invalid field."""
        answers, tasks = check_columns(predictions, references)
        super().add_batch(predictions=list(map(to_json, answers)), references=list(map(to_json, tasks)), **kwargs)

    def _compute(
        self, predictions: Sequence[str], references: Sequence[str], viou: str = "reference"
    ) -> dict[str, Any]:
        answers, tasks = (list(map(json.loads, column)) for column in (predictions, references))
        return spatio_temporal_grounding(answers, tasks, viou=viou)
