"""The adaptive limit, the gate, and the headers by which servers ask for less."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import anyio
import pytest
from hypothesis import given, strategies as st

from barista_bench.models.served.errors import MAX_PAUSE, allowance_pause, duration, retry_after
from barista_bench.models.served.state import FIRST_LIMIT, AdaptiveLimit, Gate


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


def grown(limit: AdaptiveLimit, answers: int) -> AdaptiveLimit:
    for _ in range(answers):
        limit.record_success(limit.now(), limit.calls_allowed)
    return limit


def test_it_starts_low_and_climbs_to_the_ceiling_only_if_it_limits_the_calls():
    limit = AdaptiveLimit(16, Clock())
    assert limit.calls_allowed == FIRST_LIMIT < 16
    assert grown(limit, 12).calls_allowed == 16
    assert grown(limit, 50).calls_allowed == 16
    assert AdaptiveLimit(2).calls_allowed == 2
    held_back_nobody = AdaptiveLimit(16, Clock())
    held_back_nobody.record_success(held_back_nobody.now(), FIRST_LIMIT - 1)
    assert held_back_nobody.calls_allowed == FIRST_LIMIT


def test_after_the_first_congestion_a_window_of_answers_adds_one():
    limit = AdaptiveLimit(64, Clock())
    limit.record_congestion(limit.now(), "429")
    assert limit.calls_allowed == 2
    assert grown(limit, 3).calls_allowed == 3  # 2 + 1/2 + 1/2.5 + ...
    before = grown(limit, 200).calls_allowed
    assert before < grown(limit, before).calls_allowed <= before + 1


def test_failures_of_one_window_halve_it_once():
    limit = grown(AdaptiveLimit(16, Clock()), 12)
    sent = [limit.now() for _ in range(16)]
    for began in sent:
        limit.record_congestion(began, "503")
    assert limit.calls_allowed == 8
    limit.record_congestion(limit.now(), "503")
    assert limit.calls_allowed == 4


@pytest.mark.parametrize("capacity", [1, 5, 20])
def test_concurrency_stays_near_the_capacity_of_the_server(capacity):
    limit, kept = AdaptiveLimit(64, Clock()), []
    for _ in range(200):  # windows of calls; the server takes so many and refuses the others
        began = [limit.now() for _ in range(limit.calls_allowed)]
        for number, moment in enumerate(began):
            limit.record_success(moment, len(began)) if number < capacity else limit.record_congestion(moment, "429")
        kept.append(limit.calls_allowed)
    late = kept[50:]
    assert max(late) <= capacity + 1
    assert sum(late) / len(late) >= 0.6 * capacity


def test_an_answer_to_a_request_sent_before_the_cut_does_not_raise_concurrency_again():
    limit = grown(AdaptiveLimit(16, Clock()), 12)
    sent = limit.now()
    limit.record_congestion(limit.now(), "timeout")
    for _ in range(9):
        limit.record_success(sent, 16)
    assert limit.calls_allowed == 8
    assert grown(limit, 9).calls_allowed == 9


@given(st.lists(st.booleans(), max_size=200), st.integers(1, 40))
def test_it_stays_between_one_and_the_ceiling(outcomes, ceiling):
    limit = AdaptiveLimit(ceiling, Clock())
    for good in outcomes:
        began = limit.now()
        limit.record_success(began, limit.calls_allowed) if good else limit.record_congestion(began, "429")
        assert 1 <= limit.calls_allowed <= ceiling


def test_the_longest_pause_counts_and_none_is_longer_than_the_bound():
    clock = Clock()
    limit = AdaptiveLimit(4, clock)
    limit.pause(5)
    limit.pause(1)
    assert 4.9 < limit.pause_left() < 5
    limit.pause(1e9)
    assert MAX_PAUSE - 1 < limit.pause_left() <= MAX_PAUSE
    clock.now += MAX_PAUSE
    assert limit.pause_left() <= 0


def test_the_gate_admits_no_more_than_allowed_and_wakes_waiting_requests():
    limit = AdaptiveLimit(3)
    most = 0

    async def asked(gate: Gate) -> None:
        nonlocal most
        async with gate.slot() as began:
            most = max(most, gate.in_flight)
            await anyio.sleep(0.001)
            limit.record_success(began, gate.in_flight)

    async def all_of_them() -> None:
        gate = Gate(limit)
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                for _ in range(30):
                    tasks.start_soon(asked, gate)
        assert gate.in_flight == 0

    anyio.run(all_of_them)
    assert most == 3


def test_the_gate_opens_only_after_a_pause():
    limit = AdaptiveLimit(3)
    limit.pause(0.1)

    async def enter() -> None:
        async with Gate(limit).slot():
            assert limit.pause_left() <= 0

    anyio.run(enter)


NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": " 3 "}, 3.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": format_datetime(NOW + timedelta(seconds=30), usegmt=True)}, 30.0),
        ({"retry-after": format_datetime(NOW - timedelta(seconds=30), usegmt=True)}, 0.0),
        ({"retry-after": "999999999999"}, MAX_PAUSE),
        ({"retry-after": format_datetime(NOW + timedelta(days=9), usegmt=True)}, MAX_PAUSE),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "9" * 5000}, MAX_PAUSE),
        ({}, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(headers, seconds):
    assert retry_after(headers, NOW) == seconds


@given(st.text(max_size=80))
def test_no_header_raises_or_asks_for_a_negative_or_endless_wait(text):
    seconds = retry_after({"retry-after": text}, NOW)
    assert seconds is None or 0 <= seconds <= MAX_PAUSE
    length = duration(text)
    assert length is None or 0 <= length <= 86400
    allowance_pause({"x-ratelimit-remaining-requests": text, "x-ratelimit-reset-requests": text}, 1)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "2s"}, 2.0),
        ({"x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": "2s"}, None),
        ({"x-ratelimit-remaining-tokens": "80", "x-ratelimit-reset-tokens": "1m3.5s"}, 63.5),
        ({"x-ratelimit-remaining-tokens": "100", "x-ratelimit-reset-tokens": "1m"}, None),
        ({"x-ratelimit-remaining-requests": "0"}, None),
        (
            {f"x-ratelimit-remaining-{kind}": "0" for kind in ("requests", "tokens")}
            | {"x-ratelimit-reset-requests": "20ms", "x-ratelimit-reset-tokens": "6"},
            6.0,
        ),
    ],
)
def test_an_allowance_that_is_used_up_is_waited_for(headers, wait):
    assert allowance_pause(headers, tokens=100) == wait
