"""What every task of every benchmark must do: the laws of `barista_bench.testing`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from barista_bench.core.task import Task
from barista_bench.testing import check_task, check_version
from tests.conformance.task_examples import TASKS, Releases, options_of
from tests.conftest import MadeOnce

VERSIONS = Path(__file__).with_name("task_versions.json")
every_task = pytest.mark.parametrize("task", TASKS, ids=lambda task: f"{task.benchmark}-{task.name}")


@pytest.fixture(scope="module")
def releases(small_kitchen: Path, generated: Callable[[str], Path], made_once: MadeOnce) -> Releases:
    return Releases(small_kitchen, generated, made_once)


@every_task
def test_the_task_keeps_the_laws(task: type[Task], releases: Releases) -> None:
    check_task(task, releases.examples(task), options=options_of(task))


@every_task
def test_a_change_of_the_task_has_a_new_version(task: type[Task], releases: Releases) -> None:
    """With UPDATE_SNAPSHOTS=1 new versions are recorded; a changed task of the same version is refused all the same."""
    record = os.environ.get("UPDATE_SNAPSHOTS") == "1"
    examples, source = releases.examples(task), releases.sha256(task)
    check_version(task, examples, VERSIONS, source=source, options=options_of(task), record=record)
