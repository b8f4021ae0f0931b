"""Agreement between judges: against the definitions and scikit-learn, by hand, and the tables of arXiv 2605.12074."""

import itertools
import random

import numpy as np
import pytest
from judge_score import calibration_shift, judge_agreement, quadratic_weighted_kappa

from tests.metrics.conftest import assert_metrics


def slow_tau_b(first, second):
    """The definition, pair by pair: (concordant - discordant) / sqrt(pairs untied in x * pairs untied in y)."""
    signs = [
        ((a > c) - (a < c), (b > d) - (b < d))
        for (a, b), (c, d) in itertools.combinations(zip(first, second, strict=True), 2)
    ]
    untied = [sum(s[side] != 0 for s in signs) for side in (0, 1)]
    return sum(s * t for s, t in signs) / (untied[0] * untied[1]) ** 0.5 if all(untied) else None


def slow_kappa(first, second):
    """The definition by confusion matrices: weighted observed over weighted expected counts."""
    if not first or len({*first, *second}) == 1:
        return None
    observed = np.zeros((11, 11))
    np.add.at(observed, (first, second), 1)
    expected = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / len(first)
    weights = np.subtract.outer(np.arange(11), np.arange(11)) ** 2
    return float(1 - (weights * observed).sum() / (weights * expected).sum())


def random_scores(rng):
    n = rng.randint(1, 14)
    top = rng.choice([1, 3, 10])
    first = [rng.randint(0, top) for _ in range(n)]
    second = [min(10, max(0, a + rng.randint(-2, 1))) for a in first]
    missing = [[None if rng.random() < 0.1 else s for s in scores] for scores in (first, second)]
    return (*missing, [rng.choice(["x", "y", "z", None]) for _ in range(n)])


def test_equals_the_definitions_and_scikit_learn_on_random_cases():
    kappa = pytest.importorskip("sklearn.metrics").cohen_kappa_score
    rng = random.Random(0)
    for case in range(400):
        first, second, models = random_scores(rng)
        result = judge_agreement({"a": first, "b": second}, models)
        pair = result["pairs"][0]
        rows = [(a, b, m) for a, b, m in zip(first, second, models, strict=True) if a is not None and b is not None]
        assert (pair["n"], result["n"], result["n_failed"]) == (len(rows), len(first), len(first) - len(rows))
        left, right = [a for a, _, _ in rows], [b for _, b, _ in rows]
        # scikit-learn takes milliseconds a call, so it sees every eighth case.
        if case % 8 == 0 and pair["qwk"] is not None:
            assert_metrics(pair, {"qwk": kappa(left, right, weights="quadratic", labels=range(11))})
        gaps = np.abs(np.subtract(left, right))
        names = sorted({m for _, _, m in rows if m})
        means = [[np.mean([row[side] for row in rows if row[2] == m]) / 10 for m in names] for side in (0, 1)]
        shifts = np.subtract(means[1], means[0])
        want = {
            "qwk": slow_kappa(left, right),
            "tau_examples": slow_tau_b(left, right),
            "exact": np.mean(gaps == 0) if rows else None,
            "within_1": np.mean(gaps <= 1) if rows else None,
            "shift": np.mean(shifts) if names else None,
            "shift_sd": np.std(shifts) if names else None,
            "tau_models": slow_tau_b(*np.round(means, 12).tolist()),
        }
        assert_metrics(pair, want)


def test_scikit_learn_without_the_full_scale_counts_ranks_instead_of_points():
    kappa = pytest.importorskip("sklearn.metrics").cohen_kappa_score
    first, second = [0, 0, 5, 10, 10], [0, 5, 10, 10, 9]
    ours = quadratic_weighted_kappa(first, second)
    assert ours == pytest.approx(kappa(first, second, weights="quadratic", labels=range(11)), abs=1e-12)
    assert abs(ours - kappa(first, second, weights="quadratic")) > 0.01


def test_metrics_are_those_computed_by_hand():
    scores = {"gpt": [7, 3, 2, 9, 5], "gemini": [8, 3, 5, None, [4, 6]]}
    result = judge_agreement(scores, ["x", "y", "y", "x", "x"])
    pair = result["pairs"][0]
    # Alphabetical: gemini first. Differences gpt - gemini: -1, 0, -3, 0.
    assert (result["judges"], pair["judges"]) == (["gemini", "gpt"],) * 2
    assert (pair["exact"], pair["within_1"], pair["shift_examples"]) == (0.5, 0.75, pytest.approx(-0.1))
    assert pair["per_model"]["x"] == {"n": 2, "means": [0.65, 0.6], "shift": pytest.approx(-0.05)}
    assert pair["per_model"]["y"]["shift"] == pytest.approx(-0.15)
    assert (pair["shift"], pair["shift_sd"]) == (pytest.approx(-0.1), pytest.approx(0.05))
    assert pair["tau_models"] == 1
    assert (result["n"], result["n_failed"], result["coverage"], pair["coverage"]) == (5, 1, 0.8, 0.8)


def test_the_order_of_judges_turns_the_shift_round():
    scores = {"a": [1, 5, 9], "b": [2, 5, 10]}
    forth, back = (judge_agreement(scores, ["x", "x", "y"], judges=j)["pairs"][0] for j in (["a", "b"], ["b", "a"]))
    assert forth["shift"] == -back["shift"] > 0
    assert [forth[k] == back[k] for k in ("exact", "within_1", "qwk", "tau_examples", "tau_models")] == [True] * 5


def test_three_judges_make_three_pairs_and_their_mean():
    result = judge_agreement({"a": [1, 5, 9], "b": [1, 5, 9], "c": [1, 5, 8]})
    assert [pair["judges"] for pair in result["pairs"]] == [["a", "b"], ["a", "c"], ["b", "c"]]
    assert result["mean"]["exact"] == pytest.approx((1 + 2 / 3 + 2 / 3) / 3)
    assert result["mean"]["tau_examples"] == 1
    assert result["mean"]["tau_models"] is None


@pytest.mark.parametrize(("a", "b"), [([5, 5, 5], [5, 5, 5]), ([5], [5]), ([None], [3])])
def test_undefined_agreement_is_none(a, b):
    pair = judge_agreement({"a": a, "b": b})["pairs"][0]
    assert pair["qwk"] is None
    assert pair["tau_examples"] is None
    assert calibration_shift([], [])["shift"] is None
    assert calibration_shift([0.5], [0.25], ddof=1)["sd"] is None


@pytest.mark.parametrize(
    ("scores", "options", "error", "message"),
    [
        ([[1], [2]], {}, TypeError, "scores: is of type list; give a dict"),
        ({"a": [1]}, {}, ValueError, "scores: hold 1 judges; give at least two"),
        ({"a": [], "b": []}, {}, ValueError, "scores: are empty"),
        ({"a": [1], "b": [1, 2]}, {}, ValueError, r"scores\['b'\]: has 2 entries for 1 examples"),
        ({"a": [1], "b": ["2"]}, {}, TypeError, r"scores\['b'\]\[0\]: is '2'"),
        ({"a": [1], "b": [12]}, {}, ValueError, r"scores\['b'\]\[0\]: is 12, outside 0 to 10"),
        ({"a": [1], "b": 2}, {}, TypeError, r"scores\['b'\]: is of type int"),
        ({"a": [1], "b": [2]}, {"judges": ["a", "c"]}, ValueError, "judges: is .*name each judge once"),
        ({"a": [1], "b": [2]}, {"models": ["x", "y"]}, ValueError, "models: has 2 entries for 1 examples"),
        ({"a": [1], "b": [2]}, {"models": [1]}, TypeError, r"models\[0\]: is 1"),
    ],
)
def test_wrong_input_is_named_with_its_place_and_remedy(scores, options, error, message):
    with pytest.raises(error, match=message):
        judge_agreement(scores, **options)
    with pytest.raises(ValueError, match="the lists have 1 and 2 scores; give pairs"):
        quadratic_weighted_kappa([1], [1, 2])
