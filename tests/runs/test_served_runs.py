"""Runs over a served model: faults on the way change no score, and no file shows the key."""

import json
from collections import Counter
from pathlib import Path

import pytest

from barista_bench.core.settings import check_settings
from barista_bench.core.status import Status
from barista_bench.models.served import client as served_client
from barista_bench.reporting import write_report
from barista_bench.reporting.analyses import analyse
from barista_bench.reporting.report import build_report
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.runner import estimate, estimate_text
from barista_bench.runs.score.results import ALL_REASONING, summary_line
from barista_bench.runs.score.scoring import score
from tests.one_run import run
from tests.runs.made_logs import read_folder
from tests.served_standin import Call, Fault, ServedStandIn, change_message, random_faults

KEY = "sk-planted-0123456789abcdef"
RETRIED = [
    Fault("status", 429, {"Retry-After": "0.05"}),
    Fault("status", 500),
    Fault("status", 503),
    Fault("drop"),
    Fault("truncate"),
    Fault("raw", body=b'{"choices": [{'),
    Fault("reply", change=lambda reply: reply.update(choices=[])),
    Fault("slow", seconds=0.05),
]


@pytest.fixture(autouse=True)
def _short_waits_and_a_key(relations_answers: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_client, "_FIRST_BACKOFF", 0.01)
    monkeypatch.setenv("PLANTED", KEY)


def settings(server: ServedStandIn, **others: object) -> dict[str, object]:
    asked = {"model": "served:m", "base_url": server.url, "api_key_env": "PLANTED"}
    return {**asked, "max_attempts": 12, "timeout": 5.0, **others}


def test_faults_of_the_server_move_no_score(dataset: Path, tmp_path: Path) -> None:
    with ServedStandIn() as clean:
        run(dataset, tmp_path / "clean", **settings(clean))
    with ServedStandIn(random_faults(0, 0.5, RETRIED)) as faulty:
        session = run(dataset, tmp_path / "faulty", **settings(faulty))
    assert (session.asked, session.failed) == (72, 0)
    score(tmp_path / "clean"), score(tmp_path / "faulty")
    assert (tmp_path / "clean/scores.jsonl").read_bytes() == (tmp_path / "faulty/scores.jsonl").read_bytes()
    assert {record.status for record in read_folder(tmp_path / "faulty")} == {Status.OK}
    assert len(faulty.calls) > len(clean.calls)


def test_no_log_result_report_or_message_holds_the_key(
    dataset: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    echo = json.dumps({"error": {"message": f"bad header Authorization: Bearer {KEY}"}}).encode()
    echoing = [Fault("status", 400, body=echo), Fault("status", 500, body=echo)]
    with ServedStandIn(random_faults(0, 0.4, echoing)) as server:
        session = run(dataset, tmp_path / "run", repetitions=1, **settings(server, max_attempts=2))
    assert session.failed
    assert any(call.headers["authorization"] == f"Bearer {KEY}" for call in server.calls)
    write_report([score(tmp_path / "run")], tmp_path / "report", samples=30)
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes(), path
    assert KEY not in caplog.text + str(session) + "".join(capsys.readouterr())


def test_a_dry_run_estimates_tokens_and_cost_and_sends_nothing(dataset: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"m": {"input": 1.0, "output": 2.0}}))
    with ServedStandIn() as server:
        values = settings(server, data=str(dataset), out=tmp_path / "run", max_new_tokens=100, prices=prices)
        estimated = estimate(check_settings(RunConfig, values))
    assert not server.calls
    assert not (tmp_path / "run").exists()
    assert (estimated.requests, estimated.samples, estimated.images) == (24, 72, 48)
    assert estimated.max_output_tokens == 72 * 100
    assert estimated.cost == pytest.approx((estimated.input_tokens * 1.0 + estimated.max_output_tokens * 2.0) / 1e6)
    assert "US dollars" in estimate_text(estimated)
    blind = estimate(check_settings(RunConfig, values | {"model": "text_only:served:m"}))
    assert (blind.requests, blind.images) == (24, 0)
    assert blind.input_tokens < estimated.input_tokens


def test_refusals_and_odd_replies_are_counted_and_not_asked_again(dataset: Path, tmp_path: Path) -> None:
    def of_its_turn(call: Call) -> Fault | None:
        return odd_replies[int(call.digest, 16) % len(odd_replies)]

    odd_replies = [
        Fault("raw", body=json.dumps({"choices": [{"finish_reason": "SAFETY", "message": None}]}).encode()),
        Fault("raw", body=json.dumps({"promptFeedback": {"blockReason": "SAFETY"}}).encode()),
        Fault("reply", change=change_message(finish_reason="FinishReason.STOP")),
        Fault("reply", change=change_message(finish_reason="zorp")),
        Fault("reply", change=change_message(content=None, reasoning_content="It is the cup.")),
    ]
    with ServedStandIn(of_its_turn) as server:
        session = run(dataset, tmp_path / "run", repetitions=1, **settings(server))
        run(dataset, tmp_path / "run", repetitions=1, **settings(server))
    turns = Counter(int(call.digest, 16) % len(odd_replies) for call in server.calls)
    assert (session.asked, session.failed, len(server.calls)) == (24, 0, 24)
    scored = score(tmp_path / "run")
    statuses, notes = scored.results.coverage.statuses, scored.results.notes
    assert (statuses["refused"], statuses["infra_error"]) == (turns[0] + turns[1], 0)
    assert notes == {"ended with 'zorp'": turns[3], ALL_REASONING: turns[4]}
    assert scored.results.coverage.is_complete
    line = summary_line(scored.results)
    assert f"all text of {turns[4]} answers is in reasoning_content" in line
    assert f"{turns[3]} answers ended with 'zorp'" in line
    report = build_report([scored], analyses=analyse([scored], compare=False))
    assert f"all text of {turns[4]} answers is in reasoning_content" in " ".join(report.warnings)
