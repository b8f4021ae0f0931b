"""Read a release of annotations: files as JSON values, values as typed records, and faults into a log.

An unusable line of a JSONL file, or an unusable record of a list, is left out and reported with file, place, field and
remedy. All other lines and records stay usable. A file that is not JSON is lost as a whole. The memory used for a file
is bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypedDict, TypeVar

import msgspec

from barista_bench.benchmarks.parsing import is_text
from barista_bench.core.example import GraphEvidence, GraphRow, Visibility
from barista_bench.errors import DataError, RecordError
from barista_bench.files.paths import confine
from barista_bench.files.reading import bounded_bytes, bounded_lines
from barista_bench.files.text_out import make_printable
from barista_bench.scene_graph import Problem, ProblemLog, Severity

GRAPH_EVIDENCE_FILE = "graph_evidence.jsonl"
"""The side file of generated releases, see `graph_evidence.py`."""
MAX_RECORD = 16 * 2**20
"""Maximum number of bytes of a line: three masks at 1080p take about 20 KB."""
MAX_JSON = 2**29
"""Maximum number of bytes of a JSON file. By its published numbers, ToG-Bench's file has about 20 MB."""
MAX_JSONL = 2**30
MAX_FILES = 10_000
_MAX_SHOWN = 300
_NO_JSON = "NaN, an infinity, or text that is not UTF-8"
"""Content that JSON does not allow. Values contain bytes in its place, which no field accepts."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")

KeyT = TypeVar("KeyT", bound=Hashable)
RecordT = TypeVar("RecordT")
StructT = TypeVar("StructT", bound=msgspec.Struct)


class GraphColumns(TypedDict):
    """The fields of `TracedEvidence`."""

    graph: GraphEvidence | None
    visibility: Visibility | None
    facts: list[str] | None


NO_GRAPH: GraphColumns = {"graph": None, "visibility": None, "facts": None}


@dataclass(slots=True)
class AnnotationRelease:
    """Annotations, read and checked, for `core.deriving.Release`.

    Args:
        root: the file or folder of annotations.
        videos: folder of the media, which need not exist.
        problems: faults of the files. An error lost a record; a warning lost nothing.
        graph_rows: the graph evidence of generated questions, by name (`graph_evidence.py`).
    """

    root: Path
    videos: Path
    problems: Sequence[Problem]
    graph_rows: Mapping[str, GraphRow] = field(default_factory=dict, kw_only=True)

    def graph_columns(self, item: str) -> GraphColumns:
        """Return the fields of `TracedEvidence` of a question."""
        row = self.graph_rows.get(item)
        return {"graph": row.graph, "visibility": row.visibility, "facts": row.facts} if row else NO_GRAPH

    def video_path(self, video_id: str) -> Path:
        """Return the path of a video, even if the video does not exist. Raises DataError for a path outside
        `videos`.
        """
        return confine(self.videos, video_id)


class PlacedRecord(NamedTuple):
    """A value and its place. `row` counts non-blank lines, or the elements of a list, from 0."""

    key: str
    value: object
    row: int = 0


def media_folder(root: Path, videos: Path | None) -> Path:
    """Return the folder of media: beside the annotations, unless a folder is given."""
    return videos if videos is not None else root.parent if root.is_file() else root


def annotation_files(root: Path, name: str, is_meant: Callable[[Path], bool], patterns: Sequence[str]) -> list[Path]:
    """Return `root` if it is a file; otherwise the sorted JSON and JSONL files below it that fit `patterns` and
    `is_meant`.

    Args:
        name: the release's name in errors.
        is_meant: returns True for the relative path of a wanted file.

    Raises:
        DataError: there is no such file, or there are more than `MAX_FILES`.
    """
    if root.is_file():
        return [root]
    if not root.is_dir():
        raise DataError(f"{root}: no such file or folder. Fix: name the annotations of {name}")
    paths = {path for pattern in patterns for path in root.glob(pattern)}
    files = [
        path
        for path in paths
        if path.suffix.lower() in (".json", ".jsonl")
        and path.name != GRAPH_EVIDENCE_FILE
        and is_meant(path.relative_to(root))
    ]
    if not files:
        raise DataError(f"{root}: holds no .json or .jsonl file of {name}. Fix: name the folder of the annotations")
    if len(files) > MAX_FILES:
        raise DataError(f"{root}: holds more than {MAX_FILES} annotation files. Fix: name only the folder of {name}")
    return sorted((path for path in files if path.is_file()), key=lambda path: (len(path.parts), path))


def no_records_error(root: Path, noun: str, problems: Sequence[Problem]) -> DataError:
    """Return the error for a release without a usable record."""
    first = f" (the first problem: {problems[0]})" if problems else ""
    return DataError(
        make_printable(f"{root}: holds no {noun} that can be used{first}. Fix: correct the files, or fetch them again")
    )


def read_values(path: Path, log: ProblemLog) -> Iterator[PlacedRecord]:
    """Yield each line of a JSONL file (`line 3`), or a complete JSON file (``).

    Unreadable parts are logged. A field is lost if its text is not UTF-8 or has half a surrogate pair.
    """
    try:
        if path.suffix.lower() != ".jsonl":
            yield from _decode(bounded_bytes(path, MAX_JSON), "", 0, log)
            return
        lines = bounded_lines(path, MAX_RECORD, overlong="cut", max_file=MAX_JSONL)
        for row, (number, line) in enumerate(lines):
            if len(line) > MAX_RECORD:
                log.error(f"line {number}", f"is longer than {MAX_RECORD} bytes; it is left out", "split the record")
            else:
                yield from _decode(line, f"line {number}", row, log)
    except OSError as error:
        log.error("", f"cannot be read ({error.strerror}); it is left out", "fetch it again, check or split it")


def _decode(data: bytes, key: str, row: int, log: ProblemLog) -> Iterator[PlacedRecord]:
    text = data.decode(errors="surrogateescape")
    try:
        value = json.loads(text, parse_constant=str.encode)
        yield PlacedRecord(key, _without_surrogates(value) if _SURROGATE.search(text) else value, row)
    except (ValueError, RecursionError) as error:
        cause = str(error)[:_MAX_SHOWN] if isinstance(error, ValueError) else "nested too deeply"
        log.error(key, f"is not JSON ({cause}); it is left out", "correct it, or write it again")


def _without_surrogates(value: object) -> object:
    """Return the value with bytes in place of each text that cannot be written as UTF-8."""
    if isinstance(value, str):
        return value if is_text(value) else value.encode(errors="surrogatepass")
    if isinstance(value, dict):
        return {name if is_text(name) else ascii(name): _without_surrogates(inner) for name, inner in value.items()}
    return list(map(_without_surrogates, value)) if isinstance(value, list) else value


def elements(value: object, log: ProblemLog, name: str = "") -> Iterator[PlacedRecord]:
    """Yield each element of the list called `name`. A value that is not a list is logged."""
    if isinstance(value, list):
        yield from (PlacedRecord(f"{name}[{row}]", element, row) for row, element in enumerate(value))
    else:
        log.error(name, f"is {kind_of(value)}, no list of records; it is left out", "correct it, or write it again")


def convert_record(
    value: object, record_type: type[StructT], remedy: str = "correct it", *, strict: bool = True
) -> StructT:
    """Return a value as a record. Raises RecordError; its key is the place of the fault in the value."""
    try:
        return msgspec.convert(value, record_type, strict=strict)
    except msgspec.ValidationError as error:
        complaint, _, path = str(error).replace("`bytes`", _NO_JSON).partition(" - at ")
        raise RecordError(path.rpartition("`$")[2].strip("`.")[:_MAX_SHOWN], complaint[:_MAX_SHOWN], remedy) from error


def read_each(
    values: Iterable[PlacedRecord],
    read: Callable[[PlacedRecord], RecordT],
    log: ProblemLog,
    costs: str,
    severity: Severity = "error",
) -> Iterator[tuple[PlacedRecord, RecordT]]:
    """Yield each value that `read` can convert, together with the resulting record.

    Args:
        read: converts a value. Raises RecordError; its key is the place of the fault in the value.
        costs: the loss in case of a fault, such as `the question is left out`.
        severity: severity of that loss.
    """
    for placed in values:
        try:
            yield placed, read(placed)
        except RecordError as broken:
            log.add(severity, field_path(placed.key, broken.key), f"{broken.what}; {costs}", broken.remedy)


def keep_first(records: dict[KeyT, RecordT], name: KeyT, record: RecordT, log: ProblemLog, place: str) -> None:
    """Add a record. If a record of this name already exists, keep the old record and log the fault at `place`."""
    if name in records:
        log.error(place, f"{name!r:.80} stands twice; the first counts", "give each record a unique name")
    else:
        records[name] = record


def field_path(key: str, name: str) -> str:
    """Return the path of a field inside a record.

    >>> field_path("line 3", "clip.fps"), field_path("[3]", ""), field_path("", "clip"), field_path("tasks", "[2]")
    ('line 3.clip.fps', '[3]', 'clip', 'tasks[2]')
    """
    return f"{key}.{name}" if key and name and not name.startswith("[") else key + name


def kind_of(value: object) -> str:
    """Return the type of a value in few characters, since a small file can contain a huge value."""
    if isinstance(value, bytes):
        return _NO_JSON
    return ascii(value)[:60] if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"
