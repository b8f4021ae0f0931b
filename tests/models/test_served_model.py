"""Answers of a served model: equal to a clean server's whatever goes wrong on the way, and every status right."""

import json
import logging
import re
import threading
import time
import traceback

import pytest
from PIL import Image

from barista_bench.errors import ModelError
from barista_bench.models import Answered, Completion, Failure, GenerationConfig, Request, served_client
from barista_bench.models.served import ServedModel
from barista_bench.models.served_concurrency import FIRST_LIMIT
from barista_bench.prompt import ImagePart, Prompt, TextPart
from tests.served_standin import Fault, ServedStandIn, change_message, expected_text, random_faults

KEY = "sk-planted-0123456789abcdef"
SAMPLED, GREEDY = GenerationConfig(temperature=0.7, max_new_tokens=64), GenerationConfig(temperature=0.0)


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch):
    monkeypatch.setattr(served_client, "_FIRST_BACKOFF", 0.01)


def request(number: int = 0, seeds: tuple[int, ...] = (11, 12, 13), schema=None) -> Request:
    image = Image.new("RGB", (32, 24), (number % 256, 0, 0))
    return Request(f"r{number}", Prompt("", (ImagePart(0), TextPart(f"{number}?"))), (image,), seeds, schema=schema)


def load(server: ServedStandIn, **settings) -> ServedModel:
    return ServedModel.load("m", **{"base_url": server.url, "api_key_env": None, "timeout": 5.0, **settings})


def answer(fault: Fault | None, config: GenerationConfig = GREEDY, **settings) -> Completion | Failure:
    """The answer to one request with one seed, where every attempt meets the fault."""
    with ServedStandIn(lambda call: fault) as server:
        [[entry]] = load(server, **{"max_attempts": 2, **settings}).generate([request(seeds=(1,))], config)
    return entry


def texts(answers) -> list[list[str]]:
    return [[entry.text if isinstance(entry, Completion) else entry.error for entry in entries] for entries in answers]


def drain(stream) -> tuple[list[Answered], ModelError | None]:
    """What a stream gives, and the error that ends it."""
    got: list[Answered] = []
    try:
        for answered in stream:
            got.append(answered)
    except ModelError as error:
        return got, error
    return got, None


# Faults


@pytest.mark.parametrize("config", [SAMPLED, GREEDY], ids=["sampled", "greedy"])
@pytest.mark.parametrize("seed", [1, 2])
def test_with_random_faults_everything_completes_with_a_clean_servers_answers(config, seed):
    asked = [request(n) for n in range(25)]
    with ServedStandIn() as clean:
        wanted = load(clean).generate(asked, config)
    with ServedStandIn(random_faults(seed, share=0.5)) as faulty:
        model = load(faulty, timeout=0.4)
        given = model.generate(asked, config)
    assert given == wanted
    assert len(faulty.calls) > 1.3 * len(clean.calls)
    assert {"429", "500", "503", "timeout", "connection"} & {change.reason for change in model.concurrency_trace}
    seeds = {tuple(json.loads(entry.text)["seed"] for entry in entries) for entries in given}
    assert seeds == ({(11, 12, 13)} if config is SAMPLED else {(None, None, None)})


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault("status", 500), "answered 500: made to fail"),
        (Fault("status", 503, body=b"<html>gone"), "answered 503: <html>gone"),
        (Fault("status", 429), "answered 429"),
        (Fault("hang"), "no answer within 0.2 s"),
        (Fault("slow", seconds=3.0), "no answer within 0.2 s"),
        (Fault("drop"), "the connection failed"),
        (Fault("truncate"), "the connection failed"),
        (Fault("raw", body=b'{"choices": [{"mess'), "no chat completion"),
        (Fault("raw", body=b"[" * 100_000), "no chat completion"),
        (Fault("raw", body=b"\xff\xfe"), "no chat completion"),
        (Fault("raw", body=b'{"choices": []}'), "no choices"),
        (Fault("raw", body=b'{"choices": null}'), "no choices"),
        (Fault("raw", body=b'{"error": {"message": "overloaded", "code": 503}}'), "answered 503: overloaded"),
        (Fault("reply", change=change_message(content=None)), "a message without content"),
        (Fault("reply", change=change_message(content=7)), "no chat completion"),
        (Fault("reply", change=change_message(finish_reason="abort")), "ended with 'abort'"),
    ],
    ids=lambda value: value.kind if isinstance(value, Fault) else value[:20],
)
def test_what_fails_at_every_attempt_is_a_failure_that_says_why(fault, said):
    entry = answer(fault, timeout=0.2 if fault.kind in ("hang", "slow") else 30.0)
    assert isinstance(entry, Failure)
    assert said in entry.error
    assert "the last of 2 attempts" in entry.error


def test_the_attempts_are_bounded():
    with ServedStandIn(lambda call: Fault("status", 500)) as server:
        [[entry]] = load(server, max_attempts=4).generate([request(seeds=(1,))], GREEDY)
    assert isinstance(entry, Failure)
    assert [call.attempt for call in server.calls] == [1, 2, 3, 4]


def test_a_slow_answer_within_the_time_is_an_answer():
    assert isinstance(answer(Fault("slow", seconds=0.3), timeout=5.0), Completion)


def test_an_answer_that_is_too_large_is_not_read(monkeypatch):
    monkeypatch.setattr(served_client, "_MAX_REPLY", 1000)
    entry = answer(Fault("raw", body=b" " * 5000))
    assert isinstance(entry, Failure)
    assert "larger than 1000 bytes" in entry.error


def test_a_compressed_answer_is_not_unpacked():
    with ServedStandIn(headers={"Content-Encoding": "gzip"}) as server:
        [[entry]] = load(server, max_attempts=1).generate([request(seeds=(1,))], GREEDY)
        assert server.calls[0].headers["accept-encoding"] == "identity"
    assert isinstance(entry, Failure)
    assert "compressed" in entry.error


@pytest.mark.parametrize("header", [{"Retry-After": "1"}, {"retry-after-ms": "400"}])
def test_a_429_with_retry_after_is_waited_for_by_all_calls(header):
    with ServedStandIn(lambda call: Fault("status", 429, header) if len(server.calls) == 1 else None) as server:
        answers = load(server, max_concurrency=1).generate([request(n, (1,)) for n in range(3)], GREEDY)
    assert all(isinstance(entries[0], Completion) for entries in answers)
    wanted = float(header.get("Retry-After", 0.4))
    assert server.calls[1].at - server.calls[0].at >= 0.9 * wanted
    assert server.calls[3].at - server.calls[1].at < wanted


def test_a_used_up_allowance_is_waited_for():
    used_up = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "300ms"}
    with ServedStandIn(headers=used_up) as server:
        load(server, max_concurrency=1).generate([request(n, (1,)) for n in range(2)], GREEDY)
    assert server.calls[1].at - server.calls[0].at >= 0.3


# Concurrency


def test_concurrency_climbs_while_the_server_keeps_up_and_stays_below_the_ceiling():
    with ServedStandIn(seconds=0.3) as server:
        load(server, max_concurrency=10).generate([request(n, (1,)) for n in range(40)], GREEDY)
    assert FIRST_LIMIT < server.most_at_once <= 10


def test_a_server_that_can_bear_little_is_asked_little_and_answers_everything():
    with ServedStandIn(capacity=3, seconds=0.06) as server:
        model = load(server, max_concurrency=32)
        answers = model.generate([request(n, (1,)) for n in range(50)], GREEDY)
    assert all(isinstance(entries[0], Completion) for entries in answers)
    trace = model.concurrency_trace
    assert "429" in {change.reason for change in trace}
    assert trace[-1].limit <= 8
    assert len(server.calls) < 100


# Statuses


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


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_request_that_the_server_does_not_take_fails_alone_and_at_once(status):
    def decide(call):
        return Fault("status", status) if "3?" in json.dumps(call.body) else None

    with ServedStandIn(decide) as server:
        answers = load(server).generate([request(n, (1,)) for n in range(6)], GREEDY)
    assert [isinstance(entries[0], Failure) for entries in answers] == [n == 3 for n in range(6)]
    assert f"refused the request with {status}: made to fail" in answers[3][0].error
    assert len(server.calls) == 6


MODERATED = {
    "error": {
        "code": 403,
        "message": 'some/model requires moderation on Host. Your input was flagged for "violence".',
        "metadata": {"reasons": ["violence"], "flagged_input": "Where is the kn...", "provider_name": "Host"},
    }
}


@pytest.mark.parametrize("how", ["status", "raw"])
def test_a_403_of_a_moderator_refuses_that_request_even_if_it_comes_first(how):
    def decide(call):
        said = json.dumps(MODERATED).encode()
        return Fault(how, 403 if how == "status" else 200, body=said) if "0?" in json.dumps(call.body) else None

    with ServedStandIn(decide) as server:
        first, second = load(server, max_concurrency=1).generate([request(0), request(1)], SAMPLED)
    assert first == [Completion("", finish_reason="refusal")] * 3
    assert [entry.finish_reason for entry in second] == ["stop"] * 3
    assert len(server.calls) == 2


@pytest.mark.parametrize("how", ["status", "raw"])
def test_another_403_after_an_answer_fails_that_request_alone_and_at_once(how):
    said = b'{"error": {"message": "image blocked by safety system", "code": 403}}'

    def decide(call):
        return Fault(how, 403 if how == "status" else 200, body=said) if "3?" in json.dumps(call.body) else None

    with ServedStandIn(decide) as server:
        answers = load(server, max_concurrency=1).generate([request(n, (1,)) for n in range(6)], GREEDY)
    assert [isinstance(entries[0], Failure) for entries in answers] == [n == 3 for n in range(6)]
    assert "refused the request with 403: image blocked by safety system" in answers[3][0].error
    assert len(server.calls) == 6


def test_a_403_before_any_answer_is_about_the_key_and_stops_the_run():
    with ServedStandIn(lambda call: Fault("status", 403)) as server:
        got, error = drain(load(server, max_concurrency=1).stream([request(n, (1,)) for n in range(6)], GREEDY))
    assert got == []
    assert "refused our key (403)" in str(error)
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}, "refused our key .*Remedy: .*PLANTED"),
        (404, {"error": {"message": "The model `m` does not exist", "code": "model_not_found"}}, "does not exist"),
        (400, {"error": {"message": "gone", "code": "model_not_found"}}, "no such model"),
        (402, {"error": "pay"}, "quota"),
        (429, {"error": {"message": "no money", "code": "insufficient_quota"}}, "quota"),
        (307, {}, "base_url"),
    ],
)
def test_what_every_request_would_meet_stops_the_run_and_loses_no_answer(status, body, said, monkeypatch):
    monkeypatch.setenv("PLANTED", KEY)

    def decide(call):
        return Fault("status", status, {"Location": "/v2"}, json.dumps(body).encode()) if late(call) else None

    def late(call):
        return "9?" in json.dumps(call.body)

    with ServedStandIn(decide) as server:
        model = load(server, api_key_env="PLANTED", max_concurrency=1)
        got, error = drain(model.stream([request(n, (1,)) for n in range(20)], GREEDY))
    assert len(got) == len(server.calls) - 1 >= 5
    assert all(isinstance(answered.completions[0], Completion) for answered in got)
    assert re.search(said, str(error))
    assert server.url in str(error)
    assert "Remedy: " in str(error)
    assert sum(late(call) for call in server.calls) == 1


def test_after_a_refusal_nothing_more_is_sent_and_what_still_comes_is_handed_out_before_it_is_raised():
    def decide(call):
        refused = call is server.calls[0]
        time.sleep(0.4 if refused else 0.8)
        return Fault("status", 401) if refused else None

    def source():
        yield from (request(n, (1,)) for n in range(6))  # more than are sent at once
        time.sleep(1.5)  # all that were sent have come back when the next one is to be taken

    with ServedStandIn(decide) as server:
        got, error = drain(load(server).stream(source(), GREEDY))
    assert "refused our key" in str(error)
    assert len(got) == FIRST_LIMIT - 1
    assert len(server.calls) == FIRST_LIMIT


def test_a_server_that_is_down_stops_the_run_instead_of_failing_it_all(monkeypatch):
    monkeypatch.setattr(served_client, "_FIRST_BACKOFF", 0.0001)
    with ServedStandIn() as server:
        pass  # nobody listens at its address any more
    taken = []

    def many():
        for n in range(1000):
            taken.append(n)
            yield request(n, (1,))

    model = ServedModel.load("m", base_url="http://127.0.0.1:9/v1", api_key_env=None, max_attempts=2)
    failed, error = drain(model.stream(many(), GREEDY))
    assert re.search("32 requests in a row failed .*start the run again", str(error))
    assert len(failed) == 31
    assert all(isinstance(answered.completions[0], Failure) for answered in failed)
    assert len(taken) < 60
    assert server.calls == []


def test_failures_between_answers_do_not_stop_the_run():
    def every_other(call):
        return Fault("status", 500) if int(re.findall(r"(\d+)\?", json.dumps(call.body))[-1]) % 2 else None

    with ServedStandIn(every_other) as server:
        model = load(server, max_concurrency=1, max_attempts=1)
        answers = model.generate([request(n, (1,)) for n in range(50)], GREEDY)
    assert [isinstance(entries[0], Failure) for entries in answers] == [False, True] * 25


# Samples of one request


def test_samples_of_a_request_share_a_call_whose_tokens_are_counted_once():
    with ServedStandIn() as server:
        model = load(server, price_input=10.0, price_output=20.0)
        [entries] = model.generate([request()], SAMPLED)
    [call] = server.calls
    assert (call.body["n"], call.body["seed"]) == (3, 11)
    assert [entry.input_tokens for entry in entries] == [100, 0, 0]
    assert sum(entry.output_tokens for entry in entries) == 21
    assert (model.state.calls, model.state.input_tokens, model.state.output_tokens) == (1, 100, 21)
    assert model.state.served_as == ["m-2026"]
    assert model.cost(model.state.input_tokens, model.state.output_tokens) == pytest.approx((1000 + 420) / 1e6)


def test_a_seed_is_sent_in_31_bits_and_stays_apart_from_others():
    with ServedStandIn() as server:
        load(server, max_concurrency=1).generate([request(n, (2**62 + n,)) for n in range(3)], SAMPLED)
    assert sorted(call.body["seed"] for call in server.calls) == [0, 1, 2]


def test_a_greedy_request_is_asked_once_and_its_copies_count_no_tokens():
    with ServedStandIn() as server:
        [entries] = load(server).generate([request()], GREEDY)
    [call] = server.calls
    assert "n" not in call.body
    assert len({entry.text for entry in entries}) == 1
    assert [(entry.input_tokens, entry.output_tokens) for entry in entries] == [(100, 7), (0, 0), (0, 0)]


def test_a_server_that_answers_400_to_n_gets_a_call_a_seed_from_then_on(caplog):
    with ServedStandIn(lambda call: Fault("status", 400) if "n" in call.body else None) as server:
        model = load(server, max_concurrency=1)
        answers = model.generate([request(n) for n in range(4)], SAMPLED)
    assert [call.body.get("n", 1) for call in server.calls] == [3] + [1] * 12
    assert [[json.loads(entry.text)["seed"] for entry in entries] for entries in answers] == [[11, 12, 13]] * 4
    assert [r.message for r in caplog.records if "going on with a call for each sample" in r.message] != []
    assert all(entry.input_tokens == 100 for entries in answers for entry in entries)


def test_a_server_that_gives_fewer_choices_is_asked_for_the_rest(caplog):
    def first_only(reply):
        del reply["choices"][1:]

    with ServedStandIn(lambda call: Fault("reply", change=first_only)) as server:
        answers = load(server, max_concurrency=1).generate([request(n) for n in range(2)], SAMPLED)
    assert [call.body.get("n", 1) for call in server.calls] == [3, 1, 1, 1, 1, 1]
    assert [[json.loads(entry.text)["seed"] for entry in entries] for entries in answers] == [[11, 12, 13]] * 2
    assert "it gave 1 of 3 choices" in caplog.text


def test_a_request_that_is_refused_with_and_without_n_says_nothing_about_n():
    with ServedStandIn(lambda call: Fault("status", 400) if "0?" in json.dumps(call.body) else None) as server:
        model = load(server, max_concurrency=1)
        bad, good = model.generate([request(0), request(1)], SAMPLED)
    assert all(isinstance(entry, Failure) for entry in bad)
    assert all(isinstance(entry, Completion) for entry in good)
    assert [call.body.get("n", 1) for call in server.calls] == [3, 1, 3]
    assert model.state.takes_n


def test_a_request_that_is_too_large_is_not_sent_again_for_want_of_n():
    with ServedStandIn(lambda call: Fault("status", 413)) as server:
        [entries] = load(server).generate([request()], SAMPLED)
    assert [type(entry) for entry in entries] == [Failure] * 3
    assert len(server.calls) == 1


def test_one_choice_without_content_is_asked_for_again_alone():
    def second_empty(reply):
        if len(reply["choices"]) > 1:
            reply["choices"][1]["message"]["content"] = None

    with ServedStandIn(lambda call: Fault("reply", change=second_empty)) as server:
        [entries] = load(server).generate([request()], SAMPLED)
    assert [json.loads(entry.text)["seed"] for entry in entries] == [11, 12, 13]
    assert [call.body.get("n", 1) for call in server.calls] == [3, 1]


def test_a_request_without_seeds_is_answered_without_a_call():
    with ServedStandIn() as server:
        assert load(server).generate([request(seeds=())], SAMPLED) == [[]]
    assert server.calls == []


def test_reasoning_that_is_missing_from_the_completion_tokens_is_counted():
    def change(reply):
        reply["usage"] = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 52}

    entry = answer(Fault("reply", change=change))
    assert (entry.input_tokens, entry.output_tokens) == (10, 42)


@pytest.mark.parametrize("odd", [1.5, 10**400, -3, "many", [], {}, True, 2**53 + 1])
def test_a_usage_that_is_none_costs_the_tokens_and_not_the_answer(odd):
    def change(reply):
        reply["usage"] = {"prompt_tokens": odd, "completion_tokens": 7, "total_tokens": odd}

    with ServedStandIn(lambda call: Fault("reply", change=change)) as server:
        model = load(server)
        [[entry]] = model.generate([request(seeds=(1,))], GREEDY)
    assert entry.finish_reason == "stop"
    assert (entry.input_tokens, entry.output_tokens) == (None, 7)
    assert (model.state.input_tokens, model.state.output_tokens) == (0, 7)
    assert len(server.calls) == 1


def test_half_a_surrogate_pair_in_an_answer_becomes_a_character_that_files_can_hold():
    with ServedStandIn(lambda call: Fault("reply", change=change_message(content="left \ud83d cup"))) as server:
        [[entry]] = load(server).generate([request(seeds=(1,))], GREEDY)
    assert entry.text == "left \ufffd cup"
    assert len(server.calls) == 1


# Structured output, log-probabilities


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


# The stream


def test_answers_are_handed_out_as_they_come_and_no_more_is_taken_than_the_window():
    held, most = 0, 0

    def source():
        nonlocal held, most
        for n in range(30):
            held += 1
            most = max(most, held)
            yield request(n, (1,))

    with ServedStandIn(seconds=0.01) as server:
        model = load(server, max_concurrency=4)
        for _ in model.stream(source(), GREEDY):
            held -= 1
    assert held == 0
    assert most <= model.window == 6


def test_what_is_finished_comes_before_the_next_request_is_taken():
    with ServedStandIn() as server:
        model = load(server, max_concurrency=1)
        order = []

        def source():
            for n in range(3):
                order.append(f"take {n}")
                yield request(n, (1,))
                time.sleep(0.3)  # decoding of the next one; the server answers meanwhile

        for answered in model.stream(source(), GREEDY):
            order.append(f"give {answered.request.request_id[1:]}")
            assert answered.seconds > 0
    assert order == ["take 0", "take 1", "give 0", "take 2", "give 1", "give 2"]


def own_threads() -> set[str]:
    """Names of the threads that are not the server's."""
    return {thread.name for thread in threading.enumerate() if "process_request" not in thread.name}


def test_a_consumer_that_stops_leaves_no_call_and_no_thread_behind():
    with ServedStandIn(lambda call: None if "0?" in json.dumps(call.body) else Fault("hang")) as server:
        before = own_threads()
        stream = load(server, timeout=60).stream((request(n, (1,)) for n in range(100)), GREEDY)
        assert next(stream).request.request_id == "r0"
        assert own_threads() > before
        begun = time.monotonic()
        stream.close()
        assert time.monotonic() - begun < 5
        while own_threads() != before and time.monotonic() - begun < 10:
            time.sleep(0.01)  # workers of the event loop end a moment after it
        assert own_threads() == before
        assert len(server.calls) < 12


def test_a_source_that_fails_is_heard_and_leaves_nothing_hanging():
    def source():
        yield request(0, (1,))
        raise OSError("disk gone")

    with ServedStandIn(lambda call: Fault("hang")) as server, pytest.raises(OSError, match="disk gone"):
        list(load(server, timeout=60).stream(source(), GREEDY))


def test_a_prompt_that_does_not_place_its_images_raises_and_names_the_request():
    wrong = Request("odd", Prompt("", (ImagePart(1),)), (Image.new("RGB", (8, 8)),), (1,))
    with ServedStandIn() as server:
        for ask in (lambda: load(server).generate([wrong], GREEDY), lambda: list(load(server).stream([wrong], GREEDY))):
            with pytest.raises(ValueError, match="request odd"):
                ask()
    assert server.calls == []


def test_a_prompt_that_no_json_can_hold_fails_alone():
    odd = Request("odd", Prompt("", (TextPart("half a pair: \ud800"),)), (), (1,))
    with ServedStandIn() as server:
        bad, good = load(server).generate([odd, request(1, (1,))], GREEDY)
    assert "UTF-8" in bad[0].error
    assert isinstance(good[0], Completion)


def test_an_image_that_no_jpeg_can_hold_fails_alone():
    wide = Request("wide", Prompt("", (ImagePart(0),)), (Image.new("RGB", (70_000, 1)),), (1,))
    with ServedStandIn() as server:
        bad, good = load(server).generate([wide, request(1, (1,))], GREEDY)
    assert "wide: its prompt cannot be prepared" in bad[0].error
    assert isinstance(good[0], Completion)


def test_answers_keep_their_order_and_equal_requests_stay_apart():
    with ServedStandIn(random_faults(7, 0.3)) as server:
        asked = [request(n % 3, (n,)) for n in range(12)]
        answers = load(server, timeout=0.3).generate(asked, SAMPLED)
        wanted = [[expected_text(next(c.body for c in server.calls if c.body["seed"] == n))] for n in range(12)]
    assert texts(answers) == wanted


# Secrets


def test_the_key_is_sent_and_appears_nowhere_else(monkeypatch, caplog):
    monkeypatch.setenv("PLANTED", KEY)
    caplog.set_level(logging.DEBUG)
    echo = {"error": {"message": f"bad header Authorization: Bearer {KEY}", "code": KEY}}
    faults = {
        "0?": Fault("status", 500, body=json.dumps(echo).encode()),
        "1?": Fault("status", 422, body=json.dumps(echo).encode()),
        "2?": Fault("raw", body=json.dumps(echo).encode()),
        "3?": Fault("reply", change=change_message(content=f"{KEY}", reasoning_content=KEY)),
        "4?": Fault("reply", change=change_message(finish_reason=KEY)),
        "5?": Fault("drop"),
        "9?": Fault("status", 401, body=json.dumps(echo).encode()),
    }
    with ServedStandIn(lambda call: next((f for k, f in faults.items() if k in json.dumps(call.body)), None)) as server:
        model = load(server, api_key_env="PLANTED", max_attempts=2, max_concurrency=1)
        got, error = drain(model.stream([request(n, (1,)) for n in range(10)], GREEDY))
    assert isinstance(error, ModelError)
    assert error.__cause__ is None
    assert error.__context__ is None
    seen = [repr(answered.completions) for answered in got]
    seen.append("".join(traceback.TracebackException.from_exception(error, capture_locals=True).format()))
    assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"
    assert len(seen) >= 8
    for text in [*seen, caplog.text, repr(model), repr(vars(model)), repr(vars(model.state)), str(model.identity)]:
        assert KEY not in text
    assert "[key]" in "".join(seen)


def test_no_key_is_sent_where_there_is_none(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ServedStandIn() as server:
        load(server, api_key_env=None).generate([request(seeds=(1,))], GREEDY)
    assert KEY not in str(server.calls)
