"""The benchmark's submission file: one record `{qid, predicted_answer, reasoning}` a question (project page).

Whether it is a JSON list or JSONL is not public: the file's suffix decides, and both are read. A question whose answer
could not be read is sent with an empty `predicted_answer`, which no letter matches; leaving it out would hide it.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from barista_bench.benchmarks.egocot.columns import choices_of
from barista_bench.benchmarks.egocot.files import MAX_BYTES
from barista_bench.core.task import Scored
from barista_bench.errors import DataError
from barista_bench.files.atomic import write_whole
from barista_bench.files.bounded import read_bounded_text
from barista_bench.files.schema import first_complaint
from barista_bench.files.text_out import printable

PREFIX = "egocot:"
"""What stands before the qid in the ids of examples."""


class SubmissionLine(BaseModel):
    """One record. `predicted_answer` is a letter, or empty where no answer could be read."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    qid: str = Field(min_length=1, max_length=200)
    predicted_answer: str = Field(pattern=r"^[A-Z]?$")
    reasoning: str = Field(max_length=100_000)


_LINES = TypeAdapter(list[SubmissionLine])


def submission_lines(samples: Iterable[Scored]) -> list[SubmissionLine]:
    """The records of one run's samples, by qid.

    Args:
        samples: of one run, at most one an example; the answers of the examples may be hidden.

    Raises:
        DataError: a question is answered twice, an answer is none of its choices, or an example is not the benchmark's.
    """
    found: dict[str, SubmissionLine] = {}
    for sample in samples:
        example, said = sample.example, sample.prediction
        if example.benchmark != "egocot" or not example.example_id.startswith(PREFIX):
            raise DataError(f"{example.example_id}: is no question of EgoCoT-Bench. Remedy: name a run of egocot/cot")
        qid = example.example_id.removeprefix(PREFIX)
        if qid in found:
            raise DataError(f"{example.example_id}: is answered twice. Remedy: submit one run at a time")
        letter = str(said.value["answer"]) if said else ""
        if letter and letter not in choices_of(example.inputs):
            raise DataError(f"{example.example_id}: {letter!r} is none of its choices. Remedy: score the run again")
        reasoning = str(said.value["reasoning"]) if said else ""
        found[qid] = SubmissionLine(qid=qid, predicted_answer=letter, reasoning=reasoning)
    return [found[qid] for qid in sorted(found)]


def check_complete(lines: Sequence[SubmissionLine], qids: Iterable[str]) -> None:
    """Check that a submission has every question of the benchmark once, and no other.

    Raises:
        DataError: it has not; names the first question that is missing, unknown or there twice.
    """
    wanted = set(qids)
    check_known(lines, wanted)
    missing = sorted(wanted - {line.qid for line in lines})
    if missing:
        raise DataError(
            f"submission: {len(missing)} of {len(wanted)} questions are missing, first {missing[0]!r}. "
            "Remedy: finish the run"
        )


def check_known(lines: Sequence[SubmissionLine], qids: Container[str]) -> None:
    """Check that a submission answers known questions, each once.

    Raises:
        DataError: it does not; names the first that is unknown or there twice.
    """
    seen: set[str] = set()
    for line in lines:
        if line.qid not in qids:
            raise DataError(f"submission: {line.qid!r} is no question of this split. Remedy: leave it out")
        if line.qid in seen:
            raise DataError(f"submission: {line.qid!r} stands twice. Remedy: keep one")
        seen.add(line.qid)


def write_submission(lines: Sequence[SubmissionLine], path: str | Path) -> Path:
    """Write a submission, as a JSON list where the file is called `.json`, else as JSONL; atomically."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    records = [line.model_dump() for line in lines]
    if path.suffix.lower() == ".json":
        text = json.dumps(records, ensure_ascii=False, indent=1) + "\n"
    else:
        text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    write_whole(path, text)
    return path


def read_submission(path: str | Path) -> list[SubmissionLine]:
    """Read and check a submission, JSON or JSONL.

    Raises:
        DataError: it is missing, too large, or breaks the format; names line and field.
    """
    text = read_bounded_text(path, MAX_BYTES, what="no submission file", remedy="write one")
    try:
        whole = text.lstrip().startswith("[")
        records = json.loads(text) if whole else [json.loads(line) for line in text.split("\n") if line.strip()]
    except (ValueError, RecursionError) as error:
        cause = printable(str(error))[:200] or type(error).__name__
        raise DataError(f"{path}: is no JSON ({cause}). Remedy: correct it") from error
    try:
        return _LINES.validate_python(records)
    except ValidationError as error:
        raise DataError(printable(f"{path}: record {first_complaint(error)}. Remedy: correct it")) from error
