"""The arithmetic of the interaction_f1 metric, by hand. Beside it: a slow reference and properties."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from interaction_f1 import box_iou, interaction_f1, pool, score_frame, score_frames
from interaction_f1.scoring import frame_sums, tables

from tests.metrics.conftest import assert_metrics, slow_iou

CUP = {"hand_boxes": [[0, 0, 4, 4]], "object_box": [3, 3, 9, 9], "hand_type": "left"}
LID = {"hand_boxes": [[20, 0, 24, 4], [30, 0, 34, 4]], "object_box": [22, 3, 28, 9], "hand_type": "both"}
FAR = {"hand_boxes": [[90, 90, 94, 94]], "object_box": [80, 80, 86, 86], "hand_type": "right"}


def interaction(object_box, hand_boxes=((0, 0, 4, 4),), hand_type="left"):
    return {"hand_boxes": [list(box) for box in hand_boxes], "object_box": list(object_box), "hand_type": hand_type}


def test_the_iou_of_two_boxes_equals_pycocotools():
    mask = pytest.importorskip("pycocotools.mask")
    corners = np.random.default_rng(0).uniform(0, 1000, (2, 2000, 2, 2))
    boxes = np.concatenate([corners.min(axis=2), corners.max(axis=2)], axis=-1)
    as_xywh = np.concatenate([boxes[..., :2], boxes[..., 2:] - boxes[..., :2]], axis=-1)
    want = [mask.iou(a[None], b[None], [0])[0, 0] for a, b in zip(*as_xywh, strict=True)]
    got = [box_iou(tuple(a), tuple(b)) for a, b in zip(*boxes.tolist(), strict=True)]
    assert max(abs(g - w) for g, w in zip(got, want, strict=True)) < 1e-12


def test_a_frame_is_scored_as_computed_by_hand():
    cup = interaction([3, 3, 9, 7], [[0, 0, 4, 2]], "right")  # object IoU 24/36, hand IoU 8/16
    lid = interaction([22, 3, 28, 9], [[20, 0, 24, 4]], " BOTH\n")  # object IoU 1, one of two hands
    result = interaction_f1([[FAR, cup, lid]], [[CUP, LID]])
    assert (result["n_matched"], result["n_predicted"], result["n_reference"]) == (2, 3, 2)
    assert [result["precision"], result["recall"], result["f1"]] == pytest.approx([2 / 3, 1, 4 / 5])
    assert result["object_iou"] == pytest.approx((2 / 3 + 1) / 2)
    assert (result["hand_iou"], result["hand_type_accuracy"]) == (0.5, 0.5)
    assert [pair[:2] for pair in score_frame([FAR, cup, lid], [CUP, LID]).pairs] == [(1, 2), (0, 1)]
    without_hands = interaction_f1([[CUP | {"hand_boxes": []}]], [[CUP]])
    assert (without_hands["n_matched"], without_hands["hand_iou"]) == (1, 0)


def test_the_reference_with_the_best_iou_chooses_first_and_may_cost_a_match():
    references = [interaction([2, 0, 10, 10]), interaction([0, 0, 10, 10])]
    predictions = [interaction([0, 0, 7, 10]), interaction([1, 0, 10, 10])]
    assert [pair[:2] for pair in score_frame(predictions, references).pairs] == [(1, 1)]
    best = interaction_f1([predictions], [references], matching="optimal")
    assert (best["n_matched"], best["greedy_cost"]) == (2, 1)
    assert "greedy_cost" not in interaction_f1([predictions], [references])


def test_greedy_pairs_prefer_the_earlier_at_a_tie_and_leave_free_what_overlaps_too_little():
    twins = [interaction([0, 0, 10, 10]), interaction([0, 0, 10, 10], hand_type="right")]
    assert [pair[:2] for pair in score_frame(twins, twins).pairs] == [(0, 0), (1, 1)]
    # The first reference is served first (0.9) and must then not use up the prediction that it overlaps by 0.45.
    references = [interaction([0, 0, 100, 10]), interaction([0, 0, 100, 10]), interaction([0, 0, 45, 6])]
    predictions = [interaction([0, 0, 90, 10]), interaction([0, 0, 45, 10])]
    assert [pair[:2] for pair in score_frame(predictions, references).pairs] == [(0, 0), (2, 1)]


def test_a_box_with_swapped_corners_overlaps_nothing():
    assert box_iou((0, 0, 4, 4), (4, 4, 0, 0)) == box_iou((4, 4, 0, 0), (4, 4, 0, 0)) == 0
    assert box_iou((0, 0, 4, 4), (3, 0, 1, 4)) == box_iou((1, 1, 1, 1), (1, 1, 1, 1)) == 0


ALL_RIGHT = {"object_iou": 1.0, "hand_iou": 1.0, "hand_type_accuracy": 1.0}


def test_references_are_pooled_by_their_given_groups():
    frames = score_frames([[CUP], [LID]], [[CUP, LID], [LID]])
    left, both = ("hand_type", "left"), ("hand_type", "both")
    assert tables(frame_sums(frames, [[[left], [both]], [[both]]]))["per_hand_type"] == {
        "both": {"recall": 0.5, **ALL_RIGHT, "support": 2},
        "left": {"recall": 1.0, **ALL_RIGHT, "support": 1},
    }


def test_pooling_frame_scores_of_a_selection_equals_scoring_the_selection():
    predictions, references = [[CUP], None, [FAR, LID]], [[CUP, LID], [CUP], [LID]]
    scores = score_frames(predictions, references, matching="optimal")
    again = interaction_f1([predictions[2], predictions[2]], [references[2], references[2]], matching="optimal")
    assert pool([scores[2], scores[2]]) == again
    assert [pool([score])["f1"] for score in scores] == pytest.approx([2 / 3, 0, 2 / 3])
    assert [score.failed for score in scores] == [False, True, False]
    assert score_frames([], []) == []


@pytest.mark.parametrize(
    ("predictions", "references", "error", "message"),
    [
        ([[CUP]], [None], TypeError, r"references\[0\]: is None .* \[\] for none"),
        ([CUP], [[CUP]], TypeError, r"predictions\[0\]: .*give a list of interactions"),
        ([[CUP], [[3, 4]]], [[CUP], []], TypeError, r"predictions\[1\]\[0\]: is \[3, 4\] .*give a dict"),
        ([[{"object_box": [0, 0, 1, 1]}]], [[CUP]], ValueError, "hand_boxes, hand_type is missing"),
        ([[CUP | {"object_box": [0, 0, 1]}]], [[CUP]], ValueError, r"object_box is \[0, 0, 1\]; give the four numbers"),
        ([[CUP | {"object_box": None}]], [[CUP]], TypeError, r"predictions\[0\]\[0\]: object_box is None"),
        ([[CUP | {"object_box": [0, 0, "1", 1]}]], [[CUP]], TypeError, "object_box holds '1' .str., not a number"),
        ([[CUP | {"object_box": [0, 0, True, 1]}]], [[CUP]], TypeError, "object_box holds True"),
        ([[CUP | {"object_box": [0, 0, float("nan"), 1]}]], [[CUP]], ValueError, "holds nan; give finite numbers"),
        ([[CUP | {"hand_boxes": [0, 0, 1, 1]}]], [[CUP]], TypeError, r"hand_boxes\[0\] is 0 .int.; give a list"),
        ([[CUP | {"hand_boxes": None}]], [[CUP]], TypeError, "hand_boxes is None .*give a list of boxes"),
        ([[CUP]], [[CUP | {"hand_boxes": []}]], ValueError, r"references\[0\]\[0\]: hand_boxes is empty"),
        ([[CUP | {"hand_type": "third"}]], [[CUP]], ValueError, "hand_type is 'third'; give left, right or both"),
        ([[CUP | {"hand_type": 3}]], [[CUP]], TypeError, "hand_type is 3 .int., not a string"),
    ],
)
def test_wrong_input_is_named_with_its_place_and_remedy(predictions, references, error, message):
    with pytest.raises(error, match=message):
        interaction_f1(predictions, references)


def test_a_tensor_that_numpy_cannot_read_is_named():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"object_box is tensor.*detached CPU tensor"):
        score_frame([CUP | {"object_box": torch.zeros(4, requires_grad=True)}], [CUP])


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
    """`table`: {(reference, prediction): IoU}. The references are repeatedly searched for the next one to serve."""
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
