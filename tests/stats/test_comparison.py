from collections.abc import Callable
from dataclasses import replace
from itertools import product

import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose
from scipy.stats import permutation_test

from barista_bench.cli.results_commands import comparison_line
from barista_bench.core.example import Scored
from barista_bench.core.statistics import adjust_p_values
from barista_bench.core.status import Status
from barista_bench.errors import DataError, TaskError
from barista_bench.reporting.diagnosis import comparisons_table as comparisons_table
from barista_bench.runs.score.scoring import ScoredRun, score
from barista_bench.stats import (
    baseline_gaps,
    comparable_groups,
    compare_pair,
    compare_runs,
    differing_circumstances,
    rank_agreement,
)
from barista_bench.stats.comparison import p_value, sampled_swaps, swapped_sides
from tests.one_run import run as run_model
from tests.six_tasks import TASKS, Runs
from tests.stats.conftest import renamed


def frame(run: ScoredRun) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "example": s.example.example_id,
            "video": s.example.video_id,
            "run": s.record.repetition,
            "score": s.scores[run.task.sample_score],
        }
        for s in run.samples
    )


def joined(first: ScoredRun, second: ScoredRun) -> pd.DataFrame:
    return frame(first).merge(frame(second), on=["example", "video", "run"], suffixes=("_a", "_b"))


@pytest.mark.parametrize("task", TASKS)
def test_sample_scores_are_compared_as_pandas_and_scipy_do(scored: Runs, task: str) -> None:
    comparison = compare_pair(scored["strong", task], scored["weak", task], permutations=600)
    table = joined(scored["strong", task], scored["weak", task])
    table["gap"] = table.score_a - table.score_b
    assert_allclose(comparison.sample_difference, table.gap.mean(), atol=1e-12)
    per_example = table.groupby("example").gap.mean()
    assert_allclose(comparison.effect_size, per_example.mean() / per_example.std(), atol=1e-9)
    assert (comparison.wins, comparison.losses) == ((per_example > 1e-12).sum(), (per_example < -1e-12).sum())
    assert comparison.wins + comparison.ties + comparison.losses == comparison.examples == len(per_example)
    sums = table.groupby("video").gap.sum().to_numpy()
    reference = permutation_test(
        (sums, np.zeros_like(sums)), lambda x, y, axis: (x - y).sum(axis), permutation_type="samples", vectorized=True
    )
    assert_allclose(comparison.sample_p_value, reference.pvalue, atol=1e-12)  # 2^9 ways: both are exact


@pytest.mark.full
@pytest.mark.parametrize("task", ["relations", "hand_object", "activity", "grounding"])
def test_the_primary_metric_is_tested_as_by_swapping_videos_one_way_after_another(scored: Runs, task: str) -> None:
    """Every way to exchange the first four videos' answers, each aggregated by the task itself."""
    keep = {f"v{i}" for i in range(4)}
    first, second = (restricted(scored[model, task], keep) for model in ("fair", "weak"))
    comparison = compare_pair(first, second, permutations=200)
    metric = first.task
    gaps = []
    for flip in product((False, True), repeat=4):
        swapped = {f"v{i}" for i, moved in enumerate(flip) if moved}
        sides: tuple[list[float], list[float]] = ([], [])
        for number in range(3):
            for side, (run, other) in enumerate(((first, second), (second, first))):
                chosen = [
                    (theirs if mine.example.video_id in swapped else mine)
                    for mine, theirs in zip(run.samples, other.samples, strict=True)
                    if mine.record.repetition == number
                ]
                sides[side].append(metric.aggregate([Scored(s.example, s.prediction) for s in chosen])[metric.primary])
        gaps.append(np.mean(sides[0]) - np.mean(sides[1]))
    assert_allclose(comparison.difference, gaps[0], atol=1e-9)
    assert_allclose(comparison.p_value, np.mean(np.abs(gaps) >= abs(gaps[0]) - 1e-9))
    assert comparison.low is not None
    assert comparison.high is not None
    assert comparison.low <= comparison.difference <= comparison.high


def restricted(run: ScoredRun, videos: set[str]) -> ScoredRun:
    return replace(run, samples=tuple(s for s in run.samples if s.example.video_id in videos))


def test_a_better_model_is_distinguished_from_a_worse_one_and_a_model_equals_itself(scored: Runs) -> None:
    comparison = compare_pair(scored["strong", "relations"], scored["weak", "relations"])
    assert comparison.low is not None
    assert comparison.effect_size is not None
    assert min(comparison.difference, comparison.low, comparison.effect_size) > 0
    assert comparison.p_value < 0.05
    same = compare_pair(scored["fair", "relations"], scored["fair", "relations"])
    assert (same.difference, same.p_value, same.effect_size) == (0.0, 1.0, None)
    assert same.ties == same.examples


def test_all_pairs_of_all_tasks_are_corrected_together(runs_of: Callable[..., list[ScoredRun]]) -> None:
    comparisons = compare_runs(runs_of(tasks=("relations", "activity")), permutations=200)
    assert [(c.task, c.first, c.second) for c in comparisons] == [
        (task, *pair)
        for task in ("relations", "activity")
        for pair in (("strong", "fair"), ("strong", "weak"), ("fair", "weak"))
    ]
    assert [c.p_adjusted for c in comparisons] == adjust_p_values([c.p_value for c in comparisons])


def test_only_samples_that_both_runs_finished_are_compared(scored: Runs) -> None:
    whole = scored["weak", "activity"]
    lost = whole.samples[0]
    record = msgspec.structs.replace(lost.record, status=Status.INFRA_ERROR)
    broken = replace(whole, samples=(replace(lost, record=record, counts_unanswered=False), *whole.samples[1:]))
    comparison = compare_pair(scored["strong", "activity"], broken)
    assert (comparison.samples, comparison.expected_samples) == (len(whole.samples) - 1, len(whole.samples))


def lacking(run: ScoredRun, missing: int) -> ScoredRun:
    """The run without its last samples."""
    coverage = run.results.coverage.model_copy(update={"scored": run.results.coverage.scored - missing})
    results = run.results.model_copy(update={"coverage": coverage})
    return replace(run, samples=run.samples[:-missing], results=results)


def test_the_incomplete_one_of_two_runs_is_named(scored: Runs) -> None:
    """Only its comparison is called incomplete, and fewer repetitions lack nothing."""
    whole = [scored["strong", "activity"], scored["fair", "activity"]]
    pairs = compare_runs([*whole, lacking(scored["weak", "activity"], 2)], permutations=100)
    assert [pair.missing_by_model for pair in pairs] == [{}, {"weak": 2}, {"weak": 2}]
    lines = [comparison_line(pair) for pair in pairs]
    assert all("36 examples in 9 resampling units," in line for line in lines)
    assert [line.partition("; INCOMPLETE: ")[2] for line in lines] == ["", *["weak lacks 2 samples"] * 2]
    assert swapped_sides(pairs[1]).missing_by_model == {"weak": 2}
    one_repetition = replace(pairs[0], samples=pairs[0].samples // 2)
    assert "INCOMPLETE" not in comparison_line(one_repetition)
    assert f"{one_repetition.samples} samples of {one_repetition.expected_samples}" in comparison_line(one_repetition)
    shown = comparisons_table(pairs)
    compared = [row[-1] for row in shown.rows]
    assert [(cell.warn, cell.notes) for cell in compared] == [(False, ()), *[(True, ("weak lacks 2 samples",))] * 2]


def test_runs_over_different_examples_are_refused_and_the_difference_named(scored: Runs, tmp_path, six_tasks) -> None:
    run_model(six_tasks, tmp_path / "short", task="activity", repetitions=1, model="chance", limit=5)
    short = score(tmp_path / "short")
    with pytest.raises(DataError, match=r"different examples: 31 only in .*activity_mcq.*Fix"):
        compare_pair(scored["strong", "activity"], short)


def test_runs_of_different_tasks_are_refused(scored: Runs) -> None:
    runs = [scored["strong", task] for task in ("activity", "relations")]
    with pytest.raises(DataError, match="differ in their task"):
        compare_pair(*runs)
    with pytest.raises(DataError, match="no two runs are of the same task"):
        compare_runs(runs)


def test_a_task_that_cannot_count_two_runs_together_is_named_with_both(
    scored: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = scored["strong", "activity"], scored["weak", "activity"]
    task = runs[0].task
    monkeypatch.setattr(task, "statistics", lambda samples: [][1])
    with pytest.raises(TaskError) as raised:
        compare_pair(*runs)
    assert str(raised.value).startswith(
        f"barista/activity: statistics raised IndexError: list index out of range for {runs[0].folder}, "
        f"{runs[1].folder}. Fix: correct the task ({type(task).__name__}.statistics)"
    )


def worded(run: ScoredRun, wording: str) -> ScoredRun:
    prompts = run.results.prompts.model_copy(update={"wording": wording})
    return replace(run, results=run.results.model_copy(update={"prompts": prompts}))


def test_runs_in_different_wording_are_never_compared(scored: Runs) -> None:
    first, second = scored["strong", "activity"], worded(scored["weak", "activity"], "release@4086ce5")
    pattern = r"differ in their wording: 'ours v\d+' and 'release@4086ce5'.*Fix: .* in one wording"
    for compare in (lambda: compare_pair(first, second), lambda: compare_runs([first, second])):
        with pytest.raises(DataError, match=pattern):
            compare()
    assert len(comparable_groups([first, second])) == 2
    chance = renamed(second, "chance")
    assert baseline_gaps([first, replace(chance, folder=second.folder / "chance")]) == ()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_lowers_a_p_value_and_keeps_their_order(p_values: list[float]) -> None:
    adjusted = adjust_p_values(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))
    order = np.argsort(p_values, kind="stable")
    assert (np.diff(np.array(adjusted)[order]) >= 0).all()
    assert_allclose(min(adjusted), min(1.0, len(p_values) * min(p_values)))


def test_with_many_videos_swaps_are_drawn_and_the_first_row_is_the_unswapped_data() -> None:
    resampled = sampled_swaps(40, 500, 1)
    assert resampled.shape == (501, 40)
    assert not resampled[0].any()
    assert 0.4 < resampled[1:].mean() < 0.6
    assert p_value(np.array([1.0, 0.2, -1.0, 0.5])) == 0.5


def test_equal_models_are_told_apart_one_time_in_twenty_only_if_whole_videos_are_swapped() -> None:
    """600 pairs of models that are equally good, whose luck differs from video to video."""
    rng = np.random.default_rng(7)
    videos, each = 30, 10
    by_video, by_sample = sampled_swaps(videos, 600, 1), sampled_swaps(videos * each, 600, 2)
    counts = np.zeros(2)
    for _ in range(600):
        gaps = rng.normal(size=(videos, 1)) + rng.normal(size=(videos, each))
        for kind, (flips, values) in enumerate(((by_video, gaps.sum(axis=1)), (by_sample, gaps.ravel()))):
            counts[kind] += p_value((1 - 2 * flips) @ values) < 0.05
    assert 0.02 <= counts[0] / 600 <= 0.08
    assert counts[1] / 600 > 0.2


def test_rank_agreement_has_a_column_for_each_set_of_comparable_runs(runs_of: Callable[..., list[ScoredRun]]) -> None:
    runs = runs_of(tasks=("relations",))
    paper = [replace(run, results=run.results.model_copy(update={"protocol": "paper"})) for run in runs]
    assert rank_agreement([*runs, *paper], labels={run.folder: run.results.model.name for run in runs}).tasks == (
        "relations (protocol 'release')",
        "relations (protocol 'paper')",
    )


def test_settings_that_comparable_runs_do_not_share_are_named(scored: Runs) -> None:
    first, other = scored["strong", "activity"], scored["weak", "activity"]
    assert differing_circumstances([first, other]) == []
    generation = {**other.results.generation, "temperature": 0.0}
    other = replace(other, results=other.results.model_copy(update={"generation": generation}))
    assert differing_circumstances([first, other]) == ["activity: temperature: strong 0.7, weak 0.0"]
