"""Compute COCO's statistics for many resamples of images at once. Images are matched only once.

`accumulate` takes one list of images, but a bootstrap or a permutation test needs thousands of lists. Here every step
handles all resamples together, label by label, and computes only the differences:

* Predictions are summed up, not sorted: a resample changes how often each counts, never the order of their images.
* Interpolated precision at a place is the highest precision from there on. Precision rises along a run of right
  predictions and falls along wrong predictions. So a prediction that is taken w times is examined once, at its last
  copy. Only if an image has several predictions of one score, right and wrong, are its copies examined one by one.
* Area ranges and thresholds at which the same predictions are right share one row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .accumulate import AT_50, AT_75, STATISTICS
from .matching import AREAS, Matches
from .values import Bools, Floats, Ints

TOGETHER = 1024
"""Number of resamples that are summed together."""
_PRECISIONS = 6  # the first six of STATISTICS
_BEST = (1, 10)


def weighted_statistics(matches: Matches, weights: Ints | Floats) -> Floats:
    """Return STATISTICS (D, 12) for D resamples of images. A statistic is -1 if a resample has no reference for it.

    Args:
        matches: the matches of I images.
        weights: (D, I) integers from 0: how often each resample takes each image.

    Each row equals `statistics(accumulate(matches, select(matches, images)))`, except for the rounding of sums.
    There `images` lists the images in order and repeats each one as often as it is taken.

    >>> from .scoring import evaluate_images
    >>> good, bad = {"boxes": [[0, 0, 9, 9]]}, {"boxes": [[50, 50, 59, 59]]}
    >>> found = evaluate_images([good, bad], [good, good])
    >>> weighted_statistics(found.matches, np.array([[1, 1], [0, 1], [2, 0], [0, 0]]))[:, 0].round(3).tolist()
    [0.505, 0.0, 1.0, -1.0]
    """
    most = np.max(weights, axis=0, initial=0).astype(np.int64)
    parts = [(label, _plan(label, most)) for label in _labels(matches)]
    scratch = _Scratch(max((len(plan.image) for _, plan in parts if plan), default=0))
    values = np.empty((len(weights), len(STATISTICS)))
    for start in range(0, len(weights), TOGETHER):
        some = slice(start, start + TOGETHER)
        by_image = np.ascontiguousarray(weights[some].T, dtype=np.float64)
        values[some] = _means(parts, by_image, matches.recalls, scratch).T
    return values.astype(np.float32).astype(np.float64) if matches.single_precision else values


_THRESHOLDS = 10
# For each statistic, its area range and the number of thresholds in its mean.
_AREA_OF = np.array([0, 0, 0, 1, 2, 3, 0, 0, 0, 1, 2, 3])
_SIZES = np.array([_THRESHOLDS, 1, 1, *[_THRESHOLDS] * 9], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Label:
    """The matches of a label that has references, with P predictions and G references."""

    right: Bools  # (A, T, P)
    counted: Bools  # (A, T, P)
    image: Ints
    rank: Ints
    block: Ints
    reference_image: Ints
    in_range: Bools  # (A, G)


def _means(
    parts: Sequence[tuple[_Label, _Plan | None]], by_image: Floats, recalls: Floats, scratch: _Scratch
) -> Floats:
    """Return STATISTICS (12, D) of D resamples with weights (I, D).

    They are means over labels with a reference in the resample.
    """
    sums, counts = np.zeros((2, len(STATISTICS), by_image.shape[1]))
    area_of = _AREA_OF[_PRECISIONS:]
    for label, plan in parts:
        support = label.in_range.astype(np.float64) @ by_image[label.reference_image]
        present = support > 0
        counts += _SIZES[:, None] * present[_AREA_OF]
        # The number of thresholds at which each prediction is right. The last six of STATISTICS use this number.
        n_right = label.right.sum(axis=1, dtype=np.float64)
        few = [n_right[0] * (label.rank < best) for best in _BEST]
        hits = np.stack([*few, *n_right]) @ by_image[label.image]
        sums[_PRECISIONS:] += np.where(present[area_of], hits / np.where(present, support, 1.0)[area_of], 0.0)
        if plan is not None:
            sums[:_PRECISIONS] += plan.times @ _interpolate(plan, plan.count_taken(by_image), support, recalls, scratch)
    return np.where(counts > 0, sums / np.maximum(counts, 1), -1.0)


def _labels(matches: Matches) -> Iterator[_Label]:
    order = np.argsort(matches.reference_label, kind="stable")
    references = matches.reference_label[order]
    for label in np.unique(references).tolist():
        predicted = slice(*np.searchsorted(matches.label, [label, label + 1]).tolist())
        reference = order[slice(*np.searchsorted(references, [label, label + 1]).tolist())]
        yield _Label(
            matches.right[..., predicted],
            matches.counted[..., predicted],
            matches.image[predicted],
            matches.rank[predicted],
            matches.block[predicted],
            matches.reference_image[reference],
            matches.in_range[:, reference],
        )


@dataclass(frozen=True, slots=True)
class _Plan:
    """The sums to compute for a label: S places, U rows of right predictions and V rows of counted predictions.

    * `image` (S,); `copy` (S,): which of an image's copies the place is, -1 for all copies together.
    * `right` (U, S) and `counted` (V, S): how many predictions of each kind the place holds.
    * `counted_of` (U,): the row of counted predictions of each row of right predictions.
    * `area_of` (U,): the area range whose references count.
    * `times` (6, U): how often each of the first six STATISTICS takes the row.
    """

    image: Ints
    copy: Ints
    right: Floats
    counted: Floats
    counted_of: Ints
    area_of: Ints
    times: Floats

    def count_taken(self, by_image: Floats) -> Floats:
        """Return how often each resample takes each place (S, D)."""
        taken = by_image[self.image]
        single = self.copy >= 0
        taken[single] = taken[single] > self.copy[single, None]
        return taken


def _plan(label: _Label, most: Ints) -> _Plan | None:
    """Return the plan of a label.

    If no prediction is right at any threshold, the precision is 0 and the plan is None.
    """
    rows: dict[tuple[bytes, bytes, bytes], int] = {}
    kinds: list[tuple[int, int]] = []
    takers = []  # (one of the first six STATISTICS, a row in its mean)
    for area in range(len(AREAS)):
        if not label.in_range[area].any():
            continue
        inside = label.in_range[area].tobytes()
        for threshold in np.flatnonzero(label.right[area].any(axis=1)).tolist():
            right, counted = label.right[area, threshold], label.counted[area, threshold]
            row = rows.setdefault((right.tobytes(), counted.tobytes(), inside), len(rows))
            if row == len(kinds):
                kinds.append((area, threshold))
            takers.append((0 if area == 0 else area + 2, row))
            if area == 0 and threshold in (AT_50, AT_75):
                takers.append((1 if threshold == AT_50 else 2, row))
    if not rows:
        return None
    times = np.zeros((_PRECISIONS, len(rows)))
    np.add.at(times, tuple(np.array(takers).T), 1)
    areas, thresholds = np.array(kinds).T
    right, counted = label.right[areas, thresholds], label.counted[areas, thresholds]
    position, copy, column = _places(label, right, counted, most)
    image = np.zeros(len(copy), dtype=np.int64)
    image[position] = label.image[column]
    summed = np.zeros((2, len(rows), len(copy)))
    np.add.at(summed[0].T, position, right.T[column])
    np.add.at(summed[1].T, position, counted.T[column])
    places = np.flatnonzero(most[image] > 0)
    different, counted_of = np.unique(summed[1][:, places], axis=0, return_inverse=True)
    return _Plan(image[places], copy[places], summed[0][:, places], different, counted_of.ravel(), areas, times)


def _places(label: _Label, right: Bools, counted: Bools, most: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the position of each (prediction, copy), its prediction, and the number of the copy at each position.

    Predictions of one image and one score are neighbours. An image that is taken twice repeats all these predictions.
    If all are right or all are wrong in every row, they share one position for any number of copies.
    """
    is_new = (np.diff(label.block, prepend=-1) != 0) | (np.diff(label.image, prepend=-1) != 0)
    group = np.cumsum(is_new) - 1
    starts = np.flatnonzero(is_new)
    hits, looked = (np.add.reduceat(rows, starts, axis=1, dtype=np.int64) for rows in (right, counted))
    mixed: Bools = np.any((hits > 0) & (hits < looked), axis=0)
    if not mixed.any():
        return group, np.full(len(starts), -1), np.arange(len(group))
    members = np.split(np.arange(len(group)), starts[1:])
    position, copy, column = list[int](), list[int](), list[int]()
    for number, tied in enumerate(members):
        copies = range(max(1, int(most[label.image[tied[0]]]))) if mixed[number] else (-1,)
        for which in copies:
            for prediction in tied.tolist():
                if which >= 0 or prediction == tied[0]:
                    copy.append(which)
                position.append(len(copy) - 1)
                column.append(prediction)
    return np.array(position), np.array(copy), np.array(column)


class _Scratch:
    """Reusable memory for S places of `TOGETHER` resamples. New memory each time would cost more than the sums."""

    def __init__(self, places: int) -> None:
        self.seen, self.hits, self.best = np.empty((3, places, TOGETHER))
        self.index = np.empty((places, TOGETHER), dtype=np.intp)


def _interpolate(plan: _Plan, taken: Floats, support: Floats, recalls: Floats, scratch: _Scratch) -> Floats:
    """Return the mean over all recalls of the best precision at this recall or higher (U, D).

    A recall that is not reached counts 0. `taken` (S, D) is the number of times that each resample takes each position.
    """
    resamples = taken.shape[1]
    values = np.empty((len(plan.right), resamples))
    reached = {area: _Reached(support[area], recalls) for area in np.unique(plan.area_of).tolist()}
    for which, counted in enumerate(plan.counted):
        n_counted = _sum_up(taken, counted, np.arange(len(counted)), scratch.seen[: len(counted), :resamples])
        n_counted += np.spacing(1)
        for row in np.flatnonzero(plan.counted_of == which).tolist():
            useful = np.flatnonzero(plan.right[row])  # precision peaks at right predictions
            room = slice(len(useful)), slice(resamples)
            hits = _sum_up(taken, plan.right[row], useful, scratch.hits[room])
            best = np.take(n_counted, useful, axis=0, out=scratch.best[room], mode="clip")
            np.divide(hits, best, out=best)
            for position in range(len(useful) - 2, -1, -1):
                np.maximum(best[position], best[position + 1], out=best[position])
            recalls_reached = reached[int(plan.area_of[row])].by(hits, scratch.index[room])
            values[row] = np.einsum("sd,sd->d", best, recalls_reached) - np.einsum(
                "sd,sd->d", best[1:], recalls_reached[:-1]
            )
    return values / len(recalls)


def _sum_up(taken: Floats, weights: Floats, places: Ints, out: Floats) -> Floats:
    """Return the number of predictions up to and including each place (n, D), weighted by `weights` (S,)."""
    np.take(taken, places, axis=0, out=out, mode="clip")
    if (weights[places] != 1).any():
        out *= weights[places, None]
    for position in range(1, len(out)):  # faster than cumsum, which handles one resample at a time
        np.add(out[position - 1], out[position], out=out[position])
    return out


class _Reached:
    """A table of the number of recalls that right predictions reach, given `support` (D,) references."""

    def __init__(self, support: Floats, recalls: Floats) -> None:
        totals, code = np.unique(support.astype(np.int64), return_inverse=True)
        start = np.cumsum(totals + 1) - (totals + 1)
        right = np.arange(int((totals + 1).sum())) - np.repeat(start, totals + 1)
        fraction = right / np.repeat(np.maximum(totals, 1), totals + 1)
        self._table = np.where(right > 0, np.searchsorted(recalls, fraction, side="right"), 0).astype(np.float64)
        self._start = start[code].astype(np.float64)

    def by(self, hits: Floats, index: Ints) -> Floats:
        """Return the number of recalls that `hits` (S, D) right predictions reach. The result overwrites `hits`."""
        hits += self._start
        np.copyto(index, hits, casting="unsafe")
        return np.take(self._table, index, out=hits, mode="clip")
