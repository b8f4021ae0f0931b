"""The verdict means of the judge_score metric: against numpy, by hand, by properties, and its errors."""

import math
import random
import statistics
from functools import partial

import numpy as np
import pytest
from judge_score import judge_score

NAN = float("nan")
near = partial(pytest.approx, rel=0, abs=1e-12, nan_ok=True)


def cube(verdicts, names):
    """Examples x criteria x draws, NaN without a verdict, as wide as each criterion's longest list."""
    widths = [max([len((v or {}).get(c) or []) for v in verdicts]) for c in names]
    array = np.full((len(verdicts), len(names), max([*widths, 1])), np.nan)
    for i, verdict in enumerate(verdicts):
        for c, name in enumerate(names):
            for k, sampled_score in enumerate((verdict or {}).get(name) or []):
                array[i, c, k] = np.nan if sampled_score is None else sampled_score
    return array, widths


def reference_metrics(array):
    """Figures of examples x draws, by numpy's functions for missing values."""
    count = (~np.isnan(array)).sum(axis=1)
    freedom = np.clip(count - 1, 0, None)
    # A variance over one draw is not a number, and weighs nothing.
    pooled = np.nansum(np.nanvar(array, axis=1, ddof=1) * freedom) / freedom.sum()
    runs = np.nanmean(array, axis=0) / 10
    examples = np.nanmean(array, axis=1)
    return {
        "mean": np.nanmean(examples) / 10,
        "sd_of_verdicts": np.sqrt(pooled) / 10,
        "sd_of_repetitions": np.nanstd(runs, ddof=1),
        "means_of_repetitions": runs.tolist(),
        "n_failed": int(np.isnan(examples).sum()),
    }


def reference(verdicts, names):
    array, widths = cube(verdicts, names)
    criteria_means = np.nanmean(array, axis=2)
    complete = criteria_means.mean(axis=1)  # NaN spreads: an example that lacks a criterion is incomplete
    whole = reference_metrics(array[:, :, : min(widths)].mean(axis=1))
    whole |= {"mean": np.nanmean(complete) / 10, "n_failed": int(np.isnan(complete).sum())}
    whole["mean_of_criteria"] = np.nanmean(criteria_means, axis=0).mean() / 10
    return whole, {c: reference_metrics(array[:, i, : widths[i]]) for i, c in enumerate(names)}


def random_draws(rng, width):
    sampled_scores = [rng.choice([rng.randint(0, 10), round(rng.uniform(0, 10), 2)]) for _ in range(width)]
    return [rng.choice([None, NAN]) if rng.random() < 0.15 else sampled_score for sampled_score in sampled_scores][
        : rng.choice([width, 9])
    ]


def random_verdicts(rng):
    names, width = ["accuracy", "completeness", "tone"][: rng.randint(1, 3)], rng.randint(1, 4)
    verdicts = [
        None if rng.random() < 0.1 else {c: random_draws(rng, width) for c in names if rng.random() < 0.95}
        for _ in range(rng.randint(1, 8))
    ]
    return verdicts, names


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")  # numpy warns of means of nothing
def test_equals_numpy_on_random_cases():
    rng, n = random.Random(0), 0
    while n < 300:
        verdicts, names = random_verdicts(rng)
        if not all(any((v or {}).get(c) for v in verdicts) for c in names):
            continue
        n += 1
        got = judge_score(verdicts, criteria=names)
        whole, per = reference(verdicts, names)
        assert got["coverage"] == pytest.approx(1 - whole["n_failed"] / len(verdicts))
        for metrics, want in [(got, whole), *((got["per_criterion"][name], per[name]) for name in names)]:
            means_of_repetitions = want.pop("means_of_repetitions")
            assert [NAN if mean is None else mean for mean in metrics["means_of_repetitions"]] == near(
                means_of_repetitions
            )
            assert {name: NAN if metrics[name] is None else metrics[name] for name in want} == near(want)


VERDICTS = [
    {"accuracy": [8, 10], "completeness": [6, 6]},
    {"accuracy": [4, None], "completeness": [5, 7]},
    {"accuracy": [2, 4]},
    None,
]


def test_metrics_are_those_computed_by_hand():
    result = judge_score(VERDICTS)
    # Complete: (9 + 6) / 2 = 7.5 and (4 + 6) / 2 = 5.
    assert (result["raw_mean"], result["mean"]) == (6.25, 0.625)
    assert (result["n"], result["n_failed"], result["coverage"]) == (4, 2, 0.5)
    accuracy, completeness = result["per_criterion"]["accuracy"], result["per_criterion"]["completeness"]
    assert accuracy["raw_mean"] == pytest.approx((9 + 4 + 3) / 3)
    assert accuracy["means_of_repetitions"] == pytest.approx([(8 + 4 + 2) / 30, (10 + 4) / 20])
    assert accuracy["sd_of_repetitions"] == pytest.approx(statistics.stdev([14 / 30, 0.7]))
    # Squares 1 + 1, none, 1 + 1 over 2 degrees of freedom.
    assert accuracy["sd_of_verdicts"] == pytest.approx(math.sqrt(2) / 10)
    assert (accuracy["n_sampled"], accuracy["coverage_of_samples"], accuracy["coverage"]) == (5, 5 / 8, 0.75)
    assert completeness["mean"] == 0.6
    assert result["mean_of_criteria"] == pytest.approx((16 / 30 + 0.6) / 2)
    # Draws of both criteria: 7, 8 and 4.5.
    assert result["means_of_repetitions"] == pytest.approx([(7 + 4.5) / 20, 0.8])


def test_a_missing_verdict_or_criterion_lowers_the_coverage_and_does_not_count_as_zero():
    full, missing, zero = ([{"correctness": 8}, {"correctness": x}] for x in (8, None, 0))
    assert judge_score(full)["mean"] == judge_score(missing)["mean"] == 0.8
    assert (judge_score(missing)["coverage"], judge_score(missing)["n_failed"]) == (0.5, 1)
    assert (judge_score(zero)["mean"], judge_score(zero)["coverage"]) == (0.4, 1)
    assert judge_score([{"accuracy": 5}], criteria=["accuracy", "completeness"])["coverage"] == 0
    assert judge_score([{"a": [10, 10, 10]}, {"a": [0, None, None]}])["mean"] == 0.5, "examples weigh the same"


@pytest.mark.parametrize("nothing", [None, {}, {"accuracy": None}, {"accuracy": []}, {"accuracy": [None, NAN]}])
def test_only_missing_verdicts_give_no_mean(nothing):
    result = judge_score([nothing], ["a"], criteria=["accuracy"])
    assert (result["mean"], result["mean_of_criteria"], result["sd_of_verdicts"], result["sd_of_repetitions"]) == (
        None,
    ) * 4
    assert (result["coverage"], result["per_category"]["a"]["coverage"]) == (0, 0)
    assert judge_score([None])["mean"] is None


def test_categories_are_scored_apart_and_none_belongs_to_none():
    categories = ["state_change", "relation_change", None, "state_change"]
    result = judge_score(VERDICTS, categories)
    assert list(result["per_category"]) == ["relation_change", "state_change"]
    state = result["per_category"]["state_change"]
    assert (state["mean"], state["n"], state["n_failed"]) == (0.75, 2, 1)
    assert "per_category" not in state
    assert state["per_criterion"]["accuracy"]["means_of_repetitions"] == [0.8, 1.0]


def test_scores_are_divided_by_the_scale():
    assert judge_score([{"r": 4}], scale=5)["mean"] == 0.8
    with pytest.raises(ValueError, match=r"\['r'\]: is 6, outside 0 to 5"):
        judge_score([{"r": 6}], scale=5)


@pytest.mark.parametrize(
    ("verdicts", "options", "error", "message"),
    [
        ([7], {}, TypeError, r"verdicts\[0\]: is 7 .int.; give a dict from criterion"),
        ([{1: 7}], {}, TypeError, r"verdicts\[0\]: criterion 1 .int. is not a string"),
        ([{"a": "7"}], {}, TypeError, r"verdicts\[0\]\['a'\]: is '7' .str.; give a list of scores"),
        ([{"a": [7, "8"]}], {}, TypeError, r"verdicts\[0\]\['a'\]\[1\]: is '8' .str., not a number.*malformed"),
        ([{"a": True}], {}, TypeError, r"is True .bool., not a number"),
        ([{"a": [10.5]}], {}, ValueError, r"is 10.5, outside 0 to 10"),
        ([{"a": 7}], {"categories": ["x", "y"]}, ValueError, "categories: has 2 entries for 1 examples"),
        ([{"a": 7}], {"categories": [3]}, TypeError, r"categories\[0\]: is 3 .int., not a string"),
        ([{"a": 7}], {"criteria": ["b"]}, ValueError, r"verdicts\[0\]: 'a' is not among the criteria"),
        ([{"a": 7}], {"criteria": []}, ValueError, "criteria: is .*each once"),
        ([{"a": 7}], {"criteria": ["a", "a"]}, ValueError, "each once"),
        ([{"a": 7}], {"scale": 0}, ValueError, "scale: is 0"),
        ([{"a": 7}], {"scale": "10"}, TypeError, "scale: is '10'"),
    ],
)
def test_wrong_input_is_named_with_its_place_and_remedy(verdicts, options, error, message):
    with pytest.raises(error, match=message):
        judge_score(verdicts, **options)
