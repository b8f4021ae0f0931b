"""The `evaluate` metric SequenceMatching. scoring.py and rescaling.py define its rules.

`evaluate` reads this file line by line to find the files to copy, so keep each import statement on one line.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import datasets
import evaluate

from .inputs import as_columns, as_groups, as_labels, as_matrix
from .rescaling import STANDARDISE
from .scoring import sequence_matching

_DESCRIPTION = f"""\
Sequence Matching scores how well a model matches videos to descriptions of sequences of actions, as ViSTa does:
within each problem set the scores pass a softmax over the descriptions and are standardised per description over
the videos; the description with the highest score is predicted; macro-F1 is averaged over problem sets. Other
rescalings: {", ".join(STANDARDISE)}.
"""

_CITATION = """\
@misc{vista2024,
  title = {ViSTa Dataset: Do vision-language models understand sequential tasks?},
  year = {2024},
  eprint = {2411.13211},
  archivePrefix = {arXiv}
}
"""


class SequenceMatching(evaluate.Metric):
    """Macro-F1 of matching videos to descriptions within problem sets."""

    def _info(self) -> evaluate.MetricInfo:
        # Store one JSON text per problem set, since evaluate refuses a bare null as the first entry of a batch.
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=sequence_matching.__doc__,
            features=datasets.Features({name: datasets.Value("string") for name in ("predictions", "references")}),
            reference_urls=["https://arxiv.org/abs/2411.13211", "https://github.com/Eugleo/vista-dataset"],
        )

    def add(self, *, prediction: object = None, reference: object = None, **kwargs: object) -> None:
        """Add one problem set. If the prediction is None, the model has no scores for this set."""
        # evaluate.combine calls add() with the plural names.
        row: dict[str, Any] = {"predictions": prediction, "references": reference} | kwargs
        self.add_batch(**{name: [value] for name, value in row.items()})

    def add_batch(self, *, predictions: object = None, references: object = None, **kwargs: object) -> None:
        """Add problem sets. A reference may be a dict with `labels` and `groups`.

        Raises a TypeError or ValueError that names the set and the invalid field.
        """
        scores, truths = as_columns(predictions, references)
        rows = [_as_reference(raw, f"references[{index}]") for index, raw in enumerate(truths)]
        matrices = [
            None if raw is None else as_matrix(raw, f"predictions[{index}]", len(row["labels"]))
            for index, (raw, row) in enumerate(zip(scores, rows, strict=True))
        ]
        super().add_batch(predictions=list(map(json.dumps, matrices)), references=list(map(json.dumps, rows)), **kwargs)

    def _compute(self, predictions: Sequence[str], references: Sequence[str], **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401
        truths = list(map(json.loads, references))
        labels, groups = ([row[name] for row in truths] for name in ("labels", "groups"))
        return sequence_matching(list(map(json.loads, predictions)), labels, groups, **kwargs)


def _as_reference(raw: Any, where: str) -> dict[str, Any]:  # noqa: ANN401
    if not isinstance(raw, Mapping):
        return {"labels": as_labels(raw, where), "groups": []}
    if "labels" not in raw or not raw.keys() <= {"labels", "groups"}:
        raise ValueError(f"{where}: has the keys {list(raw)}; give labels and, optionally, groups")
    return {"labels": as_labels(raw["labels"], where), "groups": as_groups([raw.get("groups")], 1)[0]}
