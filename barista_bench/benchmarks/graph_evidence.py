"""Read and write the graph evidence of a generated release. It is in a side file, since benchmark layouts have no
place.

`graph_evidence.jsonl` has one line per question: `{"item": ..., "graph": {...}, "visibility": {...}}`. `item` is the
question's name in its release: HanDyVQA's and ToG-Bench's `id`, EgoCoT's `qid`, or the path of ViSTa's video.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from barista_bench.benchmarks.release_records import (
    GRAPH_EVIDENCE_FILE,
    convert_record,
    keep_first,
    read_each,
    read_values,
)
from barista_bench.core.example import GraphEvidence, GraphRow, Visibility
from barista_bench.scene_graph import Problem, ProblemLog


class _Line(msgspec.Struct, frozen=True):
    item: str
    graph: GraphEvidence
    visibility: Visibility


def read_graph_evidence(root: Path, problems: list[Problem]) -> dict[str, GraphRow]:
    """Return rows by item; the result is empty for a release without the side file.

    Args:
        root: the folder of a release, or a file in it.
        problems: receives the faults of the file. A bad line affects no other line.
    """
    path = (root.parent if root.is_file() else root) / GRAPH_EVIDENCE_FILE
    rows: dict[str, GraphRow] = {}
    if path.is_file():
        log = ProblemLog(path.name)
        lines = read_each(
            read_values(path, log), lambda row: convert_record(row.value, _Line), log, "it is left out", "warning"
        )
        for placed, line in lines:
            keep_first(rows, line.item, GraphRow(line.graph, line.visibility), log, f"{placed.key}.item")
        problems += log
    return rows


def graph_evidence_bytes(rows: Mapping[str, GraphRow]) -> bytes:
    """Return the content of the side file, sorted by item."""
    lines: Iterable[_Line] = (_Line(item, row.graph, row.visibility) for item, row in sorted(rows.items()))
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
