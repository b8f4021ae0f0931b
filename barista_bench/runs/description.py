"""`run.json`, checked against one schema whenever it is written or read: a run folder may be somebody else's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from barista_bench.core.prompt import WORDING, BoxOrder
from barista_bench.errors import DataError
from barista_bench.files.bounded import first_complaint, read_bounded_json
from barista_bench.runs.ask.config import MAX_RUNS

MAX_BYTES = 16 * 2**20
"""Of a `run.json`; prompts may have a MiB each."""
_MAX_DEPTH = 16
_MAX_NUMBER = 2**63
_NO_RUN = "Remedy: run again with another --out"


def _plain(value: object, depth: int = 0) -> object:
    """JSON that every part of the package can write again: finite numbers of usual size, nested a little."""
    if isinstance(value, int | float) and not abs(value) <= _MAX_NUMBER:  # NaN is not either
        raise ValueError("holds a number that is not finite, or too large")
    if isinstance(value, list | dict):
        if depth == _MAX_DEPTH:
            raise ValueError("is nested too deeply")
        for inner in value.values() if isinstance(value, dict) else value:
            _plain(inner, depth + 1)
    return value


_Plain = Annotated[Any, AfterValidator(_plain)]
_Price = Annotated[float, Field(ge=0, le=1e9)] | None


class _Part(BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True, protected_namespaces=()
    )


class _BoxFormat(_Part):
    order: BoxOrder
    scale: Annotated[int, Field(ge=1, le=10**6)] | None


class _ModelPart(_Part):
    name: str
    revision: str | None
    settings: dict[str, _Plain]
    box_format: _BoxFormat


class _Identity(_Part):
    """Version 0.1 wrote `inputs_hash`, over prompts and media, where `prompts_hash` stands now."""

    benchmark: str
    task: str
    task_version: Annotated[int, Field(ge=0, le=10**6)]
    split: str
    content_hash: str
    inputs_hash: str | None = None
    prompts_hash: str | None = None
    model: _ModelPart
    generation: dict[str, _Plain]
    options: dict[str, _Plain] = {}


class _Data(_Part):
    """Paths are relative to the run folder (`runs/data_location.py`)."""

    path: str
    absolute_path: str | None = None
    root: str | None
    absolute_root: str | None = None
    limit: Annotated[int, Field(ge=1, le=_MAX_NUMBER)] | None


class _Prompts(_Part):
    """Versions that did not say whose wording it is leave it out: then it is known by its hash."""

    version: Annotated[int, Field(ge=-_MAX_NUMBER, le=_MAX_NUMBER)]
    system: str
    user: str
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    extra: dict[str, str] = {}
    wording: Annotated[str, StringConstraints(pattern=WORDING)] = ""


class _Prices(_Part):
    """US dollars a million tokens."""

    input: _Price = None
    output: _Price = None


class _Imported(_Part):
    folder: str
    predictions_sha256: str
    thinking_tokens: _Plain


class _RunDescription(_Part):
    """`barista_bench` is the version that wrote it; `imported` says of what runs it was made, where it was."""

    barista_bench: str
    identity: _Identity
    runs: Annotated[int, Field(ge=1, le=MAX_RUNS)]
    data: _Data
    prompts: _Prompts
    protocol: Literal["release", "paper"]
    versions: dict[str, str]
    options: dict[str, _Plain] = {}
    prices: _Prices = _Prices()
    imported: list[_Imported] = []


def read_description(path: Path) -> dict[str, Any]:
    """The content of a `run.json`, as it stands there.

    Raises:
        DataError: it is none; names file and field.
    """
    described = read_bounded_json(path, MAX_BYTES, what="no run here", remedy="run `barista-bench run`")
    return checked_description(described, path)


def checked_description(described: object, path: Path) -> dict[str, Any]:
    """The same JSON value, if it is a description; `path` is where it stands or will stand. Raises DataError."""
    try:
        _RunDescription.model_validate(described)
    except ValidationError as error:
        raise DataError(f"{path}: {first_complaint(error)}. {_NO_RUN}") from error
    if not isinstance(described, dict):  # for the type checker: the schema has said so
        raise DataError(f"{path}: is no object. {_NO_RUN}")
    return described
