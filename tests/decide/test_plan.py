"""Plans of comparisons: their answers equal simulated runs, and their costs equal the log."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from barista_bench.benchmarks import BENCHMARKS, task_class
from barista_bench.cli.commands import app
from barista_bench.data.folder import build
from barista_bench.errors import ConfigError
from barista_bench.runs.ask import runner
from barista_bench.runs.decide.opening import rival_offsets
from barista_bench.runs.decide.planning import plan_tasks, planned_answers
from barista_bench.runs.score.scoring import read_scored
from tests.decide.conftest import TASK


@pytest.mark.parametrize("is_f1", [False, True])
def test_a_planned_model_is_better_by_the_difference(is_f1: bool) -> None:
    rng = np.random.default_rng(0)
    entries = rng.integers(1, 5, 300) if is_f1 else np.ones(300)
    hits = rng.binomial(entries.astype(int), 0.5)
    terms = np.column_stack([2.0 * hits, entries + hits + rng.integers(0, 3, 300)])
    most = np.column_stack([2.0 * entries] * 2)
    if not is_f1:
        terms, most = np.column_stack([1.0 * hits, np.ones(300)]), np.ones((300, 2))
    score = terms[:, 0].sum() / terms[:, 1].sum()
    answers = planned_answers(terms, most, score + 0.1, rng, is_f1=is_f1)
    assert answers is not None
    planned = answers[:, 0].sum() / answers[:, 1].sum()
    assert score + 0.1 <= planned < score + 0.12
    assert planned_answers(terms, most, 1.1, rng, is_f1=is_f1) is None


def test_a_larger_difference_needs_fewer_answers(weak: Path) -> None:
    run = read_scored(weak / TASK)
    small, large = (plan_tasks([run], difference, 0.05)[0].stopped for difference in (0.1, 0.5))
    assert large < small <= len(run.examples)
    with pytest.raises(ConfigError, match="cannot rise by"):
        plan_tasks([run], 0.9, 0.05)


def test_the_command_shows_both_designs(six_tasks: Path, weak: Path) -> None:
    done = CliRunner().invoke(app, ["plan", str(six_tasks), "--against", str(weak), "--difference", "0.3"])
    assert done.exit_code == 0, done.output
    assert "complete" in done.output
    assert "stopped" in done.output
    assert "smallest difference" in done.output


DECLARED = {
    name: [task for task in BENCHMARKS[name].task_names if task_class(name, task).decided_by is not None]
    for name in BENCHMARKS
}


def test_only_means_and_micro_f1_are_declared() -> None:
    assert DECLARED == {
        "barista": ["hand_object", "referring", "activity", "relations", "temporal_vqa"],
        "vista": [],
        "handyvqa": [],
        "tog_bench": ["t_stvg"],
        "egocot": ["cot"],
        "extended": ["open_activity", "anticipation"],
    }


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name, tasks in DECLARED.items() if tasks])
@pytest.mark.parametrize("model", ["chance", "oracle"])
def test_the_sums_of_the_terms_give_the_primary_metric(
    name: str, model: str, source_of: Callable[[str], Path], tmp_path: Path
) -> None:
    data = build(source_of(name), tmp_path / "data", benchmark=name, sampling={"limit": 20}, cache=False).folder
    options = ("matcher=exact",) if name == "tog_bench" else ()
    split = "dev" if name == "egocot" else "all"  # answers of the other split are hidden
    runner.run(
        data, tmp_path / "run", task=tuple(DECLARED[name]), model=model, repetitions=2, option=options, split=split
    )
    for task in DECLARED[name]:
        offsets = rival_offsets(read_scored(tmp_path / "run" / task))
        assert np.isclose(offsets.sum(), 0.0, atol=1e-6)
