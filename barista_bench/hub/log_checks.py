"""Check a log, and the files made from the log, before publication. Runs and judges use the same checks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel

from barista_bench.errors import DataError
from barista_bench.runs.log.sample_log import SampleRecord, decode_record, whole_lines


class AskedLine(NamedTuple):
    """The question of one log line. `example` is an example or a judged text, `number` a repetition.

    `prompt` and `media` are digests of the content that was sent. A line may omit them.
    """

    example: str
    number: int
    fingerprint: str
    prompt: str = ""
    media: str = ""

    def is_of(self, record: SampleRecord) -> bool:
        """Return whether a line answers this question. All fields that identify the question are compared."""
        sent = record.prompt in ("", self.prompt) and record.media in ("", self.media)
        return sent and (record.example_id, record.repetition, record.fingerprint) == self[:3]


Expected = Mapping[str, AskedLine]
"""Maps keys to all lines that a log may hold."""


def check_log(paths: Iterable[Path], expected: Expected, remedy: str) -> None:
    """Refuse logs with unexpected answers, or with a different second answer. Failures do not count as answers.

    Raises:
        DataError: a line is damaged, unexpected, or differs from an earlier answer. The message names the first such
            line.
    """
    answers: dict[str, bytes] = {}
    for path in paths:
        with path.open("rb") as file:
            for number, (_, line) in enumerate(whole_lines(file), start=1):
                record = decode_record(line)
                where = f"{path}: line {number}"
                if record is None:
                    raise DataError(
                        f"{where}: is damaged. Fix: remove the line, and start the same run or judge command again"
                    )
                if not record.is_finished:
                    continue
                if record.key not in expected or not expected[record.key].is_of(record):
                    raise DataError(
                        f"{where}: answers another question than the run's ({record.example_id!r:.80}, repetition "
                        f"{record.repetition}). Fix: {remedy}"
                    )
                content = hashlib.sha256(line).digest()
                if answers.setdefault(record.key, content) != content:
                    raise DataError(f"{where}: is a second answer to a question answered before. Fix: {remedy}")


def refuse_difference(stored: BaseModel, derived: BaseModel, path: Path) -> None:
    """Raise a DataError that names the first field of `stored` that differs from `derived`."""
    difference = first_difference(*(json.loads(json.dumps(each.model_dump(mode="json"))) for each in (stored, derived)))
    if difference:
        raise DataError(f"{path}: {difference}, by the log and the dataset. Fix: score the run again")


def refuse_other_scores(path: Path, lines: Iterable[str]) -> None:
    """Raise DataError if `path` exists and its sample scores differ from `lines`."""
    if path.exists() and path.read_bytes() != "".join(lines).encode():
        raise DataError(f"{path}: differs from the result of the log and the dataset. Fix: score the run again")


def first_difference(stored: object, derived: object, path: str = "") -> str | None:
    """Return `field: is this, not that` for the first difference of two JSON values, or None if they are equal."""
    if isinstance(stored, dict) and isinstance(derived, dict):
        for name in sorted({*stored, *derived}):
            inner = first_difference(stored.get(name), derived.get(name), f"{path}.{name}" if path else str(name))
            if inner:
                return inner
        return None
    return None if stored == derived else f"{path}: is {stored!r:.80}, not {derived!r:.80}"
