"""Computes statistics of a study's participants: progress, attention, agreement with themselves, and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from barista_bench.core.boxes import DEFAULT_BOX_FORMAT
from barista_bench.core.example import ParseError
from barista_bench.core.guarding import guard
from barista_bench.errors import ConfigError
from barista_bench.files.text_out import decimal
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.stats.agreement import AnswerAgreement, Answers, agreement_between
from barista_bench.studio.study import (
    ANSWERS_FILE,
    AnswerLog,
    LoggedAnswer,
    Participant,
    QuestionKind,
    is_study,
    read_study,
)


@dataclass(frozen=True, slots=True)
class ParticipantMetrics:
    """Statistics of one participant of a study.

    Failed checks are reported here; the participant's answers stay in the runs.

    Args:
        expected: number of questions that count.
        answered: number of these questions that are answered or skipped; `skipped` is the number of skipped questions.
        practised: number of answers to practice questions, which do not count.
        attention_passed: number of passed checks, of `attention_asked` checks so far. A skipped check is not passed.
        repeats: agreement of first and second answers to repeated questions, by task.
        repeats_unread: number of repeated questions with a skipped or unreadable answer, or of a task that cannot
            compare answers.
        seconds: median time of an answer that counts; None before the first such answer.
    """

    name: str
    expected: int
    answered: int
    skipped: int
    practised: int
    attention_passed: int
    attention_asked: int
    repeats: tuple[AnswerAgreement, ...]
    repeats_unread: int
    seconds: float | None


def studies_of(folders: Sequence[Path]) -> list[Path]:
    """Return the studies that are among some folders, or that contain one of them, each study once."""
    found = [path for folder in folders for path in (folder, *folder.resolve().parents) if is_study(path)]
    return list(dict.fromkeys(path.resolve() for path in found))


def study_scores(folder: Path, runs: Sequence[ScoredRun]) -> list[ParticipantMetrics]:
    """Return the statistics of the participants, in the order of their invitation.

    Args:
        runs: runs of the study; other runs are ignored.

    Raises:
        DataError: the study cannot be read.
        TaskError: a task raised an error.
    """
    by_folder = {run.folder.resolve(): run for run in runs}
    return [_compute_metrics(folder.resolve(), person, by_folder) for person in read_study(folder).participants]


def participant_text(person: ParticipantMetrics) -> str:
    """Describe one participant of a study in words."""
    metrics = ((row.task, row.same if row.score is None else row.score) for row in person.repeats)
    again = ", ".join(f"{task} {decimal(metric)}" for task, metric in metrics if metric is not None)
    unread = f"; {person.repeats_unread} put again cannot be held against the first" if person.repeats_unread else ""
    seconds = "none" if person.seconds is None else f"{person.seconds:.1f} s"
    return (
        f"{person.name}: {person.answered} of {person.expected} questions that count, {person.skipped} skipped; "
        f"attention checks passed {person.attention_passed} of {person.attention_asked}; "
        f"agrees with themselves {again or 'not known'}{unread}; median time {seconds}; {person.practised} practised"
    )


def _compute_metrics(folder: Path, person: Participant, runs: dict[Path, ScoredRun]) -> ParticipantMetrics:
    answers = list(AnswerLog(folder / person.name / ANSWERS_FILE).answers.values())

    def answers_of(kind: QuestionKind) -> list[LoggedAnswer]:
        return [answer for answer in answers if answer.kind == kind]

    items, checks, repeated = answers_of("item"), answers_of("attention"), answers_of("repeat")
    repeats = list[AnswerAgreement]()
    for name in dict.fromkeys((answer.benchmark, answer.task) for answer in repeated):
        run = runs.get(folder.joinpath(person.name, *name))
        second = [answer for answer in repeated if (answer.benchmark, answer.task) == name]
        agreement = _self_agreement(run, second) if run else None
        repeats += [agreement] if agreement else []
    answer_seconds = [answer.seconds for answer in items if answer.text is not None]
    return ParticipantMetrics(
        name=person.name,
        expected=sum(question.kind == "item" for question in person.questions),
        answered=len(items),
        skipped=sum(answer.text is None for answer in items),
        practised=len(answers_of("practice")),
        attention_passed=sum(answer.text == person.questions[answer.place].expected for answer in checks),
        attention_asked=len(checks),
        repeats=tuple(repeats),
        repeats_unread=len(repeated) - sum(agreement.examples for agreement in repeats),
        seconds=median(answer_seconds) if answer_seconds else None,
    )


def _self_agreement(run: ScoredRun, repeated: Sequence[LoggedAnswer]) -> AnswerAgreement | None:
    first: Answers = {
        sample.example.example_id: (sample.example, sample.prediction)
        for sample in run.samples
        if sample.prediction is not None
    }
    second: Answers = {}
    for answer in repeated:
        if answer.text is not None and answer.example in first:
            example = first[answer.example][0]
            with guard(run.task, "parse", example):
                prediction = run.task.parse(answer.text, example.inputs, DEFAULT_BOX_FORMAT)
            if not isinstance(prediction, ParseError):
                second[answer.example] = example, prediction
    name = run.results.model.name
    try:
        return agreement_between(run.task, (name, f"{name} again"), {name: first, f"{name} again": second})
    except ConfigError:
        return None
