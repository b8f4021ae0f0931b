"""JSON files that a pydantic schema describes, checked whenever they are read, and the message for a broken one."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from barista_bench.errors import DataError
from barista_bench.files.bounded import read_bounded

MAX_BYTES = 256 * 2**20
"""Of one file; the largest hold the figures of a thousand runs."""


class Strict(BaseModel):
    """Refuses fields that it does not name, and numbers that are not finite."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


Model = TypeVar("Model", bound=BaseModel)


def read_model(path: str | Path, schema: type[Model], *, what: str, remedy: str) -> Model:
    """A JSON file as `schema`.

    Args:
        what: what errors say of a file that is missing or too large, such as `no results here`.
        remedy: what errors advise.

    Raises:
        DataError: the file is missing, too large, or breaks the schema; names the field.
    """
    data = read_bounded(path, MAX_BYTES, what=what, remedy=remedy)
    try:
        return schema.model_validate_json(data)
    except ValidationError as error:
        raise DataError(f"{path}: {first_complaint(error)}. Remedy: {remedy}") from error


def first_complaint(error: ValidationError) -> str:
    """`field: what is wrong` of the first thing that is wrong.

    >>> try:
    ...     Strict.model_validate({"length": 1})
    ... except ValidationError as error:
    ...     print(first_complaint(error))
    length: Extra inputs are not permitted
    """
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    # Names of fields may come from the file, and be of any length.
    field = ".".join(map(str, first["loc"]))[:200] or "the whole"
    return f"{field}: {first['msg']}"
