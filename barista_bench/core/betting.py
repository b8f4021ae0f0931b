"""Test the mean of a finite set from the first of its values in random order, by betting without replacement.

Follows Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting" (JRSS-B 86, 2024, online in
2023; arXiv 2010.09686), section 5 and the diversified bets of its appendix. A bettor stakes a fixed fraction of its
wealth on each next value. If the mean of the set is not above 0, the wealth is a supermartingale that starts at 1. By
Ville's inequality, the wealth then reaches 1 / alpha with probability alpha at most, however often it is checked.

All bettors here bet that a mean is *above* 0. To bet that a mean is below 0, negate values and bounds. There is one
bettor for each of `FRACTIONS`, and all start with equal shares of the wealth. Each factor of a bettor rises with the
current value and with all values before it. So the lowest possible value may stand for a value that is not known yet:
this only makes the wealth smaller.
"""

from __future__ import annotations

import numpy as np

from barista_bench.core.statistics import Floats

FRACTIONS: Floats = np.geomspace(0.02, 0.95, 12)
"""The fraction of the wealth that each bettor stakes on a value."""
_ROUNDING = 1e-9
"""Sums smaller than this, relative to the number of values, are rounding errors."""


def log_wealth(values: Floats, floor: float, *, count: int | None, rest: Floats | None = None) -> Floats:
    """Return (n,) the log of the largest wealth so far after each value, for the bet that the mean is above 0.

    Args:
        values: (n,) the first values in random order.
        floor: a lower bound of every value of the set, known in advance. Minus infinity allows no bet.
        count: number of values of the set; None for values that are sampled independently.
        rest: (n,) after each value, the lowest possible sum of all later values; `count` times `floor` by default.

    >>> log_wealth(np.array([1.0, 1.0, 1.0]), -1.0, count=4).round(2).tolist()
    [0.23, 0.74, inf]
    """
    values = np.asarray(values, dtype=np.float64)
    number, sums = len(values), np.cumsum(values)
    log = np.zeros(number)
    if np.isfinite(floor) and number:
        means = np.zeros(number)  # means of the remaining values, if the mean of all values is 0
        if count is not None:
            means = -np.concatenate([[0.0], sums[:-1]]) / (count - np.arange(number))
        room = np.maximum(means - floor, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(room > _ROUNDING, (values - floor) / room, 1.0)
        steps = np.log1p(FRACTIONS[:, None] * (np.maximum(ratios, 0.0) - 1))
        log = np.logaddexp.reduce(np.cumsum(steps, axis=1), axis=0) - np.log(len(FRACTIONS))
    if count is not None:
        left = (count - np.arange(1, number + 1)) * floor if rest is None else rest
        log = np.where(sums + left > _ROUNDING * count, np.inf, log)
    return np.asarray(np.maximum.accumulate(np.maximum(log, 0.0)))


def p_value(log_up: float, log_down: float) -> float:
    """Return the p-value that a mean is neither above nor below, from the logs of both wealths; valid at any time."""
    return float(min(1.0, 2 * np.exp(-max(log_up, log_down))))
