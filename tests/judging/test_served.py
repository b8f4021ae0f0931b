"""A judge behind an OpenAI-compatible endpoint: its key, its bound, and its requests to the server."""

import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barista_bench.errors import BudgetError, ModelError
from barista_bench.judging.results import JudgedResults
from barista_bench.judging.scoring import score_judged
from barista_bench.judging.session import judge
from barista_bench.runs.log.sample_log import read_records
from barista_bench.runs.run_folder import judge_folders
from barista_bench.runs.score.scoring import score
from tests.judging.judges import VQA
from tests.judging.slow_judge import slow_judge
from tests.processes import PROCESSES
from tests.served_standin import Fault, ServedStandIn, change_message

GRADE = Fault("reply", change=change_message(content='{"score": 5, "reason": "seen"}'))


@pytest.fixture
def answers(make_run: Callable, monkeypatch: pytest.MonkeyPatch) -> Callable:
    monkeypatch.setenv("PLANTED", "sk-secret-of-the-test")
    return lambda repetitions=2: make_run(
        VQA, lambda example, seed: f"Answer: {example} {seed % 97}", repetitions=repetitions
    )


def judged(run: Any, server: ServedStandIn, **settings: Any) -> Any:
    session = judge(run, "served:teacher", base_url=server.url, api_key_env="PLANTED", max_attempts=1, **settings)
    return session, score_judged(session.run, session.folder).results


def test_a_key_reaches_no_file_of_the_judge(answers: Callable) -> None:
    with ServedStandIn(lambda call: GRADE) as server:
        session, _ = judged(answers(1), server, verdicts_per_answer=1)
    assert any("sk-secret" in header for call in server.calls for header in call.headers.values())
    files = [path for path in session.folder.rglob("*") if path.is_file()]
    assert len(files) >= 4
    assert not any(b"sk-secret" in path.read_bytes() for path in files)


def test_a_refused_key_ends_the_command_and_keeps_finished_verdicts(answers: Callable) -> None:
    run = answers(1)
    with (
        ServedStandIn(lambda call: Fault("status", 401)) as server,
        pytest.raises(ModelError, match="PLANTED") as caught,
    ):
        judged(run, server, verdicts_per_answer=1)
    assert "sk-secret" not in str(caught.value)
    with ServedStandIn(lambda call: GRADE) as server:
        _, results = judged(run, server, verdicts_per_answer=1)
    assert results.coverage.judged == results.coverage.expected


def test_a_judge_stops_at_its_bound_and_continues(answers: Callable, tmp_path: Path) -> None:
    run, prices = answers(), tmp_path / "prices.json"
    prices.write_text('{"teacher": {"input": 2.0, "output": 10.0}}')
    settings = {"verdicts_per_answer": 1, "prices": prices, "max_new_tokens": 100}
    with ServedStandIn(lambda call: GRADE) as server:
        with pytest.raises(BudgetError, match="max_cost"):
            judged(run, server, max_cost=0.006, **settings)
        stopped_after = len(server.calls)
        assert 0 < stopped_after * (100 * 2 + 7 * 10) / 1e6 <= 0.006
        session, results = judged(run, server, max_cost=5.0, **settings)
    assert session.already_done == stopped_after
    assert len(server.calls) == 2 * len(session.run.samples)
    dollars = pytest.approx(len(server.calls) * (100 * 2 + 7 * 10) / 1e6)
    assert results.cost == results.costs["dollars"].total == dollars
    assert all(call.body["top_logprobs"] == 20 and call.body["temperature"] == 0.7 for call in server.calls)


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
    # Answered requests are not sent again: only the batch in progress at each kill may be.
    lines = [*asked.read_text().splitlines(), *(tmp_path / f"{run.name}-once").read_text().splitlines()]
    assert sum(Counter(lines).values()) <= len(keys) + kills * batch * 2
