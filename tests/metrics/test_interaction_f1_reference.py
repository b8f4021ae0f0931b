"""The arithmetic of interaction_f1 against a slow reference, written another way."""

import itertools
import random
from fractions import Fraction

import pytest
from interaction_f1 import interaction_f1

from tests.metrics.conftest import assert_metrics, slow_iou


def slow_hands(predicted, reference, spends):
    """`spends`: a hand that nothing overlaps uses up the first prediction left."""
    free, gained = dict(enumerate(predicted)), Fraction(0)
    for hand in reference:
        best, key = Fraction(0), None
        for index, box in free.items():
            if slow_iou(box, hand) > best:
                best, key = slow_iou(box, hand), index
        if key is None and spends:
            key = next(iter(free), None)
        if key is not None:
            del free[key]
        gained += best
    return gained / len(reference)


def slow_greedy(table):
    """`table`: {(reference, prediction): IoU}. The references are repeatedly searched for the one to serve next."""
    references, free = {r for r, _ in table}, {p for _, p in table}
    everything, pairs = sorted(free), []
    while references:
        chosen = min(references, key=lambda r: (-max(table[r, p] for p in everything), r))
        references.remove(chosen)
        if free:
            best = min(free, key=lambda p: (-table[chosen, p], p))
            if table[chosen, best] > Fraction(1, 2):
                free.remove(best)
                pairs.append((chosen, best))
    return pairs


def slow_highest_first(table):
    """The best pair of all, again and again, without its row and column; exactly a half counts (the paper's rule)."""
    left, pairs = dict(table), []
    while left:
        best = min(left, key=lambda pair: (-left[pair], pair))
        if left[best] < Fraction(1, 2):
            break
        pairs.append(best)
        left = {pair: iou for pair, iou in left.items() if pair[0] != best[0] and pair[1] != best[1]}
    return pairs


def slow_optimal(table):
    """Every way of giving each reference one prediction or none."""
    references, predictions = sorted({r for r, _ in table}), sorted({p for _, p in table})
    # Pairs that do not count are left out from the start: each reference takes a counting prediction or none.
    options = [[None, *(p for p in predictions if table[r, p] > Fraction(1, 2))] for r in references]
    ways = [list(zip(references, way, strict=True)) for way in itertools.product(*options)]
    candidates = [[pair for pair in way if pair[1] is not None] for way in ways]
    candidates = [pairs for pairs in candidates if len({p for _, p in pairs}) == len(pairs)]
    worth = [(len(pairs), sum(table[pair] for pair in pairs)) for pairs in candidates]
    best = {tuple(pairs) for pairs, value in zip(candidates, worth, strict=True) if value == max(worth)}
    return best.pop() if len(best) == 1 else None


SLOW = {"greedy": slow_greedy, "highest_first": slow_highest_first, "optimal": slow_optimal}


def has_one_optimum(answer, reference):
    return slow_optimal(iou_table(answer or [], reference)) is not None


def iou_table(answer, reference):
    pairs = itertools.product(enumerate(reference), enumerate(answer))
    return {(r, p): slow_iou(b["object_box"], a["object_box"]) for (r, a), (p, b) in pairs}


def slow_metrics(predictions, references, matching):
    matched, objects, hands, types, n_predicted, n_reference, silent, with_reference = 0, [], [], [], 0, 0, 0, 0
    for answer, reference in zip(predictions, references, strict=True):
        answer = answer or []
        table = iou_table(answer, reference)
        pairs = SLOW[matching](table)
        matched += len(pairs)
        n_predicted, n_reference = n_predicted + len(answer), n_reference + len(reference)
        with_reference += bool(reference)
        silent += bool(reference) and not answer
        objects += [table[pair] for pair in pairs]
        spends = matching == "greedy"
        hands += [slow_hands(answer[p]["hand_boxes"], reference[r]["hand_boxes"], spends) for r, p in pairs]
        types += [Fraction(answer[p]["hand_type"] == reference[r]["hand_type"]) for r, p in pairs]
    return {
        "precision": Fraction(matched, n_predicted) if n_predicted else 0,
        "recall": Fraction(matched, n_reference) if n_reference else 0,
        # By counts (the Dice form), not by the two shares.
        "f1": Fraction(2 * matched, n_predicted + n_reference) if n_predicted + n_reference else 0,
        "object_iou": sum(objects) / matched if matched else None,
        "hand_iou": sum(hands) / matched if matched else None,
        "hand_type_accuracy": sum(types) / matched if matched else None,
        "no_detection_rate": Fraction(silent, with_reference) if with_reference else None,
        "n_matched": matched,
    }


def random_box(rng):
    x0, y0 = rng.randint(0, 3), rng.randint(0, 3)
    return [x0, y0, x0 + rng.randint(0, 4), y0 + rng.randint(0, 4)]


def shaken(rng, box):
    x0, y0, x1, y1 = (value + rng.choice([-1, 0, 0, 0, 0, 0, 0, 1]) for value in box)
    return [x0, y0, max(x0, x1), max(y0, y1)]


def random_interaction(rng):
    return {
        "hand_boxes": [random_box(rng) for _ in range(rng.randint(1, 2))],
        "object_box": random_box(rng),
        "hand_type": rng.choice(["left", "right", "both"]),
    }


def random_frame(rng):
    reference = [random_interaction(rng) for _ in range(rng.randint(0, 3))]
    prediction = [
        {
            "hand_boxes": [shaken(rng, box) for box in item["hand_boxes"]][rng.randint(0, 1) :],
            "object_box": shaken(rng, item["object_box"]),
            "hand_type": rng.choice([item["hand_type"], "left"]),
        }
        for item in reference
        if rng.random() < 0.8
    ]
    prediction += [random_interaction(rng) for _ in range(rng.randint(0, 2))]
    rng.shuffle(prediction)
    return None if rng.random() < 0.1 else prediction[:4], reference


@pytest.mark.parametrize("n_cases", [100, pytest.param(2000, marks=pytest.mark.full)])
@pytest.mark.parametrize("matching", SLOW)
def test_equals_a_slow_reference_on_random_cases(matching, n_cases):
    rng = random.Random(0)
    matched = done = 0
    while done < n_cases:
        frames = [random_frame(rng) for _ in range(rng.randint(1, 3))]
        # Where two optimal matchings are equally good, either may be reported.
        if matching == "optimal" and not all(itertools.starmap(has_one_optimum, frames)):
            continue
        predictions, references = [f[0] for f in frames], [f[1] for f in frames]
        got = interaction_f1(predictions, references, matching=matching)
        assert_metrics(got, slow_metrics(predictions, references, matching))
        matched, done = matched + got["n_matched"], done + 1
    assert matched > 0.75 * n_cases
