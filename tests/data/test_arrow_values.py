"""Columns of a set as JSON values: what Arrow gives row by row, at once."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from barista_bench.data.arrow_values import json_values

KIND = pa.struct(
    {
        "name": pa.string(),
        "count": pa.int64(),
        "share": pa.float64(),
        "known": pa.bool_(),
        "box": pa.list_(pa.float64(), 2),
        "parts": pa.list_(pa.struct({"label": pa.string(), "at": pa.list_(pa.int32())})),
    }
)
TEXTS = st.sampled_from(["", "cup", "über", "coffee machine"])
NUMBERS = st.floats(-1e6, 1e6)
PARTS = st.fixed_dictionaries({"label": st.none() | TEXTS, "at": st.none() | st.lists(st.integers(0, 9), max_size=3)})
ROWS = st.fixed_dictionaries(
    {
        "name": st.none() | TEXTS,
        "count": st.none() | st.integers(-(2**63), 2**63 - 1),
        "share": st.none() | NUMBERS,
        "known": st.none() | st.booleans(),
        "box": st.none() | st.lists(NUMBERS, min_size=2, max_size=2),
        "parts": st.none() | st.lists(st.none() | PARTS, max_size=3),
    }
)


@settings(max_examples=200)
@given(st.lists(st.none() | ROWS, max_size=8), st.integers(0, 4), st.integers(0, 8))
def test_values_are_those_of_to_pylist(rows: list[Any], start: int, count: int) -> None:
    array = pa.array(rows, KIND).slice(min(start, len(rows)), count)
    assert json_values(array, {}) == array.to_pylist()


def test_equal_texts_of_all_rows_are_one_object() -> None:
    texts: dict[str, str] = {}
    first, second = (json_values(pa.array([{"name": "a cup"}] * 2), texts) for _ in range(2))
    assert len({id(row["name"]) for row in (*first, *second)}) == 1


@pytest.mark.parametrize(
    "array",
    [pa.array([1.0, float("nan")]), pa.array([[float("inf")]]), pa.array([b"\xff"]), pa.array([1], pa.timestamp("s"))],
    ids=str,
)
def test_what_no_json_holds_is_refused(array: pa.Array) -> None:
    with pytest.raises((TypeError, ValueError)):
        json_values(array, {})
