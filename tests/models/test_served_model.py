"""A served model over a faulty server: clean answers in bounded attempts, as they come, and nothing left behind."""

import json
import threading
import time

import pytest
from PIL import Image

from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from barista_bench.models import Completion, Failure, Request
from barista_bench.models.served import client as served_client
from barista_bench.models.served.state import FIRST_LIMIT
from tests.models.served_kit import GREEDY, SAMPLED, answer, ask, count_outcomes, load, no_fault, request, texts
from tests.served_standin import Fault, ServedStandIn, change_message, expected_text, random_faults

pytestmark = pytest.mark.usefixtures("short_waits")


@pytest.mark.full
@pytest.mark.parametrize("config", [SAMPLED, GREEDY], ids=["sampled", "greedy"])
@pytest.mark.parametrize("seed", [1, 2])
def test_after_random_faults_all_answers_equal_those_of_a_server_without_faults(config, seed):
    asked = [request(n) for n in range(25)]
    with ServedStandIn() as clean:
        wanted = load(clean).generate(asked, config)
    with ServedStandIn(random_faults(seed, fraction=0.5)) as faulty:
        model = load(faulty, timeout=0.4, max_attempts=100)  # a slow machine needs more
        given = model.generate(asked, config)
    assert given == wanted
    assert len(faulty.calls) > 1.3 * len(clean.calls)
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
        (Fault("reply", change=change_message(content=7)), "a message without content"),
        (Fault("reply", change=change_message(finish_reason="abort")), "ended with 'abort'"),
    ],
    ids=lambda value: value.kind if isinstance(value, Fault) else value[:20],
)
def test_a_request_that_fails_at_every_attempt_is_a_failure_with_the_reason(fault, said):
    entry = answer(fault, timeout=0.2 if fault.kind in ("hang", "slow") else 30.0)
    assert said in entry.error
    assert "the last of 2 attempts" in entry.error


def test_the_attempts_are_bounded():
    [[entry]], calls = ask(lambda call: Fault("status", 500), [request(seeds=(1,))], GREEDY, max_attempts=4)
    assert isinstance(entry, Failure)
    assert [call.attempt for call in calls] == [1, 2, 3, 4]


def test_a_slow_answer_within_the_time_is_an_answer():
    assert isinstance(answer(Fault("slow", seconds=0.3), timeout=60.0), Completion)


def test_an_answer_that_is_too_large_is_not_read(monkeypatch):
    monkeypatch.setattr(served_client, "_MAX_REPLY", 1000)
    assert "larger than 1000 bytes" in answer(Fault("raw", body=b" " * 5000)).error


def test_a_compressed_answer_is_not_unpacked():
    with ServedStandIn(headers={"Content-Encoding": "gzip"}) as server:
        [[entry]] = load(server, max_attempts=1).generate([request(seeds=(1,))], GREEDY)
        assert server.calls[0].headers["accept-encoding"] == "identity"
    assert "compressed" in entry.error


@pytest.mark.parametrize("header", [{"Retry-After": "1"}, {"retry-after-ms": "400"}])
@pytest.mark.full
def test_a_429_with_retry_after_is_waited_for_by_all_calls(header):
    with ServedStandIn(lambda call: Fault("status", 429, header) if len(server.calls) == 1 else None) as server:
        model = load(server, max_concurrency=1)
        answers = model.generate([request(n, (1,)) for n in range(3)], GREEDY)
    assert all(isinstance(entries[0], Completion) for entries in answers)
    wanted = float(header.get("Retry-After", 0.4))
    assert server.calls[1].at - server.calls[0].at >= 0.9 * wanted


def test_a_used_up_allowance_is_waited_for():
    used_up = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "300ms"}
    with ServedStandIn(headers=used_up) as server:
        load(server, max_concurrency=1).generate([request(n, (1,)) for n in range(2)], GREEDY)
    assert server.calls[1].at - server.calls[0].at >= 0.3


@pytest.mark.full
def test_concurrency_climbs_while_the_server_keeps_up_and_stays_below_the_ceiling():
    with ServedStandIn(seconds=0.3) as server:
        load(server, max_concurrency=10).generate([request(n, (1,)) for n in range(40)], GREEDY)
    assert FIRST_LIMIT < server.most_at_once <= 10


@pytest.mark.full
def test_a_server_that_can_bear_little_is_asked_little_and_answers_everything():
    with ServedStandIn(capacity=3, seconds=0.06) as server:
        model = load(server, max_concurrency=32)
        answers = model.generate([request(n, (1,)) for n in range(50)], GREEDY)
    assert all(isinstance(entries[0], Completion) for entries in answers)
    assert model.state.limit.calls_allowed <= 8
    assert len(server.calls) < 100


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


@pytest.mark.full
def test_finished_answers_come_before_the_next_request_is_taken(monkeypatch):
    outcomes = count_outcomes(monkeypatch)
    with ServedStandIn() as server:
        model = load(server, max_concurrency=1)
        order = []

        def source():
            for n in range(3):
                order.append(f"take {n}")
                yield request(n, (1,))
                assert outcomes.acquire(timeout=60)  # while the next request is decoded, the server answers

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
        while own_threads() != before and time.monotonic() - begun < 50:  # of the 60 s that a call may take
            time.sleep(0.01)  # workers of the event loop end a moment after it
        assert own_threads() == before
        assert len(server.calls) < 12


def test_an_error_of_the_source_ends_the_stream():
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


@pytest.mark.parametrize(
    ("part", "images", "said"),
    [
        (TextPart("half a pair: \ud800"), (), "UTF-8"),
        (ImagePart(0), (Image.new("RGB", (70_000, 1)),), "odd: its prompt cannot be prepared"),
    ],
    ids=["no text of JSON", "no picture of JPEG"],
)
def test_only_the_request_that_no_call_can_hold_fails(part, images, said):
    odd = Request("odd", Prompt("", (part,)), images, (1,))
    (bad, good), _ = ask(no_fault, [odd, request(1, (1,))], GREEDY)
    assert said in bad[0].error
    assert isinstance(good[0], Completion)


def test_answers_keep_their_order_and_equal_requests_stay_apart():
    requests, settings = [request(n % 3, (n,)) for n in range(12)], {"timeout": 0.3, "max_attempts": 100}
    answers, calls = ask(random_faults(7, 0.3), requests, SAMPLED, **settings)
    assert texts(answers) == [[expected_text(next(c.body for c in calls if c.body["seed"] == n))] for n in range(12)]
