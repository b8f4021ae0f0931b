"""Read all logs of a run folder together, and choose the record of each sample that counts.

`run_records` defines the rule for scoring, comparing and resuming. A record counts under four conditions. Its line is
valid (`sample_log.py`). Its example belongs to the run, and its repetition is in range. Its fingerprint equals the
example's fingerprint in `inputs.jsonl`. Its key matches these values and the model and settings in `run.json`. Other
records are left out before the records of a sample are compared. So they do not hide a valid record, and their samples
are asked again. They are never deleted.

Some tasks ask in several steps (`Task.follow_up`). `StepLog` logs their intermediate answers separately from the
samples. A run that stopped between two steps resumes at the second step, and readers of samples never see steps.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

import msgspec

from barista_bench.errors import DataError
from barista_bench.files.reading import read_json_lines
from barista_bench.runs.log.inputs import INPUTS_FILE, digest, read_inputs, sample_keys
from barista_bench.runs.log.sample_log import (
    MAX_LINE,
    SampleLog,
    SampleRecord,
    decode_record,
    log_files,
    read_records,
    record_digest,
    records_of,
    sample_digest,
)
from barista_bench.runs.run_folder import OWN_EXAMPLES, RunDescription

log = logging.getLogger(__name__)
_REPEATED = ("example_id", "fingerprint", "prompt", "media")
"""Fields with the same text in all repetitions of an example."""


def _open_logs(folder: str | Path, stack: ExitStack) -> Sequence[tuple[Path, BinaryIO]]:
    """Open all logs of a folder at once. Their content stays readable even if another process compacts the logs."""
    while True:
        try:
            return [(path, stack.enter_context(path.open("rb"))) for path in log_files(folder)]
        except FileNotFoundError:
            continue  # compacted between listing and opening; another file has its lines now


class LogLine(NamedTuple):
    """The place of a record: its file (an index of `LogReader.paths`) and its byte offset. Lines sort as on disk."""

    file: int
    offset: int
    is_finished: bool


class LogReader:
    """Gives a consistent view of a run folder's logs. Use as a context manager.

    The first pass over the files finds which lines count.

    Args:
        folder: a run folder.
        identify: returns the identity of a record. One record per identity counts. A record with identity None is left
            out.
        keep: whether all counting records stay in memory. Otherwise each record is read again on request, and no text
            stays in memory.

    Attributes:
        line_count: number of records on disk, including superseded records and excluding left-out records.
        left_out: number of finished records that `identify` left out.
        counting_lines: identity -> line of the record that counts, in the order of files and lines.
    """

    def __init__(
        self,
        folder: str | Path,
        identify: Callable[[SampleRecord], Hashable | None] = record_digest,
        *,
        keep: bool = False,
    ) -> None:
        self._folder, self._identify, self._keep = folder, identify, keep
        self._records: dict[Hashable, SampleRecord] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            open_files = _open_logs(self._folder, stack)
            self.paths = [path for path, _ in open_files]
            self._files = [file for _, file in open_files]
            self._index(open_files)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _index(self, open_files: Sequence[tuple[Path, BinaryIO]]) -> None:
        self.line_count = self.left_out = 0
        counting_lines: dict[Hashable, LogLine] = {}
        second_answers, texts, identify = [], dict[str, str](), self._identify
        for number, (path, file) in enumerate(open_files):
            for offset, record in records_of(path, file):
                identity = identify(record)
                if identity is None:
                    self.left_out += record.is_finished
                    continue
                self.line_count += 1
                before, is_finished = counting_lines.get(identity), record.is_finished
                line = LogLine(number, offset, is_finished)
                if before is None or not before.is_finished:
                    counting_lines[identity] = line
                    if self._keep:  # equal texts reuse the strings of earlier records
                        repeated_texts = {name: getattr(record, name) for name in _REPEATED}
                        shared_texts = {name: texts.setdefault(text, text) for name, text in repeated_texts.items()}
                        self._records[identity] = msgspec.structs.replace(record, **shared_texts)
                elif is_finished:
                    second_answers.append((before, line))
        self.counting_lines = dict(sorted(counting_lines.items(), key=lambda item: item[1]))
        # Copies of a line come from an interrupted merge. Two different answers to one question are a mistake.
        if different := sum(self.line(first) != self.line(second) for first, second in second_answers):
            log.warning(
                "%s: %d finished records are of the sample of an earlier one: the first counts", self._folder, different
            )

    def line(self, line: LogLine) -> bytes:
        """Return the bytes of a line on disk, including its line end."""
        file = self._files[line.file]
        file.seek(line.offset)
        return file.readline(MAX_LINE)

    def record(self, line: LogLine) -> SampleRecord:
        """Return the record of a line.

        Raises:
            DataError: the file was changed in place after the first pass.
        """
        record = decode_record(self.line(line))
        if record is None:
            raise DataError(f"{self._folder}: a log was changed in place while it was read. Fix: try again")
        return record

    def __iter__(self) -> Iterator[SampleRecord]:
        if self._keep:
            return (self._records[identity] for identity in self.counting_lines)
        return map(self.record, self.counting_lines.values())


def finished_samples(folder: str | Path) -> frozenset[bytes]:
    """Return the `sample_digest` of each finished sample of a run folder.

    The logs are read line by line, and no text stays in memory.
    """
    with ExitStack() as stack:
        records = (record for path, file in _open_logs(folder, stack) for _, record in records_of(path, file))
        return frozenset(record_digest(record) for record in records if record.is_finished)


def run_records(folder: Path, description: RunDescription) -> LogReader:
    """Return a reader of the records that count, by example id and repetition. Use as a context manager.

    Raises:
        DataError: `inputs.jsonl` cannot be read, or a log has another version.
    """
    key_of = sample_keys(description.identity.model.asked_as, description.identity.generation)
    fingerprints = _fingerprints(folder)

    def sample_of(record: SampleRecord) -> tuple[str, int] | None:
        if record.repetition >= description.repetitions or record.example_id not in fingerprints:
            return None
        if fingerprints[record.example_id] not in (None, record.fingerprint):
            return None
        if record.key != key_of(record.example_id, record.fingerprint, record.repetition):
            return None
        return record.example_id, record.repetition

    return LogReader(folder, sample_of, keep=True)


def answers_only(folder: Path, description: RunDescription, asked: Mapping[str, str]) -> bool:
    """Return whether a folder has exactly these questions, and only answers of this model with these settings.

    `asked` maps the example ids of a run to fingerprints.
    """
    try:
        if read_inputs(folder) != asked:
            return False
    except DataError:
        return False
    key_of = sample_keys(description.identity.model.asked_as, description.identity.generation)
    count = 0
    with ExitStack() as stack:
        for path, file in _open_logs(folder, stack):
            for record in (record for _, record in records_of(path, file) if record.is_finished):
                count += 1
                key = key_of(record.example_id, record.fingerprint, record.repetition)
                if record.key != key or asked.get(record.example_id) != record.fingerprint:
                    return False
    return count > 0


def _fingerprints(folder: Path) -> Mapping[str, str | None]:
    """Map each example id to its fingerprint.

    All fingerprints are None for an imported run, which another program asked.
    """
    own_examples = folder / OWN_EXAMPLES
    if (folder / INPUTS_FILE).exists() or not own_examples.exists():
        return read_inputs(folder)
    noun, remedy = "no frozen example", "import the run again"

    def example_id(line: bytes) -> str:
        return str(json.loads(line)["example_id"])

    return {name: None for _, name in read_json_lines(own_examples, MAX_LINE, example_id, what=noun, remedy=remedy)}


@dataclass(slots=True)
class StepLog:
    """The steps of a run folder: the steps of earlier starts by `sample_digest`, and a log for new steps."""

    log: SampleLog
    earlier_steps: Mapping[bytes, SampleRecord]

    def logged_steps(self, key: str, fingerprint: str, example_id: str, repetition: int) -> tuple[SampleRecord, ...]:
        """Return the steps of a sample that earlier starts logged."""
        return logged_steps(self.earlier_steps, key, fingerprint, example_id, repetition)

    def append(self, record: SampleRecord, steps: Sequence[SampleRecord]) -> None:
        """Log `record` as the step after `steps`. Its key is the key of the sample."""
        self.log.append(msgspec.structs.replace(record, key=step_key(record.key, steps)))


def read_steps(folder: Path) -> dict[bytes, SampleRecord]:
    """Return the steps of all processes by `sample_digest`. If a step has two records, the first counts."""
    steps: dict[bytes, SampleRecord] = {}
    for path in step_files(folder):
        for record in read_records(path):
            steps.setdefault(record_digest(record), record)
    return steps


def logged_steps(
    logged: Mapping[bytes, SampleRecord], key: str, fingerprint: str, example_id: str, repetition: int
) -> tuple[SampleRecord, ...]:
    """Return the steps of a sample in order, from the result of `read_steps`."""
    steps: tuple[SampleRecord, ...] = ()
    while True:
        record = logged.get(sample_digest(step_key(key, steps), fingerprint, example_id, repetition))
        if record is None or record.text is None:
            return steps
        steps += (record,)


def step_files(folder: Path) -> list[Path]:
    """Return the step logs of a run folder."""
    return sorted(folder.glob("steps*.jsonl"))


def step_key(key: str, before: Sequence[SampleRecord]) -> str:
    """Return the key of the next step of the sample `key`. Its question depends on the earlier answers."""
    return digest(key, "step", [step.text for step in before])
