"""Logs made by hand or by hypothesis, and the rule of which record counts, said a second time in plain Python."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
from hypothesis import strategies as st

from barista_bench.running.log import SampleRecord
from barista_bench.task import Status

NAMES = ("samples.jsonl", "samples-0.jsonl", "samples-1.jsonl", "samples-2.jsonl", "samples-10.jsonl")
"""In the order in which they count."""


def write_lines(path: Path, records: Iterable[SampleRecord]) -> list[bytes]:
    """A log without a lock or a SampleLog; gives its lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [msgspec.json.encode(record) + b"\n" for record in records]
    path.write_bytes(b"".join(lines))
    return lines


def names(records: Iterable[SampleRecord]) -> list[str]:
    return [record.key for record in records]


def folders() -> st.SearchStrategy[dict[str, list[SampleRecord]]]:
    """Records of few keys, so that they meet, over the files of several writers."""
    record = st.builds(
        SampleRecord,
        key=st.sampled_from("abcdefgh"),
        fingerprint=st.just("f"),
        example_id=st.sampled_from(["e1", "e2"]),
        run=st.integers(0, 2),
        status=st.sampled_from([Status.OK, Status.INFRA_ERROR, Status.PARSE_ERROR]),
        text=st.none() | st.text(max_size=5),
        rank=st.none() | st.integers(0, 9),
    )
    return st.fixed_dictionaries({name: st.lists(record, max_size=6) for name in NAMES})


def reference_winners(logs: dict[str, list[SampleRecord]]) -> list[SampleRecord]:
    """The first finished record of each key, else its last, in the order of the lines."""
    everything = [record for name in NAMES for record in logs.get(name, [])]
    counting = {}
    for place, record in enumerate(everything):
        known = counting.get(record.key)
        if known is None or not everything[known].finished:
            counting[record.key] = place
    return [everything[place] for place in sorted(counting.values())]
