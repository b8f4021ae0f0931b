"""What a served model answers: statuses, reasoning, structured output and log-probabilities."""

import json

import pytest

from barista_bench.models import Completion, GenerationConfig
from tests.models.served_kit import GREEDY, SAMPLED, answer, load, request
from tests.served_standin import Fault, ServedStandIn, change_message

pytestmark = pytest.mark.usefixtures("short_waits")


PARTS = [{"type": "text", "text": "le"}, {"type": "other"}, {"type": "text", "text": "ft"}]
CUT = {"finish_reason": "length"}
ANSWERS = {
    "a refusal keeps its words": ({"content": None, "refusal": "No."}, {}, ("No.", None, "refusal")),
    "a filtered answer keeps what was written": (
        {"content": "The cu", "finish_reason": "content_filter"},
        *({}, ("The cu", None, "refusal")),
    ),
    "cut off by the token limit": ({"content": "The cu", **CUT}, {}, ("The cu", None, "length")),
    "cut off while thinking": ({"content": None, "reasoning_content": "Or", **CUT}, {}, ("", "Or", "thinking")),
    "reasoning in a field": ({"content": "left", "reasoning_content": "It is."}, {}, ("left", "It is.", "stop")),
    "reasoning in another field": ({"content": "left", "reasoning": "It is."}, {}, ("left", "It is.", "stop")),
    "reasoning within the answer": (
        {"content": "<t>Hm.</t>left"},
        *({"think_tags": ("<t>", "</t>")}, ("left", "Hm.", "stop")),
    ),
    "thinking that never ends": ({"content": "<think>or", "finish_reason": "stop"}, {}, ("", "or", "thinking")),
    "thinking that the template opened": (
        {"content": "or", **CUT},
        {"prompt_opens_thinking": True},
        ("", "or", "thinking"),
    ),
    "an answer in parts": ({"content": PARTS}, {}, ("left", None, "stop")),
}
"""What changes in the reply; settings; text, reasoning and finish reason."""


@pytest.mark.parametrize(("changes", "settings", "read"), ANSWERS.values(), ids=ANSWERS)
def test_text_reasoning_and_end_of_an_answer(changes, settings, read):
    entry = answer(Fault("reply", change=change_message(**changes)), **settings)
    assert (entry.text, entry.reasoning, entry.finish_reason) == read


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


def test_a_stop_string_that_a_server_leaves_in_is_cut_off():
    config = GenerationConfig(temperature=0.0, stop=("END", "\n\n"))
    assert answer(Fault("reply", change=change_message(content="left END right")), config).text == "left "


def test_a_schema_that_the_server_refuses_is_a_failure_that_says_so():
    said = b'{"error": {"message": "response_format is not supported"}}'
    with ServedStandIn(lambda call: Fault("status", 400, body=said)) as server:
        [[entry]] = load(server, structured_output=True).generate([request(seeds=(1,), schema={})], GREEDY)
    assert server.calls[0].body["response_format"]["type"] == "json_schema"
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
