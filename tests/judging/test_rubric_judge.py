"""The judge of reasoning (EgoCoT-Bench's R)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barista_bench.core.task import Status
from barista_bench.judging.rubric_judge import GENERATION, Rationale, judge_reasoning, scores
from barista_bench.metrics.judge_score import egocot_reasoning
from barista_bench.models import Completion, Failure, Request
from barista_bench.runs.log.sample_log import SampleLog
from tests.judging.conftest import never
from tests.judging.judges import ScriptedJudge, material


def rationale(reasoning: str) -> Rationale:
    return Rationale("Which lid?", "B", "1. The jar is opened.", "B", reasoning)


def said(score: object) -> Completion:
    return Completion(json.dumps({"reasoning_score": score, "analysis": "so"}))


def grade(request: Request, place: int) -> Completion | Failure:
    replies = {"good": said(5), "poor": said(2), "odd": said(6), "no": Completion("no", finish_reason="refusal")}
    return replies.get(material(request)["reasoning"], Failure("down"))


def test_rationales_are_scored_and_empty_ones_are_zero_without_being_asked(tmp_path: Path) -> None:
    judge = ScriptedJudge(grade)
    texts = {"a": "good", "b": "poor", "c": " \n", "d": "odd", "e": "no", "f": "lost", "g": "good"}
    with SampleLog(tmp_path / "verdicts.jsonl") as log:
        found = judge_reasoning({name: rationale(text) for name, text in texts.items()}, judge, log)
    assert scores(list(found.values())) == [5, 2, 0, None, None, None, 5]
    assert [one.status for one in found.values()] == [
        Status.OK,
        Status.OK,
        Status.OK,
        Status.PARSE_ERROR,
        Status.REFUSED,
        Status.INFRA_ERROR,
        Status.OK,
    ]
    assert sorted(material(request)["reasoning"] for request in judge.requests) == ["good", "lost", "no", "odd", "poor"]
    assert {config.temperature for config in judge.configs} == {0.0}
    assert GENERATION.temperature == 0.0
    # R over right answers, by hand: the samples without a verdict lower the coverage, not R.
    result = egocot_reasoning(scores(list(found.values())), [True] * 7)
    assert result["r"] == pytest.approx((5 + 2 + 0 + 5) / 4)


def test_a_second_start_asks_only_what_failed(tmp_path: Path) -> None:
    rationales = {"a": rationale("good"), "b": rationale("lost")}
    with SampleLog(tmp_path / "verdicts.jsonl") as log:
        judge_reasoning(rationales, ScriptedJudge(grade), log)
        again = ScriptedJudge(lambda *_: said(1))
        found = judge_reasoning(rationales, again, log)
    assert [material(request)["reasoning"] for request in again.requests] == ["lost"]
    assert scores(list(found.values())) == [5, 1]


def test_an_empty_set_asks_nobody(tmp_path: Path) -> None:
    with SampleLog(tmp_path / "verdicts.jsonl") as log:
        assert judge_reasoning({"a": rationale("")}, ScriptedJudge(never), log)["a"].verdict.score == 0
