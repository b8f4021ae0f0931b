"""Replies and errors are hostile input: everything a server sends becomes a completion or one of our errors."""

import json
import re

import pytest
from hypothesis import assume, given, strategies as st

from barista_bench.errors import ModelError
from barista_bench.models import Completion
from barista_bench.models.served.errors import (
    CallError,
    DeclinedError,
    Endpoint,
    RejectedError,
    TransientError,
    status_error,
)
from barista_bench.models.served.replies import ReadingRules, read_reply


def endpoint(key: str) -> Endpoint:
    return Endpoint("m", "http://host/v1", "SOME_KEY", key)


def error_for(status: int, error: object, **settings: bool) -> Exception:
    return status_error(status, {}, json.dumps({"error": error}).encode(), ENDPOINT, **settings)


ENDPOINT = endpoint("sk-planted-0123456789")


@pytest.mark.parametrize(
    ("status", "more", "wait"), [(429, {}, 20.0), (429, {"retry-after": "7"}, 7.0), (503, {}, None)]
)
def test_a_429_without_retry_after_waits_until_the_allowance_is_renewed(status, more, wait):
    used_up = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "20s"}
    error = status_error(status, used_up | more, b"{}", ENDPOINT)
    assert isinstance(error, TransientError)
    assert error.wait == wait


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
details = fields(reasoning_tokens=scalars, cached_tokens=scalars) | values
usages = fields(
    **dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), scalars),
    **dict.fromkeys(("prompt_tokens_details", "completion_tokens_details"), details),
)
replies = fields(choices=st.lists(choices, max_size=4) | values, usage=usages | values, model=values, error=values)


@given(replies | values, st.integers(1, 3))
def test_any_json_is_a_reply_or_one_of_our_errors(reply, wanted):
    try:
        read = read_reply(json.dumps(reply).encode(), RULES, ENDPOINT, wanted)
    except (CallError, ModelError):
        return
    assert 1 <= len(read.choices) <= wanted
    done = [choice for choice in read.choices if isinstance(choice, Completion)]
    assert all(choice.finish_reason in ("stop", "length", "thinking", "refusal") for choice in done)
    assert all(isinstance(choice.text, str) for choice in done)
    for part, whole in (("thinking_tokens", "output_tokens"), ("cached_tokens", "input_tokens")):
        counts = [(getattr(choice, part), getattr(choice, whole)) for choice in done]
        assert all(few is None or (all_of is not None and 0 <= few <= all_of) for few, all_of in counts)
    for total, given_out in (
        (read.input_tokens, [choice.input_tokens for choice in done]),
        (read.output_tokens, [choice.output_tokens for choice in done]),
    ):
        assert not done or (sum(given_out) == total if total is not None else set(given_out) == {None})


@given(st.binary(max_size=200))
def test_bytes_without_a_reply_are_one_of_our_errors(body):
    with pytest.raises((CallError, ModelError)) as caught:
        read_reply(body, RULES, ENDPOINT, 1)
    assert len(str(caught.value)) < 1000


@given(st.integers(300, 599), st.binary(max_size=200) | values.map(lambda value: json.dumps(value).encode()))
def test_any_error_answer_is_sorted_into_one_of_our_errors(status, body):
    error = status_error(status, {}, body, ENDPOINT)
    assert isinstance(error, CallError | ModelError)
    assert len(str(error)) < 1000


KINDS: dict[type[Exception], tuple[int, ...]] = {
    RejectedError: (400, 413, 422, 501),
    ModelError: (401, 402, 403, 404),
    TransientError: (408, 409, 425, 429, 500, 502, 503, 504, 529),
}


@pytest.mark.parametrize(("status", "kind"), [(status, kind) for kind, some in KINDS.items() for status in some])
def test_each_status_has_its_kind_of_error(status, kind):
    error = error_for(status, {"message": "made to fail"})
    assert type(error) is kind
    assert str(status) in str(error)


@pytest.mark.parametrize("status", [400, 403, 451])
def test_a_content_policy_is_a_refusal_and_no_wrong_key(status):
    error = {"message": "no", "innererror": {"code": "ResponsibleAIPolicyViolation"}}
    assert isinstance(error_for(status, error), DeclinedError)


@pytest.mark.parametrize(
    "error",
    [
        {"message": "blocked", "metadata": {"reasons": ["violence"]}},
        {"message": "blocked", "metadata": {"flagged_input": "Where is the kn..."}},
        {"message": "some/model requires moderation on Host."},
        {"message": 'Your input was flagged for "violence". No credits were charged to your account.'},
    ],
)
@pytest.mark.parametrize("answered", [False, True])
def test_a_403_of_a_moderator_is_a_refusal_whether_or_not_the_server_has_answered(error, answered):
    assert isinstance(error_for(403, {"code": 403, **error}, answered=answered), DeclinedError)


@pytest.mark.parametrize(
    "body",
    [
        b'{"error": {"message": "Your account was flagged for abuse."}}',
        b'{"error": {"message": "requests from a flagged IP are not served"}}',
        b'{"error": {"message": "no", "metadata": {"reasons": [], "provider_name": "Host"}}}',
        b'{"error": {"message": "no", "metadata": "flagged"}}',
        b"<html>Your request was flagged by our firewall</html>",
        b'{"error": "no"}',
    ],
)
def test_another_403_is_about_the_key_until_the_server_has_answered_and_then_about_the_request(body):
    assert isinstance(status_error(403, {}, body, ENDPOINT), ModelError)
    after = status_error(403, {}, body, ENDPOINT, answered=True)
    assert isinstance(after, RejectedError)
    assert after.status == 403


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        ("invalid_prompt", "Invalid prompt: your prompt was flagged as potentially harmful.", DeclinedError),
        ("invalid_prompt", "This prompt violates our usage policy.", DeclinedError),
        ("invalid_prompt", "messages[0] has no content", RejectedError),
        ("invalid_value", "the parameter was flagged as deprecated", RejectedError),
        (
            "400",
            "The response was filtered due to the prompt triggering Azure OpenAI's content management",
            DeclinedError,
        ),
        ("invalid_request_error", "Output blocked by content filtering policy", DeclinedError),
        ("data_inspection_failed", "Input data may contain inappropriate content.", DeclinedError),
        ("SAFETY", "no", DeclinedError),
        ("bad", "Your account was suspended for violating our usage policies.", RejectedError),
        ("bad", "unknown field: content_filter", RejectedError),
    ],
)
def test_an_error_is_a_refusal_where_a_policy_or_a_filter_stopped_the_request(code, message, kind):
    assert type(error_for(400, {"message": message, "code": code})) is kind


@pytest.mark.parametrize("status", [401, 402, 404])
def test_statuses_401_402_and_404_stay_fatal_after_an_answer(status):
    assert isinstance(status_error(status, {}, b"{}", ENDPOINT, answered=True), ModelError)


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("Unsupported: 'max_tokens'. Use 'max_completion_tokens'.", "give token_limit_field=max_completion_tokens"),
        ("extra fields not permitted: max_completion_tokens", "give token_limit_field=max_tokens"),
        ("'temperature' does not support 0 with this model", "give omit=temperature"),
        ("Invalid schema for response_format 'answer'", "leave structured_output off"),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 9. This model's maximum context length is 4",
            "a smaller",
        ),
        ("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens", "--max-model-len"),
        ("prompt is too long: 208310 tokens > 200000 maximum", "--max-model-len"),
        ("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000", "a smaller max_new_tokens"),
        ("The input token count (9) exceeds the maximum number of tokens allowed (4).", "a smaller max_new_tokens"),
        ("`inputs` tokens + `max_new_tokens` must be <= 2048. Given: 3000 `inputs` tokens", "a smaller max_new_tokens"),
        ("the request exceeds the available context size. try increasing the context size", "--max-model-len"),
        ("Requested token count exceeds the model's maximum context length of 4 tokens.", "--max-model-len"),
        ("max_tokens is too large: 9. This model supports at most 4 completion tokens", "give another max_new_tokens"),
        ("At most 1 image(s) may be provided in one request.", "--limit-mm-per-prompt"),
        ("Too many images provided. This model supports up to 5 images", "ask for fewer frames"),
        ("'data:image/jpeg;base64,/9j/4AA...' is not a valid absolute URI", "max_side"),
        ("Invalid URI: The Uri string is too long.", "max_side"),
        ("messages.0.content.1: image exceeds 5 MB maximum", "max_side"),
        ("m is not a multimodal model", "text_only:MODEL"),
        ("Unsupported parameter: 'reasoning_effort' is not supported with this model.", "reasoning_field"),
        ("Unrecognized request argument supplied: top_k", "top_k"),
        ("'logprobs' is not supported by this model", "top_logprobs=0"),
    ],
)
def test_a_refusal_that_a_setting_can_answer_names_the_setting(said, remedy):
    assert remedy in str(error_for(400, {"message": said})).partition("Fix: ")[2]


def test_a_field_that_was_just_sent_is_not_advised_and_a_models_name_is_no_field():
    said = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    assert "token_limit_field" not in str(error_for(400, {"message": said}, sent={"max_completion_tokens": 9}))
    assert "token_limit_field" in str(error_for(400, {"message": said}, sent={"max_tokens": 9}))
    seed = Endpoint("lab/seed-video", "http://host/v1", None)
    error = status_error(400, {}, b'{"error": {"message": "lab/seed-video is busy dreaming"}}', seed)
    assert "Fix" not in str(error)


@pytest.mark.parametrize("ending", [".", "..", "...", "!", ""])
def test_the_servers_message_and_the_fix_are_two_sentences(ending):
    error = error_for(400, {"message": f"no temperature{ending}"})
    assert re.search(r"\.\.(?<!\.\.\.) Fix|\.{4,} Fix", str(error)) is None


SHAPES = [
    [{"error": {"message": "why"}}],
    {"error": {"message": "why"}},
    {"error": "why"},
    {"message": "why"},
    {"detail": "why"},
]


@pytest.mark.parametrize("body", [*SHAPES, {"error": {"detail": "why"}}])
def test_the_message_is_found_in_the_shapes_that_servers_use(body):
    assert str(status_error(400, {}, json.dumps(body).encode(), ENDPOINT)).endswith("with 400: why")


def test_only_long_keys_are_cut_out_of_replies():
    assert endpoint("sk-planted-0123456789").scrub("a sk-planted-0123456789 b") == "a [key] b"
    assert endpoint("EMPTY").scrub("EMPTY cup") == "EMPTY cup"
    assert endpoint("").scrub("cup") == "cup"
    assert "planted" not in repr(ENDPOINT)


@pytest.mark.parametrize(("status", "answered"), [(401, False), (403, False), (403, True)])
def test_the_message_about_a_wrong_key_is_not_repeated_since_it_may_hold_parts_of_the_key(status, answered):
    error = error_for(status, {"message": "wrong key sk-pl********6789"}, answered=answered)
    assert "6789" not in str(error)
    assert answered or "SOME_KEY" in str(error)


def test_half_a_surrogate_pair_in_an_error_becomes_a_character_that_files_can_hold():
    assert str(status_error(400, {}, b'{"error": {"message": "odd \\ud800"}}', ENDPOINT)).endswith("with 400: odd ?")


def test_a_key_at_the_edge_of_a_quote_is_cut_out_too():
    key = "sk-planted-0123456789"
    for shift in range(60):
        assert "sk-pl" not in endpoint(key).quote("x" * (300 - shift) + key)
        assert "sk-pl" not in endpoint(key).quote(" " * (3000 - shift) + key)


def test_output_tokens_are_dealt_out_by_length():
    reply = {
        "choices": [{"message": {"content": "x" * length}} for length in (9, 29, 0)],
        "usage": {"prompt_tokens": 5, "completion_tokens": 41},
    }
    read = read_reply(json.dumps(reply).encode(), RULES, ENDPOINT, 3)
    assert [choice.output_tokens for choice in read.choices] == [10, 30, 1]
    assert [choice.input_tokens for choice in read.choices] == [5, 0, 0]


def read_one(body: bytes):
    read = read_reply(body, RULES, ENDPOINT, 1)
    [choice] = read.choices
    assert isinstance(choice, Completion)
    return choice


@given(st.text(st.characters(), max_size=30) | st.text(st.sampled_from('\ud83d\ude00\\"u\U0001f600d8'), max_size=30))
def test_only_half_surrogate_pairs_are_replaced(content):
    body = json.dumps({"choices": [{"message": {"content": content}}]}).encode()
    text = read_one(body).text
    # Python's own codec as the reference: it joins what pairs up, and replaces the rest (spaces before are no answer's)
    wanted = content.encode("utf-16", "surrogatepass").decode("utf-16", "replace").lstrip(" ")
    assert text == wanted


@pytest.mark.parametrize(
    ("usage", "wanted"),
    [
        ({"prompt_tokens": "12", "completion_tokens": 5.0}, (12, 5)),
        ({"prompt_tokens": 10**400, "completion_tokens": -5, "total_tokens": 10**18}, (None, None)),
        ({"prompt_tokens": 10, "total_tokens": 2**53 + 1}, (10, None)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 52}, (10, 42)),  # the rest is reasoning
        ({"prompt_tokens": 10, "total_tokens": 4}, (10, None)),
        ({"prompt_tokens": True, "completion_tokens": "many"}, (None, None)),
        (None, (None, None)),
    ],
)
def test_usage_is_read_as_far_as_it_goes(usage, wanted):
    choice = read_one(json.dumps({"choices": [{"message": {"content": "left"}}], "usage": usage}).encode())
    assert (choice.text, choice.input_tokens, choice.output_tokens) == ("left", *wanted)


def test_a_count_of_more_digits_than_python_reads_costs_only_itself():
    body = b'{"choices": [{"message": {"content": "left"}}], "usage": {"prompt_tokens": 1%s, "completion_tokens": 4}}'
    choice = read_one(body % (b"0" * 9000))
    assert (choice.text, choice.input_tokens, choice.output_tokens) == ("left", None, 4)


@given(values | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False))
def test_no_usage_record_discards_an_answer_or_gives_an_unbounded_count(usage):
    for value in (usage, {"prompt_tokens": usage, "completion_tokens": usage, "total_tokens": usage}):
        body = json.dumps({"choices": [{"message": {"content": "left"}}], "usage": value})
        assume("Infinity" not in body)  # which JSON does not have
        choice = read_one(body.encode())
        assert choice.text == "left"
        for count in (choice.input_tokens, choice.output_tokens):
            assert count is None or 0 <= count <= 2**53
