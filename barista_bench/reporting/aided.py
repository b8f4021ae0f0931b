"""Prepare the data of a diagnosis to show beside a plain answer: the causes of an error, the aids, and the answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from barista_bench.diagnosis.conditions import PLAIN
from barista_bench.diagnosis.records import DIAGNOSIS_FILE, read_diagnoses
from barista_bench.files.reading import read_json_lines
from barista_bench.runs.described import AIDS_FILE
from barista_bench.runs.log_reader import run_records
from barista_bench.runs.run_folder import CONFIG_FILE, read_run
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.tables import words

MAX_AIDS_LINE = 2**22
Beside = Mapping[tuple[str, int], tuple[tuple[str, str], ...]]
"""Maps (example id, repetition) to titles and texts."""


class _Line(msgspec.Struct):
    """A line of `aids.jsonl`. A view has no parts."""

    example_id: str
    parts: list[str | dict[str, object]] = []


def _diagnosis_folder(run: ScoredRun) -> Path | None:
    """Return the folder of the diagnosis to which this plain run belongs, or None."""
    folder = run.folder.parent.parent
    return folder if run.folder.parent.name == PLAIN and (folder / DIAGNOSIS_FILE).is_file() else None


def without_asked_twice(runs: Sequence[ScoredRun]) -> list[ScoredRun]:
    """Leave out the plain run of a diagnosis if another run has the same model and task."""
    keys = {run.folder: (run.task.benchmark, run.task.name, run.results.model.label) for run in runs}
    others = {keys[run.folder] for run in runs if _diagnosis_folder(run) is None}
    return [run for run in runs if _diagnosis_folder(run) is None or keys[run.folder] not in others]


def causes_of(run: ScoredRun) -> dict[str, tuple[str, ...]]:
    """Map example ids to the causes of their errors, if a diagnosis asked the run's questions again."""
    folder = _diagnosis_folder(run)
    if folder is None:
        return {}
    return {
        example_id: tuple(" and ".join(levels) for levels in sets)
        for diagnosis in read_diagnoses([folder])
        if diagnosis.task == run.task.name
        for example_id, sets in diagnosis.causes.items()
    }


def aided_answers(run: ScoredRun, max_text: int) -> Beside:
    """Return the aids and answers in each condition of the model's diagnosis.

    Texts are cut at `max_text` characters.
    """
    folder = _diagnosis_folder(run)
    shown: dict[tuple[str, int], tuple[tuple[str, str], ...]] = defaultdict(tuple)
    for aided in sorted(folder.glob(f"*/{run.folder.name}")) if folder else ():
        condition = aided.parent.name
        if condition == PLAIN or not (aided / CONFIG_FILE).is_file():
            continue
        told = _told(aided)
        with run_records(aided, read_run(aided)) as records:
            for record in records:
                name = words(condition.replace("+", " and ").replace(".", " "))
                texts = (
                    (f"Told: {name}", told.get(record.example_id, "")),
                    (f"Answer, told {name}", record.text or ""),
                )
                shown[record.example_id, record.repetition] += tuple(
                    (title, text[:max_text]) for title, text in texts if text
                )
    return shown


def _told(folder: Path) -> dict[str, str]:
    """Map example ids to the texts of their aids. A picture's name stands in its place."""
    if not (folder / AIDS_FILE).is_file():
        return {}
    lines = read_json_lines(
        folder / AIDS_FILE, MAX_AIDS_LINE, msgspec.json.Decoder(_Line).decode, what="no aid", remedy="diagnose again"
    )
    return {
        line.example_id: "".join(part if isinstance(part, str) else "[picture]\n" for part in line.parts)
        for _, line in lines
    }
