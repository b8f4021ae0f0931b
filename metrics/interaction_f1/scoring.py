"""Score hand-object interactions in single frames. They are matched by the object's box, then judged by their hands.

The rules follow the BARISTA paper (arXiv 2605.12074, section A.2.2). Details that the paper omits follow its public
evaluation code. Hands are judged by boxes and hand type. Boxes are (x0, y0, x1, y1), see inputs.py. IoU and all
fractions range from 0 to 1. Needs numpy. Only `matching="optimal"` needs scipy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .inputs import Box, Interaction, RawFrame, as_frame, check_columns

# A pair of interactions counts only if the IoU of its objects is above this value. An equal IoU does not count.
IOU_THRESHOLD = 0.5


def box_iou(a: Box, b: Box) -> float:
    """Return the area of the overlap divided by the area of the union, or 0 without an area.

    An inverted box has no area.

    >>> box_iou((0, 0, 2, 2), (1, 0, 3, 2))
    0.3333333333333333
    >>> box_iou((0, 0, 2, 2), (2, 2, 0, 0))
    0.0
    """
    overlap = max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    # If boxes overlap, both have an area, so there is no division by 0.
    return overlap / (_area(a) + _area(b) - overlap) if overlap > 0 else 0.0


def _area(box: Box) -> float:
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def hand_iou(predicted: Sequence[Box], reference: Sequence[Box], *, spends: bool = True) -> float:
    """Return the mean IoU over the reference hands (at least one), paired greedily.

    In order, each reference hand takes the unused predicted hand with the largest overlap. Surplus predicted hands cost
    nothing. A reference hand without an overlapping unused prediction counts 0. In the release, such a hand still uses
    up the first unused prediction, so later hands cannot take this prediction. If `spends` is False, no prediction is
    used up.

    >>> left, right = (0, 0, 2, 2), (10, 0, 12, 2)
    >>> hand_iou([right, left], [left])
    1.0
    >>> hand_iou([right], [left, right]), hand_iou([right], [left, right], spends=False)
    (0.0, 0.5)
    """
    unused = list(predicted)
    total = 0.0
    for hand in reference:
        best = max(unused, key=lambda box: box_iou(box, hand), default=None)
        if best is not None:
            iou = box_iou(best, hand)
            total += iou
            if spends or iou > 0:
                unused.remove(best)
    return total / len(reference)


IouTable = Sequence[Sequence[float]]
IndexPairs = list[tuple[int, int]]


def greedy_pairs(ious: IouTable) -> IndexPairs:
    """Return pairs (reference, prediction) in the order of the release; `ious[reference][prediction]` are object IoUs.

    The reference with the highest best IoU comes first. It takes the unused prediction with the highest IoU if this IoU
    exceeds 0.5. Otherwise the reference stays unmatched. At a tie the earlier reference or prediction wins.

    >>> greedy_pairs([[0.6, 0.7], [0.0, 0.8]])
    [(1, 1), (0, 0)]
    >>> greedy_pairs([[0.8, 0.9], [0.7, 0.0]])
    [(0, 1), (1, 0)]
    >>> greedy_pairs([[0.5]])
    []
    """
    order = sorted(range(len(ious)), key=lambda reference: -max(ious[reference], default=0.0))
    unused = list(range(len(ious[0]))) if ious else []
    pairs = []
    for reference in order:
        row = ious[reference]
        best = max(unused, key=row.__getitem__, default=None)
        if best is not None and row[best] > IOU_THRESHOLD:
            pairs.append((reference, best))
            unused.remove(best)
    return pairs


def optimal_pairs(ious: IouTable) -> IndexPairs:
    """Return the largest set of pairs above 0.5, by the Hungarian method. At a tie, the highest summed IoU wins.

    >>> greedy_pairs([[0.6, 0.9], [0.0, 0.8]]), optimal_pairs([[0.6, 0.9], [0.0, 0.8]])
    ([(0, 1)], [(0, 0), (1, 1)])
    """
    if not ious or not ious[0]:
        return []
    # imported here, since the release's own matching does not need scipy
    from scipy.optimize import linear_sum_assignment

    # One more pair outweighs every possible gain in IoU, so the number of pairs decides first.
    bonus = min(len(ious), len(ious[0])) + 1.0
    weights = [[bonus + iou if iou > IOU_THRESHOLD else 0.0 for iou in row] for row in ious]
    rows, columns = linear_sum_assignment(weights, maximize=True)
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return [(row, column) for row, column in pairs if weights[row][column] > 0]


def highest_first_pairs(ious: IouTable) -> IndexPairs:
    """Return pairs in the order of the paper: the highest remaining IoU comes next, down to an IoU of 0.5.

    At a tie the earlier reference wins, then the earlier prediction. Unlike in `greedy_pairs`, a pair at exactly 0.5
    counts. If a reference's best prediction is taken, the reference waits for its next best pair.

    >>> highest_first_pairs([[0.9, 0.6], [0.8, 0.7]]), highest_first_pairs([[0.5]])
    ([(0, 0), (1, 1)], [(0, 0)])
    >>> ious = [[0.95, 0.0], [0.9, 0.55], [0.0, 0.85]]
    >>> greedy_pairs(ious), highest_first_pairs(ious)
    ([(0, 0), (1, 1)], [(0, 0), (2, 1)])
    """
    ranked = sorted(
        (-iou, reference, prediction)
        for reference, row in enumerate(ious)
        for prediction, iou in enumerate(row)
        if iou >= IOU_THRESHOLD
    )
    by_reference: dict[int, int] = {}
    used: set[int] = set()
    for _, reference, prediction in ranked:
        if reference not in by_reference and prediction not in used:
            by_reference[reference] = prediction
            used.add(prediction)
    return list(by_reference.items())


_MATCHINGS: dict[str, Callable[[IouTable], IndexPairs]] = {
    "greedy": greedy_pairs,
    "highest_first": highest_first_pairs,
    "optimal": optimal_pairs,
}


class Pair(NamedTuple):
    """A reference interaction and its matched prediction, as indices in the frame."""

    reference: int
    prediction: int
    object_iou: float
    hand_iou: float
    hand_type_right: bool


@dataclass(frozen=True, slots=True)
class FrameScore:
    """The contribution of one frame to the pooled scores. `failed` means that the frame has no usable answer.

    `greedy_cost` is the number of pairs that greedy matching would miss in this frame. None unless matching is optimal.
    """

    pairs: tuple[Pair, ...]
    n_predicted: int
    n_reference: int
    failed: bool
    greedy_cost: int | None


def score_frame(prediction: RawFrame | None, reference: RawFrame, *, matching: str = "greedy") -> FrameScore:
    """Match the interactions of a frame. If `prediction` is None, the frame has no usable answer.

    >>> cup = {"hand_boxes": [[0, 0, 4, 4]], "object_box": [3, 3, 9, 9], "hand_type": "left"}
    >>> score = score_frame([cup | {"hand_type": "both"}, cup | {"object_box": [20, 20, 30, 30]}], [cup])
    >>> score.pairs
    (Pair(reference=0, prediction=0, object_iou=1.0, hand_iou=1.0, hand_type_right=False),)
    >>> pool([score])["precision"], pool([score])["recall"]
    (0.5, 1.0)
    """
    predicted = None if prediction is None else as_frame(prediction, "prediction")
    return score_checked(predicted, as_frame(reference, "reference", needs_hands=True), check_matching(matching))


def check_matching(matching: str) -> str:
    """Return the name of a matching. Raises ValueError for an unknown name."""
    if matching not in _MATCHINGS:
        raise ValueError(f'matching is {matching!r}; give "greedy" (as released), "highest_first" (paper) or "optimal"')
    return matching


def score_checked(prediction: list[Interaction] | None, reference: list[Interaction], matching: str) -> FrameScore:
    """Score a frame as `score_frame` does, from input that is already checked."""
    predicted = prediction or []
    ious = [[box_iou(p.object_box, r.object_box) for p in predicted] for r in reference]
    index_pairs = _MATCHINGS[matching](ious)
    pairs = tuple(
        Pair(
            r,
            p,
            ious[r][p],
            hand_iou(predicted[p].hand_boxes, reference[r].hand_boxes, spends=matching == "greedy"),
            predicted[p].hand_type == reference[r].hand_type,
        )
        for r, p in index_pairs
    )
    cost = len(index_pairs) - len(greedy_pairs(ious)) if matching == "optimal" else None
    return FrameScore(pairs, len(predicted), len(reference), prediction is None, cost)


def score_frames(
    predictions: Sequence[RawFrame | None], references: Sequence[RawFrame], *, matching: str = "greedy"
) -> list[FrameScore]:
    """Return one score per frame.

    Inputs and errors are the same as in `interaction_f1`, but no frames give an empty list.
    """
    check_matching(matching)
    frames = zip(*check_columns(predictions, references), strict=True)
    return [score_checked(answer, reference, matching) for answer, reference in frames]


def interaction_f1(
    predictions: Sequence[RawFrame | None], references: Sequence[RawFrame], *, matching: str = "greedy"
) -> dict[str, Any]:
    """Score all frames. `predictions[i]` answers `references[i]`; None means that there is no usable answer.

    Each frame is a list of interactions: dicts with `hand_boxes` (list of [x0, y0, x1, y1]; only a prediction's may
    be empty), `object_box` ([x0, y0, x1, y1]) and `hand_type` (left, right or both). A frame without a usable answer
    counts as a frame without predictions. `matching` is "greedy" (the release's rule, see `greedy_pairs`),
    "highest_first" (the paper's rule, see `highest_first_pairs`) or "optimal" (see `optimal_pairs`). Result: see
    `pool`.

    Raises ValueError for no frames, unequal lengths, missing fields or impossible values, and TypeError for wrong
    types.

    >>> cup = {"hand_boxes": [[0, 0, 4, 4]], "object_box": [3, 3, 9, 9], "hand_type": "left"}
    >>> result = interaction_f1(predictions=[[cup], None], references=[[cup], [cup]])
    >>> result["precision"], result["recall"], round(result["f1"], 3), result["no_detection_rate"]
    (1.0, 0.5, 0.667, 0.5)
    """
    return pool(score_frames(predictions, references, matching=matching))


def pool(scores: Iterable[FrameScore]) -> dict[str, Any]:
    """Return the scores of any selection of frames (a resample, a video). Raises ValueError for no frames.

    Returned:
    * `precision`, `recall`, `f1`: over the interactions of all frames together; a fraction of nothing is 0.
    * `object_iou`, `hand_iou`, `hand_type_accuracy`: means over the matched pairs, None without matched pairs.
    * `no_detection_rate`: the fraction of frames with a reference but no prediction; None without such frames.
    * `n`, `n_failed`: the number of frames, and of frames without a usable answer.
    * `coverage`: the fraction of frames with a usable answer.
    * `n_matched`, `n_predicted`, `n_reference`: numbers of interactions.
    * `greedy_cost` (only if all scores use `matching="optimal"`): the number of pairs that greedy matching would
      lose.
    """
    sums = frame_sums(scores)
    if not sums.get("n"):
        raise ValueError("predictions and references are empty: there is nothing to score; give >= 1 frame")
    values = compute_metrics({name: np.array([total]) for name, total in sums.items()})
    return {**{name: None if np.isnan(value[0]) else float(value[0]) for name, value in values.items()}, **tables(sums)}


Floats = NDArray[np.float64]
Group = tuple[str, str]
"""A kind of group, such as "hand_type", and a value, such as "left"."""
PAIR_MEANS = ("object_iou", "hand_iou", "hand_type_accuracy")
COUNTS = ("n", "n_failed", "n_matched", "n_predicted", "n_reference")


def frame_sums(
    frames: Iterable[FrameScore], groups: Iterable[Sequence[Sequence[Group]]] | None = None
) -> dict[Hashable, float]:
    """Sum the contributions of frames. Pairs are added one after another, as in the release.

    `groups` lists, for each frame and each reference interaction, the groups to which it belongs. None means no groups.
    """
    sums: defaultdict[Hashable, float] = defaultdict(float, dict.fromkeys((*COUNTS, *PAIR_MEANS), 0.0))
    for frame, groups_of in zip(frames, repeat(()) if groups is None else groups, strict=False):
        sums["n"] += 1
        sums["n_failed"] += frame.failed
        sums["n_predicted"] += frame.n_predicted
        sums["n_reference"] += frame.n_reference
        sums["n_with_reference"] += frame.n_reference > 0
        sums["n_undetected"] += frame.n_reference > 0 and frame.n_predicted == 0
        if frame.greedy_cost is not None:
            sums["n_optimal"] += 1
            sums["greedy_cost"] += frame.greedy_cost
        for group in chain.from_iterable(groups_of):
            sums[group, "n_reference"] += 1
        for pair in frame.pairs:
            for name, value in (("n_matched", 1), *zip(PAIR_MEANS, pair[2:], strict=True)):
                sums[name] += value
                for group in groups_of[pair.reference] if groups_of else ():
                    sums[group, name] += value
    return dict(sums)


def compute_metrics(sums: Mapping[Hashable, Floats]) -> dict[str, Floats]:
    """Return the scores (D,) of `pool` from the sums (D,) over D selections of frames.

    A score is NaN if `pool` returns None.
    """
    matched = sums["n_matched"]
    precision, recall = _fraction(matched, sums["n_predicted"], 0.0), _fraction(matched, sums["n_reference"], 0.0)
    nothing = np.zeros_like(matched)
    return {
        "precision": precision,
        "recall": recall,
        "f1": _fraction(2 * precision * recall, precision + recall, 0.0),
        **{name: _fraction(sums[name], matched) for name in PAIR_MEANS},
        "no_detection_rate": _fraction(sums.get("n_undetected", nothing), sums.get("n_with_reference", nothing)),
        "coverage": 1 - _fraction(sums["n_failed"], sums["n"]),
    }


def tables(sums: Mapping[Hashable, float]) -> dict[str, Any]:
    """Return the counts of `pool` from the sums over all frames, and a table `per_<kind>` for each kind of group."""
    counts = {name: int(sums[name]) for name in COUNTS}
    optimal = {"greedy_cost": int(sums["greedy_cost"])} if sums.get("n_optimal") == sums["n"] else {}
    per_kind: dict[str, dict[str, Any]] = {}
    for group in sorted(key[0] for key in sums if isinstance(key, tuple) and key[1] == "n_reference"):
        support, matched = (int(sums.get((group, part), 0)) for part in ("n_reference", "n_matched"))
        means = {part: sums[group, part] / matched for part in PAIR_MEANS} if matched else {}
        kind, name = group
        per_kind.setdefault(f"per_{kind}", {})[name] = {"recall": matched / support, **means, "support": support}
    return {**counts, **optimal, **per_kind}


def _fraction(part: Floats, total: Floats, nothing: float = np.nan) -> Floats:
    return np.asarray(np.where(total > 0, part / np.where(total > 0, total, 1.0), nothing))
