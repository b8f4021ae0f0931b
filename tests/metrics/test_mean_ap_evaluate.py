"""The mean_ap metric inside `evaluate`: labels of several kinds, masks and options."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "metrics"))
from mean_ap import evaluate_images, mean_ap, spread_of  # noqa: E402

METRIC = "mean_ap"

CUPS = {"boxes": [[10, 10, 50, 50], [60, 10.1, 100, 50]], "labels": "cup"}
MIXED = {"boxes": [[10, 10, 50, 46], [0, 0, 9, 9]], "labels": ["cup", 3], "scores": [0.9, 0.4]}
LOW = {"boxes": [[60, 10, 100, 1 / 3 + 48]], "labels": ["cup"], "scores": [0.2]}
NONE: dict[str, object] = {"boxes": []}

PREDICTIONS = [None, MIXED, NONE, LOW]
REFERENCES = [CUPS, CUPS, NONE, CUPS]


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
    assert spread == spread_of(evaluate_images(PREDICTIONS, REFERENCES), orders=7, seed=3)
