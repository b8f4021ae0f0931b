"""EgoCoT-Bench's R and SCR: against numpy, by hand, by properties, and its errors."""

import random

import numpy as np
import pytest
from judge_score import EGOCOT_SIZES, egocot_reasoning, spurious_correct_rate

from tests.metrics.conftest import assert_metrics

SUBTASKS = [name for group in EGOCOT_SIZES.values() for name in group]
GROUP_OF = {name: group for group, subtasks in EGOCOT_SIZES.items() for name in subtasks}


def random_samples(rng):
    def sample():
        score = rng.choice([0, 1, 2, 3, 4, 5, 5, None])
        return score, rng.choice([True, True, False, None]), rng.choice([*SUBTASKS[:5], None]), rng.random() < 0.1

    return [sample() for _ in range(rng.randint(1, 12))]


def reference(table):
    """The formulas on arrays: NaN scores are missing verdicts."""
    score, right = table[:, 0], table[:, 1]
    judged = ~np.isnan(score)
    bad = score <= 2
    return {
        "accuracy": 100 * np.mean(right),
        "r": np.mean(score[judged]) if judged.any() else None,
        "scr": 100 * np.sum(right * bad) / np.sum(right * judged) if np.sum(right * judged) else None,
        "n": len(table),
        "n_failed": np.sum(~judged),
        "n_correct": np.sum(right * judged),
        "n_spurious": np.sum(right * bad),
    }


def test_equals_the_formulas_on_arrays_in_random_cases():
    rng = random.Random(0)
    for _ in range(400):
        samples = random_samples(rng)
        scores, correct, subtasks, empty = (list(column) for column in zip(*samples, strict=True))
        got = egocot_reasoning(scores, correct, subtasks, empty_reasoning=empty)
        rows = [[0 if e else np.nan if s is None else s, bool(c)] for s, c, _, e in samples]
        table, names = np.array(rows, dtype=float), np.array([str(name) for name in subtasks])
        assert_metrics(got, reference(table))
        assert set(got["per_subtask"]) == set(names) - {"None"}
        for name, metrics in got["per_subtask"].items():
            assert_metrics(metrics, reference(table[names == name]))
        groups = np.array([GROUP_OF.get(name, "") for name in names])
        for group, metrics in got["per_group"].items():
            assert_metrics(metrics, reference(table[groups == group]))


def test_the_threshold_is_inclusive():
    assert [spurious_correct_rate([score], [True]) for score in range(6)] == [100, 100, 100, 0, 0, 0]
    assert egocot_reasoning([3], [True], threshold=3)["scr"] == 100
    assert spurious_correct_rate([1], [False]) is None


def test_an_empty_rationale_scores_zero_and_a_missing_verdict_does_not():
    empty = egocot_reasoning([None, 4], [True, True], empty_reasoning=[True, False])
    missing = egocot_reasoning([None, 4], [True, True])
    assert (empty["r"], empty["scr"], empty["coverage"]) == (2, 50, 1)
    assert (missing["r"], missing["scr"], missing["coverage"], missing["n_failed"]) == (4, 0, 0.5, 1)
    assert missing["accuracy"] == 100
    assert egocot_reasoning([5], [True], empty_reasoning=[True])["r"] == 0


def test_groups_pool_their_samples_and_not_their_subtasks_and_may_come_from_another_benchmark():
    result = egocot_reasoning([5, 5, 5, 1], [True, True, True, True], ["AOG", "AOG", "AOG", "HOA"])
    assert (result["per_group"]["EGP"]["r"], result["per_group"]["EGP"]["scr"]) == (4, 25)
    assert result["per_subtask"]["HOA"]["scr"] == 100
    assert list(result["per_group"]) == ["EGP"]
    result = egocot_reasoning([5, 1], [True, True], ["a", "b"], groups={"one": ["a"], "both": ["a", "b"]})
    assert {name: group["n"] for name, group in result["per_group"].items()} == {"one": 1, "both": 2}


@pytest.mark.parametrize(
    ("scores", "correct", "options", "error", "message"),
    [
        ([], [], {}, ValueError, "scores: are empty"),
        (5, [True], {}, TypeError, "scores: is of type int"),
        ([5], [True, False], {}, ValueError, "correct: has 2 entries for 1 examples"),
        ([6], [True], {}, ValueError, r"scores\[0\]: is 6, outside 0 to 5"),
        ([2.5], [True], {}, ValueError, r"scores\[0\]: is 2.5; the judge gives whole scores"),
        (["5"], [True], {}, TypeError, r"scores\[0\]: is '5'"),
        ([5], ["yes"], {}, TypeError, r"correct\[0\]: is 'yes' .str.; give True or False"),
        ([5], [2], {}, TypeError, r"correct\[0\]: is 2"),
        ([5], [True], {"subtasks": [1]}, TypeError, r"subtasks\[0\]: is 1"),
        ([5], [True], {"empty_reasoning": [""]}, TypeError, r"empty_reasoning\[0\]: is ''"),
        ([5], [True], {"groups": ["AOG"]}, TypeError, "groups: is of type list"),
    ],
)
def test_wrong_input_is_named_with_its_place_and_remedy(scores, correct, options, error, message):
    with pytest.raises(error, match=message):
        egocot_reasoning(scores, correct, **options)


# The row of GPT-5.1 on the leaderboards of EgoCoT-Bench's page (arXiv 2605.19559), in percent: the three subtasks and
# the mean of each group, and the SCR of each group.
ACCURACIES = [
    [64.20, 63.16, 77.00, 67.69],
    [66.04, 49.40, 56.25, 55.23],
    [86.99, 67.17, 70.56, 76.63],
    [68.24, 79.83, 45.28, 65.15],
]
RATES = [5.35, 5.25, 1.79, 9.21]


def test_the_sizes_of_the_subtasks_sum_to_the_benchmark():
    assert [len(sizes) for sizes in EGOCOT_SIZES.values()] == [3, 3, 3, 3]
    assert sum(sum(sizes.values()) for sizes in EGOCOT_SIZES.values()) == 3172


def test_the_published_metrics_come_out_of_samples_that_fit_them():
    scores, correct, subtasks = [], [], []
    for sizes, accuracies, rate in zip(EGOCOT_SIZES.values(), ACCURACIES, RATES, strict=True):
        right = {name: round(value * sizes[name] / 100) for name, value in zip(sizes, accuracies[:3], strict=True)}
        bad = round(rate * sum(right.values()) / 100)
        for name, size in sizes.items():
            for i in range(size):
                scores.append(2 if i < right[name] and bad > 0 else 4)
                bad -= i < right[name]
                correct.append(i < right[name])
                subtasks.append(name)
    result = egocot_reasoning(scores, correct, subtasks)
    assert (round(result["scr"], 2), round(result["accuracy"], 2)) == (4.91, 66.71)
    assert [round(group["scr"], 2) for group in result["per_group"].values()] == RATES
    assert [round(group["accuracy"], 2) for group in result["per_group"].values()] == [row[3] for row in ACCURACIES]
