"""The `evaluate` metric TemporalSegmentation. scoring.py defines its rules. Needs `datasets`, `evaluate` and numpy.

`evaluate` reads this file line by line to find the files to copy, so keep each import statement on one line.
"""

import json
from collections.abc import Sequence
from typing import Any

import datasets
import evaluate

from .scoring import check_columns, temporal_segmentation

_DESCRIPTION = """\
Temporal segmentation compares the label that a model gives to each frame of a clip with the annotated one: frame
accuracy, the edit score of the order of segments, and F1 of segments that overlap by 10, 25 and 50 percent.
"""

_CITATION = """\
@inproceedings{farha2019mstcn,
  title = {{MS-TCN}: Multi-Stage Temporal Convolutional Network for Action Segmentation},
  author = {Abu Farha, Yazan and Gall, Juergen},
  booktitle = {CVPR},
  year = {2019}
}
"""


class TemporalSegmentation(evaluate.Metric):
    """Frame accuracy, edit score and F1 of segments."""

    def _info(self) -> evaluate.MetricInfo:
        # Store one JSON text per clip, since evaluate refuses a bare null as the first prediction of a batch.
        clip = datasets.Value("large_string")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=temporal_segmentation.__doc__,
            features=datasets.Features({"predictions": clip, "references": clip}),
            reference_urls=["https://arxiv.org/abs/1611.05267", "https://arxiv.org/abs/1903.01945"],
        )

    def add(self, *, prediction: object = None, reference: object = None, **kwargs: object) -> None:
        """Add one clip. A prediction of None means that there is no usable answer."""
        # evaluate.combine calls add() with the plural names.
        row: dict[str, Any] = {"predictions": prediction, "references": reference} | kwargs
        self.add_batch(**{name: [value] for name, value in row.items()})

    def add_batch(self, *, predictions: object = None, references: object = None, **kwargs: object) -> None:
        """Add clips. Raises a TypeError or ValueError that names the clip and the invalid frame."""
        answers, expected = check_columns(predictions, references)
        super().add_batch(
            predictions=list(map(json.dumps, answers)), references=list(map(json.dumps, expected)), **kwargs
        )

    def _compute(self, predictions: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
        return temporal_segmentation(list(map(json.loads, predictions)), list(map(json.loads, references)))
