"""Reads all logs of a run folder together: which record of each sample counts, and which samples are finished.

`RunRecords` is the one rule for scoring and comparing, and, seen from its other side, resuming. A record counts if its
line is whole (`sample_log.py`), its example is one of the run's and its repetition in range, it answers what the run
asks of that example (`inputs.jsonl`), and its key is the one that these make together with the model and its settings
in `run.json`. Any other is left out before the records of a sample are weighed against each other, so it hides none,
and its sample is asked again. Nothing deletes it.
"""

from __future__ import annotations

import bisect
import json
import logging
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

import numpy as np
from numpy.typing import NDArray

from barista_bench.errors import DataError
from barista_bench.files.bounded import read_json_lines
from barista_bench.runs.log.asked import INPUTS_FILE, read_inputs, sample_keys
from barista_bench.runs.log.sample_log import (
    DIGEST_BYTES,
    MAX_LINE,
    SampleRecord,
    decode_record,
    key_digest,
    log_files,
    record_digest,
    records_of,
)
from barista_bench.runs.run_folder import OWN_EXAMPLES

log = logging.getLogger(__name__)


def digest_array(digests: bytes | bytearray) -> NDArray[np.bytes_]:
    """Digests set one after the other as an array of 16-byte values."""
    return np.frombuffer(digests, dtype=f"S{DIGEST_BYTES}")


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
        self._identify = identify or record_digest
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
            for offset, record in records_of(path, file):
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


def all_records(folder: str | Path) -> Iterator[SampleRecord]:
    """All whole records of a run folder, superseded ones among them, in the order of files and lines."""
    with ExitStack() as stack:
        for path, file in _open_logs(folder, stack):
            for _, record in records_of(path, file):
                yield record


def read_folder(folder: str | Path) -> Iterator[SampleRecord]:
    """The record that counts of each sample, in the order of files and lines. Only one text is in memory at a time."""
    with LogReader(folder) as reader:
        yield from reader


class FinishedSamples:
    """`sample_digest` of finished samples; 24 bytes each, so that a million of them weigh 24 MB."""

    def __init__(self, digests: Iterable[bytes]) -> None:
        ordered = np.unique(digest_array(b"".join(digests)))
        self._digests = ordered.tobytes()
        self._heads = array("Q", ordered.view(">u8")[::2].astype("=u8").tobytes())

    def __contains__(self, digest: bytes) -> bool:
        head = int.from_bytes(digest[:8], "big")
        position = bisect.bisect_left(self._heads, head)
        while position < len(self._heads) and self._heads[position] == head:
            start = position * DIGEST_BYTES
            if self._digests[start : start + DIGEST_BYTES] == digest:
                return True
            position += 1
        return False

    def __len__(self) -> int:
        return len(self._heads)


def finished_samples(folder: str | Path) -> FinishedSamples:
    """All finished samples of a run folder. Reads line by line; no text stays in memory."""
    digests = bytearray()
    for record in all_records(folder):
        if record.finished:
            digests += record_digest(record)
    return FinishedSamples([bytes(digests)])


def repetition_digest(example_id: str, run: int) -> bytes:
    """16 bytes that stand for an example and a repetition."""
    return key_digest(f"{run} {example_id}")


class RunRecords:
    """The records of a run folder that count. Use as a context manager.

    Args:
        folder: a run folder.
        described: its `run.json`.

    Attributes:
        ids: `repetition_digest` of the samples, (n,), distinct, in the order of the logs.
        left_out: number of finished records that do not count.

    Raises:
        DataError: what was asked cannot be read, or a log is one of another version.
    """

    def __init__(self, folder: Path, described: Mapping[str, Any]) -> None:
        self._reader = LogReader(folder, _counting(folder, described))

    def __enter__(self) -> Self:
        self._reader.__enter__()
        self.ids, self._positions = self._reader.digests, self._reader.winners
        self.left_out = self._reader.left_out
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader.__exit__(kind, error, trace)

    def record(self, row: int) -> SampleRecord:
        return self._reader.record(int(self._positions[row]))

    def __iter__(self) -> Iterator[SampleRecord]:
        return iter(self._reader)


def _counting(folder: Path, described: Mapping[str, Any]) -> Callable[[SampleRecord], bytes | None]:
    """`repetition_digest` of a record that counts; None for any other."""
    identity, runs = described["identity"], described["runs"]
    key_of = sample_keys(
        {name: value for name, value in identity["model"].items() if name != "box_format"}, identity["generation"]
    )
    asked = _fingerprints(folder)

    def digest_of(record: SampleRecord) -> bytes | None:
        if record.run >= runs or record.example_id not in asked:
            return None
        if asked[record.example_id] not in (None, record.fingerprint):
            return None
        if record.key != key_of(record.example_id, record.fingerprint, record.run):
            return None
        return repetition_digest(record.example_id, record.run)

    return digest_of


def _fingerprints(folder: Path) -> Mapping[str, str | None]:
    """Example id to the fingerprint of what is asked; None for all of an imported run, which was asked elsewhere."""
    own_examples = folder / OWN_EXAMPLES
    if (folder / INPUTS_FILE).exists() or not own_examples.exists():
        return read_inputs(folder)
    what, remedy = "no frozen example", "import the run again"
    return {name: None for _, name in read_json_lines(own_examples, MAX_LINE, _example_id, what=what, remedy=remedy)}


def _example_id(line: bytes) -> str:
    return str(json.loads(line)["example_id"])
