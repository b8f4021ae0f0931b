"""The three kinds of files of a ViSTa release, read within bounds: each is untrusted input.

YAML is read as text alone: label ids such as `on`, `no` or `1` stay what the JSON files call them, and no value can
become an object. Aliases are refused, since a few lines of them can spell gigabytes, and so is deep nesting, which
crashes YAML's C parser; the parser's events tell both before anything is built.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec
import yaml

from barista_bench.errors import DataError

MAX_YAML = 2**20
"""Bytes of a problem set's description: the release's largest has 12 KB."""
MAX_JSON = 2**25
MAX_CSV = 2**27
_MAX_DEPTH = 20
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

RecordT = TypeVar("RecordT", bound=msgspec.Struct)


class VideoEntry(msgspec.Struct):
    """One entry of `<id>_data.json`: a video, and the id of the label that fits it, or several with commas between."""

    path: str
    label: str


class PrefixLength(msgspec.Struct):
    """How many steps one description shares with the set's first one, at their beginning."""

    description: str
    shared_prefix: int


class Metadata(msgspec.Struct):
    """What the release tells of a set beside its labels."""

    concepts: dict[str, list[str]] = {}
    is_consistent_wrt_slicing: bool | None = None
    prefix_lens: list[PrefixLength] = []


class Description(msgspec.Struct):
    """One `<id>.yaml`: a problem set without its videos. `metadata` as it stands there: see `read_metadata`."""

    label_prompts: dict[str, str]
    prompt_gpt: str
    example_gpt: str | None = None
    metadata: object = None


class Row(msgspec.Struct):
    """One row of `metadata.csv`: a video, a description that fits it, and the set that asks for it."""

    video: str
    level: int
    description: str
    environment: str
    problem_set_type: str
    problem_set: str


_ENTRIES = msgspec.json.Decoder(list[VideoEntry])


def read_bytes(path: Path, most: int) -> bytes:
    """A file's bytes. Raises DataError where it cannot be read or holds more than `most` bytes."""
    try:
        with path.open("rb") as opened:
            data = opened.read(most + 1)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}). Remedy: fetch the release again") from error
    if len(data) > most:
        raise DataError(f"{path}: larger than {most} bytes. Remedy: it is no file of the release")
    return data


def read_description(path: Path) -> Description:
    """One problem set's YAML file. Raises DataError naming file and field."""
    data = read_bytes(path, MAX_YAML)
    try:
        _refuse_tricks(data)
        content = yaml.load(data, Loader=_LOADER)  # noqa: S506  (builds text, lists and mappings alone)
        return msgspec.convert(_without_blanks(content), Description, strict=False)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        raise DataError(f"{path}: {_first_line(error)}. Remedy: correct it, or fetch it again") from error


def read_metadata(content: object) -> Metadata:
    """The metadata of a description. Raises DataError naming the field that cannot be used."""
    try:
        return msgspec.convert(content, Metadata, strict=False)
    except msgspec.ValidationError as error:
        raise DataError(str(error)) from error


def read_entries(path: Path) -> list[VideoEntry]:
    """One problem set's videos. Raises DataError naming file and field."""
    try:
        return _ENTRIES.decode(read_bytes(path, MAX_JSON))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {_first_line(error)}. Remedy: correct it, or fetch it again") from error


def read_rows(path: Path) -> Iterator[tuple[int, Row]]:
    """(line, row) of `metadata.csv`. Raises DataError naming the file and the line of the first bad row."""
    try:
        text = read_bytes(path, MAX_CSV).decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8 ({error.reason}). Remedy: fetch it again") from error
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        for record in reader:
            yield reader.line_num, msgspec.convert(record, Row, strict=False)
    except (csv.Error, msgspec.ValidationError) as error:
        raise DataError(f"{path}: line {reader.line_num}: {error}. Remedy: correct it, or fetch it again") from error


def _refuse_tricks(data: bytes) -> None:
    """Raise ValueError for aliases, deep nesting and names that stand twice. Events come one by one, unbuilt."""
    open_at: list[_Open] = []
    for event in yaml.parse(data, Loader=_LOADER):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(f"line {line}: aliases (*name) are not read here")  # noqa: TRY004  (of a file, not a call)
        if isinstance(event, yaml.CollectionEndEvent):
            open_at.pop()
        elif isinstance(event, yaml.NodeEvent) and open_at:
            open_at[-1].add(event, line)
        if isinstance(event, yaml.CollectionStartEvent):
            open_at.append(_Open(isinstance(event, yaml.MappingStartEvent)))
        if len(open_at) > _MAX_DEPTH:
            raise ValueError(f"line {line}: is nested deeper than {_MAX_DEPTH}")


@dataclass(slots=True)
class _Open:
    """A list or mapping that has begun: in a mapping, names and values come in turn."""

    is_mapping: bool
    nodes: int = 0
    names: set[str] = field(default_factory=set)

    def add(self, event: yaml.NodeEvent, line: int) -> None:
        """Take the next node. Raises ValueError for a name that stands here already."""
        self.nodes += 1
        if not self.is_mapping or self.nodes % 2 == 0 or not isinstance(event, yaml.ScalarEvent):
            return
        if event.value in self.names:
            raise ValueError(f"line {line}: {event.value[:100]!r} stands here twice")
        self.names.add(event.value)


def _without_blanks(content: object) -> object:
    """Top-level keys without a value are as good as absent."""
    return {key: value for key, value in content.items() if value != ""} if isinstance(content, dict) else content


def _first_line(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem:
        return f"line {error.problem_mark.line + 1}: {error.problem}" if error.problem_mark else error.problem
    return (str(error).splitlines() or [type(error).__name__])[0][:300]
