"""A served model answers all samples in one call: statuses, reasoning, schemas, log-probabilities."""

import json

import pytest

from barista_bench.models import Completion, Failure, GenerationConfig
from tests.models.served_kit import GREEDY, SAMPLED, answer, ask, load, no_fault, only, request
from tests.served_standin import Fault, ServedStandIn, change_message

pytestmark = pytest.mark.usefixtures("short_waits")


CUT = {"finish_reason": "length"}
ANSWERS = {
    "a refusal keeps its words": ({"content": None, "refusal": "No."}, {}, ("No.", None, "refusal")),
    "a filtered answer keeps what was written": (
        {"content": "The cu", "finish_reason": "content_filter"},
        *({}, ("The cu", None, "refusal")),
    ),
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
    "a call of a tool": ({"content": None, "finish_reason": "tool_calls"}, {}, ("", None, "stop")),
    "all of it in reasoning": ({"content": None, "reasoning_content": "It is."}, {}, ("", "It is.", "stop")),
    "tags of another model": ({"content": "[THINK]Hm.[/THINK]left"}, {}, ("left", "Hm.", "stop")),
    "cut off within tags of another model": ({"content": "<thinking>or", **CUT}, {}, ("", "or", "thinking")),
}
"""Changes of the reply; settings; text, reasoning and finish reason. `server_dialects.py` has further forms."""


@pytest.mark.parametrize(("changes", "settings", "read"), ANSWERS.values(), ids=ANSWERS)
def test_text_reasoning_and_end_of_an_answer(changes, settings, read):
    entry = answer(Fault("reply", change=change_message(**changes)), **settings)
    assert (entry.text, entry.reasoning, entry.finish_reason) == read


FILTERS = [{"prompt_index": 0, "content_filter_results": {"hate": {"filtered": True, "severity": "high"}}}]
FILTER_RESULTS = {"content_filter_results": {"hate": {"filtered": True}}}
REFUSED = {
    "by a reason of another name": {"choices": [{"finishReason": "SAFETY", "message": {"content": None}}]},
    "by a stop reason": {"choices": [{"finish_reason": None, "stop_reason": "refusal", "message": {"content": ""}}]},
    "with results of filters": {"choices": [{"message": {"content": None}, "finish_reason": "stop", **FILTER_RESULTS}]},
    "of the prompt, by an earlier Azure": {"choices": [], "prompt_annotations": FILTERS},
    "of the prompt, by Gemini's library": {"prompt_feedback": {"block_reason": "SAFETY"}},
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_a_refusal_within_a_reply_is_one_for_every_sample_and_is_never_asked_again(body):
    fault = Fault("raw", body=json.dumps(body).encode())
    answers, calls = ask(lambda call: fault, [request(seeds=(1,)), request(1, (1,))], SAMPLED)
    assert answers == [[Completion("", finish_reason="refusal")]] * 2
    assert len(calls) == 2


def test_prompt_filters_that_stopped_nothing_are_no_refusal_where_the_answer_is_missing():
    results = [{"content_filter_results": {"hate": {"filtered": False}}}]
    body = {"choices": [], "prompt_filter_results": results}
    assert isinstance(answer(Fault("raw", body=json.dumps(body).encode())), Failure)


def test_one_refusal_in_the_place_of_three_choices_does_not_end_the_calls_for_several(caplog):
    def one_refusal(reply):
        reply["choices"] = [{"finish_reason": "content_filter"}]

    answers, calls = ask(
        only(0, Fault("reply", change=one_refusal)), [request(0), request(1)], SAMPLED, max_concurrency=1
    )
    assert [entry.finish_reason for entry in answers[0]] == ["refusal"] * 3
    assert calls[-1].body["n"] == 3
    assert "going on with a call for each sample" not in caplog.text


def test_a_choice_that_cannot_be_read_costs_no_other_of_its_call():
    def odd_choices(reply):
        reply["choices"][0]["message"] = "no"
        reply["choices"][1]["finish_reason"] = ["stop"]

    [entries], calls = ask(only(0, Fault("reply", change=odd_choices)), [request(0)], SAMPLED, max_attempts=2)
    assert [isinstance(entry, Failure) for entry in entries] == [True, False, False]
    assert [call.body.get("n", 1) for call in calls] == [3, 1, 1]


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"finish_reason": "zorp"}, "ended with 'zorp'"),
        ({"finish_reason": "tool_calls"}, "ended with 'tool_calls'"),
        ({"finish_reason": {"weather": 1}}, "ended with \"{'weather': 1}\""),
        ({"finish_reason": None}, None),
        ({"finish_reason": "end_turn"}, None),
    ],
)
def test_an_answer_that_ended_in_an_odd_way_has_a_note_and_is_warned_of_once(changes, note, caplog):
    fault = Fault("reply", change=change_message(content="left", **changes))
    answers, calls = ask(lambda call: fault, [request(n, (1,)) for n in range(3)], GREEDY)
    assert [(entry.text, entry.note) for [entry] in answers] == [("left", note)] * 3
    assert len(calls) == 3
    assert caplog.text.count("it counts as complete") == bool(note)


@pytest.mark.parametrize("reason", ["abort", "error", "ERROR", {"type": "abort"}])
def test_a_broken_off_reply_is_asked_again(reason):
    broken = Fault("reply", change=change_message(content="le", finish_reason=reason))
    [[entry]], calls = ask(lambda call: broken if call.attempt == 1 else None, [request(seeds=(1,))], GREEDY)
    assert (entry.finish_reason, len(calls)) == ("stop", 2)


def test_a_stop_string_that_a_server_leaves_in_is_cut_off():
    config = GenerationConfig(temperature=0.0, stop=("END", "\n\n"))
    assert answer(Fault("reply", change=change_message(content="left END right")), config).text == "left "


def test_a_schema_that_the_server_refuses_is_a_failure_that_says_so():
    fault = Fault("status", 400, body=b'{"error": {"message": "response_format is not supported"}}')
    [[entry]], [call] = ask(lambda call: fault, [request(seeds=(1,), schema={})], GREEDY, structured_output=True)
    assert call.body["response_format"]["type"] == "json_schema"
    assert "structured_output" in entry.error


def test_a_server_that_ignores_the_schema_is_warned_of_once(caplog):
    fault = Fault("reply", change=change_message(content="no json"))
    ask(lambda call: fault, [request(n, schema={}) for n in range(5)], GREEDY, structured_output=True)
    assert sum("it ignores it" in record.message for record in caplog.records) == 1
    caplog.clear()
    ask(lambda call: fault, [request(schema={})], GREEDY)
    assert "ignores" not in caplog.text


def logprobs(*tokens: str) -> dict:
    return {
        "content": [
            {"token": t, "logprob": -0.5, "bytes": list(t.encode()), "top_logprobs": [{"token": t, "logprob": -0.5}]}
            for t in tokens
        ]
    }


def test_log_probabilities_are_only_of_the_answers_tokens():
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


def test_samples_of_a_request_share_a_call_and_its_tokens_are_counted_once():
    with ServedStandIn() as server:
        model = load(server)
        [entries] = model.generate([request()], SAMPLED)
    [call] = server.calls
    assert (call.body["n"], call.body["seed"]) == (3, 11)
    assert [entry.input_tokens for entry in entries] == [100, 0, 0]
    assert sum(entry.output_tokens for entry in entries) == 21
    assert model.state.served_as == ["m-2026"]


def test_a_seed_is_sent_in_31_bits_and_stays_apart_from_others():
    _, calls = ask(no_fault, [request(n, (2**62 + n,)) for n in range(3)], SAMPLED, max_concurrency=1)
    assert sorted(call.body["seed"] for call in calls) == [0, 1, 2]


def test_a_greedy_request_is_asked_once_and_its_copies_count_no_tokens():
    [entries], [call] = ask(no_fault, [request()], GREEDY)
    assert "n" not in call.body
    assert len({entry.text for entry in entries}) == 1
    assert [(entry.input_tokens, entry.output_tokens) for entry in entries] == [(100, 7), (0, 0), (0, 0)]


def test_a_server_that_answers_400_to_n_gets_a_call_a_seed_from_then_on(caplog):
    no_n = lambda call: Fault("status", 400) if "n" in call.body else None  # noqa: E731
    answers, calls = ask(no_n, [request(n) for n in range(4)], SAMPLED, max_concurrency=1)
    assert [call.body.get("n", 1) for call in calls] == [3] + [1] * 12
    assert [[json.loads(entry.text)["seed"] for entry in entries] for entries in answers] == [[11, 12, 13]] * 4
    assert [r.message for r in caplog.records if "going on with a call for each sample" in r.message] != []
    assert all(entry.input_tokens == 100 for entries in answers for entry in entries)


def test_a_server_that_gives_fewer_choices_is_asked_for_the_rest(caplog):
    def first_only(reply):
        del reply["choices"][1:]

    fault = Fault("reply", change=first_only)
    answers, calls = ask(lambda call: fault, [request(n) for n in range(2)], SAMPLED, max_concurrency=1)
    assert [call.body.get("n", 1) for call in calls] == [3, 1, 1, 1, 1, 1]
    assert [[json.loads(entry.text)["seed"] for entry in entries] for entries in answers] == [[11, 12, 13]] * 2
    assert "it gave 1 of 3 choices" in caplog.text


def test_a_request_that_is_refused_with_and_without_n_says_nothing_about_n():
    with ServedStandIn(only(0, Fault("status", 400))) as server:
        model = load(server, max_concurrency=1)
        # One after the other: which of two waiting requests is sent first is the machine's choice.
        [bad] = model.generate([request(0)], SAMPLED)
        [good] = model.generate([request(1)], SAMPLED)
    assert all(isinstance(entry, Failure) for entry in bad)
    assert all(isinstance(entry, Completion) for entry in good)
    assert [call.body.get("n", 1) for call in server.calls] == [3, 1, 3]
    assert model.state.takes_n


def test_a_request_that_is_too_large_is_sent_once():
    [entries], calls = ask(lambda call: Fault("status", 413), [request()], SAMPLED)
    assert ([type(entry) for entry in entries], len(calls)) == ([Failure] * 3, 1)


def test_only_the_choice_without_content_is_asked_again():
    def second_empty(reply):
        if len(reply["choices"]) > 1:
            reply["choices"][1]["message"]["content"] = None

    [entries], calls = ask(lambda call: Fault("reply", change=second_empty), [request()], SAMPLED)
    assert [json.loads(entry.text)["seed"] for entry in entries] == [11, 12, 13]
    assert [call.body.get("n", 1) for call in calls] == [3, 1]


def test_a_request_without_seeds_is_answered_without_a_call():
    assert ask(no_fault, [request(seeds=())], SAMPLED) == ([[]], [])
