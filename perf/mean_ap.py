"""COCO mAP of boxes: the mean_ap metric beside pycocotools and, where installed, hotcoco and faster-coco-eval.

    python perf/mean_ap.py [--quick | --full]

Random images with 46 labels and 7.6 references each, in one run, round robin; the least CPU time of k rounds counts
(that of all threads: hotcoco has several), and all twelve statistics are compared with those of pycocotools. The last
row, `compute` of the evaluate module, gives more than these. --full adds 20,000 images. Then the
time of 1,000 resamples of 1,000 images by video, and of encoding and decoding masks of 1080p.

The goals are 50 times the speed of pycocotools with equal statistics, 30 seconds for the resamples, and less time than
hotcoco from whatever the boxes come in.
"""

import argparse
import contextlib
import gc
import importlib.util
import io
import sys
import time
from collections.abc import Callable
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "metrics"))
from mean_ap import STATISTICS, compute_metrics, evaluate_images, mean_ap
from mean_ap.accumulate import accumulate, statistics
from mean_ap.inputs import Examples, ImageInstances, read_examples
from mean_ap.matching import group, match_greedily
from mean_ap.overlap import Shapes, extents

LABELS = 46
Values = np.ndarray


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


def run_coco(module: str, evaluator: str, dataset: dict[str, Any], answers: list[dict[str, Any]]) -> Values:
    """Index, match, accumulate and summarise."""
    coco = importlib.import_module(f"{module}.coco" if module == "pycocotools" else module)
    evaluation = importlib.import_module("pycocotools.cocoeval") if module == "pycocotools" else coco
    reference = coco.COCO()
    reference.dataset = dataset
    reference.createIndex()
    return summarise(getattr(evaluation, evaluator), reference, reference.loadRes(answers))


def summarise(evaluator: Callable[..., Any], reference: object, found: object) -> Values:
    run = evaluator(reference, found, "bbox")
    run.evaluate()
    run.accumulate()
    run.summarize()
    return np.array(run.stats[:12])


def run_hotcoco_arrays(examples: Examples, dataset: dict[str, Any]) -> Values:
    """The same, given flat arrays."""
    import hotcoco  # a peer that need not be there

    side, found = examples.reference, examples.predicted
    columns = {"image_ids": side.image + 1, "category_ids": side.label + 1, "boxes": extents(side.boxes)}
    reference = hotcoco.COCO.from_arrays(dataset["images"], dataset["categories"], **columns)
    rows = np.column_stack([found.image + 1, extents(found.boxes), found.scores, found.label + 1])
    return summarise(hotcoco.COCOeval, reference, reference.load_res(rows))


def run_arrays(examples: Examples) -> Values:
    """Twelve statistics from flat arrays: only COCO's matching."""
    shapes = Shapes(examples)
    return statistics(accumulate(match_greedily(examples, shapes, group(examples, shapes))))


def run_all(call: Callable[..., dict[str, Any]], *columns: list[dict[str, Any]]) -> Values:
    result = call(*columns)
    return np.array([result[name] for name in STATISTICS])


def compare(images: int, scored: bool, rounds: int) -> None:
    """Print one table."""
    import evaluate  # takes seconds

    metric = evaluate.load(str(Path(__file__).resolve().parents[1] / "metrics" / "mean_ap"))
    examples = scene(images, scored)
    dicts, coco = as_dicts(examples), as_coco(examples)
    calls: dict[str, Callable[..., Values]] = {"pycocotools": lambda *own: run_coco("pycocotools", "COCOeval", *own)}
    if importlib.util.find_spec("faster_coco_eval"):
        calls["faster-coco-eval"] = lambda *own: run_coco("faster_coco_eval", "COCOeval_faster", *own)
    if importlib.util.find_spec("hotcoco"):
        calls["hotcoco, from lists of dicts"] = lambda *own: run_coco("hotcoco", "COCOeval", *own)
        calls["hotcoco, from arrays"] = lambda *_: run_hotcoco_arrays(examples, coco[0])
    calls |= {
        "mean_ap, 12 statistics from arrays": lambda *_: run_arrays(examples),
        "mean_ap, 12 statistics from lists of dicts": lambda *_: run_arrays(read_examples(*dicts)),
        "mean_ap, everything from lists of dicts": lambda *_: run_all(mean_ap, *dicts),
        "mean_ap, `compute` of the module": lambda *_: run_all(
            lambda found, true: metric.compute(predictions=found, references=true), *dicts
        ),
    }
    times, values = in_turn(calls, rounds, lambda: deepcopy(coco))  # pycocotools writes into its input
    slow, right = times["pycocotools"], values["pycocotools"]
    peer = times.get("hotcoco, from lists of dicts", np.nan)
    sizes = f"{len(examples.reference.image)} references, {len(examples.predicted.image)} predictions"
    print(f"\n{images} images, {sizes}, {'random' if scored else 'constant'} scores\n")
    print("| implementation | CPU s | x faster than pycocotools | of hotcoco's time | worst difference of 12 |")
    print("|:--|--:|--:|--:|--:|")
    for name, spent in times.items():
        worst = np.abs(values[name] - right).max()
        assert worst < 1e-9, (name, worst)
        print(f"| {name} | {spent:.4f} | {slow / spent:.1f} | {spent / peer:.2f} | {worst:.1e} |")


def in_turn(
    calls: dict[str, Callable[..., Any]], rounds: int, given: Callable[[], tuple[Any, ...]] = tuple
) -> tuple[dict[str, float], dict[str, Any]]:
    """The least CPU seconds of each call, and its result. Their `given` input is made off the clock."""
    times: dict[str, float] = dict.fromkeys(calls, np.inf)
    values: dict[str, Any] = {}
    for _ in range(rounds):
        for name, call in calls.items():
            own = given()
            gc.collect()  # objects of others are not cleared on this one's time
            with contextlib.redirect_stdout(io.StringIO()):
                begin = time.process_time()
                values[name] = call(*own)
                times[name] = min(times[name], time.process_time() - begin)
    return times, values


def run_lengths(masks: int, rounds: int) -> None:
    """Print what encoding and decoding discs of 1080p takes, from booleans by row and by column to booleans."""
    from pycocotools import mask as coco_mask

    from barista_bench.scene_graph import Rle, decode_mask, encode_mask

    rng = np.random.default_rng(0)
    y_of, x_of = np.mgrid[:1080, :1920]
    centres, radii = rng.integers(0, (1080, 1920), (masks, 2)), rng.integers(10, 400, masks)
    discs = [(y_of - y) ** 2 + (x_of - x) ** 2 < r**2 for (y, x), r in zip(centres, radii, strict=True)]
    turned = [np.asfortranarray(disc) for disc in discs]
    codes = [coco_mask.encode(disc.view(np.uint8)) for disc in turned]
    rles = [Rle(counts=code["counts"].decode(), size=(1080, 1920)) for code in codes]
    encode: dict[str, Callable[..., Any]] = {
        "pycocotools": lambda: [coco_mask.encode(np.asfortranarray(disc, dtype=np.uint8)) for disc in discs],
        "barista_bench": lambda: [encode_mask(disc) for disc in discs],
    }
    encode_turned: dict[str, Callable[..., Any]] = {
        "pycocotools": lambda: [coco_mask.encode(disc.view(np.uint8)) for disc in turned],
        "barista_bench": lambda: [encode_mask(disc) for disc in turned],
    }
    decode: dict[str, Callable[..., Any]] = {
        "pycocotools": lambda: [coco_mask.decode(code).astype(bool) for code in codes],
        "barista_bench": lambda: [decode_mask(rle) for rle in rles],
    }
    if importlib.util.find_spec("hotcoco"):
        import hotcoco.mask

        encode["hotcoco"] = lambda: [hotcoco.mask.encode(disc) for disc in discs]
        encode_turned["hotcoco"] = lambda: [hotcoco.mask.encode(disc) for disc in turned]
        decode["hotcoco"] = lambda: [hotcoco.mask.decode(code).view(bool) for code in codes]
    columns = [in_turn(calls, rounds) for calls in (encode, encode_turned, decode)]
    for _, texts in columns[:2]:
        assert [rle.counts.encode() for rle in texts.pop("barista_bench")] == [code["counts"] for code in codes]
        assert all([code["counts"] for code in text] == [code["counts"] for code in codes] for text in texts.values())
    assert all(np.array_equal(drawn, discs) for drawn in columns[2][1].values())
    print("\n| 1080p masks | encode rows, CPU ms | encode columns | decode |\n|:--|--:|--:|--:|")
    for name in encode:
        print(f"| {name} | " + " | ".join(f"{times[name] / masks * 1e3:.2f}" for times, _ in columns) + " |")


def time_bootstrap(images: int, resamples: int) -> None:
    """Print the time of a bootstrap by video."""
    examples = scene(images, scored=False)
    dicts = as_dicts(examples)
    begin = time.process_time()
    videos = np.random.default_rng(0).multinomial(37, [1 / 37] * 37, size=resamples)
    values = compute_metrics(evaluate_images(*dicts), videos[:, np.arange(images) % 37])["map"]
    spent = time.process_time() - begin
    between = "{:.3f} to {:.3f}".format(*np.quantile(values, [0.025, 0.975]))
    print(f"\n{resamples} resamples of {images} images in 37 videos: {spent:.1f} s (95% of mAP: {between})")


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="100 images, one round, 20 resamples")
    size.add_argument("--full", action="store_true", help="also 20,000 images")
    options = parser.parse_args()
    images, rounds = (100, 1) if options.quick else (1000, 9)
    compare(images, True, rounds)
    compare(images, False, rounds)
    time_bootstrap(images, 20 if options.quick else 1000)
    run_lengths(2 if options.quick else 20, rounds)
    if options.full:
        compare(20_000, True, 3)


if __name__ == "__main__":
    main()
