"""Bets without replacement: wrong as rarely as promised, however often one looks, and exact at the end."""

from itertools import combinations
from math import comb, inf, log

import numpy as np
import pytest
from hypothesis import given, strategies as st

from barista_bench.core.betting import log_wealth, p_value

VALUES = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), min_size=1, max_size=30)


def is_rejected(values: np.ndarray, alpha: float, count: int | None) -> bool:
    return bool(log_wealth(values, -1.0, count=count)[-1] >= log(1 / alpha))


@pytest.mark.parametrize("size", [6, 9])
@pytest.mark.parametrize("alpha", [0.05, 0.2, 0.5])
def test_of_all_orders_of_a_small_set_that_is_not_above_at_most_alpha_look_above(size: int, alpha: float) -> None:
    for ups in range(size // 2 + 1):
        wrong = 0
        for places in combinations(range(size), ups):
            values = -np.ones(size)
            values[list(places)] = 1.0
            wrong += is_rejected(values, alpha, size)
        assert wrong <= alpha * comb(size, ups)


@pytest.mark.parametrize("count", [300, None])
def test_a_mean_of_exactly_zero_looks_above_at_most_as_often_as_alpha(count: int | None) -> None:
    rng = np.random.default_rng(1)
    values = rng.uniform(-0.9, 0.9, 300)
    values -= values.mean()
    draw = rng.permutation if count else lambda v: rng.choice(v, len(v))
    wrong = sum(is_rejected(draw(values), 0.1, count) for _ in range(300))
    assert wrong <= 45  # three standard deviations above 30


@given(VALUES, st.data())
def test_wealth_rises_with_every_value_so_the_worst_may_replace_what_is_missing(
    values: list[float], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(values) - 1))
    lower = [*values[:at], -1.0, *values[at + 1 :]]
    extra = data.draw(st.integers(0, 20))
    for count in (len(values) + extra, None):
        before, after = (log_wealth(np.array(each), -1.0, count=count) for each in (values, lower))
        assert (after <= before + 1e-9).all()


@given(VALUES)
def test_the_last_value_decides_exactly_and_never_wrongly(values: list[float]) -> None:
    up, down = (log_wealth(sign * np.array(values), -1.0, count=len(values))[-1] for sign in (1, -1))
    assert (up == inf) == (sum(values) > 0)
    assert (down == inf) == (sum(values) < 0)


@given(VALUES)
def test_wealth_is_the_largest_so_far(values: list[float]) -> None:
    wealth = log_wealth(np.array(values), -1.0, count=40)
    assert (np.diff(wealth, prepend=0.0) >= 0).all()


def test_a_set_is_decided_as_soon_as_the_rest_cannot_turn_it() -> None:
    values, rest = np.array([0.5, 0.5]), np.array([-3.0, -0.5])
    assert np.isinf(log_wealth(values, -1.0, count=10, rest=rest)).tolist() == [False, True]


def test_without_a_lower_bound_nothing_is_staked() -> None:
    assert log_wealth(np.ones(20), -inf, count=100).tolist() == [0.0] * 20


def test_a_p_value_counts_both_directions() -> None:
    assert p_value(0.0, 0.0) == 1.0
    assert p_value(log(40), 0.0) == pytest.approx(0.05)
