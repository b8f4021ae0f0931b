"""How often intervals of few units hold the true value of a figure, in the middle and at the edges of its range."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import norm

from barista_bench.core.intervals import DIFFERENCE, SCORE, Bounds, interval_weights, metric_interval
from barista_bench.core.statistics import Floats

Units = tuple[Floats, Floats]
"""Of each unit, what it adds above and below the fraction line."""
Generator = np.random.Generator
RUNS = 400
SLACK = norm.ppf(0.999) * np.sqrt(0.94 * 0.06 / RUNS)
"""How far below 0.94 the fraction of that many runs may fall by chance."""


def means(true_means: Callable[[Generator, int], Floats], questions: int = 8) -> Callable[[Generator, int], Units]:
    """Videos of so many questions each, right with the video's own probability."""

    def draw(rng: Generator, count: int) -> Units:
        return rng.binomial(questions, true_means(rng, count)).astype(float), np.full(count, float(questions))

    return draw


def different(mean: float) -> Callable[[Generator, int], Floats]:
    return lambda rng, count: rng.beta(3 * mean, 3 * (1 - mean), count)


def same(mean: float) -> Callable[[Generator, int], Floats]:
    return lambda rng, count: np.full(count, mean)


def scores(rng: Generator, count: int) -> Units:
    """Fractional scores of videos, such as a mean IoU of 0.9."""
    return rng.beta(18, 2, count), np.ones(count)


def pooled_f1(rng: Generator, count: int) -> Units:
    """2 TP of 2 TP + FP + FN; nine true relations a video, nine tenths of them found, and one too many."""
    true = rng.poisson(8, count) + 1
    hits, extra = rng.binomial(true, rng.beta(3.6, 0.4, count)), rng.binomial(true, 0.1)
    return 2.0 * hits, 2.0 * hits + extra + true - hits


def paired(alike: float) -> Callable[[Generator, int], Units]:
    """The difference of two models on six questions a video, in a part of the videos without any."""

    def draw(rng: Generator, count: int) -> Units:
        ease = rng.beta(3, 1, count)
        first, second = rng.binomial(6, 0.95 * ease), rng.binomial(6, 0.6 * ease)
        return np.where(rng.random(count) < alike, 0.0, first - second), np.full(count, 6.0)

    return draw


CASES: dict[str, tuple[Callable[[Generator, int], Units], float, Bounds]] = {
    "all right": (means(same(1.0)), 1.0, SCORE),
    "all wrong": (means(same(0.0)), 0.0, SCORE),
    "nearly all right": (means(same(0.99)), 0.99, SCORE),
    "half": (means(same(0.5)), 0.5, SCORE),
    "videos differ, nearly all right": (means(different(0.98)), 0.98, SCORE),
    "videos differ, much right": (means(different(0.9)), 0.9, SCORE),
    "videos differ, half": (means(different(0.5)), 0.5, SCORE),
    "whole videos right or wrong": (means(lambda rng, count: (rng.random(count) < 0.9).astype(float)), 0.9, SCORE),
    "a tenth of the videos bad": (means(lambda rng, count: np.where(rng.random(count) < 0.9, 1, 0.3)), 0.93, SCORE),
    "fractional scores": (scores, 0.9, SCORE),
    "pooled F1": (pooled_f1, 2 * 8.1 / (2 * 8.1 + 0.9 + 0.9), SCORE),
    "difference": (paired(0.0), 0.75 * 0.35, DIFFERENCE),
    "difference on few videos": (paired(0.9), 0.75 * 0.35 * 0.1, DIFFERENCE),
    "no difference": (paired(1.0), 0.0, DIFFERENCE),
}


@pytest.mark.full
@pytest.mark.parametrize("count", [3, 4, 5, 10, 20])
def test_intervals_hold_the_truth_where_it_is_in_the_middle_and_at_the_edges(count: int) -> None:
    """A bootstrap of the same units holds it in 0.1 to 0.9 of the cases near an edge, and in 0.7 in the middle."""
    rng, weights = np.random.default_rng(count), interval_weights(count)
    held = {}
    for name, (draw, truth, bounds) in CASES.items():
        covered = 0
        for _ in range(RUNS):
            part, whole = draw(rng, count)
            values = (weights @ part) / (weights @ whole)
            differing = int((np.abs(values[1 + count :]) > 1e-12).sum())
            found = metric_interval(values, bounds, telling=differing + 1 if bounds == DIFFERENCE else None)
            covered += found is None or found.low - 1e-9 <= truth <= found.high + 1e-9
        held[name] = covered / RUNS
    print(count, held)
    assert min(held.values()) >= 0.94 - SLACK, held
