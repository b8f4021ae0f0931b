"""Shows a study to each participant: the next question, and no data of other people.

An answer is saved in the person's log before it is added to the run that counts. If the process is killed between the
two, the answer is added when the study is served again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec

from barista_bench.core.boxes import DEFAULT_BOX_FORMAT
from barista_bench.core.guarding import guard
from barista_bench.errors import DataError, TaskError
from barista_bench.files.owned_folders import RUN, check_output_path
from barista_bench.runs.log.inputs import asked_inputs, digest
from barista_bench.runs.log_reader import finished_samples
from barista_bench.studio.inviting import ATTENTION_CHOICES, study_tasks
from barista_bench.studio.people import (
    AskedTask,
    PersonRuns,
    SampledQuestion,
    answer_text,
    explained_rows,
    form_of,
    human_name,
    question_json,
)
from barista_bench.studio.study import (
    ANSWERS_FILE,
    STUDY_FILE,
    AnswerLog,
    LoggedAnswer,
    Participant,
    Study,
    StudyQuestion,
    hash_of,
    read_study,
)
from barista_bench.studio.workspace import Json

log = logging.getLogger(__name__)

HOW_ASKED = "part of a study, after practice with answers shown"


class RefusedAnswer(DataError):
    """An error for a participant. Its text contains only data that the participant has sent, so it may be shown."""


class SentAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer from a participant's page; `answer` is as in `PersonAnswer`, or null if the question was skipped."""

    question: str
    answer: Any
    seconds: Annotated[float, msgspec.Meta(ge=0, le=1e6)]
    skipped: bool = False


StudyTasks: TypeAlias = Mapping[tuple[str, str], tuple[AskedTask, Mapping[str, int]]]
"""Tasks by benchmark and name: each entry has the task, and the position of each example by id."""


class ParticipantSession:
    """One participant's progress through the assigned questions. Methods may be called from several threads.

    Raises ConfigError or DataError if a run folder belongs to another run, or a log cannot be read.
    """

    def __init__(self, folder: Path, participant: Participant, tasks: StudyTasks) -> None:
        self.participant = participant
        self._lock = threading.Lock()
        self._log = AnswerLog(folder / participant.name / ANSWERS_FILE)
        self._runs = PersonRuns(participant.name, HOW_ASKED)
        self._questions = [self._sampled_question(folder, tasks, question) for question in participant.questions]
        self._unreadable = set[int]()
        self._shown_question: tuple[int, Json] | None = None
        folders = {question.asked_task.opened.folder for question in self._questions if question is not None}
        entered = frozenset[bytes]().union(*map(finished_samples, folders))
        for position, answer in self._log.answers.items():
            question = self._questions[position] if position < len(self._questions) else None
            if question is not None and question.digest not in entered:
                self._enter(position, answer)

    def _sampled_question(self, folder: Path, tasks: StudyTasks, question: StudyQuestion) -> SampledQuestion | None:
        """Return the question in the form that the person sees; None for an attention check, which has no example."""
        if question.kind == "attention":
            return None
        task, positions = tasks[question.benchmark, question.task]
        if question.example not in positions:
            raise DataError(f"{question.example}: is not in its dataset any more. Fix: bring the dataset back")
        person = self.participant.name
        run = check_output_path(folder / person / question.benchmark / question.task, RUN)
        config = task.config.model_copy(update={"model": human_name(person), "out": run.parent})
        persons_task = AskedTask(replace(task.opened, folder=run), task.inputs, config)
        (sampled_question,) = self._runs.questions(persons_task, [positions[question.example]])
        return sampled_question

    def _enter(self, position: int, answer: LoggedAnswer) -> None:
        question = self._questions[position]
        if question is not None and self.participant.questions[position].kind == "item":
            self._runs.log(question, answer.text, answer.seconds)

    def state(self) -> Json:
        """Return the next question with its introduction, and the person's progress."""
        with self._lock:
            return self._state()

    def _state(self) -> Json:
        position = self._next_position()
        questions, answers = self.participant.questions, self._log.answers
        counted_positions = [index for index, question in enumerate(questions) if question.kind != "practice"]
        state: Json = {"done": sum(index in answers for index in counted_positions), "total": len(counted_positions)}
        if self._unreadable:
            state["lost"] = len(self._unreadable)
        if position is None:
            return state
        return {**state, **self._question_fields(position), "block": self._task_progress(position)}

    def _next_position(self) -> int | None:
        for position in range(len(self._questions)):
            if position not in self._log.answers and position not in self._unreadable:
                try:
                    self._question_fields(position)
                except (DataError, TaskError) as error:
                    example = self.participant.questions[position].example
                    log.warning("%s: %s: not asked: %s", self.participant.name, example, error)
                    self._unreadable.add(position)
                else:
                    return position
        return None

    def _question_fields(self, position: int) -> Json:
        if self._shown_question is None or self._shown_question[0] != position:
            planned, question = self.participant.questions[position], self._questions[position]
            fields = _attention_fields(planned) if question is None else question_json(question)
            page_fields = {name: value for name, value in fields.items() if name not in ("benchmark", "task")}
            page_fields |= {"question": self._token(position), "practice": planned.kind == "practice"}
            self._shown_question = position, page_fields
        return self._shown_question[1]

    def _token(self, position: int) -> str:
        """Return the name of a question on the page; the name reveals nothing about the question."""
        return digest("study", self.participant.token_sha256, position)[:24]

    def _task_progress(self, position: int) -> Json:
        current = self.participant.questions[position]
        members = [
            (index, question)
            for index, question in enumerate(self.participant.questions)
            if (question.benchmark, question.task) == (current.benchmark, current.task)
        ]
        task = next(
            question.task for question in (self._questions[index] for index, _ in members) if question is not None
        )
        is_practice = current.kind == "practice"
        part = [index for index, question in members if (question.kind == "practice") == is_practice]
        return {
            "title": current.task,
            "about": task.row_note,
            "practice": sum(question.kind == "practice" for _, question in members),
            "counted": sum(question.kind != "practice" for _, question in members),
            "begun": any(index in self._log.answers for index, _ in members),
            "number": part.index(position) + 1,
            "of": len(part),
        }

    def answer(self, sent: SentAnswer) -> Json:
        """Save an answer to the open question; return the next question, and after practice the right answer.

        An earlier answer to the same question stays: the page may send an answer again after a network failure. Raises
        RefusedAnswer, and saves nothing, if the question is not open or the task cannot read the answer.
        """
        with self._lock:
            position = self._next_position()
            if any(sent.question == self._token(index) for index in self._log.answers):
                return self._state()
            if position is None or sent.question != self._token(position):
                raise RefusedAnswer("this question is not open to you. Fix: load the page again")
            planned, question = self.participant.questions[position], self._questions[position]
            text = _logged_text(question, sent)
            now = datetime.now(UTC).isoformat(timespec="seconds")
            fields = (planned.kind, planned.benchmark, planned.task, planned.example, text, round(sent.seconds, 3), now)
            answer = LoggedAnswer(position, *fields)
            self._log.append(answer)
            self._enter(position, answer)
            is_practice = planned.kind == "practice"
            shown_after = feedback(question, text) if question is not None and is_practice else None
            return {**self._state(), "feedback": shown_after}


class ParticipantSessions:
    """The sessions of a study's participants, by their tokens; new invitations take effect immediately.

    Raises ConfigError or DataError if the study or its datasets cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._lock = folder, threading.Lock()
        self.study: Study = read_study(folder)
        self._tasks = {
            (opened.task.benchmark, opened.task.name): (
                AskedTask(opened, tuple(asked_inputs(opened.task, opened.examples, DEFAULT_BOX_FORMAT)), config),
                {example.example_id: index for index, example in enumerate(opened.examples.examples)},
            )
            for config, opened in study_tasks(self.study, folder)
        }
        self._stamp: tuple[int, int] | None = None
        self._by_hash: dict[str, Participant] = {}
        self._open: dict[str, ParticipantSession] = {}

    def name_of(self, token: str) -> str | None:
        """Return the name of the participant with this token."""
        if not token:
            return None
        with self._lock:
            status = (self._folder / STUDY_FILE).stat()
            stamp = status.st_mtime_ns, status.st_size
            if stamp != self._stamp:
                self.study, self._stamp = read_study(self._folder), stamp
                self._by_hash = {person.token_sha256: person for person in self.study.participants}
            participant = self._by_hash.get(hash_of(token))
            return participant.name if participant is not None else None

    def session_of(self, name: str) -> ParticipantSession:
        """Return the session of a participant."""
        with self._lock:
            participant = next(person for person in self.study.participants if person.name == name)
            session = self._open.get(name)
            if session is None or session.participant != participant:
                session = self._open[name] = ParticipantSession(self._folder, participant, self._tasks)
            return session


def _logged_text(question: SampledQuestion | None, sent: SentAnswer) -> str | None:
    """Return the text of an answer for the log; None for a skipped question. Raises RefusedAnswer."""
    if sent.skipped:
        return None
    if question is None:
        if sent.answer not in tuple(ATTENTION_CHOICES):
            raise RefusedAnswer("this answer is not among the choices. Fix: load the page again")
        return str(sent.answer)
    try:
        return answer_text(question.task, question.example, sent.answer)
    except DataError as error:
        raise RefusedAnswer(str(error)) from error


def _attention_fields(planned: StudyQuestion) -> Json:
    choice = ATTENTION_CHOICES[planned.expected]
    text = f"This question has no picture: it is there to see that questions are read. Choose the answer “{choice}”."
    form = {"form": "choice", "choices": ATTENTION_CHOICES, "schema": None, "scale": DEFAULT_BOX_FORMAT.scale}
    return {"system": "", "parts": [text], "prompt": "", "images": [], **form}


def feedback(question: SampledQuestion, text: str | None) -> Json:
    """Return the feedback after practice: the right answer, and the right parts of the given answer.

    Raises TaskError if the task raises an error.
    """
    task, example = question.task, question.example
    rows = explained_rows(task, example, text, DEFAULT_BOX_FORMAT)
    with guard(task, "overlays", example):
        boxes = [overlay for overlay in task.overlays(example, None) if overlay.kind == "reference"]
    form, right_answer = form_of(task, example), ""
    if form == "text":
        with guard(task, "reference_answer", example):
            right_answer = task.reference_answer(example, DEFAULT_BOX_FORMAT)
    return {
        "right": list(task.correct_choices(example)) if form == "choice" else [],
        "text": right_answer,
        "rows": rows,
        "boxes": [{"image": box.image, "box": box.box, "label": box.label} for box in boxes],
    }
