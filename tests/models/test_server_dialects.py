"""In every dialect, an answer is kept, a refusal is a refusal, and no answered request is sent again."""

import re
from collections.abc import Sequence

import pytest

from barista_bench.models import Completion, Failure
from tests.models.served_kit import GREEDY, ask, request
from tests.models.server_dialects import Made, random_reply
from tests.served_standin import Call, Fault

pytestmark = pytest.mark.usefixtures("short_waits")


def answers_to(replies: Sequence[Made]) -> tuple[list[Completion | Failure], int]:
    """The entries that a served model makes of these replies, one a request, and how many calls it took."""

    def reply(call: Call) -> Fault:
        (number,) = re.findall(r"(\d+)\?", str(call.body["messages"][-1]["content"][-1]))
        made = replies[int(number)]
        return Fault("raw", body=made.body) if made.status == 200 else Fault("status", made.status, body=made.body)

    answers, calls = ask(reply, [request(number, (1,)) for number in range(len(replies))], GREEDY, max_attempts=3)
    return [entry for (entry,) in answers], len(calls)


def check_series(seed: int, count: int) -> None:
    replies = [random_reply(seed, number) for number in range(count)]
    entries, calls = answers_to(replies)
    for number, (made, entry) in enumerate(zip(replies, entries, strict=True)):
        where = f"seed {seed}, reply {number} ({made.dialect}, {made.status}): {made.body.decode()}"
        assert isinstance(entry, Completion), f"{where}: {entry}"
        assert entry.finish_reason == made.outcome, where
        assert made.outcome == "refusal" or entry.text == made.text, where
        assert bool(entry.note) == made.note, where
    assert calls == count


def test_of_200_random_replies_answers_are_kept_refusals_count_and_nothing_is_asked_twice() -> None:
    check_series(0, 200)
