"""The names of models where several runs are side by side."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from barista_bench.errors import DataError
from barista_bench.runs.score.results import summary_line
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.stats import baseline_gaps, compare_runs, propagation, rank_agreement, run_labels
from barista_bench.stats.comparison import compare_pair, swapped_sides
from barista_bench.stats.tables import analysis_tables
from tests.reporting.made_runs import MadeExamples, made_run
from tests.six_tasks import Runs
from tests.stats.conftest import renamed


def placed(run: ScoredRun, folder: str) -> ScoredRun:
    return replace(run, folder=Path(folder))


def test_runs_of_one_model_are_named_by_their_start_in_all_tasks(scored: Runs) -> None:
    relations, activity = scored["weak", "relations"], scored["weak", "activity"]
    assert list(run_labels([relations, activity, scored["fair", "activity"]]).values()) == ["weak", "weak", "fair"]
    runs = [
        placed(relations, "x/cold/relations"),
        placed(relations, "x/warm/relations"),
        placed(activity, f"x/cold/{activity.task.benchmark}/activity"),
        placed(activity, "x/single-run"),
    ]
    assert list(run_labels(runs).values()) == ["weak (cold)", "weak (warm)", "weak (cold)", "weak (single-run)"]
    alike = [placed(relations, "one/out/relations"), placed(relations, "two/out/relations")]
    assert list(run_labels(alike).values()) == ["weak (out) (1)", "weak (out) (2)"]


def test_two_starts_in_one_folder_have_two_labels(scored: Runs) -> None:
    run = scored["weak", "relations"]
    runs = [placed(run, "out/relations"), placed(run, f"out/{run.task.benchmark}/relations")]
    assert list(run_labels(runs).values()) == ["weak (out) (1)", "weak (out) (2)"]


@pytest.mark.parametrize("step", [1, -1])
def test_a_start_has_one_number_in_all_tasks_in_any_order_of_the_runs(scored: Runs, step: int) -> None:
    rows = [("t0/out", "relations"), ("t1/out", "relations"), ("t1/out", "activity"), ("t2/out", "activity")][::step]
    runs = [placed(scored["weak", task], f"{start}/{task}") for start, task in rows]
    numbers = {str(folder.parent): label for folder, label in run_labels(runs).items()}
    assert numbers == {f"t{number}/out": f"weak (out) ({number + 1})" for number in range(3)}


def named(model: str, folder: str, name: str = "") -> ScoredRun:
    """A run of a model, started with `--name`."""
    return replace(made_run(MadeExamples(2), name=model, folder=folder), name=name)


def test_a_label_is_the_given_name_or_the_last_folder_or_the_name_without_engine() -> None:
    runs = [
        named("../ckpt/kitchen-12", "a", "Kitchen 1.2"),
        named("../ckpt/llava", "b"),
        named("predictions:kitchen", "c"),
        named("text_only:predictions:kitchen", "d"),
        named("org/model", "e"),
        named("text_only:../ckpt/kitchen-12", "f", "Kitchen 1.2"),
    ]
    labels = ["Kitchen 1.2", "llava", "kitchen", "text_only:kitchen", "org/model", "text_only:Kitchen 1.2"]
    assert list(run_labels(runs).values()) == labels


def test_models_that_would_share_a_short_name_keep_their_own() -> None:
    names = ["/home/old/llava", "/home/new/llava", "/work/new/llava", "kitchen", "predictions:kitchen"]
    labels = ["old/llava", "home/new/llava", "work/new/llava", "kitchen", "predictions:kitchen"]
    assert list(run_labels([named(name, name) for name in names]).values()) == labels
    runs = [named("/old/llava", "a", "Llava"), named("/new/llava", "b")]
    assert list(run_labels(runs).values()) == ["Llava", "llava"]
    twice = [named("a", "cold/fruit", "mine"), named("b", "warm/fruit", "mine")]
    assert list(run_labels(twice).values()) == ["mine (cold)", "mine (warm)"]


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
    tables, _ = analysis_tables(runs, permutations=100)
    for name in ("metrics", "breakdowns", "failures", "consistency", "propagation"):
        assert set(tables[name].model) == labels
    assert {*tables["comparisons"]["first"], *tables["comparisons"]["second"]} == labels
    assert {pair.first for pair in compare_runs(runs[:4], permutations=100)} == {"weak (cold)"}
    assert propagation(runs[:2], label="named").model == "named"


@pytest.mark.parametrize("task", ["relations", "grounding"])
def test_a_reversed_comparison_equals_the_comparison_of_the_reversed_pair(scored: Runs, task: str) -> None:
    first, other = scored["strong", task], scored["weak", task]
    turned_pair = swapped_sides(compare_pair(first, other, permutations=200))
    expected = compare_pair(other, first, permutations=200)
    assert turned_pair.first == expected.first
    for name in (*_NUMBERS, "wins", "ties", "losses", "p_value"):
        assert getattr(turned_pair, name) == pytest.approx(getattr(expected, name), abs=1e-9), name
    assert swapped_sides(turned_pair) == compare_pair(first, other, permutations=200)


_NUMBERS = ("first_value", "second_value", "difference", "low", "high", "sample_low", "sample_high", "effect_size")


ADAPTER = "5f" * 32


def with_adapter(run: ScoredRun, folder: str, adapter: str = ADAPTER) -> ScoredRun:
    """The run as of the same model with an adapter, which is known by its content."""
    model = run.results.model
    model = model.model_copy(update={"settings": {**model.settings, "adapter": adapter}})
    return replace(run, folder=Path(folder), results=run.results.model_copy(update={"model": model}))


def test_a_model_with_an_adapter_is_another_model_everywhere(scored: Runs) -> None:
    plain = [scored["weak", "relations"], scored["weak", "activity"]]
    tuned = [with_adapter(run, f"tuned/{run.task.name}") for run in plain]
    name = "weak + adapter 5f5f5f5f5f5f"
    assert list(run_labels([*plain, *tuned]).values()) == ["weak", "weak", name, name]
    other = with_adapter(plain[0], "other", "6e" * 32)
    assert run_labels([tuned[0], other])[Path("other")] == "weak + adapter 6e6e6e6e6e6e"
    tables, _ = analysis_tables([*plain, *tuned], permutations=100)
    for table in ("metrics", "failures", "consistency", "propagation"):
        assert set(tables[table].model) == {"weak", name}, table
    pair = compare_pair(plain[0], tuned[0], permutations=100)
    assert (pair.first, pair.second) == ("weak", name)
    assert f"relations, {name}: " in summary_line(tuned[0].results)
    with pytest.raises(DataError, match=r"one model.*, not weak, weak \+ adapter"):
        propagation([plain[0], tuned[1]])


def test_an_ablation_is_the_baseline_of_the_model_with_the_same_adapter(scored: Runs) -> None:
    run = scored["weak", "relations"]
    blind = placed(renamed(run, "text_only:weak"), "blind")
    tuned, blind_tuned = with_adapter(run, "tuned"), with_adapter(blind, "blind-tuned")
    gaps = baseline_gaps([run, tuned, blind, blind_tuned], permutations=100)
    assert [(gap.comparison.first, gap.comparison.second) for gap in gaps] == [
        ("weak", "text_only:weak"),
        ("weak + adapter 5f5f5f5f5f5f", "text_only:weak + adapter 5f5f5f5f5f5f"),
    ]
