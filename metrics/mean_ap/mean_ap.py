"""The `evaluate` metric MeanAP. scoring.py defines its rules. Needs `datasets`, `evaluate` and `numpy`.

`evaluate` reads this file line by line to find the files to copy, so keep each import statement on one line. It does
not read the sibling modules, so import a name from each sibling module here.
"""

import json
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

import datasets
import evaluate
import numpy as np

from .accumulate import STATISTICS
from .inputs import Column, IouType, check_columns, check_same_labelling, join_columns, read_column
from .matching import THRESHOLDS
from .overlap import Shapes
from .scoring import Rounding, evaluate_examples, mean_ap, spread_of, summarise
from .values import as_rle
from .weighted import weighted_statistics

__all__ = ["STATISTICS", "THRESHOLDS", "MeanAP", "Shapes", "as_rle", "weighted_statistics"]

_DESCRIPTION = """\
Mean average precision (COCO's twelve statistics) of boxes or masks that a model finds in images, and metrics beside it
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
    """COCO's average precision and recall of boxes or masks, and an F1 that needs no confidences.

    A batch is checked and flattened when you add it, and stored as one row.
    """

    _images = 0

    def __len__(self) -> int:
        """Return the number of images added since the last `compute`."""
        return self._images if super().__len__() else 0

    def _info(self) -> evaluate.MetricInfo:
        # Store one row per batch. evaluate walks through nested lists in Python, which takes longer than scoring.
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=mean_ap.__doc__,
            features=datasets.Features(
                {name: datasets.Value("large_binary") for name in ("predictions", "references")}
            ),
            reference_urls=["https://arxiv.org/abs/2605.12074", "https://cocodataset.org/#detection-eval"],
        )

    def add(self, *, prediction: object = None, reference: object = None, **kwargs: object) -> None:
        """Add one image. A prediction of None means that there is no usable answer."""
        # evaluate.combine calls add() with the plural names.
        row: dict[str, Any] = {"predictions": prediction, "references": reference} | kwargs
        self.add_batch(**{name: [value] for name, value in row.items()})

    def add_batch(self, *, predictions: object = None, references: object = None, **kwargs: object) -> None:
        """Add images. Raises a TypeError or ValueError that names the image and the invalid field."""
        answers, expected = check_columns(predictions, references)
        if not len(expected):
            super().add_batch(predictions=[], references=[], **kwargs)
            return
        # The kinds (boxes, masks) by which all images can be scored. If both are missing, reading reports the missing
        # field.
        image_dicts = [raw for raw in (*answers, *expected) if isinstance(raw, Mapping)]
        kinds: list[IouType] = [kind for kind, field in _FIELDS.items() if all(field in raw for raw in image_dicts)]
        kinds = kinds or (["segm"] if any("masks" in raw for raw in image_dicts) else ["bbox"])
        predicted = {kind: read_column("predictions", answers, kind) for kind in kinds}
        reference = {kind: read_column("references", expected, kind) for kind in kinds}
        for kind in kinds:
            check_same_labelling(predicted[kind], reference[kind])
        images = len(self) + len(expected)
        super().add_batch(predictions=[pack(predicted)], references=[pack(reference)], **kwargs)
        self._images = images

    def _compute(
        self,
        predictions: Sequence[bytes],
        references: Sequence[bytes],
        iou_type: IouType = "bbox",
        rounding: Rounding = "none",
        tie_orders: int = 0,
        seed: int = 0,
    ) -> dict[str, Any]:
        examples = join_columns(_columns(predictions, iou_type), _columns(references, iou_type))
        evaluated = evaluate_examples(examples, rounding)
        result = summarise(evaluated)
        if tie_orders:
            result["tie_spread"] = spread_of(evaluated, orders=tie_orders, seed=seed)
        return result


_FIELDS: dict[IouType, str] = {"bbox": "boxes", "segm": "masks"}


def _columns(rows: Sequence[bytes], iou_type: IouType) -> list[Column]:
    if iou_type not in _FIELDS:
        raise ValueError(f"iou_type is {iou_type!r}; give 'bbox' or 'segm'")
    batches = [unpack(row) for row in rows]
    if not all(iou_type in batch for batch in batches):
        raise ValueError(f"{_FIELDS[iou_type]} is missing from some images; give it for all, or another iou_type")
    return [batch[iou_type] for batch in batches]


# A batch is kept as bytes, with numbers in their memory layout. Writing and reading JSON would take longer than
# scoring.
_ARRAYS = ("counts", "failed", "boxes", "scores", "label")


def pack(columns: Mapping[IouType, Column]) -> bytes:
    """Pack columns as bytes: the texts as JSON, followed by each array in the .npy format.

    >>> column = Column(np.array([1]), np.array([False]), np.ones((1, 4)), None, None, np.array([0]), ["cup"])
    >>> copy = unpack(pack({"bbox": column}))["bbox"]
    >>> copy.boxes.tolist(), copy.scores, copy.names
    ([[1.0, 1.0, 1.0, 1.0]], None, ['cup'])
    """
    arrays = {kind: [name for name in _ARRAYS if getattr(column, name) is not None] for kind, column in columns.items()}
    texts = {
        kind: {"arrays": arrays[kind], "names": column.names, "masks": column.masks} for kind, column in columns.items()
    }
    file = BytesIO()
    np.save(file, np.frombuffer(json.dumps(texts).encode(), np.uint8), allow_pickle=False)
    for kind, column in columns.items():
        for name in arrays[kind]:
            np.save(file, getattr(column, name), allow_pickle=False)
    return file.getvalue()


def unpack(data: bytes) -> dict[IouType, Column]:
    """Return the columns that `pack` packed."""
    file = BytesIO(data)
    columns = json.loads(np.load(file, allow_pickle=False).tobytes())
    nothing = dict.fromkeys(_ARRAYS)
    return {
        kind: Column(
            **nothing | {name: np.load(file, allow_pickle=False) for name in texts["arrays"]},
            names=texts["names"],
            masks=texts["masks"],
        )
        for kind, texts in columns.items()
    }
