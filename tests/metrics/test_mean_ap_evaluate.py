"""The mean_ap metric inside `evaluate`: equal to its function, masks, options and errors included."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "metrics"))
from mean_ap import mean_ap, tie_spread  # noqa: E402

METRIC = "mean_ap"

CUPS = {"boxes": [[10, 10, 50, 50], [60, 10.1, 100, 50]], "labels": "cup"}
MIXED = {"boxes": [[10, 10, 50, 46], [0, 0, 9, 9]], "labels": ["cup", 3], "scores": [0.9, 0.4]}
LOW = {"boxes": [[60, 10, 100, 1 / 3 + 48]], "labels": ["cup"], "scores": [0.2]}
NONE: dict[str, object] = {"boxes": []}

PREDICTIONS = [None, MIXED, NONE, LOW]
REFERENCES = [CUPS, CUPS, NONE, CUPS]


def test_the_module_computes_what_the_function_does(metric_class):
    result = metric_class(keep_in_memory=True).compute(predictions=PREDICTIONS, references=REFERENCES)
    assert result == mean_ap(PREDICTIONS, REFERENCES)


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ({"predictions": [], "references": []}, ValueError, "nothing to score"),
        ({"references": [CUPS]}, TypeError, "predictions: is of type NoneType"),
        ({"predictions": [{"boxes": [[1, 2]]}], "references": [CUPS]}, ValueError, r"predictions\[0\]: boxes has the"),
        ({"predictions": [CUPS], "references": [CUPS], "weight": 2}, TypeError, "weight"),
        ({"predictions": [CUPS], "references": [CUPS], "iou_type": "segm"}, ValueError, "masks is missing"),
    ],
)
def test_evaluate_passes_on_the_clear_errors(metric_class, inputs, error, message):
    with pytest.raises(error, match=message):
        metric_class(keep_in_memory=True).compute(**inputs)


def test_a_column_of_a_dataset_is_accepted(metric_class):
    datasets = pytest.importorskip("datasets")
    images = [{"boxes": CUPS["boxes"], "labels": ["cup", "cup"]}, {"boxes": [], "labels": []}]
    table = datasets.Dataset.from_dict({"p": images, "r": images[::-1]})
    result = metric_class(keep_in_memory=True).compute(predictions=table["p"], references=table["r"])
    assert result == mean_ap(images, images[::-1])


def test_arrays_and_tensors_are_accepted(metric_class):
    torch = pytest.importorskip("torch")
    tensors = {"boxes": torch.tensor(CUPS["boxes"], dtype=torch.float64), "labels": np.array([1, 1])}
    lists = {"boxes": CUPS["boxes"], "labels": [1, 1]}
    result = metric_class(keep_in_memory=True).compute(predictions=[tensors], references=[lists])
    assert result == mean_ap([lists], [lists])


def test_masks_and_options_reach_the_function(metric_class):
    mask = pytest.importorskip("pycocotools.mask")
    squares = mask.frPyObjects(np.array([[2.0, 2, 8, 8], [12, 2, 9, 5]]), 24, 24)
    image = {"masks": squares, "scores": [1.0, 0.5]}
    metric = metric_class(keep_in_memory=True)
    result = metric.compute(
        predictions=[image, None], references=[{"masks": squares}] * 2, iou_type="segm", rounding="float32"
    )
    assert result == mean_ap([image, None], [{"masks": squares}] * 2, iou_type="segm", rounding="float32")
    orders = {"tie_orders": 7, "seed": 3}
    spread = metric.compute(predictions=PREDICTIONS, references=REFERENCES, **orders)["tie_spread"]
    assert spread == tie_spread(PREDICTIONS, REFERENCES, orders=7, seed=3)
