"""The `evaluate` metric MeanAP: see scoring.py for the rules. Needs `datasets`, `evaluate`, `numpy`.

`evaluate` finds out what to copy by reading this file line by line: keep each import statement on one line, and
import something of each sibling here, since it does not look into the siblings.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import datasets
import evaluate
import numpy as np

from .accumulate import STATISTICS
from .inputs import IouType, RawImage, check_columns, read_examples
from .matching import THRESHOLDS
from .overlap import Shapes
from .scoring import Rounding, evaluate_images, mean_ap, summarise
from .spread import spread_of
from .values import as_rle
from .weighted import weighted_statistics

__all__ = ["STATISTICS", "THRESHOLDS", "MeanAP", "Shapes", "as_rle", "weighted_statistics"]

_DESCRIPTION = """\
Mean average precision (COCO's twelve statistics) of boxes or masks that a model finds in images, and figures beside it
that need no confidences: F1 at IoU 0.5 and over [.5:.95], and the mean best IoU. Where all scores are equal, which is
the normal case of a model that answers in text, the order of the images decides the average precision: tie_orders says
by how much. `compute(tie_orders=100, seed=0)` adds `tie_spread` over so many random orders.
"""

_CITATION = """\
@misc{barista2026,
  title = {BARISTA: A Multi-Task Egocentric Benchmark for Compositional Visual Understanding},
  year = {2026},
  eprint = {2605.12074},
  archivePrefix = {arXiv},
  note = {Section A.2.1, phrase grounding}
}
@inproceedings{coco2014,
  title = {Microsoft COCO: Common Objects in Context},
  author = {Lin, Tsung-Yi and Maire, Michael and Belongie, Serge and others},
  booktitle = {ECCV},
  year = {2014}
}
"""


class MeanAP(evaluate.Metric):
    """COCO's average precision and recall of boxes or masks, and F1 that needs no confidences."""

    def _info(self) -> evaluate.MetricInfo:
        # One JSON text per image: evaluate walks through nested lists in Python, which takes five times as long, and
        # it refuses a bare null as the first prediction of a batch.
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=mean_ap.__doc__,
            features=datasets.Features({name: datasets.Value("string") for name in ("predictions", "references")}),
            reference_urls=["https://arxiv.org/abs/2605.12074", "https://cocodataset.org/#detection-eval"],
        )

    def add(self, *, prediction: object = None, reference: object = None, **kwargs: object) -> None:
        """Add one image. A prediction of None says that there is no usable answer."""
        # evaluate.combine calls add() with the plural names.
        row: dict[str, Any] = {"predictions": prediction, "references": reference} | kwargs
        self.add_batch(**{name: [value] for name, value in row.items()})

    def add_batch(self, *, predictions: object = None, references: object = None, **kwargs: object) -> None:
        """Add images. Raises TypeError or ValueError naming the image and the field that is wrong."""
        answers, expected = check_columns(predictions, references)
        if len(expected):
            read_examples(answers, expected, _geometry([*answers, *expected]))
        super().add_batch(
            predictions=[_as_row(raw) for raw in answers], references=[_as_row(raw) for raw in expected], **kwargs
        )

    def _compute(
        self,
        predictions: Sequence[str],
        references: Sequence[str],
        iou_type: IouType = "bbox",
        rounding: Rounding = "none",
        tie_orders: int = 0,
        seed: int = 0,
    ) -> dict[str, Any]:
        answers, expected = [json.loads(row) for row in predictions], [json.loads(row) for row in references]
        evaluated = evaluate_images(answers, expected, iou_type=iou_type, rounding=rounding)
        result = summarise(evaluated)
        if tie_orders:
            result["tie_spread"] = spread_of(evaluated, orders=tie_orders, seed=seed)
        return result


def _geometry(images: Sequence[RawImage | None]) -> IouType:
    return "segm" if any(isinstance(raw, Mapping) and "masks" in raw for raw in images) else "bbox"


def _as_row(raw: RawImage | None) -> str:
    """A checked image as evaluate stores it: JSON keeps float64 exactly, and null is a failure."""
    return json.dumps(None if raw is None else dict(raw), default=_plain)


def _plain(value: object) -> object:
    """What json does not know: arrays, tensors and their elements; the counts of a mask as bytes."""
    if isinstance(value, bytes):
        return value.decode("ascii")
    if isinstance(value, Mapping):
        return dict(value)
    plain: object = np.asarray(value).tolist()
    return plain
