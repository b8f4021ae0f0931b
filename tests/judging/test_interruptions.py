"""Judging that is killed goes on: nothing is asked twice that was answered, and the figures are the same."""

import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from barista_bench.judging.results import JudgedResults
from barista_bench.judging.scoring import score_judged
from barista_bench.runs.log.sample_log import read_records
from barista_bench.runs.run_folder import judge_folders
from barista_bench.runs.score.scoring import score
from tests.judging.slow_judge import slow_judge
from tests.processes import PROCESSES


def answered(run: Path) -> list[str]:
    return [record.key for path in run.glob("judges/*/verdicts.jsonl") for record in read_records(path)]


def untimed(results: JudgedResults) -> JudgedResults:
    """Results without the seconds, which no two sessions share."""
    return results.model_copy(update={"costs": {k: cost for k, cost in results.costs.items() if k != "seconds"}})


@pytest.mark.full
def test_judging_killed_ten_times_ends_as_if_never_killed(make_run: Callable, tmp_path: Path) -> None:
    run = make_run("temporal_vqa", lambda example, seed: f"Answer: {seed}")
    whole = tmp_path / "whole"
    shutil.copytree(run, whole)
    asked, rng, kills, batch = tmp_path / "asked", random.Random(0), 0, 2
    while kills < 10:
        before = answered(run)
        process = PROCESSES.Process(target=slow_judge, args=(run, asked, 0.02, batch))
        process.start()
        wanted = len(before) + rng.randint(0, 4)
        while process.exitcode is None and len(answered(run)) < wanted:
            time.sleep(0.005)
        process.kill()
        process.join()
        kills += process.exitcode == -signal.SIGKILL
        assert set(before) <= set(answered(run))
        if kills % 3 == 0:
            for path in run.glob("judges/*/verdicts.jsonl"):
                with path.open("ab") as file:
                    file.write(b'{"key": "torn')
        if process.exitcode == 0:
            break
    assert kills >= 5
    for folder in (run, whole):
        process = PROCESSES.Process(target=slow_judge, args=(folder, tmp_path / f"{folder.name}-once", 0.0, 8))
        process.start()
        process.join()
        assert process.exitcode == 0
    resumed, straight = (score_judged(score(folder), *judge_folders(folder)) for folder in (run, whole))
    assert untimed(resumed.results) == untimed(straight.results)
    assert (resumed.folder / "scores.jsonl").read_bytes() == (straight.folder / "scores.jsonl").read_bytes()
    assert resumed.results.coverage.judged == resumed.results.coverage.expected
    keys = answered(run)
    assert len(keys) == len(set(keys)) == len(answered(whole))
    # What was answered is not asked again: only the batch in the making of each kill may be.
    lines = [*asked.read_text().splitlines(), *(tmp_path / f"{run.name}-once").read_text().splitlines()]
    assert sum(Counter(lines).values()) <= len(keys) + kills * batch * 2
