"""Options of tasks: what a value may be, and what pairs on a command line say."""

import pytest
from hypothesis import given, strategies as st

from barista_bench.benchmarks import parse_pairs
from barista_bench.benchmarks.tog_bench.columns import TogSampling
from barista_bench.core.options import MAX_NUMBER, Option
from barista_bench.errors import ConfigError

ANY = Option(0.5, "anything", "scores")
WHOLE = Option(1, "how many", "prompt")


@pytest.mark.parametrize(
    ("value", "only_whole"),
    [
        *(
            (value, False)
            for value in (float("inf"), -float("inf"), float("nan"), 10**400, -(10**400), True, None, [1])
        ),
        *((value, True) for value in (10**5000, -MAX_NUMBER, MAX_NUMBER, 1.0)),
    ],
    ids=type,
)
def test_a_number_that_no_run_file_could_hold_is_refused_by_name(value: object, only_whole: bool) -> None:
    with pytest.raises(ConfigError, match=r"option count is .*give --option count=VALUE, a whole number: how many"):
        WHOLE.checked("count", value)
    if not only_whole:
        with pytest.raises(ConfigError, match=r"option threshold is .*--option threshold=VALUE, a number: anything"):
            ANY.checked("threshold", value)


@given(st.integers(-(2**62), 2**62))
def test_whole_numbers_are_taken_where_numbers_are_wanted(value: int) -> None:
    assert WHOLE.checked("count", value) == value
    assert ANY.checked("threshold", value) == float(value)


@pytest.mark.parametrize(
    "pairs", [["a=1", "a=2"], ["a.b=1", "a=2"], ["a=2", "a.b=1"], ["a.b=1", "a.b=2"], ["=3"], ["a"], ["=" * 5000]]
)
def test_pairs_that_contradict_each_other_or_name_nothing_are_refused(pairs: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"Fix") as caught:
        parse_pairs(pairs)
    assert len(str(caught.value)) < 400
    with pytest.raises(ConfigError, match=r"rate is nan.*Fix"):
        TogSampling().with_overrides({"rate": float("nan")})


def test_a_pair_may_be_said_twice_and_an_absurd_value_is_text() -> None:
    assert parse_pairs(["a=1", "a=1", "b.c=x"]) == {"a": 1, "b": {"c": "x"}}
    deep, long = "[" * 100_000, "9" * 6000
    assert parse_pairs([f"a={deep}", f"b={long}"]) == {"a": deep, "b": long}
