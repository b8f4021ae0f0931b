"""Reading JSON and times out of answers: which text can be written down, and how much is read again."""

import pytest

from barista_bench.benchmarks.kinds.spans import MAX_TEXT, read_seconds
from barista_bench.benchmarks.parsing import MAX_WASTED, is_text, json_arrays


def test_text_is_what_has_a_utf_8_form() -> None:
    assert [chr(code) for code in range(0xD700, 0xE100) if not is_text(f"a{chr(code)}")] == [
        chr(code) for code in range(0xD800, 0xE000)
    ]


def test_every_array_of_a_text_is_read_from_its_first_character_to_its_last() -> None:
    assert list(json_arrays("[1] then [2]")) == [[1], [2]]


def test_arrays_inside_others_are_read_again_within_the_bound_on_all_reading() -> None:
    text = "[" * 50 + f'"{"x" * 300_000}"' + "]" * 50
    assert 0 <= sum(1 for _ in json_arrays(text, nested=True)) * 300_000 - MAX_WASTED < 300_000


def test_brackets_that_lead_nowhere_cost_what_is_read_of_them_wherever_they_stand() -> None:
    assert list(json_arrays("x" * 49_000 + "[ " * 30 + "[1]")) == [[1]]


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
        *((text, 12.5) for text in ("12.5 s", "12.5S", "12.5 sec", "12.5 secs", "12.5 seconds.", " 0:12.5 ", 12.5)),
        *((text, None) for text in ("0:1:2:3", "-1", "1e3", "٣", "nan", "", "00:61.5x", None, True, [1], 10**400)),
    ],
)
def test_seconds_end_at_59_and_so_do_minutes_below_an_hour_hand(text: object, seconds: float | None) -> None:
    assert read_seconds(text) == seconds


@pytest.mark.parametrize("text", ["12.5", "0:12.5"])
def test_a_time_is_read_out_of_as_many_characters_as_are_allowed_and_no_more(text: str) -> None:
    assert read_seconds(text.rjust(MAX_TEXT)) == 12.5
    assert read_seconds(text.rjust(MAX_TEXT + 1)) is None
