"""Columns of an example as typed records: one declaration gives the checks, the types and the `datasets` features."""

from __future__ import annotations

from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Self, Union, get_args, get_origin, get_type_hints

import msgspec

from barista_bench.core.example import Fields
from barista_bench.errors import DataError

if TYPE_CHECKING:
    from datasets import Features

Int64 = Annotated[int, msgspec.Meta(extra={"dtype": "int64"})]
"""A whole number that may pass 32 bits; plain `int` is an int32 column."""
PixelBox = Annotated[list[float], msgspec.Meta(min_length=4, max_length=4)]
"""Four numbers; the field that holds it says in which order and unit."""
GridBox = Annotated[list[int], msgspec.Meta(min_length=4, max_length=4)]
"""Four whole numbers on the release's grid."""

_DTYPES = {int: "int32", float: "float64", str: "string", bool: "bool"}


class TypedFields(msgspec.Struct):
    """The fields of one column of an example, or of records inside of it. Fields that it does not name are left out."""

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """The fields, checked.

        Raises:
            DataError: a field is absent or of another kind; a dataset may come from anywhere.
        """
        try:
            return msgspec.convert(fields, cls)
        except msgspec.ValidationError as error:
            raise DataError(f"an example's {cls.__name__}: {error}. Remedy: build the dataset again") from error

    def write(self) -> dict[str, Any]:
        """JSON values, in the order declared."""
        return msgspec.to_builtins(self)


def features_of(kind: type[TypedFields]) -> Features:
    """The `datasets` features of a column.

    >>> class Inputs(TypedFields): boxes: list[PixelBox]; row: Int64
    >>> features_of(Inputs)["row"]
    Value('int64')
    """
    from datasets import Features

    return Features({name: _feature(hint) for name, hint in get_type_hints(kind, include_extras=True).items()})


def _feature(hint: Any) -> Any:  # noqa: ANN401  # type hints and features have no common type
    from datasets import List, Value

    if get_origin(hint) is Annotated:
        plain, *notes = get_args(hint)
        meta = next((note for note in notes if isinstance(note, msgspec.Meta)), msgspec.Meta())
        if meta.extra and "dtype" in meta.extra:
            return Value(meta.extra["dtype"])
        feature = _feature(plain)
        is_fixed = meta.min_length is not None and meta.min_length == meta.max_length
        return List(feature.feature, length=meta.min_length) if is_fixed else feature
    if get_origin(hint) in (Union, UnionType):
        (present,) = (choice for choice in get_args(hint) if choice is not type(None))
        return _feature(present)
    if get_origin(hint) is list:
        return List(_feature(get_args(hint)[0]))
    if isinstance(hint, type) and issubclass(hint, TypedFields):
        return dict(features_of(hint))
    return Value(_DTYPES[hint])
