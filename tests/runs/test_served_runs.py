"""Runs over a served model: faults on the way move no score, and the key stands nowhere."""

import json
from pathlib import Path

import pytest

from barista_bench.core.example import Status
from barista_bench.models.served import client as served_client
from barista_bench.reporting import write_report
from barista_bench.runs.ask.config import RunConfig, checked
from barista_bench.runs.ask.estimate import as_text, estimate
from barista_bench.runs.score.scoring import score
from tests import served_standin
from tests.one_run import run
from tests.runs.made_logs import read_folder
from tests.served_standin import Body, Fault, ServedStandIn, change_message, random_faults

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
def _answers_in_the_format_of_relations(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(body: Body, choice: int = 0) -> str:
        target = 2 + (int(served_standin.prompt_digest(body), 16) + choice) % 3
        return json.dumps([{"source_id": 1, "target_id": target, "relation_type": "position", "value": "part of"}])

    monkeypatch.setattr(served_standin, "expected_text", answer)
    monkeypatch.setattr(served_client, "_FIRST_BACKOFF", 0.01)
    monkeypatch.setenv("PLANTED", KEY)


def settings(server: ServedStandIn, **others: object) -> dict[str, object]:
    return {
        "model": "served:m",
        "base_url": server.url,
        "api_key_env": "PLANTED",
        "max_attempts": 12,
        "timeout": 5.0,
        **others,
    }


def priced(folder: Path, **prices: float) -> Path:
    """A file of what the model of `settings` costs."""
    path = folder / "prices.json"
    path.write_text(json.dumps({"m": prices}))
    return path


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


def test_each_kind_of_answer_keeps_its_status_and_failures_are_asked_again(dataset: Path, tmp_path: Path) -> None:
    def refuse(reply: Body) -> None:
        change_message(content=None, refusal="I cannot help with that")(reply)

    def cut(reply: Body) -> None:
        for choice in reply["choices"]:
            choice["finish_reason"] = "length"

    kinds = [Fault("reply", change=refuse), Fault("reply", change=cut), Fault("status", 400), None]
    faults = {"": 0}

    def by_turn(call: object) -> Fault | None:
        digest = call.digest  # type: ignore[attr-defined]
        return kinds[faults.setdefault(digest, len(faults)) % len(kinds)]

    with ServedStandIn(by_turn) as server:
        session = run(dataset, tmp_path, runs=1, **settings(server))
        assert (session.asked, session.failed) == (18, 6)
        statuses = score(tmp_path).results.coverage.statuses
        assert statuses == {"ok": 6, "parse_error": 0, "refused": 6, "truncated": 6, "infra_error": 6}
        kinds[2] = None
        assert run(dataset, tmp_path, runs=1, **settings(server)).asked == 6
    assert score(tmp_path).results.coverage.complete


def test_the_key_stands_in_no_log_result_report_or_message(dataset, tmp_path, caplog, capsys):
    echo = json.dumps({"error": {"message": f"bad header Authorization: Bearer {KEY}"}}).encode()
    echoing = [Fault("status", 400, body=echo), Fault("status", 500, body=echo)]
    with ServedStandIn(random_faults(0, 0.4, echoing)) as server:
        session = run(dataset, tmp_path / "run", runs=1, **settings(server, max_attempts=2))
    assert session.failed
    assert any(call.headers["authorization"] == f"Bearer {KEY}" for call in server.calls)
    write_report([score(tmp_path / "run")], tmp_path / "report", samples=30)
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes(), path
    assert KEY not in caplog.text + str(session) + "".join(capsys.readouterr())


def test_a_dry_run_estimates_tokens_and_cost_and_sends_nothing(dataset: Path, tmp_path: Path) -> None:
    with ServedStandIn() as server:
        prices = priced(tmp_path, input=1.0, output=2.0)
        values = settings(server, data=str(dataset), out=tmp_path / "run", max_new_tokens=100, prices=prices)
        estimated = estimate(checked(RunConfig, values))
    assert not server.calls
    assert not (tmp_path / "run").exists()
    assert (estimated.requests, estimated.samples, estimated.images) == (24, 72, 48)
    assert estimated.max_output_tokens == 72 * 100
    assert estimated.cost == pytest.approx((estimated.input_tokens * 1.0 + estimated.max_output_tokens * 2.0) / 1e6)
    assert "US dollars" in as_text(estimated)
    blind = estimate(checked(RunConfig, values | {"model": "text_only:served:m"}))
    assert (blind.requests, blind.images) == (24, 0)
    assert blind.input_tokens < estimated.input_tokens


def test_tokens_and_cost_stand_in_the_results(dataset: Path, tmp_path: Path) -> None:
    with ServedStandIn() as server:
        run(dataset, tmp_path, prices=priced(tmp_path, input=1.0, output=10.0), **settings(server))
        billed = sum(100 for _ in server.calls), sum(7 * call.body.get("n", 1) for call in server.calls)
    timing = score(tmp_path).results.timing
    assert (timing.input_tokens, timing.output_tokens) == billed
    assert timing.cost == pytest.approx((billed[0] + 10 * billed[1]) / 1e6)
