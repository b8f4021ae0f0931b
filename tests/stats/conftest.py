"""The runs of four models of different skill over all six tasks."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from barista_bench.runs.score.scoring import ScoredRun
from tests.six_tasks import SKILLS, TASKS, Runs


def renamed(run: ScoredRun, name: str) -> ScoredRun:
    """The run as of another model."""
    model = run.results.model.model_copy(update={"name": name})
    return replace(run, results=run.results.model_copy(update={"model": model}))


@pytest.fixture(scope="session")
def scored(six_runs: Path) -> Runs:
    """(model, task) -> three scored runs, for `strong`, `fair`, `weak` and the real `chance` and `oracle`."""
    return Runs(six_runs)


@pytest.fixture
def runs_of(scored: Runs) -> Callable[..., list[ScoredRun]]:
    """Runs by model or task, in the order of the fixture."""

    def chosen(*, models: tuple[str, ...] = tuple(SKILLS), tasks: tuple[str, ...] = TASKS) -> list[ScoredRun]:
        return [scored[model, task] for model in models for task in tasks]

    return chosen
