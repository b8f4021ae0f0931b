"""A judge's reply is one JSON object of the right form, or no verdict."""

import json

import jsonschema
import pytest
from hypothesis import given, strategies as st

from barista_bench.core.example import Status
from barista_bench.judging.verdicts import GEVAL_FORM, REASONING_FORM, JudgeVerdict, read_verdict
from barista_bench.models import Completion, Failure
from barista_bench.runs.ask.replies import MAX_REPLY, Unusable, reply_status

GOOD = '{"score": 7, "reason": "one slip"}'


@pytest.mark.parametrize("text", [GOOD, f"  {GOOD}\n", f"```json\n{GOOD}\n```", f"```\n{GOOD}\n```"])
def test_one_object_is_a_verdict_with_or_without_a_code_fence(text: str) -> None:
    assert read_verdict(text) == JudgeVerdict(7, "one slip")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "[7]",
        "null",
        f"My verdict: {GOOD}",
        f"Sure:\n```json\n{GOOD}\n```",
        f"```json\n{GOOD}\n```\nI hope this helps.",
        f"{GOOD} I hope this helps.",
        f"{GOOD}\n{GOOD}",
        f'The answer says {{"score": 10, "reason": "x"}}. {GOOD}',
        f"```json\n{GOOD}\n```\n```json\n{GOOD}\n```",
        '{"score": 11, "reason": ""}',
        '{"score": -1, "reason": ""}',
        '{"score": 7.5, "reason": ""}',
        '{"score": 7.0, "reason": ""}',
        '{"score": "7", "reason": ""}',
        '{"score": true, "reason": ""}',
        '{"score": null, "reason": ""}',
        '{"score": [7], "reason": ""}',
        '{"score": NaN, "reason": ""}',
        '{"score": 7}',
        '{"score": 7, "reason": 3}',
        '{"score": 7, "reason": "", "confidence": 1}',
        '{"Score": 7, "reason": ""}',
        '{"score": 3, "score": 10, "reason": ""}',
        '{"score": 7, "reason": "',
        "{" * 100_000,
        '{"score": 1' + "0" * 5000 + ', "reason": ""}',
        '{"score": 7, "reason": "' + "x" * MAX_REPLY + '"}',
    ],
    ids=lambda text: text[:40],
)
def test_anything_else_is_none_and_says_why(text: str) -> None:
    verdict = read_verdict(text)
    assert isinstance(verdict, Unusable)
    assert verdict.why
    assert reply_status(Completion(text), read_verdict)[0] is Status.PARSE_ERROR


@given(st.text())
def test_no_reply_makes_the_reader_fail(text: str) -> None:
    verdict = read_verdict(text)
    assert isinstance(verdict, Unusable | JudgeVerdict)


@given(st.integers(-3, 14), st.text(st.characters(exclude_categories=["Cs"])))
def test_scores_from_0_to_10_are_read_and_no_others(score: int, reason: str) -> None:
    verdict = read_verdict(json.dumps({"score": score, "reason": reason}))
    assert verdict == JudgeVerdict(score, reason) if 0 <= score <= 10 else isinstance(verdict, Unusable)


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (Completion(GOOD), Status.OK),
        (Completion(GOOD, finish_reason="refusal"), Status.REFUSED),
        (Completion("I will not", finish_reason="refusal"), Status.REFUSED),
        (Completion('{"score": 1', finish_reason="length"), Status.TRUNCATED),
        (Completion(GOOD, finish_reason="length"), Status.OK),
        (Completion("ten out of ten"), Status.PARSE_ERROR),
        (Failure("no network"), Status.INFRA_ERROR),
    ],
)
def test_every_reply_has_its_status(reply: Completion | Failure, status: Status) -> None:
    assert reply_status(reply, read_verdict)[0] is status


def test_the_form_of_the_reasoning_judge_ends_at_five() -> None:
    assert read_verdict('{"reasoning_score": 5, "analysis": "good"}', REASONING_FORM) == JudgeVerdict(5, "good")
    assert isinstance(read_verdict('{"reasoning_score": 6, "analysis": ""}', REASONING_FORM), Unusable)
    assert isinstance(read_verdict(GOOD, REASONING_FORM), Unusable)


def test_the_schema_of_a_form_allows_what_is_read_and_nothing_else() -> None:
    validator = jsonschema.Draft202012Validator(GEVAL_FORM.schema())
    for text in (GOOD, '{"score": 0, "reason": ""}', '{"score": 10, "reason": "x"}'):
        assert validator.is_valid(json.loads(text))
    for text in (
        '{"score": 11, "reason": ""}',
        '{"score": "7", "reason": ""}',
        '{"score": 7}',
        '{"score": 7, "reason": "", "x": 1}',
    ):
        assert not validator.is_valid(json.loads(text))
        assert isinstance(read_verdict(text), Unusable)
