"""Plans of comparisons: their answers are those of simulated runs, and their costs those of the log."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from barista_bench.cli.commands import app
from barista_bench.errors import ConfigError
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
