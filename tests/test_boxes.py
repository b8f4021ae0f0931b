"""Boxes: one place converts them, and there and back is the same box."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, strategies as st

from barista_bench.benchmarks import parse_pairs
from barista_bench.benchmarks.tog_bench.columns import TogSampling
from barista_bench.core.boxes import (
    BOX_ORDERS,
    LARGEST,
    BoxFormat,
    describe_format,
    four_numbers,
    from_grid,
    read_box,
    to_grid,
    write_box,
)
from barista_bench.core.options import MAX_NUMBER, Option
from barista_bench.errors import ConfigError

WIDTH, HEIGHT = 1280, 720
FORMATS = [BoxFormat(order, scale) for order in BOX_ORDERS for scale in (1000, 1, None)]
inside = st.tuples(st.floats(0, WIDTH), st.floats(0, HEIGHT), st.floats(0, WIDTH), st.floats(0, HEIGHT))


@pytest.mark.parametrize("box_format", FORMATS)
@given(box=inside)
def test_a_written_box_is_read_back_within_the_rounding_of_its_format(box_format: BoxFormat, box: tuple) -> None:
    read = read_box(write_box(box, box_format, WIDTH, HEIGHT), box_format, WIDTH, HEIGHT)
    step = {1000: WIDTH / 2000, 1: WIDTH / 20000, None: 0.5}[box_format.scale]
    assert all(abs(a - b) <= step + 1e-6 for a, b in zip(box, read, strict=True))


@pytest.mark.parametrize("box_format", FORMATS)
@given(box=st.tuples(*[st.floats(-5000, 5000)] * 4))
def test_a_box_written_exactly_is_read_back_as_it_is(box_format: BoxFormat, box: tuple) -> None:
    written = write_box(box, box_format, WIDTH, HEIGHT, exact=True)
    assert read_box(written, box_format, WIDTH, HEIGHT) == pytest.approx(box, abs=1e-9)


@pytest.mark.parametrize("use", [write_box, partial(write_box, exact=True), read_box])
def test_an_unknown_box_order_raises_an_error(use: Callable[..., object]) -> None:
    unknown = BoxFormat("xxyy", 1000)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="xxyy"):
        use((1, 2, 3, 4), unknown, WIDTH, HEIGHT)


@given(box=inside)
def test_the_grid_of_the_release_clamps_and_rounds(box: tuple) -> None:
    grid = to_grid(box, WIDTH, HEIGHT)
    assert all(isinstance(value, int) and 0 <= value <= 1000 for value in grid)
    assert all(abs(a - b) <= WIDTH / 2000 + 1e-6 for a, b in zip(from_grid(grid, WIDTH, HEIGHT), box, strict=True))
    assert to_grid((-50, -50, 5000, 5000), WIDTH, HEIGHT) == [0, 0, 1000, 1000]


@pytest.mark.parametrize("box_format", FORMATS)
def test_every_format_is_described_and_written_in_its_order(box_format: BoxFormat) -> None:
    text, written = describe_format(box_format), write_box((128, 0, 640, 360), box_format, WIDTH, HEIGHT)
    first, second = ("y_min", "x_min") if box_format.order == "yxyx" else ("x_min", "y_min")
    assert text.index(first) < text.index(second)
    assert ("width, height" in text) == (box_format.order == "xywh")
    assert (written[0] == 0) == (box_format.order == "yxyx")
    if box_format.scale == 1000:
        by_order = {"xyxy": [100, 0, 500, 500], "yxyx": [0, 100, 500, 500], "xywh": [100, 0, 400, 500]}
        assert written == by_order[box_format.order]


@pytest.mark.parametrize(
    "text", ["", "xyxy", "xxyy/1000", "yxyx/0", "yxyx/0100", "yxyx/-1", "xyxy/1/1", "XYXY/1", " xyxy/1", "xyxy/1\n"]
)
def test_a_text_that_is_no_box_format_is_refused_in_a_short_message(text: str) -> None:
    for wrong in (text, text + "x" * 10**6):
        with pytest.raises(ValueError, match="is not a box format: write xyxy, yxyx, xywh") as caught:
            BoxFormat.parse(wrong)
        assert len(str(caught.value)) < 150


def test_a_format_may_have_any_whole_scale() -> None:
    box_format = BoxFormat.parse("xyxy/100")
    assert box_format == BoxFormat("xyxy", 100)
    assert write_box((128, 180, 1280, 720), box_format, WIDTH, HEIGHT) == [10, 25, 100, 100]
    assert read_box([10, 25, 100, 100], box_format, WIDTH, HEIGHT) == (128.0, 180.0, 1280.0, 720.0)


@given(st.lists(st.floats(-LARGEST, LARGEST) | st.integers(-(10**9), 10**9), min_size=4, max_size=4))
def test_four_numbers_within_the_limit_are_read_as_they_are(values: list[float]) -> None:
    assert four_numbers(values) == values
    assert four_numbers(values, limit=1000) == (values if max(map(abs, values)) <= 1000 else None)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 10**400, -(10**400), 1.1e9, True, "4", None, [4]])
@pytest.mark.parametrize("index", range(4))
def test_a_box_with_a_bad_number_is_not_read(bad: object, index: int) -> None:
    values: list[object] = [1, 2, 3, 4]
    values[index] = bad
    others = (None, "1234", 4, [], [1, 2, 3], [1, 2, 3, 4, 5], {1: 0, 2: 0, 3: 0, 4: 0})  # no list of four
    assert [four_numbers(each) for each in (values, *others)] == [None] * 8


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


# In a separate process, so that a crash ends only it. Types are new each time, since only the first use of one is
# unsafe.
PROGRAM = """
import sys, threading
from barista_bench.core.example import TypedFields

def read_at_once(kind, barrier):
    barrier.wait()
    assert kind.read({"part": {"row": 1}, "parts": [{"row": 2}]}).parts[0].row == 2

sys.setswitchinterval(1e-6)
for _ in range(1000):
    part = type("Part", (TypedFields,), {"__annotations__": {"row": int}})
    kind = type("Kind", (TypedFields,), {"__annotations__": {"part": part, "parts": list[part]}})
    barrier = threading.Barrier(4)
    threads = [threading.Thread(target=read_at_once, args=(kind, barrier)) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
print("read")
"""


@pytest.mark.full
def test_threads_may_be_the_first_to_read_a_column_at_the_same_time() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.stdout == "read\n", (done.returncode, done.stderr[-500:])
