"""Breakdowns, rank agreement, propagation, baselines, consistency and failures against direct computations."""

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose

from barista_bench.core.display import FAILURE_KINDS
from barista_bench.core.example import FrameRef, Scored
from barista_bench.core.statistics import SumStatistics, fraction
from barista_bench.errors import ConfigError, DataError
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.stats import (
    baseline_gaps,
    breakdown,
    breakdown_keys,
    breakdowns,
    consistency,
    failure_rows,
    propagation,
    rank_agreement,
)
from barista_bench.stats.agreement import agreement_of
from barista_bench.stats.propagation import edge_of, odds_ratio
from tests.six_tasks import SKILLS, TASKS, Runs
from tests.stats.conftest import renamed
from tests.stats.made import Quiz, quiz_example, quiz_run, quiz_sample


def aggregated(run: ScoredRun, samples) -> list[float]:
    numbers = sorted({s.record.repetition for s in samples})
    groups = [[Scored(s.example, s.prediction) for s in samples if s.record.repetition == n] for n in numbers]
    return [run.task.aggregate(group)[run.task.primary] for group in groups]


@pytest.mark.parametrize("task", TASKS)
def test_breakdown_by_preparation_equals_a_breakdown_of_each_preparations_samples(scored: Runs, task: str) -> None:
    run = scored["fair", task]
    rows = breakdown(run, "preparation")
    assert [row.value for row in rows] == ["capsule", "fully automatic", "portafilter"]
    for row in rows:
        members = [s for s in run.samples if s.example.metadata["preparation"] == row.value]
        assert_allclose(row.metric.repetitions, aggregated(run, members))
        assert row.examples == len({s.example.example_id for s in members})
        assert (row.units, row.samples) == (3, len(members))
        assert row.metric.low is not None
    assert sum(row.samples for row in rows) == len(run.samples)


def test_joint_breakdowns_equal_separate_breakdowns_by_each_key(scored: Runs) -> None:
    run = scored["weak", "grounding"]
    keys = breakdown_keys(run)
    together = breakdowns(run, keys, intervals=False)
    assert len(keys) > 3
    assert together == {key: breakdown(run, key, intervals=False) for key in keys}
    assert breakdowns(run, [], intervals=False) == {}


def test_a_group_without_the_metric_has_no_row() -> None:
    class Odd(Quiz):
        def statistics(self, samples):
            rows = [{"right": 1.0, "asked": float(s.example.metadata["kind"] == "asked")} for s in samples]
            return SumStatistics(rows, lambda sums: {"accuracy": fraction(sums["right"], sums["asked"])})

    examples = [replace(quiz_example(i, f"v{i}"), metadata={"kind": k}) for i, k in enumerate(("asked", "not"))]
    samples = [quiz_sample(example, True) for example in examples]
    run = quiz_run(samples, Odd())
    assert [row.value for row in breakdown(run, "kind", intervals=False)] == ["asked"]


def test_an_example_with_several_values_counts_in_each_of_their_groups(scored: Runs) -> None:
    run = scored["fair", "relations"]
    rows = {row.value: row for row in breakdown(run, "relation_value", intervals=False)}
    for value in ("part of", "holds", "under"):
        members = [s for s in run.samples if any(item["value"] == value for item in s.example.target["relations"])]
        assert_allclose(rows[value].metric.repetitions, aggregated(run, members))
    assert sum(row.samples for row in rows.values()) > len(run.samples)


@given(st.lists(st.integers(0, 99), min_size=20, max_size=60))
def test_numbers_fall_into_quantile_bins_that_hold_every_sample_once(frames: list[int]) -> None:
    samples = []
    for index, frame in enumerate(frames):
        refs = (FrameRef("v", frame),)
        example = replace(quiz_example(index, "v"), frames=refs, metadata={"frame_count": 100})
        samples.append(quiz_sample(example, frame % 2 == 0))
    run = quiz_run(samples)
    rows = breakdown(run, "position", intervals=False)
    assert sum(row.samples for row in rows) == len(frames)
    if len(set(frames)) <= 8:
        assert len(rows) == len(set(frames))
        return
    assert len(rows) <= 4
    for row in rows:
        low, high = (float(end) for end in row.value[1:-1].split(","))
        closed = row.value.endswith("]")
        inside = [f for f in frames if round(f / 100, 4) >= low - 1e-4 and (f / 100 < high + 1e-4 or closed)]
        assert row.samples <= len(inside)


def test_task_facets_and_metadata_are_keys_where_they_divide_the_examples(scored: Runs) -> None:
    assert {"preparation", "category", "position"} <= set(breakdown_keys(scored["fair", "grounding"]))
    assert {"relation_type", "relation_value", "objects"} <= set(breakdown_keys(scored["fair", "relations"]))
    assert {"category", "object_size"} <= set(breakdown_keys(scored["fair", "referring"]))
    assert {"verb", "activity"} <= set(breakdown_keys(scored["fair", "activity"]))
    assert "device" not in breakdown_keys(scored["fair", "activity"])  # all are smart glasses
    with pytest.raises(ConfigError, match=r"no example has 'weather'.*preparation"):
        breakdown(scored["fair", "activity"], "weather")


def tau_b(first: list[float], second: list[float]) -> float:
    pairs = list(combinations(range(len(first)), 2))
    signs = [np.sign(first[i] - first[j]) * np.sign(second[i] - second[j]) for i, j in pairs]
    untied = [sum(x[i] != x[j] for i, j in pairs) for x in (first, second)]
    return sum(signs) / np.sqrt(untied[0] * untied[1])


def test_the_tau_matrix_equals_the_counts_of_pairs_of_models(runs_of: Callable[..., list[ScoredRun]]) -> None:
    models = (*SKILLS, "chance")
    agreement = rank_agreement(runs_of(models=models))
    assert agreement.models == models
    assert [task.removesuffix(": word overlap (floor)") for task in agreement.tasks] == list(TASKS)
    means = [
        [np.mean([s.scores[run.task.sample_score] for s in run.samples]) for run in runs_of(models=(model,))]
        for model in models
    ]
    assert_allclose(agreement.means, means)
    for a, b in combinations(range(len(TASKS)), 2):
        expected = tau_b([row[a] for row in means], [row[b] for row in means])
        assert_allclose([agreement.tau[a][b], agreement.tau[b][a]], expected)
    assert [agreement.tau[a][a] for a in range(len(TASKS))] == [1.0] * len(TASKS)


def test_two_models_a_second_run_or_equal_scores_give_no_rank_agreement(scored: Runs) -> None:
    two = [scored[model, task] for model in ("strong", "weak") for task in ("relations", "activity")]
    with pytest.raises(ConfigError, match="3 models or more"):
        rank_agreement(two)
    with pytest.raises(DataError, match="a second run of relations by strong"):
        rank_agreement([two[0], two[0]])
    assert agreement_of(("a", "b"), {"x": [0.5, 0.1], "y": [0.5, 0.2], "z": [0.5, 0.3]}).tau[0][1] is None


def erred_about(run: ScoredRun, sample, name: str) -> bool:
    return any(name in failure.objects for failure in run.task.failures(sample.example, sample.prediction))


@pytest.mark.parametrize(
    ("source", "target"), [("grounding", "relations"), ("grounding", "activity"), ("relations", "hand_object")]
)
def test_an_edge_counts_the_objects_and_frames_that_two_tasks_share(scored: Runs, source: str, target: str) -> None:
    first, second = scored["weak", source], scored["weak", target]
    table = Counter()
    per_video = defaultdict(Counter)
    for answer in second.samples:
        frames = [f.frame_index for f in answer.example.frames]
        for name in set(answer.example.evidence["object_ids"]):
            asked = [
                other
                for other in first.samples
                if other.record.repetition == answer.record.repetition
                and other.example.video_id == answer.example.video_id
                and name in other.example.evidence["object_ids"]
                and min(f.frame_index for f in other.example.frames) <= max(frames)
                and max(f.frame_index for f in other.example.frames) >= min(frames)
            ]
            if asked:
                cell = any(erred_about(first, other, name) for other in asked), erred_about(second, answer, name)
                table[cell] += 1
                per_video[answer.example.video_id][cell] += 1
    graph = propagation([first, second])
    (edge,) = [e for e in graph.edges if (e.source, e.target) == (source, target)]
    both, only, other, neither = (table[cell] for cell in ((True, True), (True, False), (False, True), (False, False)))
    assert (edge.both, edge.source_only, edge.target_only, edge.neither) == (both, only, other, neither)
    assert edge.n == sum(table.values()) > 20
    assert edge.videos == len(per_video)
    assert_allclose(edge.odds_ratio, (both + 0.5) * (neither + 0.5) / ((only + 0.5) * (other + 0.5)))
    assert_allclose(edge.risk_with, both / (both + only))
    assert edge.low is not None
    assert edge.high is not None
    assert edge.low < edge.odds_ratio < edge.high


def test_the_odds_ratio_with_a_task_that_always_errs_is_undefined() -> None:
    always = np.array([11.0, 0, 3, 0])
    assert np.isnan(odds_ratio(always))
    assert np.isnan(odds_ratio(always[[0, 2, 1, 3]]))
    assert odds_ratio(np.array([11.0, 0, 3, 1])) == 11.5 * 1.5 / (0.5 * 3.5)


def test_a_few_telling_videos_are_no_certainty() -> None:
    """Two of nine videos hold all right answers: without them nothing is said; the interval keeps 1."""
    tables = {f"v{n}": np.array([3.0, 0, 0, 0]) for n in range(7)}
    tables |= {f"w{n}": np.array([2.0, 0, 0, 3]) for n in range(2)}
    edge = edge_of("a", "b", tables)
    assert edge.odds_ratio is not None
    assert edge.odds_ratio > 100
    assert edge.low is not None
    assert edge.low < 1


def test_a_graph_is_of_one_model_and_sources_choose_its_edges(scored: Runs) -> None:
    with pytest.raises(DataError, match="fair, strong"):
        propagation([scored["strong", "relations"], scored["fair", "activity"]])
    graph = propagation([scored["weak", task] for task in TASKS], sources=["grounding"])
    assert {edge.source for edge in graph.edges} == {"grounding"}
    assert {edge.target for edge in graph.edges} >= {"relations", "hand_object", "activity"}


def test_a_model_is_set_against_its_own_baselines_only(scored: Runs) -> None:
    runs = [
        scored["strong", "relations"],
        scored["fair", "relations"],
        scored["chance", "relations"],
        renamed(scored["weak", "relations"], "text_only:strong"),
        renamed(scored["weak", "activity"], "text_only:strong"),
    ]
    gaps = baseline_gaps(runs, permutations=200)
    kinds = [("strong", "chance"), ("strong", "text_only"), ("fair", "chance")]
    assert [(gap.model, gap.kind) for gap in gaps] == kinds
    blind = gaps[1].comparison
    assert (blind.first, blind.second) == ("strong", "text_only:strong")
    metrics = [run.results.metrics["micro_f1"].mean for run in (runs[0], runs[3])]
    assert_allclose(blind.difference, metrics[0] - metrics[1], atol=1e-12)


def test_consistency_counts_pairs_of_runs_that_agree(scored: Runs) -> None:
    run = scored["fair", "activity"]
    rates = consistency(run)
    assert rates is not None
    by_example = defaultdict(list)
    for s in run.samples:
        by_example[s.example.example_id].append(s)
    same = [
        (a.prediction.value if a.prediction else None) == (b.prediction.value if b.prediction else None)
        for group in by_example.values()
        for a, b in combinations(group, 2)
    ]
    assert_allclose(rates.same_answer, np.mean(same))
    spread = [np.std([s.scores["accuracy"] for s in group], ddof=1) for group in by_example.values()]
    assert_allclose(rates.spread, np.mean(spread))
    assert 0 < rates.same_answer < 1


def test_a_deterministic_model_is_fully_consistent_and_one_repetition_has_no_consistency(scored: Runs) -> None:
    rates = consistency(scored["oracle", "grounding"])
    assert rates is not None
    assert (rates.same_answer, rates.same_score, rates.spread) == (1.0, 1.0, 0.0)
    run = scored["fair", "activity"]
    assert consistency(replace(run, samples=tuple(s for s in run.samples if s.record.repetition == 0))) is None


@pytest.mark.parametrize("task", TASKS)
def test_failures_are_counted_by_sample_and_in_all(scored: Runs, task: str) -> None:
    run = scored["weak", task]
    rows = {row.kind: row for row in failure_rows(run)}
    assert rows.keys() <= FAILURE_KINDS.keys()
    counted = Counter(f.kind for s in run.samples for f in run.task.failures(s.example, s.prediction))
    assert {kind: row.count for kind, row in rows.items()} == counted
    unreadable = sum(s.prediction is None for s in run.samples)
    assert (rows["format"].samples if "format" in rows else 0) == unreadable
    assert all(row.fraction == row.samples / len(run.samples) <= 1 for row in rows.values())
    assert failure_rows(scored["oracle", task]) == (), "the reference fails in nothing"
