"""Clock times and numbers of seconds at the ends of what is read as one."""

from __future__ import annotations

import pytest

from barista_bench.benchmarks.kinds.spans import MAX_TEXT, read_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0:59.5", 59.5),
        ("0:60", None),
        ("59:59", 3599.0),
        ("60:00", 3600.0),
        ("90:30", 5430.0),
        ("1:59:59", 7199.0),
        ("1:60:00", None),
        ("1:00:60", None),
    ],
)
def test_seconds_end_at_59_and_so_do_minutes_below_an_hour_hand(text: str, seconds: float | None) -> None:
    assert read_seconds(text) == seconds


@pytest.mark.parametrize("text", ["12.5", "0:12.5"])
def test_a_time_is_read_out_of_as_many_characters_as_are_allowed_and_no_more(text: str) -> None:
    assert read_seconds(text.rjust(MAX_TEXT)) == 12.5
    assert read_seconds(text.rjust(MAX_TEXT + 1)) is None
