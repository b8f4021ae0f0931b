"""The sample log: one JSON line appended and flushed for each finished sample. It is the cache and the resume.

A run may be killed at any moment: a line that was cut off is dropped when the log is opened again, and every sample
whose line is whole is never asked again. The last line of a key counts, so that samples that failed for reasons of
infrastructure can be tried again.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Annotated, BinaryIO, Self

import msgspec
from filelock import FileLock, Timeout

from barista_bench.errors import ConfigError
from barista_bench.task import Status

log = logging.getLogger(__name__)

MAX_LINE = 64 * 2**20
"""Bytes of one line that are read."""


@dataclass(frozen=True, slots=True)
class SampleRecord:
    """One answer of one run.

    Args:
        key: identity of the sample: fingerprint, model, generation settings and run.
        fingerprint: identity of what was asked: task version, prompt text, media content.
        run: 0-based index of the repetition.
        status: as found when the answer came; scoring parses the text anew.
        text: the answer without reasoning; None where there is none.
        error: why there is no answer, or why it cannot be read.
        seconds: time of generation, shared evenly by the samples of a batch.
    """

    key: str
    fingerprint: str
    example_id: str
    run: Annotated[int, msgspec.Meta(ge=0)]
    status: Status
    text: str | None
    reasoning: str | None = None
    finish_reason: str | None = None
    error: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float = 0.0

    @property
    def finished(self) -> bool:
        return self.status is not Status.INFRA_ERROR


_DECODER = msgspec.json.Decoder(SampleRecord)


def read_records(path: Path) -> Iterator[SampleRecord]:
    """All whole records, oldest first. A damaged line costs its sample alone, and is named in a warning."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(_lines(file), start=1):
            record = _record(line)
            if record is None:
                log.warning(
                    "%s: line %d is no sample record: passed over, its sample will be asked again", path, number
                )
            else:
                yield record


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Whole lines; an overlong one comes as its first piece, which no record is, and the rest of it is passed over."""
    while line := file.readline(MAX_LINE):
        if line.endswith(b"\n"):
            yield line
            continue
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(MAX_LINE)
        if not rest:
            return  # cut off at the end of the file
        yield b""


def latest_records(path: Path) -> dict[str, SampleRecord]:
    """Key to its last record."""
    return {record.key: record for record in read_records(path)}


class SampleLog:
    """Appends records; one process at a time. Use as a context manager.

    Raises:
        ConfigError: another process is writing to this log.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = FileLock(f"{path}.lock")

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise ConfigError(
                f"{self.path}: another run is writing here. Remedy: wait for it, or use another --out"
            ) from error
        _drop_torn_line(self.path)
        self._file = self.path.open("ab")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._file.close()
        finally:
            self._lock.release()

    def append(self, record: SampleRecord) -> None:
        """Write and flush one record; it survives the death of this process from here on."""
        line = json.dumps(asdict(record), ensure_ascii=False)
        # Lone surrogates can come out of a byte-level tokenizer and have no UTF-8 form: they become "?".
        self._file.write(line.encode("utf-8", errors="replace") + b"\n")
        self._file.flush()


def _record(line: bytes) -> SampleRecord | None:
    try:
        return _DECODER.decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def _drop_torn_line(path: Path) -> None:
    """Cut the file back to its last line end."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        size = file.seek(0, os.SEEK_END)
        end = size
        while end > 0:
            start = max(0, end - 65536)
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                end = start + found + 1
                break
            end = start
        if end < size:
            log.warning("%s: the last line was cut off: dropped, its sample will be asked again", path)
            file.truncate(end)
