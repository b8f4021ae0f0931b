"""COCO mAP of boxes: the mean_ap metric beside pycocotools, hotcoco and faster-coco-eval.

    python perf/mean_ap.py [--quick | --full]        --quick: 100 images, one round; --full: also 20,000 images

Random images with 46 labels and 7.6 references each, in one run, round robin; the least CPU time of k rounds counts
(that of all threads: hotcoco has several), and all twelve statistics are compared with those of pycocotools. The last
row, `compute` of the evaluate module, gives more than these. Then the time of 1,000 resamples of 1,000 images by video,
and of encoding and decoding masks of 1080p.

The goals are 50 times the speed of pycocotools with equal statistics, 30 seconds for the resamples, and less time than
hotcoco from whatever the boxes come in.
"""

import contextlib
import gc
import io
import time
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import evaluate
import faster_coco_eval
import hotcoco.mask
import numpy as np
import typer
from pycocotools import mask as coco_mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from barista_bench.metrics import mean_ap as module
from barista_bench.metrics.mean_ap import STATISTICS, mean_ap
from barista_bench.metrics.mean_ap.accumulate import accumulate, statistics
from barista_bench.metrics.mean_ap.inputs import Examples, ImageInstances, read_examples
from barista_bench.metrics.mean_ap.matching import group, match_greedily
from barista_bench.metrics.mean_ap.overlap import Shapes, extents
from barista_bench.scene_graph import Rle, decode_mask, encode_mask

LABELS = 46
Values = np.ndarray


def scene(images: int) -> Examples:
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
    scores = rng.random(len(order)).round(4)
    return Examples(
        ImageInstances(which[order], names[order], np.concatenate([near, far]).round(2)[order], scores),
        ImageInstances(image, label, boxes, np.ones(count)),
        [str(code) for code in range(LABELS)],
        np.zeros(images, bool),
    )


def as_dicts(examples: Examples) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The same images as lists of dicts of lists, as parsed answers come."""
    found, true = examples.predicted, examples.reference
    images, scores = np.arange(len(examples.failed) + 1), found.scores.tolist()
    return _side(images, found, {"scores": scores}), _side(images, true, {})


def _side(images: Values, side: ImageInstances, more: dict[str, list[float]]) -> list[dict[str, Any]]:
    columns = {"boxes": side.boxes.tolist(), "labels": side.label.tolist(), **more}
    cuts = pairwise(np.searchsorted(side.image, images).tolist())
    return [{name: column[start:stop] for name, column in columns.items()} for start, stop in cuts]


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


def run_coco(coco: type[Any], evaluator: type[Any], dataset: dict[str, Any], answers: list[dict[str, Any]]) -> Values:
    """Index, match, accumulate and summarise."""
    reference = coco()
    reference.dataset = dataset
    reference.createIndex()
    return summarise(evaluator, reference, reference.loadRes(answers))


def summarise(evaluator: Callable[..., Any], reference: object, found: object) -> Values:
    run = evaluator(reference, found, "bbox")
    run.evaluate()
    run.accumulate()
    run.summarize()
    return np.array(run.stats[:12])


def run_hotcoco_arrays(examples: Examples, dataset: dict[str, Any]) -> Values:
    """The same, given flat arrays."""
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


def compare(images: int, rounds: int) -> None:
    """Print one table."""
    metric = evaluate.load(str(Path(module.__file__).parent))
    examples = scene(images)
    dicts, coco = as_dicts(examples), as_coco(examples)
    calls: dict[str, Callable[..., Values]] = {
        "pycocotools": partial(run_coco, COCO, COCOeval),
        "faster-coco-eval": partial(run_coco, faster_coco_eval.COCO, faster_coco_eval.COCOeval_faster),
        "hotcoco, from lists of dicts": partial(run_coco, hotcoco.COCO, hotcoco.COCOeval),
        "hotcoco, from arrays": lambda *_: run_hotcoco_arrays(examples, coco[0]),
        "mean_ap, 12 statistics from arrays": lambda *_: run_arrays(examples),
        "mean_ap, 12 statistics from lists of dicts": lambda *_: run_arrays(read_examples(*dicts)),
        "mean_ap, everything from lists of dicts": lambda *_: run_all(mean_ap, *dicts),
        "mean_ap, `compute` of the module": lambda *_: run_all(
            lambda found, true: metric.compute(predictions=found, references=true), *dicts
        ),
    }
    times, values = in_turn(calls, rounds, lambda: deepcopy(coco))  # pycocotools writes into its input
    slow, right = times["pycocotools"], values["pycocotools"]
    peer = times["hotcoco, from lists of dicts"]
    sizes = f"{len(examples.reference.image)} references, {len(examples.predicted.image)} predictions"
    print(f"\n{images} images, {sizes}\n")
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
    rng = np.random.default_rng(0)
    y_of, x_of = np.mgrid[:1080, :1920]
    centres, radii = rng.integers(0, (1080, 1920), (masks, 2)), rng.integers(10, 400, masks)
    discs = [(y_of - y) ** 2 + (x_of - x) ** 2 < r**2 for (y, x), r in zip(centres, radii, strict=True)]
    turned = [np.asfortranarray(disc) for disc in discs]
    codes = [coco_mask.encode(disc.view(np.uint8)) for disc in turned]
    rles = [Rle(counts=code["counts"].decode(), size=(1080, 1920)) for code in codes]
    encoders: dict[str, Callable[[Values], Any]] = {
        "pycocotools": lambda disc: coco_mask.encode(np.asfortranarray(disc, dtype=np.uint8)),
        "barista_bench": encode_mask,
        "hotcoco": hotcoco.mask.encode,
    }
    decoders: dict[str, Callable[[], list[Values]]] = {
        "pycocotools": lambda: [coco_mask.decode(code).astype(bool) for code in codes],
        "barista_bench": lambda: [decode_mask(rle) for rle in rles],
        "hotcoco": lambda: [hotcoco.mask.decode(code).view(bool) for code in codes],
    }
    columns = [
        *(in_turn({n: lambda e=e, m=m: list(map(e, m)) for n, e in encoders.items()}, rounds) for m in (discs, turned)),
        in_turn(decoders, rounds),
    ]
    for _, texts in columns[:2]:
        assert [rle.counts.encode() for rle in texts.pop("barista_bench")] == [code["counts"] for code in codes]
        assert all([code["counts"] for code in text] == [code["counts"] for code in codes] for text in texts.values())
    assert all(np.array_equal(drawn, discs) for drawn in columns[2][1].values())
    print("\n| 1080p masks | encode rows, CPU ms | encode columns | decode |\n|:--|--:|--:|--:|")
    for name in encoders:
        print(f"| {name} | " + " | ".join(f"{times[name] / masks * 1e3:.2f}" for times, _ in columns) + " |")


def main(quick: bool = False, full: bool = False) -> None:
    images, rounds = (100, 1) if quick else (1000, 9)
    compare(images, rounds)
    run_lengths(2 if quick else 20, rounds)
    if full:
        compare(20_000, 3)


if __name__ == "__main__":
    typer.run(main)
