"""A judge behind an OpenAI-compatible endpoint: its key, its bound, and what is asked of the server."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barista_bench.errors import BudgetError, ModelError
from barista_bench.judging.scoring import score_judged
from barista_bench.judging.session import judge
from tests.judging.judges import VQA
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


def test_a_refused_key_ends_the_command_and_leaves_what_was_judged(answers: Callable) -> None:
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


def test_a_judge_stops_at_its_bound_and_goes_on(answers: Callable, tmp_path: Path) -> None:
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
