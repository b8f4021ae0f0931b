"""Replies and errors are hostile input: whatever a server sends, it becomes a completion or one of our errors."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barista_bench.errors import ModelError
from barista_bench.models import Completion
from barista_bench.models.served_errors import (
    CallError,
    DeclinedError,
    Place,
    RejectedError,
    Scrubber,
    TransientError,
    status_error,
)
from barista_bench.models.served_replies import ReadingRules, read_reply

PLACE = Place("m", "http://host/v1", "SOME_KEY", Scrubber("sk-planted-0123456789"))
RULES = ReadingRules(("<think>", "</think>"), opens_thinking=False, stop=())

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner))


def fields(**names: st.SearchStrategy) -> st.SearchStrategy:
    return st.fixed_dictionaries({}, optional=names)


some_tokens = st.lists(
    fields(token=st.text(max_size=5), logprob=scalars, bytes=values, top_logprobs=values) | scalars, max_size=4
)
messages = fields(
    content=st.text() | values, refusal=values, reasoning_content=values, reasoning=st.text(max_size=9) | values
)
choices = fields(
    message=messages | values,
    finish_reason=st.sampled_from(["stop", "length", "content_filter", None]) | values,
    logprobs=fields(content=some_tokens | values) | values,
)
usages = fields(prompt_tokens=scalars, completion_tokens=scalars, total_tokens=scalars)
replies = fields(choices=st.lists(choices, max_size=4) | values, usage=usages | values, model=values, error=values)


@given(replies | values, st.integers(1, 3))
def test_any_json_is_a_reply_or_one_of_our_errors(reply, wanted):
    try:
        read = read_reply(json.dumps(reply).encode(), RULES, PLACE, wanted)
    except (CallError, ModelError):
        return
    assert 1 <= len(read.choices) <= wanted
    done = [choice for choice in read.choices if isinstance(choice, Completion)]
    assert all(choice.finish_reason in ("stop", "length", "refusal") for choice in done)
    assert all(isinstance(choice.text, str) for choice in done)
    for total, given_out in (
        (read.input_tokens, [choice.input_tokens for choice in done]),
        (read.output_tokens, [choice.output_tokens for choice in done]),
    ):
        assert not done or (sum(given_out) == total if total is not None else set(given_out) == {None})


@given(st.binary(max_size=200))
def test_bytes_that_are_no_reply_are_one_of_our_errors(body):
    with pytest.raises((CallError, ModelError)) as caught:
        read_reply(body, RULES, PLACE, 1)
    assert len(str(caught.value)) < 1000


@given(st.integers(300, 599), st.binary(max_size=200) | values.map(lambda value: json.dumps(value).encode()))
def test_any_error_answer_is_sorted_into_one_of_our_errors(status, body):
    error = status_error(status, {}, body, PLACE)
    assert isinstance(error, CallError | ModelError)
    assert len(str(error)) < 1000


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, RejectedError),
        (401, ModelError),
        (402, ModelError),
        (403, ModelError),
        (404, ModelError),
        (408, TransientError),
        (409, TransientError),
        (413, RejectedError),
        (422, RejectedError),
        (425, TransientError),
        (429, TransientError),
        (500, TransientError),
        (501, RejectedError),
        (502, TransientError),
        (503, TransientError),
        (504, TransientError),
        (529, TransientError),
    ],
)
def test_each_status_has_its_kind_of_error(status, kind):
    error = status_error(status, {}, b'{"error": {"message": "made to fail"}}', PLACE)
    assert type(error) is kind
    assert str(status) in str(error)


@pytest.mark.parametrize("status", [400, 403, 451])
def test_a_content_policy_is_a_refusal_and_no_wrong_key(status):
    body = b'{"error": {"message": "no", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}'
    assert isinstance(status_error(status, {}, body, PLACE), DeclinedError)


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        (
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.",
            "token_limit_field=max_completion_tokens",
        ),
        ("extra fields not permitted: max_completion_tokens", "token_limit_field=max_tokens"),
        ("'temperature' does not support 0 with this model", "omit=temperature"),
        ("Invalid schema for response_format 'answer'", "structured_output"),
    ],
)
def test_a_refusal_that_a_setting_can_answer_names_the_setting(said, remedy):
    error = status_error(400, {}, json.dumps({"error": {"message": said}}).encode(), PLACE)
    assert remedy in str(error)


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "why"}},
        {"error": "why"},
        {"message": "why"},
        {"detail": "why"},
        {"error": {"detail": "why"}},
    ],
)
def test_the_message_is_found_in_the_shapes_that_servers_use(body):
    assert str(status_error(400, {}, json.dumps(body).encode(), PLACE)).endswith("with 400: why")


def test_only_keys_that_are_long_enough_to_be_one_are_cut_out():
    assert Scrubber("sk-planted-0123456789").text("a sk-planted-0123456789 b") == "a [key] b"
    assert Scrubber("EMPTY").text("EMPTY cup") == "EMPTY cup"
    assert Scrubber("").text("cup") == "cup"
    assert "planted" not in repr(PLACE)


def test_what_a_server_says_of_a_wrong_key_is_not_repeated_since_it_may_hold_parts_of_it():
    for status in (401, 403):
        error = status_error(status, {}, b'{"error": {"message": "wrong key sk-pl********6789"}}', PLACE)
        assert "6789" not in str(error)
        assert "SOME_KEY" in str(error)


def test_a_key_at_the_edge_of_a_quote_is_cut_out_too():
    key = "sk-planted-0123456789"
    for shift in range(60):
        assert "sk-pl" not in Scrubber(key).quote("x" * (300 - shift) + key)
        assert "sk-pl" not in Scrubber(key).quote(" " * (3000 - shift) + key)


def test_output_tokens_are_dealt_out_by_length():
    reply = {
        "choices": [{"message": {"content": "x" * length}} for length in (9, 29, 0)],
        "usage": {"prompt_tokens": 5, "completion_tokens": 41},
    }
    read = read_reply(json.dumps(reply).encode(), RULES, PLACE, 3)
    assert [choice.output_tokens for choice in read.choices] == [10, 30, 1]
    assert [choice.input_tokens for choice in read.choices] == [5, 0, 0]
