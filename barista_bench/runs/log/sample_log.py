"""The sample log: one JSON line appended and flushed for each finished sample. It is the cache and the resume.

A run may be killed at any moment: a line that was cut off is dropped when the log is opened again, and every sample
whose line is whole is never asked again. A line that was damaged since it was written counts for nothing.

A run folder holds one log a writer: `samples.jsonl` of a single process, `samples-<rank>.jsonl` of each process of a
launch. Together they say one thing, whoever wrote what: of the records of one sample (`sample_digest`: of all that they
say of what they answer, so that a record with a wrong word hides no other) a finished one beats a failed one; among
finished ones the first counts, by file (`samples.jsonl`, then the ranks upwards) and line; among failed ones the last.
Files of other names are nobody's logs and are left alone.
"""

from __future__ import annotations

import bisect
import hashlib
import logging
import os
import re
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, cast

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from barista_bench.errors import ConfigError, DataError
from barista_bench.files.atomic import naming
from barista_bench.runs.log.record import (
    LOG_VERSION,
    LoggedToken,
    SampleRecord,
    claimed_sample,
    decode_record,
    encode_record,
    last_start,
    log_version,
    logged_logprobs,
)

__all__ = [
    "LOG_FILE",
    "LogReader",
    "LoggedToken",
    "SampleLog",
    "SampleRecord",
    "all_records",
    "claimed_digest",
    "latest_records",
    "log_files",
    "logged_logprobs",
    "read_folder",
    "read_records",
    "refuse_other_version",
    "running_elsewhere",
    "sample_digest",
]

log = logging.getLogger(__name__)

LOG_FILE = "samples.jsonl"
MAX_LINE = 64 * 2**20
"""Bytes of one line that are read."""
LOCK_WAIT = 1.0
"""Seconds after which a lock counts as held: whoever only looks (`running_elsewhere`) lets go at once."""

_LOG_NAME = re.compile(r"samples(?:-(0|[1-9][0-9]{0,5}))?\.jsonl")
_NAMED_LINES = 5
_DIGEST_BYTES = 16


def log_files(folder: str | Path) -> list[Path]:
    """The logs of a run folder: the single process's, then those of the ranks upwards."""
    found = [path for path in Path(folder).glob("samples*.jsonl") if _LOG_NAME.fullmatch(path.name) and path.is_file()]
    return sorted(found, key=_place)


def _place(path: Path) -> int:
    match = _LOG_NAME.fullmatch(path.name)
    return int(match[1]) if match and match[1] else -1


def read_records(path: Path) -> Iterator[SampleRecord]:
    """All whole records of one log, oldest first. A damaged line costs its sample alone, and is named in a warning.

    Raises:
        DataError: the log is one of another version.
    """
    if path.exists():
        with path.open("rb") as file:
            for _, record in _records(path, file):
                yield record


def _records(path: Path, file: BinaryIO) -> Iterator[tuple[int, SampleRecord]]:
    """Byte offset and record of each whole line."""
    damaged = 0
    for number, (offset, line) in enumerate(whole_lines(file), start=1):
        record = decode_record(line)
        if record is None:
            # The end of a line may be what was damaged: the record after it is whole all the same.
            start = last_start(line)
            record = decode_record(line[start:])
            if record is not None:
                yield offset + start, record
            if number == 1:
                _refuse_version_of(path, line)
            damaged += 1
            if damaged <= _NAMED_LINES:
                log.warning(
                    "%s: line %d is damaged%s: passed over, its sample counts as not asked",
                    path,
                    number,
                    claimed_sample(line),
                )
            continue
        yield offset, record
    if damaged > _NAMED_LINES:
        log.warning("%s: %d lines in all are damaged", path, damaged)


def refuse_other_version(path: Path) -> None:
    """Raise DataError where a log is one of another version."""
    if path.exists():
        with path.open("rb") as file:
            _refuse_version_of(path, file.readline(MAX_LINE))


def _refuse_version_of(path: Path, first_line: bytes) -> None:
    version = log_version(first_line)
    if version not in (None, LOG_VERSION):
        raise DataError(
            f"{path}: is a log of version {version}, and this package reads version {LOG_VERSION}. Remedy: start anew "
            "with another --out, or use the package that wrote it"
        )


def whole_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Offset and content of whole lines; an overlong one comes empty, which no record is."""
    offset = 0
    while line := file.readline(MAX_LINE):
        start = offset
        offset += len(line)
        if line.endswith(b"\n"):
            yield start, line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE)
            offset += len(line)
        if not line:
            return  # cut off at the end of the file
        yield start, b""


def key_digest(key: str) -> bytes:
    """16 bytes that stand for a text in memory."""
    return hashlib.blake2b(key.encode("utf-8", errors="surrogatepass"), digest_size=_DIGEST_BYTES).digest()


def digest_array(digests: bytes | bytearray) -> NDArray[np.bytes_]:
    """Digests set one after the other as an array of 16-byte values."""
    return np.frombuffer(digests, dtype=f"S{_DIGEST_BYTES}")


def sample_digest(key: str, fingerprint: str, example_id: str, run: int) -> bytes:
    """16 bytes that stand for a sample, in all that a record says of what it answers."""
    return key_digest(f"{run} {len(key)} {len(fingerprint)} {key}{fingerprint}{example_id}")


def claimed_digest(record: SampleRecord) -> bytes:
    """`sample_digest` of what a record says."""
    return sample_digest(record.key, record.fingerprint, record.example_id, record.run)


def all_records(folder: str | Path) -> Iterator[SampleRecord]:
    """All whole records of a run folder, superseded ones among them, in the order of files and lines."""
    with ExitStack() as stack:
        for path, file in _open_logs(folder, stack):
            for _, record in _records(path, file):
                yield record


def read_folder(folder: str | Path) -> Iterator[SampleRecord]:
    """The record that counts of each sample, in the order of files and lines. Only one text is in memory at a time."""
    with LogReader(folder) as reader:
        yield from reader


def latest_records(path: Path) -> dict[str, SampleRecord]:
    """Key to the record of it that counts, of one log."""
    latest: dict[str, SampleRecord] = {}
    for record in read_records(path):
        if record.key not in latest or not latest[record.key].finished:
            latest[record.key] = record
    return latest


def _open_logs(folder: str | Path, stack: ExitStack) -> Sequence[tuple[Path, BinaryIO]]:
    """All logs of a folder, opened together: what they hold stays readable even if they are compacted meanwhile."""
    while True:
        try:
            return [(path, stack.enter_context(path.open("rb"))) for path in log_files(folder)]
        except FileNotFoundError:
            continue  # compacted between listing and opening: its lines stand in another file now


class LogReader:
    """One consistent view of a run folder's logs. Use as a context manager.

    The first pass over the files keeps 25 bytes a line and finds which lines count; records are read when asked for.

    Args:
        folder: a run folder.
        identify: 16 bytes for what a record is one of, of which one record counts: `sample_digest` where nothing is
            given. None leaves the record out.

    Attributes:
        line_count: records on disk, superseded ones among them, without those left out.
        left_out: finished records that `identify` left out.
        winners: positions of the records that count, upwards, (n,); a position counts lines over all files.
        digests: what `identify` said of the winners, (n,).
    """

    def __init__(self, folder: str | Path, identify: Callable[[SampleRecord], bytes | None] | None = None) -> None:
        self._folder = folder
        self._identify = identify or claimed_digest
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            opened = _open_logs(self._folder, stack)
            self.paths = [path for path, _ in opened]
            self._files = [file for _, file in opened]
            self._index(opened)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _index(self, opened: Sequence[tuple[Path, BinaryIO]]) -> None:
        digests, finished = bytearray(), bytearray()
        self._offsets, self._ends, self.left_out = array("Q"), list[int](), 0
        for path, file in opened:
            for offset, record in _records(path, file):
                identity = self._identify(record)
                if identity is None:
                    self.left_out += record.finished
                    continue
                digests += identity
                finished.append(record.finished)
                self._offsets.append(offset)
            self._ends.append(len(self._offsets))
        self.line_count = len(self._offsets)
        of_lines = digest_array(digests)
        self.winners, seconds = _winners(of_lines, np.frombuffer(finished, dtype=np.bool_))
        self.digests = of_lines[self.winners]
        self._warn_of_second_answers(seconds)

    def line(self, position: int) -> bytes:
        """The line as it stands on disk, its end included."""
        file = self._files[bisect.bisect_right(self._ends, position)]
        file.seek(self._offsets[position])
        return file.readline(MAX_LINE)

    def record(self, position: int) -> SampleRecord:
        """The record at a position.

        Raises:
            DataError: the file was changed in place since the first pass.
        """
        record = decode_record(self.line(position))
        if record is None:
            raise DataError(f"{self._folder}: a log was changed in place while it was read. Remedy: try again")
        return record

    def __iter__(self) -> Iterator[SampleRecord]:
        for position in self.winners:
            yield self.record(int(position))

    def _warn_of_second_answers(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Copies of one line are what a merge leaves that was cut short; two answers to one question are a mistake."""
        different = sum(self.line(first) != self.line(second) for first, second in pairs)
        if different:
            log.warning(
                "%s: %d finished records are of the sample of an earlier one: the first counts", self._folder, different
            )


def _winners(
    digests: NDArray[np.bytes_], finished: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], Iterator[tuple[int, int]]]:
    """Positions that count, and (first, later) of each finished record after the first of its sample."""
    position = np.arange(len(digests))
    preference = np.where(finished, position, 2 * len(digests) - position)
    order = np.lexsort((preference, digests))
    ordered = digests[order]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    later = np.flatnonzero(~first & finished[order])
    starts = np.flatnonzero(first)
    first_of_later = order[starts[np.searchsorted(starts, later) - 1]] if len(later) else later
    pairs = zip(first_of_later.tolist(), order[later].tolist(), strict=True)
    return np.sort(order[first]), cast("Iterator[tuple[int, int]]", pairs)


class SampleLog:
    """Appends records; one process at a time. Use as a context manager.

    The lock is the operating system's: it ends with the process that holds it, however that ends.

    Args:
        path: the log.
        launch: what all processes of one launch call themselves; stands beside the lock while it is held.

    Raises:
        ConfigError: another process is writing to this log.
        DataError: it is one of another version.
    """

    def __init__(self, path: Path, launch: str = "") -> None:
        self.path, self.launch = path, launch
        self._lock = log_lock(path)

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(timeout=LOCK_WAIT, poll_interval=0.02)
        except Timeout as error:
            raise ConfigError(
                f"{self.path}: another run is writing here. Remedy: wait for it, or use another --out"
            ) from error
        try:
            refuse_other_version(self.path)
            _launch_file(self.path).write_text(self.launch, encoding="utf-8")
            _drop_torn_line(self.path)
            self._file = self.path.open("ab")
        except (OSError, DataError):
            self._lock.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with naming(self.path):  # on a full disk, what could not be written is tried once more
                self._file.close()
        finally:
            self._lock.release()

    def append(self, record: SampleRecord) -> None:
        """Write and flush one record; it survives the death of this process from here on."""
        self._file.write(encode_record(record))
        self._file.flush()


def log_lock(path: Path) -> FileLock:
    """The lock of a log's writer. Lock files stay behind; an unlocked one means nothing."""
    return FileLock(f"{path}.lock")


def _launch_file(path: Path) -> Path:
    return Path(f"{path}.launch")


def running_elsewhere(folder: str | Path, launch: str | None = None) -> list[str]:
    """Names of the logs in a run folder that a live process of another launch writes to.

    Args:
        folder: a run folder; may be missing.
        launch: the caller's own; None where it belongs to none.
    """
    names = {path.name.removesuffix(".lock") for path in Path(folder).glob("samples*.jsonl.lock")}
    suspects = [Path(folder) / name for name in names if _LOG_NAME.fullmatch(name)]
    until = time.monotonic() + LOCK_WAIT
    # Looked at more than once: another process that only looks, as this one does, holds a lock for a moment, and one
    # that has just taken its lock has yet to say whose it is.
    while suspects := [path for path in suspects if not _is_of(path, launch) and _is_held(path)]:
        if time.monotonic() > until:
            break
        time.sleep(0.02)
    return [path.name for path in sorted(suspects, key=_place)]


def _is_of(path: Path, launch: str | None) -> bool:
    try:
        return launch is not None and _launch_file(path).read_text(encoding="utf-8") == launch
    except (OSError, UnicodeDecodeError):
        return False


def _is_held(path: Path) -> bool:
    try:
        with log_lock(path).acquire(timeout=0):
            return False
    except Timeout:
        return True


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
