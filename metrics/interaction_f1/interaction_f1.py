"""The `evaluate` metric InteractionF1. scoring.py defines its rule. Needs `datasets`, `evaluate` and numpy.

`evaluate` reads this file line by line to find the files to copy, so keep each import statement on one line.
"""

import json
from collections.abc import Sequence
from typing import Any

import datasets
import evaluate

from .inputs import Interaction, check_columns
from .scoring import check_matching, interaction_f1, pool, score_checked

_DESCRIPTION = """\
Interaction F1 compares the hand-object interactions that a model reports for a frame with the annotated ones. An
interaction is the box of an object, the boxes of the hands that act on it, and which hands they are. Interactions
are matched one to one by the IoU of their objects, which must exceed 0.5.
"""

_CITATION = """\
@misc{barista2026,
  title = {BARISTA: A Multi-Task Egocentric Benchmark for Compositional Visual Understanding},
  year = {2026},
  eprint = {2605.12074},
  archivePrefix = {arXiv},
  note = {Section A.2.2, egocentric hand-object interaction}
}
"""


class InteractionF1(evaluate.Metric):
    """Precision, recall and F1 of hand-object interactions, and the quality of the matched pairs."""

    def _info(self) -> evaluate.MetricInfo:
        # Store one JSON text per frame. evaluate walks through nested lists in Python, which takes several times as
        # long. It also refuses a bare null as the first prediction of a batch.
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=interaction_f1.__doc__,
            features=datasets.Features({name: datasets.Value("string") for name in ("predictions", "references")}),
            reference_urls=["https://arxiv.org/abs/2605.12074"],
        )

    def add(self, *, prediction: object = None, reference: object = None, **kwargs: object) -> None:
        """Add one frame. A prediction of None means that there is no usable answer."""
        # evaluate.combine calls add() with the plural names.
        row: dict[str, Any] = {"predictions": prediction, "references": reference} | kwargs
        self.add_batch(**{name: [value] for name, value in row.items()})

    def add_batch(self, *, predictions: object = None, references: object = None, **kwargs: object) -> None:
        """Add frames. Raises a TypeError or ValueError that names the frame and the invalid field."""
        answers, expected = check_columns(predictions, references)
        super().add_batch(
            predictions=list(map(json.dumps, answers)), references=list(map(json.dumps, expected)), **kwargs
        )

    def _compute(
        self, predictions: Sequence[str], references: Sequence[str], matching: str = "greedy"
    ) -> dict[str, Any]:
        check_matching(matching)
        rows = zip(map(json.loads, predictions), map(json.loads, references), strict=True)
        return pool(score_checked(_unpack(answer), _unpack(truth) or [], matching) for answer, truth in rows)


def _unpack(rows: Sequence[Sequence[Any]] | None) -> list[Interaction] | None:
    """Decode the rows that add_batch() stored. JSON keeps numbers exactly."""
    return None if rows is None else [Interaction(*row) for row in rows]
