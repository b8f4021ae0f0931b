"""The mean_ap metric equals pycocotools: random boxes and masks, ties, crowds, degenerate boxes, empty images."""

import contextlib
import io

import numpy as np
import pytest
from mean_ap import STATISTICS, mean_ap


def twelve(result):
    return np.array([result[name] for name in STATISTICS])


def random_images(rng, *, n_images=2, crowd=False):
    """Predictions and references as arrays: ties, overlaps, empty images, degenerate and swapped boxes, many boxes."""
    n_labels, step = 1 + (rng.random() < 0.25), rng.choice([0.1, 1, 4, 8])
    size, spread = rng.choice([8, 40, 150, 400]), rng.choice([10, 60, 300])
    scoring = rng.integers(0, 4)
    predictions, references = [], []
    for _ in range(int(rng.integers(1, n_images + 1))):
        n_found, n_true = (
            (int(rng.integers(80, 160)), 25) if crowd else (int(rng.integers(0, 9)), int(rng.integers(0, 7)))
        )
        true = snapped(np.hstack([rng.uniform(0, spread, (n_true, 2)), rng.uniform(0, size, (n_true, 2))]), step)
        true[:, 2:] += true[:, :2]
        label = rng.integers(0, n_labels, n_true)
        if n_true:
            near = rng.integers(0, n_true, n_found)
            boxes = true[near] + snapped(rng.normal(0, size / 12, (n_found, 4)), step) * (
                rng.random((n_found, 1)) < 0.8
            )
            guess = np.where(rng.random(n_found) < 0.8, label[near], rng.integers(0, n_labels, n_found))
        else:
            boxes, guess = rng.uniform(0, spread, (n_found, 4)), rng.integers(0, n_labels, n_found)
        scores = [rng.random(n_found), np.ones(n_found), rng.integers(0, 3, n_found) / 2, rng.normal(size=n_found)]
        predictions.append({"boxes": boxes, "labels": guess, "scores": scores[scoring]})
        references.append({"boxes": true, "labels": label})
    return predictions, references


def snapped(values, step):
    return np.round(values / step) * step


def extent(box):
    return [box[0], box[1], box[2] - box[0], box[3] - box[1]]


def box_annotation(box):
    box = extent(box)
    return {"bbox": box, "area": box[2] * box[3]}


def mask_annotation(rle):
    mask = pytest.importorskip("pycocotools.mask")
    return {"segmentation": dict(rle), "area": float(mask.area(rle))}


def annotations(side, labels, annotate, field):
    rows = []
    for image, raw in enumerate(side):
        scores = raw.get("scores", np.ones(len(raw["labels"])))
        for shape, label, score in zip(raw[field], raw["labels"], scores, strict=True):
            row = {"id": len(rows) + 1, "image_id": image + 1, "category_id": labels.index(label) + 1, "iscrowd": 0}
            rows.append(row | {"score": float(score)} | annotate(shape))
    return rows


def run_pycocotools(predictions, references, *, iou_type="bbox", thresholds=None):
    """The twelve statistics, and the precision (T, R, K, A, M) with the labels (K) that it is of."""
    coco = pytest.importorskip("pycocotools.coco")
    from pycocotools.cocoeval import COCOeval

    annotate, field = (box_annotation, "boxes") if iou_type == "bbox" else (mask_annotation, "masks")
    labels = sorted({label for raw in [*predictions, *references] for label in np.asarray(raw["labels"]).tolist()})
    sides = []
    for side in (references, predictions):
        data = coco.COCO()
        data.dataset = {
            "info": {},
            "images": [{"id": number + 1, "height": 40, "width": 60} for number in range(len(references))],
            "categories": [{"id": number + 1, "name": str(label)} for number, label in enumerate(labels)],
            "annotations": annotations(side, labels, annotate, field),
        }
        sides.append(data)
    with contextlib.redirect_stdout(io.StringIO()):
        for data in sides:
            data.createIndex()
        run = COCOeval(*sides, iou_type)
        if thresholds is not None:
            run.params.iouThrs, run.params.recThrs = thresholds
        run.evaluate()
        run.accumulate()
        run.summarize()
    return run.stats, run.eval["precision"], labels


@pytest.mark.parametrize("n_cases", [60, pytest.param(2000, marks=pytest.mark.full)])
def test_equals_pycocotools_on_random_cases(n_cases):
    rng, worst = np.random.default_rng(0), 0.0
    for number in range(n_cases):
        predictions, references = random_images(rng, n_images=2 if number % 8 else 6)
        want, precision, labels = run_pycocotools(predictions, references)
        got = mean_ap(predictions, references)
        worst = max(worst, np.abs(twelve(got) - want).max())
        for code, label in enumerate(labels):
            values = precision[:, :, code, 0, 2]
            ap = got["per_category"][str(label)]["ap"]
            worst = max(worst, abs((-1 if ap is None else ap) - values.mean()))
        assert worst < 1e-9, number


def test_equals_pycocotools_where_more_than_100_boxes_crowd_an_image():
    rng = np.random.default_rng(1)
    for _ in range(12):
        predictions, references = random_images(rng, n_images=2, crowd=True)
        want, _, _ = run_pycocotools(predictions, references)
        assert np.abs(twelve(mean_ap(predictions, references)) - want).max() < 1e-9


def random_masks(rng):
    """Masks of noisy ellipses, as run-length encodings of a 40 x 60 image."""
    mask = pytest.importorskip("pycocotools.mask")
    y, x = np.mgrid[:40, :60]

    def side(count):
        centres = rng.integers(5, 35, (count, 2))
        shapes = [
            ((y - a) ** 2 + (x - b) ** 2 < rng.integers(1, 200)) & (rng.random(y.shape) < 0.95) for a, b in centres
        ]
        return [mask.encode(np.asfortranarray(shape.astype(np.uint8))) for shape in shapes]

    def image(count):
        return {"masks": side(count), "labels": rng.integers(0, 2, count)}

    references = [image(int(rng.integers(0, 5))) for _ in range(3)]
    predictions = [image(int(rng.integers(0, 3))) for _ in range(3)]
    for prediction, reference in zip(predictions, references, strict=True):
        prediction["masks"] += reference["masks"][:2]
        prediction["labels"] = np.concatenate([prediction["labels"], reference["labels"][:2]])
        prediction["scores"] = rng.integers(0, 4, len(prediction["masks"])) / 4
    return predictions, references


@pytest.mark.full
def test_masks_equal_pycocotools():
    rng = np.random.default_rng(2)
    for _ in range(100):
        predictions, references = random_masks(rng)
        want, _, _ = run_pycocotools(predictions, references, iou_type="segm")
        assert np.abs(twelve(mean_ap(predictions, references, iou_type="segm")) - want).max() < 1e-9
