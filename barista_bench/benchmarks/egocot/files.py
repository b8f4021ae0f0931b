"""Records out of JSON and JSONL files, whatever stands around them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from barista_bench.files.bounded import bounded_bytes
from barista_bench.files.text_out import printable
from barista_bench.scene_graph.problems import ProblemLog

MAX_BYTES = 2**28
"""Largest file that is read; the whole benchmark has some ten megabytes."""


def read_records(path: Path, log: ProblemLog) -> Iterator[tuple[str, object]]:
    """The records of a JSON or JSONL file with their places; what is no JSON is logged."""
    try:
        text = bounded_bytes(path, MAX_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        log.error("", f"cannot be read ({printable(str(error))[:200]})", "give a UTF-8 file within the bound")
        return
    if path.suffix.lower() == ".jsonl":
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                yield from _decoded(line, f"line {number}", log)
        return
    for _, value in _decoded(text, "", log):
        yield from _listed(value)


def _decoded(text: str, key: str, log: ProblemLog) -> Iterator[tuple[str, object]]:
    try:
        yield key, json.loads(text)
    except (ValueError, RecursionError) as error:
        cause = error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__
        log.error(key, f"is no JSON ({cause}); it is left out", "correct it")


def _listed(value: object) -> Iterator[tuple[str, object]]:
    """The records of a JSON value: a list, one record, or an object whose only list is meant."""
    if isinstance(value, dict) and "question" not in value:
        lists = [(name, inner) for name, inner in value.items() if isinstance(inner, list)]
        if len(lists) == 1:
            name, value = lists[0]
            yield from ((f"{printable(str(name)[:100])}[{place}]", record) for place, record in enumerate(lists[0][1]))
            return
    if isinstance(value, list):
        yield from ((f"[{place}]", record) for place, record in enumerate(value))
    else:
        yield "record", value
