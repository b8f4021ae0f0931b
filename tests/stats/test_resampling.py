"""Every task's fast resampling against its own `aggregate`, resampled out sample by sample."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from barista_bench.core.task import Scored
from barista_bench.runs.score.scoring import ScoredRun
from tests.six_tasks import SKILLS, TASKS, Runs
from tests.stats.made import drawn_out


def samples_of(run: ScoredRun, number: int = 0) -> list[Scored]:
    return [Scored(s.example, s.prediction) for s in run.samples if s.record.repetition == number]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("model", [*SKILLS, "oracle", "unreadable"])
def test_each_sample_once_gives_the_published_metrics(scored: Runs, model: str, task: str) -> None:
    run = scored["fair" if model == "unreadable" else model, task]
    samples = samples_of(run)
    if model == "unreadable":  # zero or none
        samples = [Scored(sample.example, None) for sample in samples]
    resampled = run.task.statistics(samples).compute_metrics(np.ones((1, len(samples))))
    metrics = {name: value for name, value in run.task.aggregate(samples).items() if isinstance(value, float)}
    assert metrics.keys() <= resampled.keys()
    assert run.task.primary in metrics
    for name, value in resampled.items():
        assert_allclose(value, [metrics.get(name, np.nan)], atol=1e-12, err_msg=name)


@pytest.mark.parametrize("task", TASKS)
def test_draws_are_those_of_aggregating_the_drawn_samples(scored: Runs, task: str) -> None:
    run = scored["fair", task]
    samples = samples_of(run)
    rng = np.random.default_rng(5)
    weights = rng.integers(0, 3, (12, len(samples))).astype(float) * (rng.random((12, len(samples))) < 0.4)
    weights[0], weights[1] = 0, np.eye(len(samples))[0]
    resampled = run.task.statistics(samples).compute_metrics(weights)
    expected = drawn_out(run.task, samples, weights)
    for name, values in resampled.items():
        assert_allclose(values, expected.get(name, [np.nan] * len(weights)), atol=1e-9, err_msg=name)
    assert expected.keys() <= resampled.keys()


@pytest.mark.parametrize("task", TASKS)
def test_samples_drawn_with_their_clusters_are_those_drawn_one_by_one(scored: Runs, task: str) -> None:
    run = scored["fair", task]
    samples = samples_of(run)
    rng = np.random.default_rng(6)
    units, weights = rng.integers(0, 5, len(samples)), rng.integers(0, 3, (12, 5)).astype(float)
    statistics = run.task.statistics(samples)
    for name, values in statistics.compute_metrics(weights[:, units]).items():
        assert_allclose(statistics.resampled_metrics(weights, units)[name], values, atol=1e-12, err_msg=name)
