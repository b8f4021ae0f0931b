"""Read and write the graph evidence of a generated release: a side file, since benchmark layouts have no place for it.

`graph_evidence.jsonl` has one line per question, with the keys `item`, `graph`, `visibility` and `facts`. `item` is the
question's name in its release: HanDyVQA's and ToG-Bench's `id`, EgoCoT's `qid`, the path of ViSTa's video
in any environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from barista_bench.benchmarks.release_records import (
    GRAPH_EVIDENCE_FILE,
    MAX_RECORD,
    convert_record,
    keep_first,
    read_each,
    read_values,
)
from barista_bench.core.example import GraphRow
from barista_bench.files.reading import read_bounded
from barista_bench.files.text_out import make_printable
from barista_bench.scene_graph import Problem, ProblemLog

UNVERIFIED_FILE = "unverified.txt"
"""The side file of a release whose items a model wrote. It has the name of an unverified item on each line."""
UNVERIFIED = "is unverified: a model wrote it, and not two people have accepted it"
UNVERIFIED_REMEDY = "review it (docs/generate.md), and write the release again with --review"


class _Line(GraphRow, kw_only=True):
    item: str


def read_graph_evidence(root: Path, problems: list[Problem]) -> dict[str, GraphRow]:
    """Return rows by item; the result is empty for a release without the side file.

    Args:
        root: the folder of a release, or a file in it.
        problems: receives the faults of the file, and a warning for each unverified item. A bad line affects no other
            line.
    """
    path = (root.parent if root.is_file() else root) / GRAPH_EVIDENCE_FILE
    rows: dict[str, GraphRow] = {}
    if path.is_file():
        log = ProblemLog(path.name)
        lines = read_each(
            read_values(path, log), lambda row: convert_record(row.value, _Line), log, "it is left out", "warning"
        )
        for placed, line in lines:
            keep_first(rows, line.item, line, log, f"{placed.key}.item")
        problems += log
    problems += _unverified_items(path.parent / UNVERIFIED_FILE)
    return rows


def _unverified_items(path: Path) -> Iterator[Problem]:
    """Yield a warning for each item of a release that models wrote and that people have not accepted yet."""
    if path.is_file():
        text = read_bounded(path, MAX_RECORD, remedy=UNVERIFIED_REMEDY).decode(errors="backslashreplace")
        for item in text.splitlines():
            yield Problem("warning", path.name, make_printable(item), UNVERIFIED, UNVERIFIED_REMEDY)


def graph_evidence_bytes(rows: Mapping[str, GraphRow]) -> bytes:
    """Return the content of the side file, sorted by item."""
    lines = ({"item": item, **row.write()} for item, row in sorted(rows.items()))
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
