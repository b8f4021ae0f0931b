"""The mean_ap metric inside `evaluate`: labels of several kinds, masks and options."""

import numpy as np
import pytest
from mean_ap import evaluate_images, mean_ap, spread_of

from tests.metrics.conftest import least_cpu

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


def test_images_may_hold_masks_beside_boxes(metric_class):
    """The module refused what the function scores, where some images had masks and others had none."""
    boxes = np.array([[2.0, 2, 8, 8], [12, 2, 9, 5]])
    masks = pytest.importorskip("pycocotools.mask").frPyObjects(boxes, 24, 24)
    corners = np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]])
    both = {"boxes": corners, "masks": masks, "scores": [1.0, 0.5]}
    predictions, references = [{"boxes": corners[1:], "scores": [0.7]}, both], [{"boxes": corners}] * 2
    metric = metric_class(keep_in_memory=True)
    assert metric.compute(predictions=predictions, references=references) == mean_ap(predictions, references)
    for iou_type in ("bbox", "segm"):
        result = metric.compute(predictions=[both], references=[both], iou_type=iou_type)
        assert result == mean_ap([both], [both], iou_type=iou_type)
    with pytest.raises(ValueError, match="masks is missing from some images; give"):
        metric.compute(predictions=predictions, references=references, iou_type="segm")
    with pytest.raises(ValueError, match=r"references\[0\]: masks is missing"):  # not boxes, which no image has
        metric.compute(predictions=[{"masks": masks, "scores": [1.0, 0.5]}], references=[{"labels": "cup"}])


@pytest.mark.parametrize("field", ["labels", "scores"])
def test_batches_that_do_not_agree_are_named_by_the_image(metric_class, field):
    metric = metric_class(keep_in_memory=True)
    metric.add_batch(predictions=[None, MIXED], references=[CUPS, CUPS])
    lacking = {name: value for name, value in LOW.items() if name != field}
    bare = {"boxes": CUPS["boxes"]} if field == "labels" else CUPS
    metric.add_batch(predictions=[NONE, lacking], references=[bare, bare])
    with pytest.raises(ValueError, match=rf"predictions\[3\]: {field} is missing, which others have"):
        metric.compute()


@pytest.mark.full
def test_the_module_adds_little_to_the_function(metric_class):
    """Rows of JSON made it take 2.6 times as long; `evaluate` itself costs about 5 ms a call."""
    rng = np.random.default_rng(0)
    corners = rng.uniform(0, 900, (2000, 8, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(5, 99, corners.shape)], axis=2).tolist()
    labels = rng.integers(0, 40, (2000, 8)).tolist()
    references = [{"boxes": box, "labels": label} for box, label in zip(boxes, labels, strict=True)]
    predictions = [image | {"scores": [0.5] * 8} for image in references]
    metric = metric_class()
    module = least_cpu(lambda: metric.compute(predictions=predictions, references=references))
    assert module < 1.8 * least_cpu(lambda: mean_ap(predictions, references))
