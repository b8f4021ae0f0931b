"""What a served model answers: statuses, reasoning, structured output and log-probabilities."""

import json

import pytest

from barista_bench.models import Completion, Failure, GenerationConfig
from tests.models.served_kit import GREEDY, SAMPLED, answer, load, request
from tests.served_standin import Fault, ServedStandIn, change_message

pytestmark = pytest.mark.usefixtures("short_waits")


def test_a_refusal_keeps_its_words():
    entry = answer(Fault("reply", change=change_message(content=None, refusal="I cannot help with it.")))
    assert (entry.finish_reason, entry.text) == ("refusal", "I cannot help with it.")


def test_a_filtered_answer_is_a_refusal_with_what_was_written():
    entry = answer(Fault("reply", change=change_message(content="The cu", finish_reason="content_filter")))
    assert (entry.finish_reason, entry.text) == ("refusal", "The cu")


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "policy", "code": "content_filter"}},
        {"error": {"message": "policy", "code": "bad", "innererror": {"code": "ResponsibleAIPolicyViolation"}}},
        {"error": {"message": "policy", "type": "x", "code": "content_policy_violation"}},
    ],
)
def test_a_400_for_the_content_policy_refuses_every_sample_and_is_asked_once(body):
    with ServedStandIn(lambda call: Fault("status", 400, body=json.dumps(body).encode())) as server:
        [entries] = load(server).generate([request()], SAMPLED)
    assert entries == [Completion("", finish_reason="refusal")] * 3
    assert len(server.calls) == 1


def test_an_answer_cut_off_by_the_token_limit_says_so():
    assert answer(Fault("reply", change=change_message(finish_reason="length"))).finish_reason == "length"


def test_a_limit_reached_while_thinking_is_a_truncation_and_no_failure():
    change = change_message(content=None, finish_reason="length", reasoning_content="The jug, or")
    entry = answer(Fault("reply", change=change))
    assert (entry.text, entry.finish_reason, entry.reasoning) == ("", "length", "The jug, or")


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_in_a_field_of_its_own_is_kept_apart(field):
    entry = answer(Fault("reply", change=change_message(content="left", **{field: "The cup is left."})))
    assert (entry.text, entry.reasoning) == ("left", "The cup is left.")


def test_reasoning_within_the_answer_is_split_off():
    entry = answer(Fault("reply", change=change_message(content="<t>Hm.</t>left")), think_tags=("<t>", "</t>"))
    assert (entry.text, entry.reasoning) == ("left", "Hm.")


def test_thinking_that_never_ends_is_cut_off_whatever_the_server_says():
    entry = answer(Fault("reply", change=change_message(content="<think>the cup, or", finish_reason="stop")))
    assert (entry.text, entry.reasoning, entry.finish_reason) == ("", "the cup, or", "length")


def test_reasoning_that_the_template_opened_is_no_answer_when_it_is_cut_off():
    fault = Fault("reply", change=change_message(content="The cup, or", finish_reason="length"))
    entry = answer(fault, prompt_opens_thinking=True)
    assert (entry.text, entry.reasoning) == ("", "The cup, or")


def test_a_stop_string_that_a_server_leaves_in_is_cut_off():
    config = GenerationConfig(temperature=0.0, stop=("END", "\n\n"))
    assert answer(Fault("reply", change=change_message(content="left END right")), config).text == "left "


def test_an_answer_in_parts_is_put_together():
    parts = [{"type": "text", "text": "le"}, {"type": "other"}, {"type": "text", "text": "ft"}]
    assert answer(Fault("reply", change=change_message(content=parts))).text == "left"


def test_a_schema_that_the_server_refuses_is_a_failure_that_says_so():
    said = b'{"error": {"message": "response_format is not supported"}}'
    with ServedStandIn(lambda call: Fault("status", 400, body=said)) as server:
        [[entry]] = load(server, structured_output=True).generate([request(seeds=(1,), schema={})], GREEDY)
    assert server.calls[0].body["response_format"]["type"] == "json_schema"
    assert isinstance(entry, Failure)
    assert "structured_output" in entry.error
    assert len(server.calls) == 1


def test_a_server_that_ignores_the_schema_is_warned_of_once(caplog):
    fault = Fault("reply", change=change_message(content="no json"))
    with ServedStandIn(lambda call: fault) as server:
        load(server, structured_output=True).generate([request(n, schema={}) for n in range(5)], GREEDY)
        assert sum("it ignores it" in record.message for record in caplog.records) == 1
        caplog.clear()
        load(server).generate([request(schema={})], GREEDY)
        assert "ignores" not in caplog.text


def logprobs(*tokens: str) -> dict:
    return {
        "content": [
            {"token": t, "logprob": -0.5, "bytes": list(t.encode()), "top_logprobs": [{"token": t, "logprob": -0.5}]}
            for t in tokens
        ]
    }


def test_log_probabilities_are_of_the_answers_tokens_alone():
    tokens = logprobs("<think>", "a yes?", "</think>", "y", "es", "</s>")
    change = change_message(content="<think>a yes?</think>yes", logprobs=tokens)
    entry = answer(Fault("reply", change=change), GenerationConfig(temperature=0.0, top_logprobs=1))
    assert [token.token for token in entry.logprobs] == ["y", "es"]
    assert entry.logprobs[0].logprob == -0.5
    assert entry.logprobs[0].top == (("y", -0.5),)


def test_log_probabilities_that_do_not_spell_the_answer_are_left_out():
    change = change_message(content="yes", logprobs=logprobs("n", "o"))
    assert answer(Fault("reply", change=change), GenerationConfig(temperature=0.0, top_logprobs=1)).logprobs is None
    assert answer(None).logprobs is None
