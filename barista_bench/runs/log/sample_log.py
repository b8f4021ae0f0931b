"""The sample log: one JSON line per finished sample, appended and flushed. It serves as a cache and for resuming.

    {"log":2,"key":...,"checksum":"89abcdef"}

A line starts with the log's version and ends with a checksum (CRC-32) of all earlier bytes of the line. The record
stands in between. So damage is found whatever the JSON contains. The checksum is not a signature. A run may be killed
at any moment. A truncated line is dropped when the log is opened again, and a sample with a valid line is not asked
again.

A run folder holds one log per writer: `samples.jsonl` for a single process, or `samples-<rank>.jsonl` for each process
of a launch. `log_reader` reads all logs together. Records of one sample share a `sample_digest` of all fields that
identify the sample. So a record with a wrong field does not hide another record. Finished records take precedence over
failed records. Among finished records the first counts, by file (`samples.jsonl`, then ascending ranks) and line. Among
failed records the last counts.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import mmap
import re
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, BinaryIO, Self

import msgspec
from filelock import FileLock, Timeout

from barista_bench.core.status import Status
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.text_out import one_line
from barista_bench.files.writing import name_full_disk
from barista_bench.models.base import TOKEN_COUNTS, TokenLogprob

log = logging.getLogger(__name__)

LOG_FILE = "samples.jsonl"
MAX_LINE = 64 * 2**20
"""Maximum bytes of a line that are read."""
LOCK_WAIT = 1.0
"""Seconds after which a lock counts as held. `find_running_elsewhere` only checks locks, and releases them at once."""

_LOG_NAME = re.compile(r"samples(?:-(0|[1-9][0-9]{0,5}))?\.jsonl")
_NAMED_LINES = 5
LOG_VERSION = 2

_HEAD = b'{"log":%d,' % LOG_VERSION
_MARK = b',"checksum":"'
_ANY_HEAD = re.compile(rb'\{"log":([1-9][0-9]{0,5}),')


class LoggedToken(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One token of an answer as `[token, logprob, [[token, logprob], ...]]`. None stands for minus infinity."""

    token: str
    logprob: float | None
    top: tuple[tuple[str, float | None], ...] = ()


class SampleRecord(msgspec.Struct, frozen=True, gc=False):
    """One answer of one run.

    Args:
        key: digest that identifies the sample: fingerprint, model, generation settings and repetition.
        fingerprint: digest that identifies the question: task version, prompt text and media content.
        repetition: 0-based index of the repetition.
        status: the outcome before the text is read. `ok` means that an answer arrived. Scoring finds out whether the
            answer can be read. Answers recorded by another program may have its status `parse_error`.
        text: the answer without reasoning. None if there is no answer.
        error: why there is no answer, or why the answer was truncated.
        input_tokens, output_tokens, thinking_tokens, cached_tokens: as in `Completion`.
        seconds: generation time, divided evenly over the samples of a batch.
        prompt: SHA-256 of the prompt's text. Empty if an answer recorded by another program lacks it.
        media: digest of the media that were sent. Empty for answers recorded by another program.
        batch_size: number of samples that were generated together. None if not applicable.
        rank: rank of the process that asked. None for a single process.
        logprobs: log-probabilities of the answer's tokens, if requested and returned.
        earlier: answers to earlier questions, for tasks that ask in several steps. Tokens and seconds then cover all
            steps.
        note: as in `Completion`.
    """

    key: str
    fingerprint: str
    example_id: str
    repetition: Annotated[int, msgspec.Meta(ge=0)]
    status: Status
    text: str | None
    reasoning: str | None = None
    finish_reason: str | None = None
    error: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float = 0.0
    prompt: str = ""
    media: str = ""
    batch_size: int | None = None
    rank: int | None = None
    logprobs: tuple[LoggedToken, ...] | None = None
    earlier: tuple[str, ...] | None = None
    thinking_tokens: int | None = None
    cached_tokens: int | None = None
    note: str | None = None

    @property
    def is_finished(self) -> bool:
        return self.status.is_outcome


_DECODER = msgspec.json.Decoder(SampleRecord)
_MAX_SECONDS = 1e9
_MAX_TOKENS = 2**53
"""Up to this number, sums and rates of tokens are exact. No answer has as many tokens."""


def logged_logprobs(tokens: Sequence[TokenLogprob] | None) -> tuple[LoggedToken, ...] | None:
    """Return a completion's log-probabilities in the form of the log."""
    if tokens is None:
        return None
    return tuple(
        LoggedToken(
            each.token,
            _drop_non_finite(each.logprob),
            tuple((token, _drop_non_finite(value)) for token, value in each.top),
        )
        for each in tokens
    )


def _drop_non_finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def seal(content: bytes) -> bytes:
    """Return a log line, including its line end, for a JSON object with at least one field."""
    body = _HEAD + content[1:-1]
    return body + _MARK + b'%08x"}\n' % zlib.crc32(body)


def is_whole(line: bytes) -> bool:
    """Return whether a line has this log version and is undamaged."""
    return line.startswith(_HEAD) and _version_of(line) == LOG_VERSION


def last_start(line: bytes) -> int:
    """Return the offset of the last record in a line. If a line end was damaged, the line holds two records."""
    return max(0, line.rfind(_HEAD))  # texts of a record cannot contain it, since their quotes are escaped


def _version_of(line: bytes) -> int | None:
    """Return the log version of a line, or None if the line is damaged."""
    body, _, checksum = line.rpartition(_MARK)
    head = _ANY_HEAD.match(body)
    return int(head[1]) if head and checksum == b'%08x"}\n' % zlib.crc32(body) else None


def encode_record(record: SampleRecord) -> bytes:
    """Return a record as a line, with its line end."""
    try:
        return seal(msgspec.json.encode(record))
    except UnicodeEncodeError:
        # A byte-level tokenizer can produce lone surrogates. They have no UTF-8 form and become "?".
        return seal(json.dumps(msgspec.to_builtins(record), ensure_ascii=False).encode("utf-8", errors="replace"))


def decode_record(line: bytes) -> SampleRecord | None:
    """Return the record of a line, or None if the line is damaged or holds no record.

    Implausible token counts become None, and implausible seconds become 0. A server may report wrong numbers, but its
    answer still counts.
    """
    record = _decode_json(line) if is_whole(line) else None
    if record is None:
        return None
    counts = ((name, getattr(record, name)) for name in TOKEN_COUNTS)
    absurd: dict[str, float | None] = {
        name: None for name, count in counts if count is not None and not 0 <= count <= _MAX_TOKENS
    }
    if not 0 <= record.seconds <= _MAX_SECONDS:
        absurd["seconds"] = 0.0
    return msgspec.structs.replace(record, **absurd) if absurd else record


def _decode_json(line: bytes) -> SampleRecord | None:
    try:
        return _DECODER.decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def sample_digest(key: str, fingerprint: str, example_id: str, repetition: int) -> bytes:
    """Return 16 bytes that identify a sample. They cover all fields of a record that identify its question."""
    sample = f"{repetition} {len(key)} {len(fingerprint)} {key}{fingerprint}{example_id}"
    return hashlib.blake2b(sample.encode("utf-8", errors="surrogatepass"), digest_size=16).digest()


def record_digest(record: SampleRecord) -> bytes:
    return sample_digest(record.key, record.fingerprint, record.example_id, record.repetition)


def log_files(folder: str | Path) -> list[Path]:
    """Return the logs of a run folder: first the log of a single process, then the logs of all ranks in order."""
    paths = [path for path in Path(folder).glob("samples*.jsonl") if _LOG_NAME.fullmatch(path.name) and path.is_file()]
    return sorted(paths, key=_rank_of_file)


def _rank_of_file(path: Path) -> int:
    match = _LOG_NAME.fullmatch(path.name)
    return int(match[1]) if match and match[1] else -1


def read_records(path: Path) -> Iterator[SampleRecord]:
    """Yield all valid records of one log, oldest first. A damaged line is skipped with a warning.

    Raises:
        DataError: the log has another version.
    """
    if path.exists():
        with path.open("rb") as file:
            for _, record in records_of(path, file):
                yield record


def records_of(path: Path, file: BinaryIO) -> Iterator[tuple[int, SampleRecord]]:
    """Yield the byte offset and the record of each whole line."""
    damaged = 0
    for number, (offset, line) in enumerate(whole_lines(file), start=1):
        record = decode_record(line)
        if record is None:
            # If only the end of a line was damaged, the next record is still valid.
            start = last_start(line)
            record = decode_record(line[start:])
            if record is not None:
                yield offset + start, record
            if number == 1:
                _refuse_version_of(path, line)
            damaged += 1
            if damaged <= _NAMED_LINES:
                claim = _decode_json(line)
                name = f" (of {one_line(claim.example_id)[:200]} repetition {claim.repetition}?)" if claim else ""
                log.warning("%s: line %d is damaged%s: passed over, its sample counts as not asked", path, number, name)
            continue
        yield offset, record
    if damaged > _NAMED_LINES:
        log.warning("%s: %d lines in all are damaged", path, damaged)


def refuse_other_version(path: Path) -> None:
    """Raise DataError if a log has another version."""
    if path.exists():
        with path.open("rb") as file:
            _refuse_version_of(path, file.readline(MAX_LINE))


def _refuse_version_of(path: Path, first_line: bytes) -> None:
    version = _version_of(first_line)
    if version not in (None, LOG_VERSION):
        raise DataError(
            f"{path}: is a log of version {version}, but this package reads version {LOG_VERSION}. Fix: start again "
            "with another --out, or use the package that wrote it"
        )


def whole_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the offset and content of each whole line.

    An overlong line is yielded as empty, which is never a record.
    """
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
            return  # truncated at the end of the file
        yield start, b""


def counting_records(path: Path) -> dict[str, SampleRecord]:
    """Map each key of a log to the record that counts: the first finished record, otherwise the last record."""
    counting: dict[str, SampleRecord] = {}
    for record in read_records(path):
        if record.key not in counting or not counting[record.key].is_finished:
            counting[record.key] = record
    return counting


class SampleLog:
    """Appends records to a log. Only one process may hold the log. Use as a context manager.

    The operating system holds the lock. The lock ends when its process ends, even after a crash.

    Args:
        path: the log.
        launch: name that all processes of one launch share. It is stored beside the lock while the lock is held.
        hint: an addition to the remedy in the error message if another process holds the lock.

    Raises:
        ConfigError: another process is writing to this log.
        DataError: the log has another version.
    """

    def __init__(self, path: Path, launch: str = "", *, hint: str = "") -> None:
        self.path, self.launch, self._hint = path, launch, hint
        self._lock = log_lock(path)

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(timeout=LOCK_WAIT, poll_interval=0.02)
        except Timeout as error:
            raise ConfigError(
                f"{self.path}: another run is writing here. Fix: wait for it, or use another --out{self._hint}"
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

    def __exit__(self, *error: object) -> None:
        try:
            with name_full_disk(self.path):  # on a full disk, the unwritten bytes are tried once more
                self._file.close()
        finally:
            self._lock.release()

    def append(self, record: SampleRecord) -> None:
        """Write and flush one record. The record then survives the death of this process."""
        self._file.write(encode_record(record))
        self._file.flush()


def log_lock(path: Path) -> FileLock:
    """Return the lock for writing a log. Lock files remain after use, so an unlocked file has no meaning."""
    return FileLock(f"{path}.lock")


def _launch_file(path: Path) -> Path:
    return Path(f"{path}.launch")


def find_running_elsewhere(folder: str | Path, launch: str | None = None) -> list[str]:
    """Return the names of all logs in a run folder to which a live process of another launch writes.

    Args:
        folder: a run folder, which may be missing.
        launch: the caller's launch, or None.
    """
    logs = {path.with_suffix("") for path in Path(folder).glob("samples*.jsonl.lock")}
    suspects = [path for path in logs if _LOG_NAME.fullmatch(path.name)]
    deadline = time.monotonic() + LOCK_WAIT
    # Look more than once. Another process that only checks the lock also holds it for a moment, and a process that has
    # just taken its lock has not written its launch yet.
    while suspects := [path for path in suspects if not _is_of_launch(path, launch) and _is_held(path)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    return [path.name for path in sorted(suspects, key=_rank_of_file)]


def _is_of_launch(path: Path, launch: str | None) -> bool:
    try:
        return launch is not None and _launch_file(path).read_bytes() == launch.encode()
    except OSError:
        return False


def _is_held(path: Path) -> bool:
    try:
        with log_lock(path).acquire(timeout=0):
            return False
    except Timeout:
        return True


def _drop_torn_line(path: Path) -> None:
    size = path.stat().st_size if path.exists() else 0
    if not size:  # an empty file cannot be memory-mapped
        return
    with path.open("rb+") as file:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            end = content.rfind(b"\n") + 1
        if end < size:
            log.warning("%s: the last line was cut off: dropped, its sample will be asked again", path)
            file.truncate(end)
