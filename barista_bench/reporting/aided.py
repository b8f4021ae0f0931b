"""Prepare the data of a diagnosis to show beside a plain answer: the causes of an error, the aids, and the answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from barista_bench.diagnosis.conditions import PLAIN
from barista_bench.diagnosis.records import DIAGNOSIS_FILE, Diagnosis, read_diagnoses
from barista_bench.files.reading import read_json_lines
from barista_bench.runs.described import AIDS_FILE
from barista_bench.runs.log_reader import run_records
from barista_bench.runs.run_folder import CONFIG_FILE, read_run
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.tables import words

MAX_AIDS_LINE = 2**22
AidedAnswers = Mapping[tuple[str, int], tuple[tuple[str, str], ...]]
"""Maps (example id, repetition) to titles and texts."""
DiagnosisFolders = Mapping[Path, Sequence[Path]]
"""Maps run folders to the folders of their diagnoses."""


class _Line(msgspec.Struct):
    """A line of `aids.jsonl`. A view has no parts."""

    example_id: str
    parts: list[str | dict[str, object]] = []


def _diagnosis_folder(run: ScoredRun) -> Path | None:
    """Return the folder of the diagnosis to which this plain run belongs, or None."""
    folder = run.folder.parent.parent
    return folder if run.folder.parent.name == PLAIN and (folder / DIAGNOSIS_FILE).is_file() else None


def find_diagnoses(runs: Sequence[ScoredRun]) -> tuple[list[ScoredRun], DiagnosisFolders]:
    """Return the runs to show, and the folders of the diagnoses that belong to each of them.

    The plain run of a diagnosis is left out if another run of the model has its examples. The diagnosis then belongs to
    that run.
    """
    plain = {run.folder: folder for run in runs if (folder := _diagnosis_folder(run))}
    shown, found = [], defaultdict[Path, list[Path]](list)
    for run in runs:
        if run.folder not in plain:
            shown.append(run)
            continue
        same = next((other for other in runs if other.folder not in plain and _has_examples(other, run)), run)
        found[same.folder].append(plain[run.folder])
        if same is run:
            shown.append(run)
    return shown, found


def _has_examples(other: ScoredRun, run: ScoredRun) -> bool:
    """Return whether `other` has the same model and task, and all examples of `run`."""
    keys = [(each.task.benchmark, each.task.name, each.results.model.label) for each in (other, run)]
    asked = [{sample.example.example_id for sample in each.samples} for each in (other, run)]
    return keys[0] == keys[1] and asked[0] >= asked[1]


def labelled_diagnoses(run: ScoredRun, label: str, diagnosed: DiagnosisFolders) -> list[Diagnosis]:
    """Return the diagnoses that belong to a run, with the run's label as the name of the model."""
    return [
        diagnosis.model_copy(update={"model": label})
        for diagnosis in read_diagnoses(diagnosed.get(run.folder, ()))
        if (diagnosis.benchmark, diagnosis.task) == (run.task.benchmark, run.task.name)
    ]


def causes_of(task: str, folders: Sequence[Path]) -> dict[str, tuple[str, ...]]:
    """Map example ids to the causes of their errors in the diagnoses of a run."""
    return {
        example_id: tuple(" and ".join(levels) for levels in sets)
        for diagnosis in read_diagnoses(folders)
        if diagnosis.task == task
        for example_id, sets in diagnosis.causes.items()
    }


def aided_answers(run: ScoredRun, folders: Sequence[Path], max_text: int) -> AidedAnswers:
    """Return the aids and answers in each condition of the run's diagnoses.

    Texts are cut at `max_text` characters. The answer without aids is included unless it is the answer of `run`.
    """
    shown: dict[tuple[str, int], tuple[tuple[str, str], ...]] = defaultdict(tuple)
    for aided in (path for folder in folders for path in sorted(folder.glob(f"*/{run.task.name}"))):
        condition = "nothing" if aided.parent.name == PLAIN else aided.parent.name
        if aided == run.folder or not (aided / CONFIG_FILE).is_file():
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
