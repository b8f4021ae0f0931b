"""Boxes: one place converts them, and there and back is the same box."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barista_bench.boxes import describe_format, from_grid, read_box, to_grid, write_box
from barista_bench.prompt import BoxFormat

WIDTH, HEIGHT = 1280, 720
FORMATS = [BoxFormat(order, scale) for order in ("xyxy", "yxyx") for scale in (1000, 1, None)]
inside = st.tuples(st.floats(0, WIDTH), st.floats(0, HEIGHT), st.floats(0, WIDTH), st.floats(0, HEIGHT))


@pytest.mark.parametrize("boxes", FORMATS)
@given(box=inside)
def test_a_written_box_is_read_back_within_the_rounding_of_its_format(boxes: BoxFormat, box: tuple) -> None:
    read = read_box(write_box(box, boxes, WIDTH, HEIGHT), boxes, WIDTH, HEIGHT)
    step = {1000: WIDTH / 2000, 1: WIDTH / 20000, None: 0.5}[boxes.scale]
    assert all(abs(a - b) <= step + 1e-6 for a, b in zip(box, read, strict=True))


@given(box=inside)
def test_the_grid_of_the_release_clamps_and_rounds(box: tuple) -> None:
    grid = to_grid(box, WIDTH, HEIGHT)
    assert all(isinstance(value, int) and 0 <= value <= 1000 for value in grid)
    assert all(abs(a - b) <= WIDTH / 2000 + 1e-6 for a, b in zip(from_grid(grid, WIDTH, HEIGHT), box, strict=True))
    assert to_grid((-50, -50, 5000, 5000), WIDTH, HEIGHT) == [0, 0, 1000, 1000]


def test_the_order_is_the_declared_one() -> None:
    assert write_box((128, 72, 640, 360), BoxFormat("yxyx", 1000), WIDTH, HEIGHT) == [100, 100, 500, 500]
    assert write_box((128, 0, 640, 360), BoxFormat("yxyx", 1000), WIDTH, HEIGHT) == [0, 100, 500, 500]
    assert write_box((128, 0, 640, 360), BoxFormat("xyxy", 1000), WIDTH, HEIGHT) == [100, 0, 500, 500]


@pytest.mark.parametrize("boxes", FORMATS)
def test_every_format_is_described_in_its_order(boxes: BoxFormat) -> None:
    text = describe_format(boxes)
    assert (
        text.index("x_min") < text.index("y_min")
        if boxes.order == "xyxy"
        else text.index("y_min") < text.index("x_min")
    )
