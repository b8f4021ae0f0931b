"""What a released run folder says and a run of ours has no field for: `released.jsonl` of an imported run folder.

On import every file of the released folder is made anew from the run of ours, and what came out differently is kept;
on export it is put back. So the file holds only what our records cannot say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from barista_bench.files.bounded import read_json_lines
from barista_bench.interchange.released_folder import (
    CONFIG,
    DIRECTORY,
    EXAMPLES,
    EXAMPLES_SOURCE,
    MAX_LINE,
    METRICS,
    PREDICTIONS,
    SCHEMAS,
    SCORE_PREFIX,
    SUMMARY,
    JsonObject,
    ReleasedFolder,
    as_json,
    checked,
)

KEPT_FILE = "released.jsonl"


class Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is said differently in one file of one run, or in one line of it.

    Args:
        values: fields as the release has them.
        absent: fields that the release does not have.
        text: the whole content, of files that are no JSON.
    """

    run: int
    file: str
    example_id: str = ""
    values: dict[str, Any] = {}
    absent: tuple[str, ...] = ()
    text: str | None = None


class Comparing:
    """Gives what the original says, and collects in `differences` where it is not what was made."""

    def __init__(self, original: ReleasedFolder, run: int) -> None:
        self._run = run
        self._texts = {
            EXAMPLES_SOURCE: original.examples_source,
            SUMMARY: original.summary,
            DIRECTORY: original.directory,
        }
        self._records = {(CONFIG, ""): original.config, (METRICS, ""): original.metrics}
        self._records |= {(EXAMPLES, record["example_id"]): record for record in original.examples}
        self._records |= {(PREDICTIONS, record["example_id"]): _unscored(record) for record in original.predictions}
        self.differences: list[Kept] = []

    def record(self, file: str, made: JsonObject, example_id: str = "") -> JsonObject:
        original = self._records.get((file, example_id))
        if original is None:
            return made
        # As text, since Python holds 1, 1.0 and true for equal.
        values = {
            name: value for name, value in original.items() if name not in made or as_json(value) != as_json(made[name])
        }
        absent = tuple(name for name in made if name not in original)
        if values or absent:
            self.differences.append(Kept(self._run, file, example_id, values, absent))
        return original

    def text(self, file: str, made: str) -> str:
        original = self._texts[file]
        if original is None:
            return made
        if original != made:
            self.differences.append(Kept(self._run, file, text=original))
        return original


class PuttingBack:
    """Gives what was made with what was kept of one run; nothing is kept of a run that was never imported."""

    def __init__(self, kept: Iterable[Kept], run: int) -> None:
        self._kept = {(entry.file, entry.example_id): entry for entry in kept if entry.run == run}

    def record(self, file: str, made: JsonObject, example_id: str = "") -> JsonObject:
        kept = self._kept.get((file, example_id))
        if kept is None:
            return made
        return {name: value for name, value in made.items() if name not in kept.absent} | kept.values

    def text(self, file: str, made: str) -> str:
        kept = self._kept.get((file, ""))
        return made if kept is None or kept.text is None else kept.text


Keeping = Comparing | PuttingBack
"""Gives the released form of what was made from a run of ours."""


def _unscored(record: Mapping[str, Any]) -> JsonObject:
    """A record of `predictions.jsonl` without what a judge said, which stands in the judge's folder."""
    result = record.get("task_result")
    if not isinstance(result, dict):
        return dict(record)
    return {**record, "task_result": {k: v for k, v in result.items() if not k.startswith(SCORE_PREFIX)}}


def write_kept(kept: Sequence[Kept], folder: Path) -> None:
    lines = (as_json(msgspec.to_builtins(entry)) + "\n" for entry in kept)
    (folder / KEPT_FILE).write_text("".join(lines), encoding="utf-8", newline="\n")


def read_kept(folder: Path) -> list[Kept]:
    """What was kept of an imported run; nothing of another.

    Raises:
        DataError: the file is damaged; names the line.
    """
    path = folder / KEPT_FILE
    if not path.is_file():
        return []
    kept = []
    what, remedy = "is nothing kept of a released run", "import again"
    for number, entry in read_json_lines(path, MAX_LINE, _decode, what=what, remedy=remedy):
        if entry.file in SCHEMAS:
            checked(entry.values, SCHEMAS[entry.file], f"{path}: line {number}: {entry.file}")
        kept.append(entry)
    return kept


def _decode(line: bytes) -> Kept:
    return msgspec.convert(json.loads(line), Kept)
