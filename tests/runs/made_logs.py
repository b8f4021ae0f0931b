"""Logs made by hand or by hypothesis, and a second implementation in plain Python of the rule which record counts."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from barista_bench.core.status import Status
from barista_bench.runs.log.sample_log import SampleLog, SampleRecord, encode_record, sample_digest, seal
from barista_bench.runs.log_reader import LogReader

NAMES = ("samples.jsonl", "samples-0.jsonl", "samples-1.jsonl", "samples-2.jsonl", "samples-10.jsonl")
"""In the order in which they count."""


def record(key: str, status: Status = Status.OK, text: str | None = "[]") -> SampleRecord:
    return SampleRecord(key=key, fingerprint="f", example_id="e", repetition=0, status=status, text=text)


def digest_of(key: str) -> bytes:
    """Of the sample that `record` answers."""
    return sample_digest(key, "f", "e", 0)


def write(path: Path, *records: SampleRecord) -> None:
    with SampleLog(path) as log:
        for item in records:
            log.append(item)


def write_lines(path: Path, records: Iterable[SampleRecord]) -> list[bytes]:
    """A log without a lock or a SampleLog; gives its lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [encode_record(record) for record in records]
    path.write_bytes(b"".join(lines))
    return lines


def read_folder(folder: Path) -> Iterator[SampleRecord]:
    """The record that counts of each sample, in the order of files and lines."""
    with LogReader(folder) as reader:
        yield from reader


def names(records: Iterable[SampleRecord]) -> list[str]:
    return [record.key for record in records]


def folders() -> st.SearchStrategy[dict[str, list[SampleRecord]]]:
    """Records of few samples, so that they meet, over the files of several writers; some have a key of another."""
    record = st.builds(
        SampleRecord,
        key=st.sampled_from("abc"),
        fingerprint=st.just("f"),
        example_id=st.sampled_from(["e1", "e2"]),
        repetition=st.integers(0, 1),
        status=st.sampled_from([Status.OK, Status.INFRA_ERROR, Status.PARSE_ERROR]),
        text=st.none() | st.text(max_size=5),
        rank=st.none() | st.integers(0, 9),
    )
    return st.fixed_dictionaries({name: st.lists(record, max_size=6) for name in NAMES})


def sample_of(record: SampleRecord) -> tuple[str, str, str, int]:
    return record.key, record.fingerprint, record.example_id, record.repetition


def reference_winners(logs: dict[str, list[SampleRecord]]) -> list[SampleRecord]:
    """The first finished record of each sample, else its last, in the order of the lines."""
    everything = [record for name in NAMES for record in logs.get(name, [])]
    counting = {}
    for index, record in enumerate(everything):
        sample = sample_of(record)
        known = counting.get(sample)
        if known is None or not everything[known].is_finished:
            counting[sample] = index
    return [everything[index] for index in sorted(counting.values())]


def change_lines(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Change records on purpose: their checksums are right."""
    fields = [change(json.loads(line)) for line in path.read_bytes().splitlines()]
    path.write_bytes(b"".join(seal(content_of(record)) for record in fields))


def content_of(fields: dict[str, Any]) -> bytes:
    """A record's own JSON, without the fields that the log adds."""
    content = {name: value for name, value in fields.items() if name not in ("log", "checksum")}
    return json.dumps(content, ensure_ascii=False).encode()
