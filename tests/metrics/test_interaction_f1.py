"""The arithmetic of the interaction_f1 metric, by hand. Beside it: a slow reference and properties."""

import numpy as np
import pytest
from interaction_f1 import box_iou, hand_iou, interaction_f1, pool, score_frame, score_frames
from interaction_f1.scoring import frame_sums, tables

MATCHINGS = ["greedy", "highest_first", "optimal"]
CUP = {"hand_boxes": [[0, 0, 4, 4]], "object_box": [3, 3, 9, 9], "hand_type": "left"}
LID = {"hand_boxes": [[20, 0, 24, 4], [30, 0, 34, 4]], "object_box": [22, 3, 28, 9], "hand_type": "both"}
FAR = {"hand_boxes": [[90, 90, 94, 94]], "object_box": [80, 80, 86, 86], "hand_type": "right"}


def interaction(object_box, hand_boxes=((0, 0, 4, 4),), hand_type="left"):
    return {"hand_boxes": [list(box) for box in hand_boxes], "object_box": list(object_box), "hand_type": hand_type}


def test_the_iou_of_two_boxes_equals_that_of_pycocotools():
    mask = pytest.importorskip("pycocotools.mask")
    corners = np.random.default_rng(0).uniform(0, 1000, (2, 2000, 2, 2))
    boxes = np.concatenate([corners.min(axis=2), corners.max(axis=2)], axis=-1)
    as_xywh = np.concatenate([boxes[..., :2], boxes[..., 2:] - boxes[..., :2]], axis=-1)
    want = [mask.iou(a[None], b[None], [0])[0, 0] for a, b in zip(*as_xywh, strict=True)]
    got = [box_iou(tuple(a), tuple(b)) for a, b in zip(*boxes.tolist(), strict=True)]
    assert max(abs(g - w) for g, w in zip(got, want, strict=True)) < 1e-12


def test_a_frame_is_scored_as_computed_by_hand():
    cup = interaction([3, 3, 9, 7], [[0, 0, 4, 2]], "right")  # object IoU 24/36, hand IoU 8/16
    lid = interaction([22, 3, 28, 9], [[20, 0, 24, 4]], "both")  # object IoU 1, one of two hands
    result = interaction_f1([[FAR, cup, lid]], [[CUP, LID]])
    assert (result["n_matched"], result["n_predicted"], result["n_reference"]) == (2, 3, 2)
    assert [result["precision"], result["recall"], result["f1"]] == pytest.approx([2 / 3, 1, 4 / 5])
    assert result["object_iou"] == pytest.approx((2 / 3 + 1) / 2)
    assert (result["hand_iou"], result["hand_type_accuracy"]) == (0.5, 0.5)
    assert [pair[:2] for pair in score_frame([FAR, cup, lid], [CUP, LID]).pairs] == [(1, 2), (0, 1)]


@pytest.mark.parametrize(("matching", "n_matched"), [("greedy", 0), ("highest_first", 1), ("optimal", 0)])
def test_an_iou_of_exactly_one_half_is_a_match_of_the_paper_alone(matching, n_matched):
    whole = interaction([0, 0, 10, 10])
    assert interaction_f1([[interaction([0, 0, 10, 5])]], [[whole]], matching=matching)["n_matched"] == n_matched
    assert interaction_f1([[interaction([0, 0, 10, 5.001])]], [[whole]], matching=matching)["n_matched"] == 1


def test_the_reference_with_the_best_iou_chooses_first_and_may_cost_a_match():
    references = [interaction([2, 0, 10, 10]), interaction([0, 0, 10, 10])]
    predictions = [interaction([0, 0, 7, 10]), interaction([1, 0, 10, 10])]
    assert [pair[:2] for pair in score_frame(predictions, references).pairs] == [(1, 1)]
    best = interaction_f1([predictions], [references], matching="optimal")
    assert (best["n_matched"], best["greedy_cost"]) == (2, 1)
    assert "greedy_cost" not in interaction_f1([predictions], [references])


def test_at_a_tie_the_earlier_reference_and_the_earlier_prediction_win():
    twins = [interaction([0, 0, 10, 10]), interaction([0, 0, 10, 10], hand_type="right")]
    assert [pair[:2] for pair in score_frame(twins, twins).pairs] == [(0, 0), (1, 1)]


def test_a_prediction_that_overlaps_too_little_stays_free_for_the_next_reference():
    # The first reference is served first (0.9) and must then not use up the prediction that it overlaps by 0.45.
    references = [interaction([0, 0, 100, 10]), interaction([0, 0, 100, 10]), interaction([0, 0, 45, 6])]
    predictions = [interaction([0, 0, 90, 10]), interaction([0, 0, 45, 10])]
    assert [pair[:2] for pair in score_frame(predictions, references).pairs] == [(0, 0), (2, 1)]


@pytest.mark.parametrize(
    ("predicted", "reference", "expected"),
    [
        ([(0, 0, 2, 2)], [(0, 0, 2, 2)], 1),
        ([], [(0, 0, 2, 2)], 0),
        # A hand that nothing overlaps uses up the first one left, as released.
        ([(0, 0, 2, 2)], [(5, 5, 6, 6), (0, 0, 2, 2)], 0),
        ([(9, 9, 10, 10), (0, 0, 2, 2)], [(5, 5, 6, 6), (0, 0, 2, 2)], 0.5),
        ([(0, 0, 2, 2), (0, 0, 2, 1)], [(0, 0, 2, 2), (0, 0, 2, 1)], 1),
        # The first hand takes the better box, and the second is left with what does not overlap it.
        ([(0, 0, 4, 1)], [(0, 0, 4, 2), (0, 0, 4, 1)], 0.25),
        ([(0, 0, 4, 1), (9, 9, 10, 10)], [(0, 0, 4, 2), (0, 0, 4, 1)], 0.25),
    ],
)
def test_hands_are_paired_greedily_in_the_order_of_the_reference(predicted, reference, expected):
    assert hand_iou(predicted, reference) == pytest.approx(expected)


def test_a_hand_that_nothing_overlaps_uses_up_nothing_by_the_other_matchings():
    both = interaction([0, 0, 9, 9], [[20, 20, 24, 24], [0, 0, 4, 4]], "both")
    hand = interaction([0, 0, 9, 9], [[0, 0, 4, 4]], "left")
    figures = {name: interaction_f1([[hand]], [[both]], matching=name)["hand_iou"] for name in MATCHINGS}
    assert figures == {"greedy": 0.0, "highest_first": 0.5, "optimal": 0.5}


def test_a_failed_frame_lowers_recall_and_counts_as_no_detection_but_not_in_precision():
    result = interaction_f1([[CUP], None, [], None], [[CUP], [LID], [LID], []])
    assert (result["precision"], result["recall"], result["f1"]) == (1, 1 / 3, 0.5)
    assert result["no_detection_rate"] == pytest.approx(2 / 3)
    assert (result["n"], result["n_failed"], result["coverage"]) == (4, 2, 0.5)


def test_what_is_a_mean_over_nothing_is_none_and_a_share_of_nothing_is_zero():
    result = interaction_f1([[], [FAR]], [[], []])
    assert [result[name] for name in ("precision", "recall", "f1")] == [0, 0, 0]
    assert [result[name] for name in ("object_iou", "hand_iou", "hand_type_accuracy", "no_detection_rate")] == [
        None
    ] * 4


def test_a_prediction_without_hands_is_scored_and_its_hands_are_wrong():
    result = interaction_f1([[CUP | {"hand_boxes": []}]], [[CUP]])
    assert (result["n_matched"], result["hand_iou"]) == (1, 0)


def test_a_box_with_swapped_corners_overlaps_nothing():
    assert box_iou((0, 0, 4, 4), (4, 4, 0, 0)) == box_iou((4, 4, 0, 0), (4, 4, 0, 0)) == 0
    assert box_iou((0, 0, 4, 4), (3, 0, 1, 4)) == box_iou((1, 1, 1, 1), (1, 1, 1, 1)) == 0


def test_references_are_pooled_by_the_groups_that_they_are_said_to_be_of():
    frames = score_frames([[CUP], []], [[CUP, LID], [LID]])
    left, both = ("hand_type", "left"), ("hand_type", "both")
    assert tables(frame_sums(frames, [[[left], [both]], [[both]]]))["per_hand_type"] == {
        "both": {"recall": 0.0, "support": 2},
        "left": {"recall": 1.0, "object_iou": 1.0, "hand_iou": 1.0, "hand_type_accuracy": 1.0, "support": 1},
    }


def test_pooling_frame_scores_of_a_selection_equals_scoring_the_selection():
    predictions, references = [[CUP], None, [FAR, LID]], [[CUP, LID], [CUP], [LID]]
    scores = score_frames(predictions, references, matching="optimal")
    again = interaction_f1([predictions[2], predictions[2]], [references[2], references[2]], matching="optimal")
    assert pool([scores[2], scores[2]]) == again
    assert [pool([score])["f1"] for score in scores] == pytest.approx([2 / 3, 0, 2 / 3])
    assert [score.failed for score in scores] == [False, True, False]
    assert score_frames([], []) == []


def test_case_and_white_space_of_the_hand_type_do_not_matter():
    assert interaction_f1([[CUP | {"hand_type": " LEFT\n"}]], [[CUP]])["hand_type_accuracy"] == 1


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
