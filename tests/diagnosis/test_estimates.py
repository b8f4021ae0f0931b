"""Estimates recover planted faults, and name no others."""

import numpy as np
import pytest

from barista_bench.diagnosis.estimates import believes_any_text
from tests.diagnosis.batches import estimates_of_batch, game_columns, path_columns
from tests.diagnosis.responders import (
    SETTINGS,
    Responder,
    as_values,
    estimated,
    levels_named,
    path_scores,
    single_cause_pairs,
    study,
    truth,
)

STUDIES = 60


@pytest.mark.parametrize("design", ["paths", "full"])
@pytest.mark.parametrize("setting", ["mixture", "mixture, uptake .6"])
def test_intervals_cover_the_planted_shares(setting: str, design: str) -> None:
    wanted, responder = truth(SETTINGS[setting], 100_000), SETTINGS[setting]
    covered = dict.fromkeys(wanted, 0)
    for seed in range(STUDIES):
        rng = np.random.default_rng(seed)
        for name, estimate in as_values(estimated(study(responder, rng, 30, 6), design, rng)).items():
            covered[name] += estimate.low <= wanted[name] <= estimate.high
    assert min(covered.values()) >= 0.85 * STUDIES, covered


@pytest.mark.parametrize("videos", [3, 30])
def test_estimates_of_many_studies_at_once_equal_the_packages(videos: int) -> None:
    made = study(SETTINGS["mixture"], np.random.default_rng(videos), videos, 6)
    for design, columns in (
        ("paths", path_columns(path_scores(made, np.random.default_rng(1)))),
        ("full", game_columns(made)),
    ):
        (found,) = estimates_of_batch(made, columns, 1, videos)
        wanted = as_values(estimated(made, design, np.random.default_rng(1)))
        for name, each in as_values(found).items():
            assert each.model_dump() == pytest.approx(wanted[name].model_dump()), name


def test_a_single_fault_is_named_and_no_other() -> None:
    named = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        named.append(levels_named(estimated(study(SETTINGS["objects .30"], rng, 60, 6), "paths", rng)))
    assert sum(each == {"objects"} for each in named) >= 18


@pytest.mark.parametrize(("setting", "is_credulous"), [("tired", False), ("credulous", True)])
def test_a_responder_that_any_text_affects_is_reported_and_has_no_cause(setting: str, is_credulous: bool) -> None:
    rng = np.random.default_rng(5)
    estimates = estimated(study(SETTINGS[setting], rng, 60, 6), "paths", rng)
    assert estimates.text.high < 0
    assert believes_any_text(estimates) == is_credulous
    assert levels_named(estimates) == set()


@pytest.mark.parametrize("design", ["paths", "full"])
def test_gains_add_up_to_what_all_aids_gain(design: str) -> None:
    rng = np.random.default_rng(3)
    estimates = estimated(study(SETTINGS["mixture"], rng, 20, 6), design, rng)
    total = sum(each.gain.value for each in estimates.levels.values())
    assert total == pytest.approx(1 - estimates.remainder.value - estimates.plain.value)


def test_causes_of_single_answers_include_their_faults_and_answers_that_change_by_chance_have_none() -> None:
    made = study(SETTINGS["mixture"], np.random.default_rng(11), 40, 6)
    rate, pairs = single_cause_pairs(made)
    assert rate is not None
    assert rate <= 0.1
    assert len(pairs) > 20
    assert sum(faults <= cause for cause, faults in pairs) > 0.9 * len(pairs), "a named set includes the fault"
    assert sum(cause == faults for cause, faults in pairs) > 0.5 * len(pairs), "and is often no larger"
    flipping = Responder({"reasoning": 0.3}, noise=1.0)
    rate, pairs = single_cause_pairs(study(flipping, np.random.default_rng(11), 40, 6))
    assert rate is not None
    assert rate > 0.1
    assert pairs == [], "an answer that changes by itself has no cause"
