"""J and F of 1080p masks: the region_boundary metric beside DAVIS' full-frame definition in numpy and OpenCV.

    python perf/region_boundary.py [--quick]

Pairs are ragged ellipses and the same object some pixels on, in the sizes that annotated objects have (median 5,400
pixels, 150 to 500,000). All ways take turns pair by pair and the best of k rounds counts, so a busy machine slows all
of them; every score must equal the definition's to the last bit. "from run lengths": the definition has to decode the
masks, whole. "decoded": both get boolean arrays. A track's run lengths are read together, which a single pair's cannot.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from needed import import_needed
from numpy.typing import NDArray
from pycocotools import mask as coco_mask

from barista_bench.metrics.region_boundary.scoring import boundary_f, region_boundary, region_j, track_j

cv2 = import_needed("cv2")

Bools = NDArray[np.bool_]

HEIGHT, WIDTH = 1080, 1920
RADIUS = 18
_Y, _X = np.ogrid[-RADIUS : RADIUS + 1, -RADIUS : RADIUS + 1]
_DISK = (_X * _X + _Y * _Y <= RADIUS * RADIUS).astype(np.uint8)
_TARGETS = {"F from run lengths": 15, "F, decoded": 15, "J of a track of RLEs": 50}


class Pair(NamedTuple):
    """Prediction and reference, as run lengths and as arrays."""

    rles: tuple[dict[str, Any], dict[str, Any]]
    arrays: tuple[Bools, Bools]


def ellipse(rng: np.random.Generator, centre: NDArray[Any], radii: NDArray[Any]) -> Bools:
    """An ellipse whose edge wobbles by a few pixels."""
    angles = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    wobble = min(4.0, radii.min() / 8) * np.sin(7 * angles + rng.uniform(0, 6)) + rng.normal(0, 0.7, angles.size)
    points = centre + np.stack([np.cos(angles), np.sin(angles)], 1) * (radii + wobble[:, None])
    canvas = np.zeros((HEIGHT, WIDTH), np.uint8)
    cv2.fillPoly(canvas, [np.round(points).astype(np.int32)], 1)
    return canvas.astype(bool)


def make_pairs(count: int) -> list[Pair]:
    """`count` pairs of masks, not all of them overlapping."""
    rng = np.random.default_rng(0)
    pairs = []
    for _ in range(count):
        side = np.sqrt(np.exp(rng.normal(8.6, 1.7)).clip(150, 500_000) / np.pi)
        radii = side * np.exp(rng.normal(0, 0.4) * np.array([1, -1]))
        centre = rng.uniform([100, 80], [WIDTH - 100, HEIGHT - 80])
        moved = centre + rng.normal(0, 6, 2)
        masks = ellipse(rng, moved, radii), ellipse(rng, centre, radii)
        encoded = [coco_mask.encode(np.asfortranarray(mask, np.uint8)) for mask in masks]
        pairs.append(Pair((encoded[0], encoded[1]), masks))
    return pairs


# ---------------------------------------------------------------- the definition


def davis_contour(seg: Bools) -> Bools:
    """seg2bmap of the DAVIS 2017 evaluation, where the map has the size of the mask."""
    e, s, se = np.zeros_like(seg), np.zeros_like(seg), np.zeros_like(seg)
    e[:, :-1], s[:-1, :], se[:-1, :-1] = seg[:, 1:], seg[1:, :], seg[1:, 1:]
    b = seg ^ e | seg ^ s | seg ^ se
    b[-1, :] = seg[-1, :] ^ e[-1, :]
    b[:, -1] = seg[:, -1] ^ s[:, -1]
    b[-1, -1] = 0
    contour: Bools = b
    return contour


def davis_f(prediction: Bools, reference: Bools) -> float:
    """F-measure of the contours, each dilated over the whole frame."""
    fg, gt = davis_contour(prediction), davis_contour(reference)
    fg_dil, gt_dil = (cv2.dilate(contour.astype(np.uint8), _DISK) for contour in (fg, gt))
    n_fg, n_gt = np.sum(fg), np.sum(gt)
    if n_fg == 0 or n_gt == 0:
        return float(n_fg == n_gt)
    precision, recall = np.sum(fg * gt_dil) / float(n_fg), np.sum(gt * fg_dil) / float(n_gt)
    return float(2 * precision * recall / (precision + recall)) if precision + recall > 0 else 0.0


def davis_j(prediction: Bools, reference: Bools) -> float:
    """Intersection over union of two whole frames."""
    union = np.sum(prediction | reference)
    return 1.0 if np.isclose(union, 0) else float(np.sum(prediction & reference) / union)


def decode_pair(pair: Pair) -> tuple[Bools, Bools]:
    """Both masks out of their run lengths, in the memory order of an image."""
    prediction, reference = (np.ascontiguousarray(coco_mask.decode(rle), dtype=bool) for rle in pair.rles)
    return prediction, reference


# ---------------------------------------------------------------- measuring

Score = Callable[[Pair], float]
WAYS: dict[str, tuple[Score, Score]] = {
    "F from run lengths": (lambda p: davis_f(*decode_pair(p)), lambda p: boundary_f(*p.rles)),
    "F, decoded": (lambda p: davis_f(*p.arrays), lambda p: boundary_f(*p.arrays)),
    "J, one pair of RLEs": (lambda p: davis_j(*decode_pair(p)), lambda p: region_j(*p.rles)),
    "J, decoded": (lambda p: davis_j(*p.arrays), lambda p: region_j(*p.arrays)),
}


def time_score(score: Score, pair: Pair) -> tuple[float, float]:
    """The score and its seconds."""
    start = time.perf_counter()
    value = score(pair)
    return value, time.perf_counter() - start


def measure(pairs: Sequence[Pair], rounds: int) -> dict[str, tuple[float, float]]:
    """Per way the mean milliseconds a pair, of the definition and of the metric; asserts that both agree exactly."""
    seconds = {name: np.full((len(pairs), 2), np.inf) for name in WAYS}
    for _ in range(rounds):
        for index, pair in enumerate(pairs):
            for name, scores in WAYS.items():
                (want, slow), (got, fast) = time_score(scores[0], pair), time_score(scores[1], pair)
                assert got == want, f"{name}: {got!r} instead of {want!r} for pair {index}"
                seconds[name][index] = np.minimum(seconds[name][index], (slow, fast))
    return {name: (float(ms[0]), float(ms[1])) for name, best in seconds.items() for ms in [1e3 * best.mean(axis=0)]}


Tracks = tuple[list[dict[str, Any]], list[dict[str, Any]]]


def measure_track(pairs: Sequence[Pair], rounds: int) -> tuple[float, float, float]:
    """Milliseconds a frame of one track of run lengths: J by definition, J, and all numbers of the metric."""
    track: Tracks = [p.rles[0] for p in pairs], [p.rles[1] for p in pairs]

    def seconds(function: Callable[[], object]) -> float:
        start = time.perf_counter()
        function()
        return time.perf_counter() - start

    def by_definition() -> list[float]:
        return [davis_j(*decode_pair(pair)) for pair in pairs]

    assert by_definition() == track_j(*track)
    ways = (by_definition, lambda: track_j(*track), lambda: region_boundary([track[0]], [track[1]]))
    best = [min(times) for times in zip(*([seconds(way) for way in ways] for _ in range(rounds)), strict=True)]
    slow, fast, everything = (1e3 * time / len(pairs) for time in best)
    return slow, fast, everything


def main() -> None:
    """Print one line per way, and one for a whole track."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer pairs and rounds")
    quick = parser.parse_args().quick
    cv2.setNumThreads(1)
    pairs = make_pairs(10 if quick else 60)
    rounds = 2 if quick else 7
    print(f"{len(pairs)} pairs of {WIDTH} x {HEIGHT}, best of {rounds} rounds, all scores equal to the definition's")
    print(f"{'':20} {'definition':>12} {'this metric':>12} {'ratio':>8}  target")
    rows = measure(pairs, rounds)
    slow, fast, everything = measure_track(pairs, rounds)
    rows["J of a track of RLEs"] = slow, fast
    for name, (slow, fast) in rows.items():
        target = f">= {_TARGETS[name]}x" if name in _TARGETS else ""
        print(f"{name:20} {slow:9.3f} ms {fast:9.3f} ms {slow / fast:7.1f}x  {target}")
    print(f"J, F and all numbers of a track of run lengths: {everything:.3f} ms a frame")


if __name__ == "__main__":
    main()
