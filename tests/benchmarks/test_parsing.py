"""Reading JSON out of answers: which text can be written down, and how much is read again."""

from __future__ import annotations

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
