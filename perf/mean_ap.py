"""COCO mAP of boxes: the mean_ap metric beside pycocotools and, where it is installed, faster-coco-eval.

    python perf/mean_ap.py [--quick | --full]

Random images with 46 labels and 7.6 references each, in one run, round robin; the best of k rounds counts, and all
twelve statistics are compared with those of pycocotools. --full adds 100,000 images (about ten minutes, 10 GB). Then
the time of 1,000 resamples of 1,000 images by video, and what the evaluate module adds to the function.

The goals are 50 times the speed of pycocotools with equal statistics, 30 seconds for the resamples, and 100
microseconds an image for the module.
"""

import argparse
import contextlib
import copy
import importlib.util
import io
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "metrics"))
from mean_ap import STATISTICS, evaluate_images, figures, mean_ap, spread_of
from mean_ap.accumulate import accumulate, statistics
from mean_ap.inputs import Examples, ImageInstances, read_examples
from mean_ap.matching import Matches, group, match_greedily
from mean_ap.overlap import Shapes

LABELS = 46
Timed = tuple[float, np.ndarray]


def scene(images: int, scored: bool) -> Examples:
    """References of all sizes; predictions near 85% of them, some with a wrong label, and 20% that are made up."""
    rng = np.random.default_rng(0)
    image = np.repeat(np.arange(images), np.clip(rng.poisson(7.6, images), 1, 24))
    count = len(image)
    label = np.minimum(rng.exponential(9, count).astype(int), LABELS - 1)
    extent = np.exp(rng.normal(4.6, 0.9, (count, 2))).clip(8, 900)
    corner = rng.uniform(0, 1, (count, 2)) * (np.array([1920, 1080]) - extent).clip(1)
    boxes = np.hstack([corner, corner + extent]).round(1)
    detected = np.flatnonzero(rng.random(count) < 0.85)
    near = boxes[detected] + rng.normal(0, 0.08, (len(detected), 4)) * np.tile(extent[detected], 2)
    near[:, 2:] = np.maximum(near[:, 2:], near[:, :2] + 2)
    invented = count // 5
    corner = rng.uniform(0, [1500, 800], (invented, 2))
    far = np.hstack([corner, corner + rng.uniform(10, 300, (invented, 2))])
    wrong = rng.integers(0, LABELS, (2, count))
    which = np.concatenate([image[detected], rng.integers(0, images, invented)])
    names = np.concatenate(
        [np.where(rng.random(len(detected)) < 0.9, label[detected], wrong[0, detected]), wrong[1, :invented]]
    )
    order = np.argsort(which, kind="stable")
    scores = rng.random(len(order)).round(4) if scored else np.ones(len(order))
    return Examples(
        ImageInstances(which[order], names[order], np.concatenate([near, far]).round(2)[order], scores),
        ImageInstances(image, label, boxes, np.ones(count)),
        [str(code) for code in range(LABELS)],
        np.zeros(images, bool),
    )


def as_dicts(examples: Examples) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The same images as lists of dicts of lists, as parsed answers come."""
    return _side(examples, examples.predicted, scored=True), _side(examples, examples.reference, scored=False)


def _side(examples: Examples, side: ImageInstances, scored: bool) -> list[dict[str, Any]]:
    cuts = np.searchsorted(side.image, np.arange(len(examples.failed) + 1)).tolist()
    columns = {"boxes": side.boxes.tolist(), "labels": side.label.tolist(), "scores": side.scores.tolist()}
    names = list(columns) if scored else ["boxes", "labels"]
    return [{name: columns[name][start:stop] for name in names} for start, stop in pairwise(cuts)]


def as_coco(examples: Examples) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The same images as pycocotools wants them."""
    dataset = {
        "info": {},
        "images": [{"id": number + 1} for number in range(len(examples.failed))],
        "categories": [{"id": code + 1, "name": name} for code, name in enumerate(examples.labels)],
        "annotations": [
            row | {"id": number + 1, "area": row["bbox"][2] * row["bbox"][3], "iscrowd": 0}
            for number, row in enumerate(_coco_rows(examples.reference))
        ],
    }
    scores = examples.predicted.scores.tolist()
    return dataset, [row | {"score": s} for row, s in zip(_coco_rows(examples.predicted), scores, strict=True)]


def _coco_rows(side: ImageInstances) -> list[dict[str, Any]]:
    boxes = np.hstack([side.boxes[:, :2], side.boxes[:, 2:] - side.boxes[:, :2]]).tolist()
    columns = zip(side.image.tolist(), side.label.tolist(), boxes, strict=True)
    return [{"image_id": image + 1, "category_id": label + 1, "bbox": box} for image, label, box in columns]


def run_coco(module: str, evaluator: str, dataset: dict[str, Any], answers: list[dict[str, Any]]) -> Timed:
    """Index, match, accumulate and summarise; it writes into its input, so copies are made off the clock."""
    coco = importlib.import_module(f"{module}.coco" if module == "pycocotools" else module)
    evaluation = importlib.import_module("pycocotools.cocoeval") if module == "pycocotools" else coco
    dataset, answers = copy.copy(dataset), [dict(answer) for answer in answers]
    dataset["annotations"] = [dict(row) for row in dataset["annotations"]]
    with contextlib.redirect_stdout(io.StringIO()):
        begin = time.perf_counter()
        truth = coco.COCO()
        truth.dataset = dataset
        truth.createIndex()
        run = getattr(evaluation, evaluator)(truth, truth.loadRes(answers), "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
        return time.perf_counter() - begin, np.array(run.stats[:12])


def match_examples(examples: Examples) -> Matches:
    """COCO's matching alone: what the twelve statistics need."""
    shapes = Shapes(examples)
    return match_greedily(examples, shapes, group(examples, shapes))


def run_arrays(examples: Examples) -> Timed:
    """Twelve statistics from flat arrays."""
    begin = time.perf_counter()
    values = statistics(accumulate(match_examples(examples)))
    return time.perf_counter() - begin, values


def run_checked(predictions: list[dict[str, Any]], references: list[dict[str, Any]]) -> Timed:
    """Twelve statistics from lists of dicts, checked and flattened first."""
    begin = time.perf_counter()
    values = statistics(accumulate(match_examples(read_examples(predictions, references))))
    return time.perf_counter() - begin, values


def run_all(predictions: list[dict[str, Any]], references: list[dict[str, Any]]) -> Timed:
    """All that the metric gives, from lists of dicts."""
    begin = time.perf_counter()
    result = mean_ap(predictions, references)
    return time.perf_counter() - begin, np.array([result[name] for name in STATISTICS])


def compare(images: int, scored: bool, rounds: int) -> None:
    """Print one table."""
    examples = scene(images, scored)
    dicts, coco = as_dicts(examples), as_coco(examples)
    calls: dict[str, Callable[[], Timed]] = {"pycocotools": lambda: run_coco("pycocotools", "COCOeval", *coco)}
    if importlib.util.find_spec("faster_coco_eval"):
        calls["faster-coco-eval"] = lambda: run_coco("faster_coco_eval", "COCOeval_faster", *coco)
    calls["mean_ap, 12 statistics from arrays"] = lambda: run_arrays(examples)
    calls["mean_ap, 12 statistics from lists of dicts"] = lambda: run_checked(*dicts)
    calls["mean_ap, everything from lists of dicts"] = lambda: run_all(*dicts)
    times: dict[str, list[float]] = {name: [] for name in calls}
    values: dict[str, np.ndarray] = {}
    for _ in range(rounds):
        for name, call in calls.items():
            spent, values[name] = call()
            times[name].append(spent)
    slow, right = min(times["pycocotools"]), values["pycocotools"]
    sizes = f"{len(examples.reference.image)} references, {len(examples.predicted.image)} predictions"
    print(f"\n{images} images, {sizes}, {'random' if scored else 'constant'} scores\n")
    print("| implementation | s | x faster than pycocotools | worst difference of 12 |\n|:--|--:|--:|--:|")
    for name, spent in times.items():
        worst = np.abs(values[name] - right).max()
        print(f"| {name} | {min(spent):.3f} | {slow / min(spent):.1f} | {worst:.1e} |")


def repeated(images: int, draws: int) -> None:
    """Print the time of a bootstrap by video, and of a tie spread."""
    examples = scene(images, scored=False)
    dicts = as_dicts(examples)
    begin = time.perf_counter()
    videos = np.random.default_rng(0).multinomial(37, [1 / 37] * 37, size=draws)
    values = figures(evaluate_images(*dicts), videos[:, np.arange(images) % 37])["map"]
    spent = time.perf_counter() - begin
    low, high = np.quantile(values, [0.025, 0.975])
    print(f"\n{draws} resamples of {images} images in 37 videos: {spent:.1f} s (95% of mAP in {low:.3f} to {high:.3f})")
    begin = time.perf_counter()
    spread = spread_of(evaluate_images(*dicts), orders=100)["map"]
    spent = time.perf_counter() - begin
    print(f"tie spread over 100 orders: {spent:.1f} s (mAP {spread['min']:.4f} to {spread['max']:.4f})")


def module_overhead(images: int) -> None:
    """Print what the evaluate module adds to the function, in add_batch and compute."""
    import evaluate  # takes seconds

    metric = evaluate.load(str(Path(__file__).resolve().parents[1] / "metrics" / "mean_ap"), keep_in_memory=True)
    predictions, references = as_dicts(scene(images, scored=True))
    added = []
    for _ in range(3):
        bare, _ = run_all(predictions, references)
        begin = time.perf_counter()
        for start in range(0, images, 100):
            part = slice(start, start + 100)
            metric.add_batch(predictions=predictions[part], references=references[part])
        metric.compute()
        added.append(time.perf_counter() - begin - bare)
    print(f"evaluate module: {min(added) / images * 1e6:.0f} microseconds an image more than the function")


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="100 images, one round, 20 resamples")
    size.add_argument("--full", action="store_true", help="also 100,000 images")
    options = parser.parse_args()
    images, rounds = (100, 1) if options.quick else (1000, 5)
    compare(images, True, rounds)
    compare(images, False, rounds)
    repeated(images, 20 if options.quick else 1000)
    module_overhead(images)
    if options.full:
        compare(100_000, True, 1)


if __name__ == "__main__":
    main()
