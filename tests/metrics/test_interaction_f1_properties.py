"""What holds for every input of the interaction_f1 metric."""

from __future__ import annotations

from hypothesis import given, strategies as st
from interaction_f1 import box_iou, interaction_f1

FAR = {"hand_boxes": [[90, 90, 94, 94]], "object_box": [80, 80, 86, 86], "hand_type": "right"}


def interaction(object_box, hand_boxes, hand_type):
    return {"hand_boxes": [list(box) for box in hand_boxes], "object_box": list(object_box), "hand_type": hand_type}


coordinates = st.integers(0, 12)
boxes = st.builds(
    lambda x, y, w, h: [x, y, x + w, y + h], coordinates, coordinates, st.integers(1, 8), st.integers(1, 8)
)
interactions = st.builds(
    interaction, boxes, st.lists(boxes, min_size=1, max_size=2), st.sampled_from(["left", "right", "both"])
)
frames = st.lists(interactions, max_size=4)
cases = st.lists(st.tuples(st.none() | frames, frames), min_size=1, max_size=4)
matchings = st.sampled_from(["greedy", "highest_first", "optimal"])


def scored(examples, matching="greedy"):
    return interaction_f1([e[0] for e in examples], [e[1] for e in examples], matching=matching)


@given(cases, matchings)
def test_figures_are_bounded_and_f1_lies_between_precision_and_recall(examples, matching):
    result = scored(examples, matching)
    counts = {"n", "n_failed", "n_matched", "n_predicted", "n_reference", "greedy_cost"}
    assert all(value is None or 0 <= value <= 1 for name, value in result.items() if name not in counts)
    assert result["object_iou"] is None or result["object_iou"] > 0.5 - (matching == "highest_first") * 1e-9
    low, high = sorted((result["precision"], result["recall"]))
    assert low - 1e-12 <= result["f1"] <= high + 1e-12
    assert result["n_matched"] <= min(result["n_predicted"], result["n_reference"])


@given(cases)
def test_optimal_matching_finds_at_least_as_many_pairs_and_at_most_twice_as_many(examples):
    greedy, optimal = scored(examples), scored(examples, "optimal")
    assert greedy["n_matched"] <= optimal["n_matched"] <= 2 * greedy["n_matched"]
    assert optimal["greedy_cost"] == optimal["n_matched"] - greedy["n_matched"]


@given(frames, frames, interactions)
def test_a_further_prediction_never_loses_a_pair_of_the_optimal_matching(predicted, reference, extra):
    fewer, more = scored([(predicted, reference)], "optimal"), scored([([*predicted, extra], reference)], "optimal")
    assert more["n_matched"] >= fewer["n_matched"]


@given(cases)
def test_a_prediction_far_from_everything_only_lowers_the_precision(examples):
    worse = [(None if answer is None else [*answer, FAR], reference) for answer, reference in examples]
    before, after = scored(examples), scored(worse)
    assert after["precision"] <= before["precision"]
    unchanged = ("recall", "object_iou", "hand_iou", "hand_type_accuracy", "n_matched")
    assert [after[name] for name in unchanged] == [before[name] for name in unchanged]


@given(boxes, boxes, st.floats(0, 1), st.floats(0, 1))
def test_a_corner_moved_towards_the_truth_never_lowers_the_iou_of_a_box_around_it(box, margins, small, large):
    small, large = sorted((small, large))
    x0, y0, x1, y1 = box
    left, top, right, bottom = margins

    def around(fraction):
        return (x0 - left * fraction, y0 - top * fraction, x1 + right * fraction, y1 + bottom * fraction)

    assert box_iou(around(small), tuple(box)) >= box_iou(around(large), tuple(box)) - 1e-12


@given(cases, st.integers(1, 1000))
def test_the_unit_of_the_boxes_does_not_matter(examples, factor):
    def scaled(box):
        return [value * factor for value in box]

    def frame(items):
        return [interaction(scaled(i["object_box"]), map(scaled, i["hand_boxes"]), i["hand_type"]) for i in items]

    larger = [(None if answer is None else frame(answer), frame(reference)) for answer, reference in examples]
    assert scored(larger) == scored(examples)
