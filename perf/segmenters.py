"""How good is a mask by grabCut, by intelligent scissors and by a plain polygon, for as many actions of a person?

    python perf/segmenters.py ../shared/real real_coffee_pour real_kitchen_a
    python perf/segmenters.py --kinds ../shared/real real_coffee_pour real_kitchen_a

The person is the annotated truth: a box around it (with two pixels of slack), clicks in the middle of what is most
wrong, corners at equal distances along the outline. Seven frames a clip, objects above 900 pixels; IoU, and seconds a
call, by object. `--kinds`: IoU of grabCut after 0 to 3 clicks by kind of object, from 100 pixels: hands; thin objects,
which fill less than 40 % of their box; small ones, below 0.4 % of the picture; the others.
"""

import sys
import time
from collections import defaultdict

import cv2
import numpy as np
from numpy.typing import NDArray

from barista_bench.annotate.grab_cut import GrabCutSegmenter
from barista_bench.annotate.propagation import decoded_frames
from barista_bench.annotate.records import PromptPoint
from barista_bench.media.video import open_reader
from barista_bench.scene_graph import SceneGraph

Pixels = NDArray[np.uint8]
Mask = NDArray[np.bool_]
CORNERS = (8, 12, 20)
MARGIN = 24


def iou(first: Mask, second: Mask) -> float:
    return float((first & second).sum() / (first | second).sum())


def most_wrong(mask: Mask, truth: Mask) -> PromptPoint:
    """A click in the middle of the largest error."""
    wrong = np.pad((mask ^ truth).astype(np.uint8), 1)
    y, x = np.unravel_index(cv2.distanceTransform(wrong, cv2.DIST_L2, 3).argmax(), wrong.shape)
    return PromptPoint(x=float(x - 1), y=float(y - 1), inside=bool(truth[y - 1, x - 1]))


def by_grab_cut(picture: Pixels, truth: Mask, clicks: int) -> dict[str, float]:
    ys, xs = np.where(truth)
    height, width = truth.shape
    box = (max(0.0, xs.min() - 2.0), max(0.0, ys.min() - 2.0), min(xs.max() + 3.0, width), min(ys.max() + 3.0, height))
    rectangle = np.zeros_like(truth)
    rectangle[ys.min() : ys.max() + 1, xs.min() : xs.max() + 1] = True
    found, points, segmenter = {"box alone": iou(rectangle, truth)}, list[PromptPoint](), GrabCutSegmenter()
    for number in range(clicks + 1):
        began = time.perf_counter()
        ((mask, _),) = segmenter.segment(picture, [(box, points)])
        found["seconds"] = max(found.get("seconds", 0.0), time.perf_counter() - began)
        found[f"grabCut +{number}"] = iou(mask, truth)
        points.append(most_wrong(mask, truth))
    return found


def by_outline(picture: Pixels, truth: Mask) -> dict[str, float]:
    """The largest part's outline: straight between corners, and where the scissors run between them."""
    outlines, _ = cv2.findContours(truth.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    outline = max(outlines, key=cv2.contourArea).reshape(-1, 2)
    left, top = np.maximum(outline.min(0) - MARGIN, 0)
    right, bottom = outline.max(0) + MARGIN
    corner_of_crop = np.array([left, top])
    scissors = cv2.segmentation.IntelligentScissorsMB()
    scissors.setEdgeFeatureCannyParameters(32, 100)
    scissors.setGradientMagnitudeMaxLimit(200)
    scissors.applyImage(np.ascontiguousarray(picture[top:bottom, left:right]))
    found = {}
    for count in CORNERS:
        corners = outline[np.linspace(0, len(outline), count, endpoint=False).astype(int)]
        snapped: list[Pixels] = []
        began = time.perf_counter()
        for corner, following in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            scissors.buildMap([int(v) for v in corner - corner_of_crop])
            snapped.append(
                scissors.getContour([int(v) for v in following - corner_of_crop]).reshape(-1, 2) + corner_of_crop
            )
        seconds = (time.perf_counter() - began) / count
        for name, points in (("polygon", corners), ("scissors", np.concatenate(snapped))):
            drawn = cv2.fillPoly(np.zeros(truth.shape, np.uint8), [points.astype(np.int32)], 1) > 0
            found[f"{name} {count}"] = iou(drawn, truth)
        found["seconds a corner"] = max(found.get("seconds a corner", 0.0), seconds)
    return found


def kind_of(category: str, truth: Mask) -> str:
    ys, xs = np.where(truth)
    filled = truth.sum() / ((np.ptp(ys) + 1) * (np.ptp(xs) + 1))
    if category.endswith("hand"):
        return "hand"
    return "thin" if filled < 0.4 else "small" if truth.sum() < 0.004 * truth.size else "other"


def print_kinds(graph: SceneGraph, names: tuple[str, ...]) -> None:
    """One row a clip and kind: objects, mean IoU after 0 to 3 clicks, and clicks that lost more than .05."""
    print("| clip | kind | masks | only box | grabCut | + 1 | + 2 | + 3 | clicks that lose .05 |")
    print("|:--|:--|--:|--:|--:|--:|--:|--:|--:|")
    for name in names:
        video, rows = graph[name], defaultdict[str, list[list[float]]](list)
        with open_reader(graph.video_path(name)) as frames:
            for index, picture in decoded_frames(frames, range(5, video.frame_count, video.frame_count // 7)):
                for instance in video.instances(index):
                    truth = video.mask(instance).astype(bool)
                    if truth.sum() >= 100:
                        found = by_grab_cut(picture, truth, 3)
                        row = [found["box alone"], *(found[f"grabCut +{number}"] for number in range(4))]
                        rows[kind_of(instance.object.category, truth)].append(row)
        for kind, found_of in sorted(rows.items()):
            values = np.array(found_of)
            lost = int((np.diff(values[:, 1:], axis=1) < -0.05).sum())
            means = " | ".join(f"{value:.3f}" for value in values.mean(axis=0))
            print(f"| {name} | {kind} | {len(values)} | {means} | {lost} of {3 * len(values)} |", flush=True)


def main(root: str, *names: str) -> None:
    if root == "--kinds":
        print_kinds(SceneGraph(names[0]), names[1:])
        return
    graph = SceneGraph(root)
    for name in names:
        video, rows = graph[name], defaultdict[str, list[dict[str, float]]](list)
        with open_reader(graph.video_path(name)) as frames:
            for index, picture in decoded_frames(frames, range(5, 280, 40)):
                for instance in video.instances(index):
                    truth = video.mask(instance).astype(bool)
                    if truth.sum() >= 900:
                        found = by_grab_cut(picture, truth, 5) | by_outline(picture, truth)
                        rows[instance.object.category].append(found)
        rows["all"] = [row for of_object in rows.values() for row in of_object]
        for item, found_of in rows.items():
            means = {key: round(float(np.mean([row[key] for row in found_of])), 3) for key in found_of[0]}
            print(name, item, len(found_of), means)


if __name__ == "__main__":
    main(*sys.argv[1:])
