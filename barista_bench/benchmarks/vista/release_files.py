"""The three kinds of files of a ViSTa release, read within bounds: each is untrusted input.

YAML is read as text alone: label ids such as `on`, `no` or `1` stay what the JSON files call them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import msgspec

from barista_bench.errors import DataError
from barista_bench.files.bounded import load_yaml, read_bounded, read_bounded_text

MAX_YAML = 2**20
"""Bytes of a problem set's description: the release's largest has 12 KB."""
MAX_JSON = 2**25
MAX_CSV = 2**27
_REFETCH = "correct it, or fetch it again"


class VideoEntry(msgspec.Struct):
    """One entry of `<id>_data.json`: a video, and the id of the label that fits it, or several with commas between."""

    path: str
    label: str


class PrefixLength(msgspec.Struct):
    """How many steps one description shares with the set's first one, at their beginning."""

    description: str
    shared_prefix: int


class SetMetadata(msgspec.Struct):
    """What the release says about a set beside its labels."""

    concepts: dict[str, list[str]] = {}
    is_consistent_wrt_slicing: bool | None = None
    prefix_lens: list[PrefixLength] = []


class SetDescription(msgspec.Struct):
    """One `<id>.yaml`: a problem set without its videos. `metadata` as it stands there: see `read_metadata`."""

    label_prompts: dict[str, str]
    prompt_gpt: str
    example_gpt: str | None = None
    metadata: object = None


class MetadataRow(msgspec.Struct):
    """One row of `metadata.csv`: a video, a description that fits it, and the set that asks for it."""

    video: str
    level: int
    description: str
    environment: str
    problem_set_type: str
    problem_set: str


def read_description(path: Path) -> SetDescription:
    """One problem set's YAML file. Raises DataError naming file and field."""
    data = read_bounded(path, MAX_YAML, remedy=_REFETCH)
    content = load_yaml(data, str(path), error=DataError, remedy=_REFETCH, text_only=True)
    if isinstance(content, dict):  # keys without a value are as good as absent
        content = {key: value for key, value in content.items() if value != ""}
    try:
        return msgspec.convert(content, SetDescription, strict=False)
    except msgspec.ValidationError as error:
        raise DataError(f"{path}: {error}. Remedy: {_REFETCH}") from error


def read_metadata(content: object) -> SetMetadata:
    """The metadata of a description. Raises DataError naming the field that cannot be used."""
    try:
        return msgspec.convert(content, SetMetadata, strict=False)
    except msgspec.ValidationError as error:
        raise DataError(str(error)) from error


def read_entries(path: Path) -> list[VideoEntry]:
    """One problem set's videos. Raises DataError naming file and field."""
    data = read_bounded(path, MAX_JSON, remedy=_REFETCH)
    try:
        return msgspec.json.decode(data, type=list[VideoEntry])
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {error}. Remedy: {_REFETCH}") from error


def read_rows(path: Path) -> Iterator[tuple[int, MetadataRow]]:
    """(line, row) of `metadata.csv`. Raises DataError naming the file and the line of the first bad row."""
    text = read_bounded_text(path, MAX_CSV, remedy=_REFETCH)
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        for record in reader:
            yield reader.line_num, msgspec.convert(record, MetadataRow, strict=False)
    except (csv.Error, msgspec.ValidationError) as error:
        raise DataError(f"{path}: line {reader.line_num}: {error}. Remedy: {_REFETCH}") from error
