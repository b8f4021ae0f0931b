"""A judge behind an OpenAI-compatible endpoint: figures by hand from what the scripted server says."""

import hashlib
import json
import math
import re
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barista_bench.errors import BudgetError, ModelError
from barista_bench.judging.scoring import score_judged
from barista_bench.judging.session import judge
from tests.served_standin import Call, Fault, ServedStandIn

VQA = "temporal_vqa"
Body = dict[str, Any]


def form_of(body: Body) -> tuple[str, str]:
    """Answer and criterion in a call."""
    text = "\n".join(
        part if isinstance(part, str) else "".join(piece.get("text", "") for piece in part)
        for part in (message["content"] for message in body["messages"])
    )
    material = json.loads(re.search(r'^\{"question.*\}$', text, re.MULTILINE)[0])
    return material["answer"], re.search(r"^Criterion: (\w+)$", text, re.MULTILINE)[1]


def grade(answer: str, criterion: str) -> int:
    return hashlib.sha256(f"{answer}/{criterion}".encode()).digest()[0] % 9


def say(text: str, finish_reason: str = "stop", logprobs: Body | None = None) -> Fault:
    def change(reply: Body) -> None:
        for choice in reply["choices"]:
            choice["message"]["content"] = text
            choice["finish_reason"] = finish_reason
            choice["logprobs"] = logprobs

    return Fault("reply", change=change)


def token(text: str, **top: float) -> Body:
    alternatives = [{"token": name.strip("_"), "logprob": math.log(p), "bytes": None} for name, p in top.items()]
    return {"token": text, "logprob": -0.01, "bytes": None, "top_logprobs": alternatives}


def verdict(score: object) -> str:
    return json.dumps({"score": score, "reason": "seen"})


@pytest.fixture
def answers(make_run: Callable, monkeypatch: pytest.MonkeyPatch) -> Callable:
    monkeypatch.setenv("PLANTED", "sk-secret-of-the-test")
    return lambda runs=2: make_run(VQA, lambda example, seed: f"Answer: {example} {seed % 97}", runs=runs)


def judged(run: Any, server: ServedStandIn, **settings: Any) -> Any:
    session = judge(run, "served:teacher", base_url=server.url, api_key_env="PLANTED", max_attempts=1, **settings)
    return session, score_judged(session.run, session.folder).results


def test_published_figures_equal_a_calculation_by_hand(answers: Callable, tmp_path: Path) -> None:
    run, prices = answers(), tmp_path / "prices.json"
    prices.write_text('{"teacher": {"input": 2.0, "output": 10.0}}')
    with ServedStandIn(lambda call: say(verdict(grade(*form_of(call.body))))) as server:
        session, results = judged(run, server, draws=1, prices=prices)
    assert session.failed == 0
    per_run: dict[int, list[tuple[int, int]]] = {}
    for sample in session.run.samples:
        said = str(sample.prediction.value["answer"])
        per_run.setdefault(sample.record.run, []).append((grade(said, "accuracy"), grade(said, "completeness")))
    means = [statistics.fmean((a + c) / 20 for a, c in per_run[number]) for number in (0, 1)]
    assert results.figures["mean"].runs == pytest.approx(means)
    assert results.figures["mean"].std == pytest.approx(statistics.stdev(means))
    assert results.figures["accuracy"].mean == pytest.approx(
        statistics.fmean(statistics.fmean(a / 10 for a, _ in scores) for scores in per_run.values())
    )
    verdicts = len(session.run.samples) * 2
    assert results.cost == pytest.approx(verdicts * (100 * 2 + 7 * 10) / 1e6)
    assert all(call.body["top_logprobs"] == 20 and call.body["temperature"] == 0.7 for call in server.calls)


def test_log_probabilities_of_the_server_weight_the_scores(answers: Callable) -> None:
    tokens = [token('{"score":'), token(" 8", **{"_ 8": 0.5}), token(', "reason": "seen"}')]
    tokens[1]["top_logprobs"] = [
        {"token": " 8", "logprob": math.log(0.5), "bytes": None},
        {"token": " 5", "logprob": math.log(0.25), "bytes": None},
        {"token": " x", "logprob": math.log(0.25), "bytes": None},
    ]
    text = '{"score": 8, "reason": "seen"}'
    with ServedStandIn(lambda call: say(text, logprobs={"content": tokens})) as server:
        _, results = judged(answers(1), server, draws=1)
    assert results.scoring["weighted"] == results.coverage.verdicts["ok"] > 0
    assert results.figures["accuracy"].mean == pytest.approx((0.5 * 8 + 0.25 * 5) / 0.75 / 10)


def test_malformed_refused_truncated_and_failed_replies_keep_their_status(answers: Callable) -> None:
    kinds = {
        "parse_error": say("I give it a ten."),
        "refused": say("", finish_reason="content_filter"),
        "truncated": say('{"score": 9, "re', finish_reason="length"),
        "infra_error": Fault("status", 400),
    }
    run = answers(1)
    chosen: dict[str, Fault] = {}

    def decide(call: Call) -> Fault:
        answer, _ = form_of(call.body)
        # One example a kind; the others are graded.
        if answer not in chosen and len(chosen) < len(kinds):
            chosen[answer] = list(kinds.values())[len(chosen)]
        return chosen.get(answer) or say(verdict(6))

    with ServedStandIn(decide) as server:
        session, results = judged(run, server, draws=1, max_concurrency=1)
    for name in kinds:
        assert results.coverage.verdicts[name] == 2, name
    assert session.failed == 2
    assert results.figures["mean"].mean == pytest.approx(0.6)
    assert results.coverage.judged == results.coverage.expected - len(kinds)


def test_a_key_reaches_no_file_of_the_judge(answers: Callable) -> None:
    with ServedStandIn(lambda call: say(verdict(5))) as server:
        session, _ = judged(answers(1), server, draws=1)
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
        judged(run, server, draws=1)
    assert "sk-secret" not in str(caught.value)
    with ServedStandIn(lambda call: say(verdict(5))) as server:
        _, results = judged(run, server, draws=1)
    assert results.coverage.judged == results.coverage.expected


def test_a_judge_stops_at_its_bound_and_goes_on(answers: Callable, tmp_path: Path) -> None:
    run, prices = answers(), tmp_path / "prices.json"
    prices.write_text('{"teacher": {"input": 2.0, "output": 10.0}}')
    settings = {"draws": 1, "prices": prices, "max_new_tokens": 100}
    with ServedStandIn(lambda call: say(verdict(grade(*form_of(call.body))))) as server:
        with pytest.raises(BudgetError, match="max_cost"):
            judged(run, server, max_cost=0.006, **settings)
        stopped_after = len(server.calls)
        assert 0 < stopped_after * (100 * 2 + 7 * 10) / 1e6 <= 0.006
        session, results = judged(run, server, max_cost=5.0, **settings)
    assert session.already_done == stopped_after
    assert len(server.calls) == 2 * len(session.run.samples)
    assert results.costs["dollars"].total == pytest.approx(len(server.calls) * (100 * 2 + 7 * 10) / 1e6)
