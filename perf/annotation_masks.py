"""Masks between keyframes and masks from clicks, on clips whose every frame is annotated.

    python perf/annotation_masks.py RELEASE [--video NAME] [--every 50]

The first table has J&F (J/F) of each propagator. Every n-th frame of a clip is given, and objects that are absent there
have empty masks. J and F are those of the metric region_boundary, on all frames between: the mean of each object over
the frames where it is annotated or predicted, then the mean of the objects.

The second table has the IoU of grabCut from a box and after 0 to 3 clicks, on seven frames of each clip. The annotated
mask plays the person: it gives the box, with two pixels of slack, and clicks in the middle of the largest error. Thin
objects fill less than 40 % of their box, small ones less than 0.4 % of the picture. Masks have at least 100 pixels.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import cv2
import msgspec
import numpy as np
import typer
from numpy.typing import NDArray

from barista_bench.annotate.flow_propagation import FlowPropagator
from barista_bench.annotate.grab_cut import GrabCutSegmenter
from barista_bench.annotate.lucas_kanade import LucasKanade
from barista_bench.annotate.propagation import CopyNearest, Propagator, decoded_frames
from barista_bench.annotate.records import PromptPoint
from barista_bench.media.video import open_reader
from barista_bench.metrics.region_boundary.scoring import boundary_f, region_j
from barista_bench.scene_graph import Rle, SceneGraph, VideoGraph, encode_mask

Mask = NDArray[np.bool_]
PROPAGATORS: tuple[Propagator, ...] = (CopyNearest(), LucasKanade(), FlowPropagator())
CLICKS = 3
LOST = 0.05
"""A click that lowers the IoU by more than this is counted."""


def read_masks(video: VideoGraph) -> list[dict[str, Rle]]:
    """Return the masks of each frame, by object."""
    masks: list[dict[str, Rle]] = [{} for _ in range(video.frame_count)]
    instances = video.instances((0, video.frame_count))
    for instance, rle in zip(instances, video.rles(instances), strict=True):
        if isinstance(rle, Exception):
            raise rle
        masks[instance.frame][instance.object.id] = rle
    return masks


def j_and_f(path: Path, masks: list[dict[str, Rle]], empty: Rle, propagator: Propagator, every: int) -> str:
    """Return J&F (J/F), the mean of the objects, and the CPU milliseconds of a frame."""
    names = sorted({name for frame in masks for name in frame})
    given = {k: {name: masks[k].get(name, empty) for name in names} for k in range(0, len(masks), every)}
    scores: dict[str, list[tuple[float, float]]] = defaultdict(list)
    started = time.process_time()
    with open_reader(path) as frames:
        results = [each for each in propagator.propagate(frames, given, range(len(masks))) if each.frame not in given]
    seconds = time.process_time() - started
    for result in results:
        true = masks[result.frame]
        for name in true.keys() | result.masks.keys():
            found = result.masks[name].rle if name in result.masks else empty
            pair = msgspec.to_builtins(found), msgspec.to_builtins(true.get(name, empty))
            scores[name].append((region_j(*pair), boundary_f(*pair)))
    j, f = np.mean([np.mean(rows, axis=0) for rows in scores.values()], axis=0)
    return f"{(j + f) / 2:.3f} ({j:.2f}/{f:.2f}), {1000 * seconds / len(masks):.0f} ms"


def iou(first: Mask, second: Mask) -> float:
    return float((first & second).sum() / (first | second).sum())


def kind_of(category: str, true: Mask) -> str:
    ys, xs = np.where(true)
    filled = true.sum() / ((np.ptp(ys) + 1) * (np.ptp(xs) + 1))
    if category.endswith("hand"):
        return "hand"
    return "thin" if filled < 0.4 else "small" if true.sum() < 0.004 * true.size else "other"


def largest_error(mask: Mask, true: Mask) -> PromptPoint:
    wrong = np.pad((mask ^ true).astype(np.uint8), 1)
    y, x = np.unravel_index(cv2.distanceTransform(wrong, cv2.DIST_L2, 3).argmax(), wrong.shape)
    return PromptPoint(x=float(x - 1), y=float(y - 1), inside=bool(true[y - 1, x - 1]))


def click_ious(picture: NDArray[np.uint8], true: Mask) -> Iterator[float]:
    """Yield the IoU of the box, of grabCut from the box, and after each click."""
    (height, width), (ys, xs) = true.shape, np.where(true)
    rectangle = np.zeros_like(true)
    rectangle[ys.min() : ys.max() + 1, xs.min() : xs.max() + 1] = True
    yield iou(rectangle, true)
    box = (max(0.0, xs.min() - 2.0), max(0.0, ys.min() - 2.0), min(xs.max() + 3.0, width), min(ys.max() + 3.0, height))
    points, segmenter = list[PromptPoint](), GrabCutSegmenter()
    for _ in range(CLICKS + 1):
        ((mask, _),) = segmenter.segment(picture, [(box, points)])
        yield iou(mask, true)
        points.append(largest_error(mask, true))


def click_rows(video: VideoGraph, path: Path) -> Iterator[str]:
    """Yield a row for each kind of object."""
    rows = defaultdict[str, list[list[float]]](list)
    with open_reader(path) as frames:
        for index, picture in decoded_frames(frames, range(5, video.frame_count, max(1, video.frame_count // 7))):
            for instance in video.instances(index):
                true = video.mask(instance).astype(bool)
                if true.sum() >= 100:
                    rows[kind_of(instance.object.category, true)].append(list(click_ious(picture, true)))
    for kind, found in sorted(rows.items()):
        values = np.array(found)
        lost = int((np.diff(values[:, 1:], axis=1) < -LOST).sum())
        means = " | ".join(f"{value:.3f}" for value in values.mean(axis=0))
        yield f"| {video.video_id} | {kind} | {len(values)} | {means} | {lost} of {CLICKS * len(values)} |"


def main(release: Path, video: str = "", every: int = 50) -> None:
    graph = SceneGraph(release)
    videos = [graph[name] for name in ([video] if video else graph.video_ids)]
    print("| clip | given every | copy | Lucas-Kanade | flow |\n|:--|--:|--:|--:|--:|")
    for clip in videos:
        path, masks = graph.video_path(clip.video_id), read_masks(clip)
        empty = encode_mask(np.zeros((clip.video.height, clip.video.width), dtype=np.bool_))
        cells = [j_and_f(path, masks, empty, propagator, every) for propagator in PROPAGATORS]
        print(f"| {clip.video_id} | {every} |", " | ".join(cells), "|", flush=True)
    print("\n| clip | kind | masks | only box | grabCut | + 1 | + 2 | + 3 | clicks that lose .05 |")
    print("|:--|:--|--:|--:|--:|--:|--:|--:|--:|")
    for clip in videos:
        for row in click_rows(clip, graph.video_path(clip.video_id)):
            print(row, flush=True)


if __name__ == "__main__":
    typer.run(main)
