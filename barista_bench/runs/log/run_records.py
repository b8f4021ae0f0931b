"""Which records of a run folder count: the one rule for scoring and comparing, and, seen from its other side, resuming.

A record counts if its line is whole (`record.py`), its example is one of the run's and its repetition in range,
it answers what the run asks of that example (`inputs.jsonl`), and its key is the one that these make together with the
model and its settings in `run.json`. Any other is left out before the records of a sample are weighed against each
other, so it hides none, and its sample is asked again. Nothing deletes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from barista_bench.files.bounded import read_json_lines
from barista_bench.runs.ask.inputs import INPUTS_FILE, read_inputs
from barista_bench.runs.log.keys import sample_keys
from barista_bench.runs.log.log_reader import LogReader
from barista_bench.runs.log.record import SampleRecord, key_digest
from barista_bench.runs.log.sample_log import MAX_LINE
from barista_bench.runs.run_folder import OWN_EXAMPLES


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
