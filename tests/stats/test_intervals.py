from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose
from scipy.stats import beta, binomtest, norm, t as student

from barista_bench.core.example import FrameRef, Scored
from barista_bench.core.intervals import DIFFERENCE, SCORE, Bounds, Interval, ratio_interval, repetition_intervals
from barista_bench.core.status import Status
from barista_bench.runs.score.results import RESULTS_FILE, read_results
from barista_bench.runs.score.samples import Counted, counted_samples
from barista_bench.runs.score.scoring import ScoredRun
from tests.six_tasks import SKILLS, TASKS, Runs
from tests.stats.made import Quiz, drawn_out, quiz_example, quiz_sample, video_effects

VIDEOS, EACH, RUNS = 60, 4, 1000


def intervals_of(counted: Counted) -> dict[str, Interval]:
    return repetition_intervals([group.resampled for group in counted.values()])


@pytest.mark.full
def test_clustered_intervals_cover_the_truth_where_unclustered_ones_do_not() -> None:
    """1,000 simulated runs; questions of a video are about as hard as each other. The reference is 1/2.

    Intervals by sample are so far from it that a fifth of the runs shows it.
    """
    rng = np.random.default_rng(11)
    clustered = [quiz_example(i, f"v{i // EACH:03d}") for i in range(VIDEOS * EACH)]
    apart = [replace(example, frames=(FrameRef(example.example_id, 0),)) for example in clustered]
    # (kind, example) -> the sample with a wrong and with a right answer
    made = [[[quiz_sample(example, hit) for hit in (False, True)] for example in kind] for kind in (clustered, apart)]
    task, covered, counts = Quiz(), np.zeros(2), np.zeros(2)
    for number in range(RUNS):
        right = video_effects(rng, VIDEOS, EACH).ravel().tolist()
        for kind, pairs in enumerate(made if number % 5 == 0 else made[:1]):
            samples = [pair[hit] for pair, hit in zip(pairs, right, strict=True)]
            metric = intervals_of(counted_samples(task, samples))["accuracy"]
            covered[kind] += metric.low <= 0.5 <= metric.high
            counts[kind] += 1
    by_video, by_sample = covered / counts
    print(f"{RUNS} simulated runs: {by_video:.3f} covered by video, {by_sample:.3f} by sample")
    assert 0.93 <= by_video <= 0.97
    assert by_sample < 0.93


def ends_of(values: list[float], bounds: Bounds = SCORE, size: float = 1.0) -> Interval | None:
    """The interval of a mean over units that have these means and this many samples."""
    units = [f"u{at}" for at in range(len(values))]
    sums = size * np.array(values)
    return ratio_interval(sums, np.full(len(values), size), repetitions=[0] * len(units), units=units, bounds=bounds)


@pytest.mark.parametrize(("units", "low"), [(2, 0.1581), (3, 0.2924), (4, 0.3976), (5, 0.4782), (12, 0.7354)])
def test_units_that_are_all_right_or_all_wrong_count_as_one_trial_each(units: int, low: float) -> None:
    """Clopper and Pearson's interval of the units, however many samples each has: never [1, 1]."""
    right, wrong = ends_of([1.0] * units, size=100), ends_of([0.0] * units, size=100)
    assert right is not None
    assert wrong is not None
    assert (right.low, right.high) == (pytest.approx(low, abs=5e-5), 1.0)
    assert (right.low, right.high) == pytest.approx(
        (binomtest(units, units).proportion_ci(method="exact").low, 1.0), abs=1e-9
    )
    assert (1 - wrong.high, 1 - wrong.low) == pytest.approx((right.low, right.high))
    assert (right.method, right.units) == ("unseen units", units)


def test_the_interval_of_equal_units_extends_to_both_sides() -> None:
    unseen = 1 - 0.025 ** (1 / 3)
    half, same = ends_of([0.5] * 3), ends_of([0.0] * 3, DIFFERENCE)
    assert half is not None
    assert same is not None
    assert (half.low, half.high) == pytest.approx((0.5 - unseen / 2, 0.5 + unseen / 2))
    assert (same.low, same.high) == pytest.approx((-unseen, unseen))


def test_the_variance_of_differing_units_gives_the_number_of_trials() -> None:
    """Korn and Graubard's interval: Clopper and Pearson's of n trials, fewer by (z / t) squared."""
    values = [0.5, 0.7, 0.9, 0.4, 0.8, 0.6]
    found = ends_of(values)
    assert found is not None
    trials = 0.65 * 0.35 / (np.var(values, ddof=1) / 6) * (norm.ppf(0.975) / student.ppf(0.975, 5)) ** 2
    hits = 0.65 * trials
    assert found.low == pytest.approx(beta.ppf(0.025, hits, trials - hits + 1))
    assert found.high == pytest.approx(beta.ppf(0.975, hits + 1, trials - hits))
    assert found.method == "effective trials"


def test_a_metric_without_bounds_has_students_interval() -> None:
    found = ends_of([3.0, 4.0, 8.0], None)
    margin = student.ppf(0.975, 2) * np.std([3, 4, 8], ddof=1) / np.sqrt(3)
    assert found is not None
    assert (found.low, found.high, found.method) == (pytest.approx(5 - margin), pytest.approx(5 + margin), "student")
    assert ends_of([3.0, 4.0, 8.0]) == found, "beyond the bounds of a score"
    assert ends_of([2.0] * 5, None) is None, "nothing says how far off another may be"


@given(st.lists(st.floats(0, 1), min_size=2, max_size=15), st.floats(0.1, 1000))
def test_an_interval_holds_its_metric_and_stays_within_the_bounds(values: list[float], size: float) -> None:
    found = ends_of(values, size=size)
    assert found is not None
    assert 0 <= found.low <= np.mean(values) + 1e-9
    assert np.mean(values) - 1e-9 <= found.high <= 1
    assert found.high - found.low > 0


def test_only_units_that_have_the_metric_count() -> None:
    """A fraction of hands rests on the videos that show hands."""
    part, whole = np.array([1.0, 1, 0, 0, 0]), np.array([1.0, 1, 0, 0, 0])
    of_two = ratio_interval(part, whole, repetitions=[0] * 5, units=list("abcde"))
    assert of_two is not None
    assert (of_two.units, of_two.low) == (2, pytest.approx(0.1581, abs=5e-5))
    assert ratio_interval(np.eye(5)[0], np.eye(5)[0], repetitions=[0] * 5, units=list("abcde")) is None, "of one video"
    assert (
        intervals_of(counted_samples(Quiz(), [quiz_sample(quiz_example(i, "one video"), True) for i in (1, 2)])) == {}
    )


def test_failed_infrastructure_is_left_out_of_intervals() -> None:
    right = [quiz_sample(quiz_example(i, f"v{i}"), True) for i in range(6)]
    lost = [quiz_sample(quiz_example(9, "v9"), False, status=Status.INFRA_ERROR)]
    metric = intervals_of(counted_samples(Quiz(), [*right, *lost]))["accuracy"]
    assert (metric.low, metric.high, metric.units) == (pytest.approx(0.025 ** (1 / 6)), 1.0, 6)


@pytest.mark.parametrize("task", TASKS)
def test_results_hold_intervals_of_the_primary_metric_and_of_every_part_of_a_breakdown(scored: Runs, task: str) -> None:
    run = scored["fair", task]
    written = read_results(run.folder / RESULTS_FILE)
    metric, ends = written.metrics[written.primary], intervals_of(run.counted)[written.primary]
    assert (metric.low, metric.high, ends.units) == (ends.low, ends.high, 9)
    assert ends.low < metric.mean < ends.high
    parts = written.breakdowns["preparation"]
    assert len(parts) == 3
    for value, part in parts.items():
        members = [s for s in run.samples if s.example.metadata["preparation"] == value]
        ends = intervals_of(counted_samples(run.task, members))[run.task.primary]
        assert (part.metric.low, part.metric.high, ends.units) == (ends.low, ends.high, 3)


def made_answers(seed: int) -> list:
    rng = np.random.default_rng(seed)
    examples = [quiz_example(i, f"v{i % 7}") for i in range(40)]
    return [quiz_sample(example, bool(rng.random() < 0.6), run) for run in range(2) for example in examples]


@given(st.integers(0, 99))
def test_a_mean_and_the_metric_equal_to_it_have_the_same_interval(seed: int) -> None:
    samples = made_answers(seed)
    estimate = ratio_interval(
        np.array([s.scores["accuracy"] for s in samples]),
        np.ones(len(samples)),
        repetitions=[s.record.repetition for s in samples],
        units=[s.example.video_id for s in samples],
    )
    expected = intervals_of(counted_samples(Quiz(), samples))["accuracy"]
    assert estimate is not None
    assert (estimate.low, estimate.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_a_ratio_is_of_sums_and_has_no_interval_of_one_cluster() -> None:
    estimate = ratio_interval(np.array([1.0, 0, 3]), np.array([1.0, 0, 9]), repetitions=[0] * 3, units=["a", "b", "c"])
    assert estimate is not None
    assert 0 <= estimate.low <= 4 / 10 <= estimate.high <= 1
    assert estimate.units == 2, "b has nothing to divide by"
    assert ratio_interval(np.ones(3), np.ones(3), repetitions=[0] * 3, units=["a"] * 3) is None


def test_a_task_names_the_unit_of_its_draws() -> None:
    class InSets(Quiz):
        def resampling_unit(self, example) -> str:
            return str(int(example.example_id[1:]) % 3)

    samples = made_answers(1)
    assert intervals_of(counted_samples(Quiz(), samples))["accuracy"].units == 7
    assert intervals_of(counted_samples(InSets(), samples))["accuracy"].units == 3


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
def test_draws_equal_an_aggregation_of_the_drawn_samples(scored: Runs, task: str) -> None:
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
