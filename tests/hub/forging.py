"""How the tests forge run folders: records of a log and fields of a JSON file, changed."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from barista_bench.hub.submission import Submission, make_submission
from barista_bench.runs.log.sample_log import LOG_FILE, SampleRecord, decode_record, encode_record
from tests.hub.made_results import TARGET

Forgery = Callable[[Path], None]
Records = list[SampleRecord]


def submit(folder: Path, **options: Any) -> Submission:
    return make_submission([folder], {**TARGET, "model_name": options.pop("model_name", None)}, **options)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def edit(path: Path, field: str, value: object) -> None:
    """Set the field at a dotted place of a JSON file; a callable makes it from the old value."""
    content = json.loads(path.read_text(encoding="utf-8"))
    *above, last = [int(part) if part.isdigit() else part for part in field.split(".")]
    inner = content
    for part in above:
        inner = inner[part]
    inner[last] = value(inner.get(last) if isinstance(inner, dict) else inner[last]) if callable(value) else value
    path.write_text(json.dumps(content), encoding="utf-8")


def more(value: float) -> float:
    return value + 0.01


def first(change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Changes the first value of a mapping."""
    return lambda values: {name: change(v) if index == 0 else v for index, (name, v) in enumerate(values.items())}


def read_log(path: Path) -> Records:
    return [record for line in path.read_bytes().splitlines(keepends=True) if (record := decode_record(line))]


def write_log(path: Path, records: Sequence[SampleRecord]) -> None:
    path.write_bytes(b"".join(map(encode_record, records)))


def forge_log(change: Callable[[Records], Sequence[SampleRecord]], file: str = LOG_FILE) -> Forgery:
    return lambda folder: write_log(folder / file, change(read_log(folder / file)))


def other(record: SampleRecord, **changes: Any) -> SampleRecord:
    return msgspec.structs.replace(record, **changes)
