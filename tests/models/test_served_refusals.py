"""A server refuses one request, or every one, which ends the run; and no key is ever shown."""

import json
import logging
import re
import threading
import traceback

import pytest

from barista_bench.errors import ModelError
from barista_bench.models import Completion, Failure, GenerationConfig
from barista_bench.models.served import client as served_client
from barista_bench.models.served.errors import status_error
from barista_bench.models.served.model import ServedModel
from barista_bench.models.served.state import FIRST_LIMIT
from tests.models.served_kit import GREEDY, SAMPLED, ask, count_outcomes, drain, load, only, request
from tests.served_standin import Fault, ServedStandIn, change_message

pytestmark = pytest.mark.usefixtures("short_waits")

KEY = "sk-planted-0123456789abcdef"


@pytest.mark.parametrize("status", [400, 413, 422])
def test_only_a_refused_request_fails_and_at_once(status):
    answers, calls = ask(only(3, Fault("status", status)), [request(n, (1,)) for n in range(6)], GREEDY)
    assert [isinstance(entries[0], Failure) for entries in answers] == [n == 3 for n in range(6)]
    assert f"refused the request with {status}: made to fail" in answers[3][0].error
    assert len(calls) == 6


MODERATED = {
    "error": {
        "code": 403,
        "message": 'some/model requires moderation on Host. Your input was flagged for "violence".',
        "metadata": {"reasons": ["violence"], "flagged_input": "Where is the kn...", "provider_name": "Host"},
    }
}


@pytest.mark.parametrize("how", ["status", "raw"])
def test_a_403_of_a_moderator_refuses_that_request_even_if_it_comes_first(how):
    fault = Fault(how, 403, body=json.dumps(MODERATED).encode())
    (first, second), calls = ask(only(0, fault), [request(0), request(1)], SAMPLED, max_concurrency=1)
    assert first == [Completion("", finish_reason="refusal")] * 3
    assert [entry.finish_reason for entry in second] == ["stop"] * 3
    assert len(calls) == 2


@pytest.mark.parametrize("how", ["status", "raw"])
def test_another_403_after_an_answer_fails_only_that_request_and_at_once(how):
    fault = Fault(how, 403, body=b'{"error": {"message": "pictures of this size are for members only", "code": 403}}')
    answers, calls = ask(only(3, fault), [request(n, (1,)) for n in range(6)], GREEDY, max_concurrency=1)
    assert [isinstance(entries[0], Failure) for entries in answers] == [n == 3 for n in range(6)]
    assert "refused the request with 403: pictures of this size are for members only" in answers[3][0].error
    assert len(calls) == 6


def test_a_403_before_any_answer_is_about_the_key_and_stops_the_run():
    with ServedStandIn(lambda call: Fault("status", 403)) as server:
        got, error = drain(load(server, max_concurrency=1).stream([request(n, (1,)) for n in range(6)], GREEDY))
    assert got == []
    assert "requires a key (403), and none was sent" in str(error)
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}, "refused our key .*Fix: .*PLANTED"),
        (404, {"error": {"message": "The model `m` does not exist", "code": "model_not_found"}}, "does not exist"),
        (400, {"error": {"message": "gone", "code": "model_not_found"}}, "no such model"),
        (402, {"error": "pay"}, "quota"),
        (429, {"error": {"message": "no money", "code": "insufficient_quota"}}, "quota"),
        (307, {}, "base_url"),
    ],
)
def test_an_error_that_every_request_would_meet_stops_the_run_and_loses_no_answer(status, body, said, monkeypatch):
    monkeypatch.setenv("PLANTED", KEY)
    late = only(9, Fault("status", status, {"Location": "/v2"}, json.dumps(body).encode()))
    with ServedStandIn(late) as server:
        model = load(server, api_key_env="PLANTED", max_concurrency=1)
        got, error = drain(model.stream([request(n, (1,)) for n in range(20)], GREEDY))
    assert len(got) == len(server.calls) - 1 >= 5
    assert all(isinstance(answered.completions[0], Completion) for answered in got)
    assert re.search(said, str(error))
    assert server.url in str(error)
    assert "Fix: " in str(error)
    assert sum(late(call) is not None for call in server.calls) == 1


@pytest.mark.full
def test_after_a_refusal_nothing_is_sent_and_late_replies_come_before_the_error(monkeypatch):
    all_sent, refused, outcomes = threading.Barrier(FIRST_LIMIT), threading.Event(), count_outcomes(monkeypatch)

    def read_refusal(*args, **options):
        refused.set()
        return status_error(*args, **options)

    monkeypatch.setattr(served_client, "status_error", read_refusal)

    def decide(call):
        all_sent.wait(60)
        if call is server.calls[0]:
            return Fault("status", 401)
        assert refused.wait(60)

    def source():
        yield from (request(n, (1,)) for n in range(6))  # more than are sent at once
        assert all(outcomes.acquire(timeout=60) for _ in range(6))  # before the next request is taken

    with ServedStandIn(decide) as server:
        got, error = drain(load(server).stream(source(), GREEDY))
    assert "requires a key" in str(error)
    assert len(got) == FIRST_LIMIT - 1
    assert len(server.calls) == FIRST_LIMIT


def test_a_server_that_is_down_stops_the_run_instead_of_failing_it_all(monkeypatch):
    monkeypatch.setattr(served_client, "_FIRST_BACKOFF", 0.0001)
    with ServedStandIn() as server:
        pass  # no server listens at its address any more
    taken = []

    def many():
        for n in range(1000):
            taken.append(n)
            yield request(n, (1,))

    model = ServedModel.load("m", base_url="http://127.0.0.1:9/v1", api_key_env=None, max_attempts=2)
    failed, error = drain(model.stream(many(), GREEDY))
    assert re.search("32 requests in a row failed .*resume the run", str(error))
    assert len(failed) == 31
    assert all(isinstance(answered.completions[0], Failure) for answered in failed)
    assert len(taken) < 60
    assert server.calls == []


def test_failures_between_answers_do_not_stop_the_run():
    def every_other(call):
        return Fault("status", 500) if int(re.findall(r"(\d+)\?", json.dumps(call.body))[-1]) % 2 else None

    requests = [request(n, (1,)) for n in range(50)]
    answers, _ = ask(every_other, requests, GREEDY, max_concurrency=1, max_attempts=1)
    assert [isinstance(entries[0], Failure) for entries in answers] == [False, True] * 25


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


def test_no_credential_of_another_variable_is_sent(monkeypatch):
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"Authorization: Bearer {KEY}\nX-Gate: {KEY}")
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # would be told the key, if it were asked
    monkeypatch.setenv("ANOTHER", "sk-another-0123456789")
    with ServedStandIn() as server:
        load(server).generate([request(seeds=(1,))], GREEDY)
        load(server, api_key_env="ANOTHER").generate([request(seeds=(1,))], GREEDY)
    assert [call.headers["authorization"] for call in server.calls] == ["Bearer none", "Bearer sk-another-0123456789"]
    assert KEY not in str([call.headers for call in server.calls])


def test_a_redirect_is_not_followed_and_the_other_server_gets_no_key(monkeypatch):
    monkeypatch.setenv("PLANTED", KEY)
    with ServedStandIn() as other:
        away = Fault("status", 307, {"Location": f"{other.url}/chat/completions"})
        with ServedStandIn(lambda call: away) as server, pytest.raises(ModelError, match="the server redirects"):
            load(server, api_key_env="PLANTED").generate([request(seeds=(1,))], GREEDY)
    assert server.calls
    assert not other.calls


def test_a_server_that_echoes_the_key_in_its_log_probabilities_gets_it_into_no_answer(monkeypatch):
    monkeypatch.setenv("PLANTED", KEY)
    config = GenerationConfig(temperature=0.0, top_logprobs=2)
    entries = []
    for said in ("yes", KEY):
        top = [{"token": KEY, "logprob": -1.0, "bytes": None}]
        token = {"token": said, "logprob": -0.1, "bytes": None, "top_logprobs": top}

        def change(reply, said=said, token=token):
            reply["choices"][0]["message"]["content"] = said
            reply["choices"][0]["logprobs"] = {"content": [token]}

        fault = Fault("reply", change=change)
        entries += ask(lambda call, fault=fault: fault, [request(seeds=(1,))], config, api_key_env="PLANTED")[0][0]
    assert [entry.text for entry in entries] == ["yes", "[key]"]
    assert "[key]" in repr(entries[0].logprobs)
    assert KEY not in repr(entries)
