"""Checks of a log and of the files made from it before publication, for runs and judges alike."""

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
    """The question of one line of a log: `example` of a run, or the text shown to a judge; `number` of the run or draw.

    `prompt` and `media` are the digests of the sent content; a line may leave them out.
    """

    example: str
    number: int
    fingerprint: str
    prompt: str = ""
    media: str = ""

    def is_of(self, record: SampleRecord) -> bool:
        """Return True if a line answers this question, by all fields that identify the question."""
        sent = record.prompt in ("", self.prompt) and record.media in ("", self.media)
        return sent and (record.example_id, record.repetition, record.fingerprint) == self[:3]


Expected = Mapping[str, AskedLine]
"""All lines allowed in a log, by key."""


def check_log(paths: Iterable[Path], expected: Expected, remedy: str) -> None:
    """Refuse logs that hold anything but expected answers, each once. Failures do not count as answers.

    Raises:
        DataError: names the first line that is damaged, not expected, or differs from an earlier answer.
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
                        f"{where}: answers another question than the run's ({record.example_id!r:.80}, run or draw "
                        f"{record.repetition}). Fix: {remedy}"
                    )
                content = hashlib.sha256(line).digest()
                if answers.setdefault(record.key, content) != content:
                    raise DataError(f"{where}: is a second answer to a question answered before. Fix: {remedy}")


def refuse_difference(stored: BaseModel, derived: BaseModel, path: Path) -> None:
    """Raise DataError, which names the first field of a file that differs from the value by its log and dataset."""
    difference = first_difference(*(json.loads(json.dumps(each.model_dump(mode="json"))) for each in (stored, derived)))
    if difference:
        raise DataError(f"{path}: {difference}, by the log and the dataset. Fix: score the run again")


def refuse_other_scores(path: Path, lines: Iterable[str]) -> None:
    """Raise DataError if the samples' scores are saved beside the results, and differ from these."""
    if path.exists() and path.read_bytes() != "".join(lines).encode():
        raise DataError(f"{path}: differs from the result of the log and the dataset. Fix: score the run again")


def first_difference(stored: object, derived: object, path: str = "") -> str | None:
    """Return `field: is this, not that` for the first difference of two JSON values; None if they are equal."""
    if isinstance(stored, dict) and isinstance(derived, dict):
        for name in sorted({*stored, *derived}):
            inner = first_difference(stored.get(name), derived.get(name), f"{path}.{name}" if path else str(name))
            if inner:
                return inner
        return None
    return None if stored == derived else f"{path}: is {stored!r:.80}, not {derived!r:.80}"
