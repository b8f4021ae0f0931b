from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import bootstrap

from barista_bench.core.example import Status
from barista_bench.core.resampling import interval, ratio_interval, unit_resamples
from barista_bench.core.task import FrameRef
from barista_bench.runs.score.results import RESULTS_FILE, read_results
from barista_bench.runs.score.samples import counted_samples, intervals
from barista_bench.runs.score.scoring import interval_of
from tests.stats.conftest import TASKS, Runs
from tests.stats.made import Quiz, quiz_example, quiz_sample, video_effects

VIDEOS, EACH, RUNS = 60, 4, 1000


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
            figure = intervals(counted_samples(task, samples), resamples=400)["accuracy"]
            covered[kind] += figure.low <= 0.5 <= figure.high
            counts[kind] += 1
    by_video, by_sample = covered / counts
    print(f"{RUNS} simulated runs: {by_video:.3f} covered by video, {by_sample:.3f} by sample")
    assert 0.93 <= by_video <= 0.97
    assert by_sample < 0.93


def test_the_interval_is_scipys_bca() -> None:
    rng = np.random.default_rng(3)
    values = rng.exponential(size=40)
    resamples = 20_000
    resampled = unit_resamples(40, resamples, 1) @ values / 40
    left_out = (1 - np.eye(40)) @ values / 39
    ours = interval(float(values.mean()), resampled, left_out, units=40)
    theirs = bootstrap((values,), np.mean, n_resamples=resamples, method="BCa", rng=np.random.default_rng(2))
    assert ours is not None
    assert ours.method == "bca"
    width = theirs.confidence_interval.high - theirs.confidence_interval.low
    assert abs(ours.low - theirs.confidence_interval.low) < 0.03 * width
    assert abs(ours.high - theirs.confidence_interval.high) < 0.03 * width


def test_a_figure_that_never_varies_has_an_interval_of_itself_and_one_that_no_draw_has_none() -> None:
    estimate = interval(1.0, np.ones(50), np.ones(4), units=4)
    assert estimate is not None
    assert (estimate.low, estimate.high, estimate.method) == (1.0, 1.0, "percentile")
    assert interval(0.5, np.full(10, np.nan), None, units=4) is None
    assert interval(float("nan"), np.ones(10), None, units=4) is None
    assert intervals(counted_samples(Quiz(), [quiz_sample(quiz_example(i, "one video"), True) for i in (1, 2)])) == {}


def test_failed_infrastructure_is_left_out_of_intervals() -> None:
    right = [quiz_sample(quiz_example(i, f"v{i}"), True) for i in range(6)]
    lost = [quiz_sample(quiz_example(9, "v9"), False, status=Status.INFRA_ERROR)]
    figure = intervals(counted_samples(Quiz(), [*right, *lost]))["accuracy"]
    assert (figure.low, figure.high, figure.units) == (1.0, 1.0, 6)


@given(st.integers(2, 12), st.integers(0, 2**32))
def test_each_draw_takes_as_many_videos_as_there_are(videos: int, seed: int) -> None:
    resampled = unit_resamples(videos, 7, seed)
    assert resampled.shape == (7, videos)
    assert (resampled.sum(axis=1) == videos).all()
    assert (resampled == unit_resamples(videos, 7, seed)).all()


@pytest.mark.parametrize("task", TASKS)
def test_results_hold_intervals_of_the_primary_figure_and_of_every_part_of_a_breakdown(scored: Runs, task: str) -> None:
    run = scored["fair", task]
    written = read_results(run.folder / RESULTS_FILE)
    figure, ends = written.figures[written.primary], interval_of(run)[written.primary]
    assert (figure.low, figure.high, ends.units) == (ends.low, ends.high, 9)
    assert ends.low < figure.mean < ends.high
    parts = written.breakdowns["preparation"]
    assert len(parts) == 3
    for value, part in parts.items():
        members = [s for s in run.samples if s.example.metadata["preparation"] == value]
        ends = intervals(counted_samples(run.task, members))[run.task.primary]
        assert (part.figure.low, part.figure.high, ends.units) == (ends.low, ends.high, 3)


def made_answers(seed: int) -> list:
    rng = np.random.default_rng(seed)
    examples = [quiz_example(i, f"v{i % 7}") for i in range(40)]
    return [quiz_sample(example, bool(rng.random() < 0.6), run) for run in range(2) for example in examples]


@given(st.integers(0, 99))
def test_the_interval_of_a_mean_is_that_of_the_figure_which_is_that_mean(seed: int) -> None:
    samples = made_answers(seed)
    estimate = ratio_interval(
        np.array([s.scores["accuracy"] for s in samples]),
        np.ones(len(samples)),
        runs=[s.record.run for s in samples],
        units=[s.example.video_id for s in samples],
        resamples=200,
    )
    expected = intervals(counted_samples(Quiz(), samples), resamples=200)["accuracy"]
    assert estimate is not None
    assert (estimate.low, estimate.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_a_ratio_is_of_sums_and_has_no_interval_of_one_cluster() -> None:
    estimate = ratio_interval(np.array([1.0, 0, 3]), np.array([1.0, 0, 9]), runs=[0] * 3, units=["a", "b", "c"])
    assert estimate is not None
    assert 1 / 3 - 1e-12 <= estimate.low <= 4 / 10 <= estimate.high <= 1  # never the 0/0 of b alone
    assert ratio_interval(np.ones(3), np.ones(3), runs=[0] * 3, units=["a"] * 3) is None


def test_a_task_says_what_is_drawn_together() -> None:
    class InSets(Quiz):
        def resampling_unit(self, example) -> str:
            return str(int(example.example_id[1:]) % 3)

    samples = made_answers(1)
    assert intervals(counted_samples(Quiz(), samples))["accuracy"].units == 7
    assert intervals(counted_samples(InSets(), samples))["accuracy"].units == 3
