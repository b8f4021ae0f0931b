"""The benchmark's submission file: one record `{qid, predicted_answer, reasoning}` per question (project page).

The project page does not say whether the file is a JSON list or JSONL. Here the file's suffix decides, and both forms
can be read. A question with an unreadable answer is sent with an empty `predicted_answer`, which matches no letter.
Leaving the question out would hide the failure.

Submissions from others are scored on questions with known references (`recorded_submissions`). Such a file lies beside
the annotations and has `submission` in its name. No media are needed. Frames are only named, and boxes of the evidence
are ignored, since only the media tell the frame size.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from barista_bench.benchmarks import RecordedAnswer, RecordedAnswers
from barista_bench.benchmarks.egocot.cot import Cot, example_of
from barista_bench.benchmarks.egocot.items import CotAnswer, CotInputs
from barista_bench.benchmarks.egocot.release import EgocotRelease, open_release
from barista_bench.benchmarks.release_records import MAX_JSON
from barista_bench.core.example import Scored
from barista_bench.errors import DataError
from barista_bench.files.reading import first_complaint, read_bounded_text
from barista_bench.files.text_out import make_printable
from barista_bench.files.writing import write_whole

PREFIX = "egocot:"
"""The text before the qid in the id of an example."""


class SubmissionLine(BaseModel):
    """One record. `predicted_answer` is a letter, or empty for an unreadable answer."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    qid: str = Field(min_length=1, max_length=200)
    predicted_answer: str = Field(pattern=r"^[A-Z]?$")
    reasoning: str = Field(max_length=100_000)


_LINES = TypeAdapter(list[SubmissionLine])


def submission_lines(samples: Iterable[Scored]) -> list[SubmissionLine]:
    """Return the records of one run's samples, sorted by qid. The references may be hidden.

    Raises DataError if a question is answered twice, an answer is not one of its choices, or an example is not the
    benchmark's.
    """
    lines: dict[str, SubmissionLine] = {}
    for sample in samples:
        example = sample.example
        if example.benchmark != "egocot" or not example.example_id.startswith(PREFIX):
            raise DataError(f"{example.example_id}: is not a question of EgoCoT-Bench. Fix: name a run of egocot/cot")
        qid = example.example_id.removeprefix(PREFIX)
        if qid in lines:
            raise DataError(f"{example.example_id}: is answered twice. Fix: submit one run at a time")
        answer = CotAnswer.read(sample.prediction.value) if sample.prediction else CotAnswer("", "")
        if answer.answer and answer.answer not in CotInputs.of(example).texts:
            choice = repr(answer.answer)
            raise DataError(f"{example.example_id}: {choice} is not one of its choices. Fix: score the run again")
        lines[qid] = SubmissionLine(qid=qid, predicted_answer=answer.answer, reasoning=answer.reasoning)
    return [lines[qid] for qid in sorted(lines)]


def check_questions(lines: Sequence[SubmissionLine], qids: Container[str]) -> None:
    """Raise DataError unless a submission answers only known questions, each at most once.

    The error names the first fault.
    """
    seen_qids: set[str] = set()
    for line in lines:
        if line.qid not in qids:
            raise DataError(f"submission: {line.qid!r} is not a question of this split. Fix: leave it out")
        if line.qid in seen_qids:
            raise DataError(f"submission: {line.qid!r} appears twice. Fix: keep one")
        seen_qids.add(line.qid)


def write_submission(lines: Sequence[SubmissionLine], path: str | Path) -> Path:
    """Write a submission atomically, as a JSON list for a `.json` file and otherwise as JSONL."""
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

    Raises DataError if the file is missing, too large, or breaks the format. The error names line and field.
    """
    text = read_bounded_text(path, MAX_JSON, what="no submission file", remedy="write one")
    try:
        is_list = text.lstrip().startswith("[")
        records = json.loads(text) if is_list else [json.loads(line) for line in text.split("\n") if line.strip()]
    except (ValueError, RecursionError) as error:
        cause = make_printable(str(error))[:200] or type(error).__name__
        raise DataError(f"{path}: is not JSON ({cause}). Fix: correct it") from error
    try:
        return _LINES.validate_python(records)
    except ValidationError as error:
        raise DataError(make_printable(f"{path}: record {first_complaint(error)}. Fix: correct it")) from error


def recorded_submissions(path: Path) -> Sequence[RecordedAnswers]:
    """Read the answers of a submission file, or of every submission file in a folder.

    Each file counts as a model with the file's name. `path` is a file called `...submission....json` or `.jsonl` beside
    the annotations, or the folder of such files. Raises DataError if there is no such file, if a file breaks the
    format, or if it answers questions that the annotations lack.
    """
    folder = path if path.is_dir() else path.parent
    files = [path] if path.is_file() else sorted(folder.glob("*submission*.json*"))
    if not files:
        raise DataError(f"{path}: no submission file. Fix: name one, or the folder of one and of the annotations")
    release = open_release(folder)
    return [_recorded_answers(file, release) for file in files]


def _recorded_answers(file: Path, release: EgocotRelease) -> RecordedAnswers:
    lines = read_submission(file)
    check_questions(lines, release.items)
    return RecordedAnswers(
        model=file.stem,
        task=Cot,
        examples=tuple(example_of(release.items[line.qid], release) for line in lines),
        answers=tuple(
            RecordedAnswer(
                f"{PREFIX}{line.qid}", 0, json.dumps({"answer": line.predicted_answer, "reasoning": line.reasoning})
            )
            for line in lines
        ),
    )
