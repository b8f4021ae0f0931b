"""What models are called where several runs stand side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.stats import compare_runs, propagation, rank_agreement, run_labels
from barista_bench.stats.comparison import compare_pair, turned
from barista_bench.stats.tables import analysis_tables
from tests.reporting.made_runs import MadeExamples, made_run

Runs = dict[tuple[str, str], ScoredRun]


def placed(run: ScoredRun, folder: str) -> ScoredRun:
    return replace(run, folder=Path(folder))


def test_a_model_that_ran_once_keeps_its_name(scored: Runs) -> None:
    runs = [scored["weak", "relations"], scored["weak", "activity"], scored["fair", "activity"]]
    assert list(run_labels(runs).values()) == ["weak", "weak", "fair"]


def test_two_runs_of_one_model_are_told_apart_by_their_start_in_all_tasks(scored: Runs) -> None:
    relations, activity = scored["weak", "relations"], scored["weak", "activity"]
    runs = [
        placed(relations, "x/cold/relations"),
        placed(relations, "x/warm/relations"),
        placed(activity, f"x/cold/{activity.task.benchmark}/activity"),
        placed(activity, "x/single-run"),
    ]
    assert list(run_labels(runs).values()) == ["weak (cold)", "weak (warm)", "weak (cold)", "weak (single-run)"]


def test_starts_of_one_name_are_numbered(scored: Runs) -> None:
    run = scored["weak", "relations"]
    runs = [placed(run, "one/out/relations"), placed(run, "two/out/relations")]
    assert list(run_labels(runs).values()) == ["weak (out) (1)", "weak (out) (2)"]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["x", "y"]), st.integers(0, 3)), max_size=8))
def test_no_two_runs_over_the_same_examples_share_a_label(made: list[tuple[str, str, int]]) -> None:
    examples = MadeExamples(2)
    folders = {f"{number}/{folder}": name for name, folder, number in made}
    runs = [made_run(examples, name=name, folder=folder) for folder, name in folders.items()]
    labels = run_labels(runs)
    assert len(set(labels.values())) == len(runs)
    assert all(labels[run.folder].startswith(run.results.model.name) for run in runs)


def test_every_analysis_calls_models_by_the_same_labels(scored: Runs) -> None:
    runs = [
        placed(scored[name, task], f"{start}/{task}")
        for start, name in (("cold", "weak"), ("warm", "weak"), ("x", "fair"), ("y", "strong"))
        for task in ("relations", "activity")
    ]
    labels = {"weak (cold)", "weak (warm)", "fair", "strong"}
    assert set(rank_agreement(runs).models) == labels
    tables, _ = analysis_tables(runs, draws=100)
    for name in ("figures", "breakdowns", "failures", "consistency", "propagation"):
        assert set(tables[name].model) == labels
    assert {*tables["comparisons"]["first"], *tables["comparisons"]["second"]} == labels
    assert {pair.first for pair in compare_runs(runs[:4], draws=100)} == {"weak (cold)"}
    assert propagation(runs[:2], draws=100, label="named").model == "named"


@pytest.mark.parametrize("task", ["relations", "grounding"])
def test_a_comparison_turned_round_is_that_of_the_pair_turned_round(scored: Runs, task: str) -> None:
    first, other = scored["strong", task], scored["weak", task]
    turned_pair, expected = turned(compare_pair(first, other, draws=200)), compare_pair(other, first, draws=200)
    assert turned_pair.first == expected.first
    for name in (*_NUMBERS, "wins", "ties", "losses", "p_value"):
        assert getattr(turned_pair, name) == pytest.approx(getattr(expected, name), abs=1e-9), name
    assert turned(turned_pair) == compare_pair(first, other, draws=200)


_NUMBERS = ("first_value", "second_value", "difference", "low", "high", "sample_low", "sample_high", "effect_size")
