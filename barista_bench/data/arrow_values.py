"""Convert Arrow columns to JSON values, column by column. `to_pylist` works row by row and takes ten times as long.

Rows repeat names, ids and vocabularies, so equal texts share one object.
"""

from __future__ import annotations

import json
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Texts = dict[str, str]


def json_values(array: pa.Array, texts: Texts) -> list[Any]:
    """Return the N values of an array, equal to the result of `to_pylist`.

    Args:
        texts: maps each known text to itself; new texts are added.

    Raises:
        ValueError, TypeError, pa.ArrowException: a value cannot be read, or does not exist in JSON.
    """
    kind = array.type
    if pa.types.is_struct(kind):
        names = [texts.setdefault(field.name, field.name) for field in kind]
        if not names or len(set(names)) < len(names):
            raise ValueError("a record has no field, or one twice")
        columns = [json_values(child, texts) for child in array.flatten()]
        return _with_nulls(array, [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        ends = [*accumulate(length or 0 for length in _numbers(pc.list_value_length(array)))]
        items = json_values(array.flatten(), texts)  # `flatten` leaves out the values of lists that are null
        return _with_nulls(array, [items[start:end] for start, end in zip([0, *ends], ends, strict=False)])
    if pa.types.is_string(kind):
        encoded = array.dictionary_encode()
        text_of_code = [*(texts.setdefault(text, text) for text in encoded.dictionary.to_pylist()), None]
        return [text_of_code[-1 if index is None else index] for index in _numbers(encoded.indices)]
    if pa.types.is_integer(kind):
        return _numbers(array)
    values: list[Any] = array.to_pylist()
    json.dumps(values, allow_nan=False)
    return values


def _numbers(array: pa.Array) -> list[Any]:
    """Return the integers of an array, without `to_numpy`, which would load pandas."""
    return list(array.to_pylist() if array.null_count else np.from_dlpack(array).tolist())


def _with_nulls(array: pa.Array, values: list[Any]) -> list[Any]:
    if not array.null_count:
        return values
    return [value if is_there else None for value, is_there in zip(values, array.is_valid().to_pylist(), strict=True)]
