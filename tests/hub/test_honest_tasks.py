"""The leaderboard's facts about tasks are true, and the honest results of every task keep its rules."""

from collections.abc import Callable
from pathlib import Path

import pytest

from barista_bench.benchmarks import BENCHMARKS
from barista_bench.core.leaderboards import TASKS, Tasks
from barista_bench.data.folder import build
from barista_bench.hub.number_checks import check_numbers
from barista_bench.runs.ask.runner import run
from barista_bench.runs.score.scoring import score


def test_the_board_knows_every_task_of_this_package_its_splits_and_its_primary_metric() -> None:
    ours = {
        name: Tasks(tuple(benchmark.splits), {task.name: task.primary for task in benchmark.tasks})
        for name, benchmark in BENCHMARKS.items()
    }
    assert {name: ours[name] for name in TASKS} == TASKS


@pytest.mark.full
@pytest.mark.parametrize("name", TASKS)
def test_honest_results_keep_the_rules_of_the_board(
    name: str, source_of: Callable[[str], Path], tmp_path: Path
) -> None:
    data = build(source_of(name), tmp_path / "data", benchmark=name, sampling={"limit": 6}, cache=False).folder
    split = BENCHMARKS[name].leaderboards[0]
    for task in BENCHMARKS[name].tasks:
        out, option = tmp_path / task.name, {"matcher": "exact"} if "matcher" in task.options else {}
        settings = {"benchmark": name, "task": task.name, "model": "chance", "split": split, "option": option}
        run(data, out, **settings, repetitions=2, progress=False)
        (folder,) = (path.parent for path in out.rglob("run.json"))
        check_numbers(score(folder).results, task.name)
