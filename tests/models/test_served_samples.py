"""Samples of one request: one call where the server knows `n`, and tokens counted once."""

import json

import pytest

from barista_bench.models import Completion, Failure
from tests.models.served_kit import GREEDY, SAMPLED, load, only, request
from tests.served_standin import Fault, ServedStandIn

pytestmark = pytest.mark.usefixtures("short_waits")


def test_samples_of_a_request_share_a_call_whose_tokens_are_counted_once():
    with ServedStandIn() as server:
        model = load(server)
        [entries] = model.generate([request()], SAMPLED)
    [call] = server.calls
    assert (call.body["n"], call.body["seed"]) == (3, 11)
    assert [entry.input_tokens for entry in entries] == [100, 0, 0]
    assert sum(entry.output_tokens for entry in entries) == 21
    assert model.state.served_as == ["m-2026"]


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
    with ServedStandIn(only(0, Fault("status", 400))) as server:
        model = load(server, max_concurrency=1)
        # One after the other: which of two waiting requests is sent first is the machine's choice.
        [bad] = model.generate([request(0)], SAMPLED)
        [good] = model.generate([request(1)], SAMPLED)
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
