"""Asks a person the questions for models, and logs the answers like the answers of a model.

`OUT/PERSON/BENCHMARK/TASK` is a run folder of the model `human:PERSON` over the complete set, so every command for runs
can read it. The person answers only a draw of the set. The coverage shows how large the draw is, and comparisons use
the common examples.
"""

from __future__ import annotations

import base64
import json
import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from barista_bench.core.boxes import DEFAULT_BOX_FORMAT, BoxFormat
from barista_bench.core.example import MAX_TEXT, Example, ParseError, content_seed, write_scores
from barista_bench.core.guarding import guard, unit_of
from barista_bench.core.model_names import HUMAN
from barista_bench.core.prompt import TextPart
from barista_bench.core.settings import check_settings
from barista_bench.core.status import Status
from barista_bench.core.task import Task
from barista_bench.data.dataset import recorded_root
from barista_bench.data.manifest import DEFAULT_BENCHMARK, read_manifest
from barista_bench.errors import DataError, TaskError
from barista_bench.files.owned_folders import RUN, check_output_path
from barista_bench.judging.answers import asks_for_reasons
from barista_bench.models import ModelIdentity
from barista_bench.reporting.pictures import spread_order
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.opening import ALL, open_tasks
from barista_bench.runs.ask.runner import claimed_run, locked_log
from barista_bench.runs.ask.shard import Shard
from barista_bench.runs.log.inputs import AskedInput, asked_inputs, digest, sample_keys
from barista_bench.runs.log.sample_log import SampleRecord, sample_digest
from barista_bench.runs.log_reader import finished_samples
from barista_bench.runs.run_folder import OpenedTask
from barista_bench.studio.footage import jpeg
from barista_bench.studio.prompts_for_people import prompt_for_people
from barista_bench.studio.workspace import Json, Routes, Workspace, sent_as, whole_number

log = logging.getLogger(__name__)

AnswerForm = Literal["choice", "fields", "text"]
Number = Annotated[int, msgspec.Meta(ge=1, le=10_000)]


class NextQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request for the next question of a draw with `number` examples per task."""

    number: Number


class PersonAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer: a label, JSON in the question's schema, or text.

    `seconds` is the time since the question was shown.
    """

    number: Number
    question: str
    answer: Any
    seconds: Annotated[float, msgspec.Meta(ge=0, le=1e6)]


@dataclass(frozen=True, slots=True)
class AskedTask:
    """A task, and the question for each of its examples."""

    opened: OpenedTask
    inputs: Sequence[AskedInput]
    config: RunConfig


@dataclass(frozen=True, slots=True)
class SampledQuestion:
    """One example of a draw, and the key of its sample.

    `token` is the name of the example on the page; it reveals nothing about the example.
    """

    asked_task: AskedTask
    position: int
    token: str
    key: str

    @property
    def task(self) -> Task:
        return self.asked_task.opened.task

    @property
    def example(self) -> Example:
        return self.asked_task.opened.examples.examples[self.position]

    @property
    def asked_input(self) -> AskedInput:
        return self.asked_task.inputs[self.position]

    @property
    def digest(self) -> bytes:
        return sample_digest(self.key, self.asked_input.fingerprint, self.example.example_id, 0)


class PersonRuns:
    """The runs of one person, as the model `human:PERSON`: one run per task, in the folder named in `AskedTask`.

    Args:
        how: how the person is asked, as part of the model's settings.
    """

    def __init__(self, person: str, how: str) -> None:
        self.identity = ModelIdentity(human_name(person), settings={"asked": how})
        self._claimed: set[Path] = set()

    def questions(self, task: AskedTask, positions: Iterable[int]) -> Iterator[SampledQuestion]:
        """Return the examples at these positions of a task, as questions."""
        opened_task, examples = task.opened.task, task.opened.examples.examples
        key_of = sample_keys(asdict(self.identity), asdict(task.config.generation))
        for position in positions:
            example_id = examples[position].example_id
            token = digest("people", opened_task.benchmark, opened_task.name, example_id)[:24]
            yield SampledQuestion(task, position, token, key_of(example_id, task.inputs[position].fingerprint, 0))

    def log(self, question: SampledQuestion, text: str | None, seconds: float) -> None:
        """Add an answer to its run, unless the question has one; None means skipped, and scores like a refusal."""
        task, opened, asked_input = question.asked_task, question.asked_task.opened, question.asked_input
        if question.digest in finished_samples(opened.folder):
            return
        record = SampleRecord(
            key=question.key,
            fingerprint=asked_input.fingerprint,
            example_id=question.example.example_id,
            repetition=0,
            status=Status.REFUSED if text is None else Status.OK,
            text=text,
            finish_reason="stop",
            error="skipped" if text is None else None,
            seconds=round(seconds, 3),
            prompt=asked_input.prompt,
            media=asked_input.media,
        )
        alone = Shard()
        with locked_log(opened.folder, alone, alone.launch(opened.task.name)) as samples:
            # The folder is made with the first answer, since an empty run cannot be read.
            if opened.folder not in self._claimed:
                with claimed_run(opened, task.inputs, samples, self.identity, DEFAULT_BOX_FORMAT, task.config, alone):
                    self._claimed.add(opened.folder)
            samples.append(record)


class AnswerRoutes(Routes):
    """Asks one person the questions of the opened datasets.

    The page receives the same data as a model, without references.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._lock = threading.Lock()
        self._runs = PersonRuns(workspace.person, "draw in proportion to strata")
        self._tasks: list[AskedTask] = []
        self._samples: dict[int, list[SampledQuestion]] = {}
        self._unreadable: dict[str, str] = {}
        self.reads = {"/api/people/plan": lambda query: self.plan(whole_number(query, "number"))}
        self.writes = {
            "/api/people/next": lambda body: self.next(sent_as(NextQuestion, body).number),
            "/api/people/answer": lambda body: self.answer(sent_as(PersonAnswer, body)),
        }

    def plan(self, number: int) -> Json:
        """Return how many questions of each task are in a draw, and how many are answered.

        Raises the errors of `next`.
        """
        with self._lock:
            questions = self._questions_of(number)
            finished = self._finished_samples()
            tasks = [
                {
                    "benchmark": asked.opened.task.benchmark,
                    "task": asked.opened.task.name,
                    "about": asked.opened.task.row_note,
                    "questions": sum(question.asked_task is asked for question in questions),
                    "answered": sum(q.asked_task is asked and q.digest in finished for q in questions),
                }
                for asked in self._tasks
            ]
            return {"tasks": tasks, "kept": str(self._workspace.out / self._workspace.person)}

    def next(self, number: int) -> Json:
        """Return the next open question, and the progress of the draw.

        Raises DataError or ConfigError if a dataset cannot be opened, or a run folder belongs to another run.
        """
        with self._lock:
            questions = self._questions_of(number)
            finished = self._finished_samples()
            open_questions = [q for q in questions if q.digest not in finished and q.token not in self._unreadable]
            for question in open_questions:
                try:
                    fields = question_json(question)
                    break
                except (DataError, TaskError) as error:
                    log.warning("%s: not asked: %s", question.example.example_id, error)
                    self._unreadable[question.token] = str(error)
            else:
                fields = {}
            done = len(questions) - len(open_questions)
            state = {"done": done, "total": len(questions), "kept": str(self._workspace.out / self._workspace.person)}
            return {**fields, **state, "problems": list(self._unreadable.values())}

    def answer(self, sent: PersonAnswer) -> Json:
        """Log an answer and return the next question. An earlier answer to the same question stays.

        Raises DataError, and logs nothing, if the question is not in the draw or the task cannot read the answer.
        """
        with self._lock:
            questions = self._questions_of(sent.number)
            question = next((q for q in questions if q.token == sent.question), None)
            if question is None:
                raise DataError("this question is not of your draw. Fix: load the page again")
            self._runs.log(question, answer_text(question.task, question.example, sent.answer), sent.seconds)
        return self.next(sent.number)

    def _finished_samples(self) -> frozenset[bytes]:
        return frozenset[bytes]().union(*(finished_samples(task.opened.folder) for task in self._tasks))

    def _questions_of(self, number: int) -> list[SampledQuestion]:
        """Return all questions of the draw, over all tasks, in a separate order for each person."""
        self._tasks = self._tasks or list(self._asked_tasks())
        if number not in self._samples:
            person, questions = self._workspace.person, list[SampledQuestion]()
            for task in self._tasks:
                positions = sample_examples(task.opened.task, task.opened.examples.examples, number)
                questions += self._runs.questions(task, positions)
            self._samples[number] = sorted(questions, key=lambda row: content_seed("people", person, row.token))
        return self._samples[number]

    def _asked_tasks(self) -> Iterator[AskedTask]:
        person, release = self._workspace.person, self._workspace.release
        for folder in self._workspace.datasets:
            root = release.root if release is not None and recorded_root(folder) is None else None
            for config, opened in tasks_to_ask(folder, self._workspace.out / person, person, root):
                check_output_path(opened.folder, RUN)
                yield AskedTask(opened, asked_inputs(opened.task, opened.examples, DEFAULT_BOX_FORMAT), config)


def human_name(person: str) -> str:
    """Return the name of a person as a model."""
    return f"{HUMAN}:{person}"


def tasks_to_ask(data: Path, out: Path, person: str, root: Path | None = None) -> list[tuple[RunConfig, OpenedTask]]:
    """Return the tasks of a built dataset as runs of a person, in folders below `out`.

    `root` is the folder of the videos, for a linked dataset.

    Raises ConfigError or DataError if the dataset cannot be opened.
    """
    benchmark = str(read_manifest(data).get("benchmark", DEFAULT_BENCHMARK))
    settings = {
        "data": str(data),
        "out": out / benchmark,
        "task": ALL,
        "repetitions": 1,
        "temperature": 0.0,
        "root": root,
    }
    config = check_settings(RunConfig, {**settings, "model": human_name(person)})
    return [(config, opened) for opened in open_tasks(config)]


def sample_examples(task: Task, examples: Sequence[Example], number: int) -> list[int]:
    """Return the positions of at least `number` examples with a known reference, or of all such examples.

    The positions are the same for every person. A larger number adds to the examples of a smaller number. Examples that
    are scored together are drawn together.
    """
    positions: list[int] = []
    for unit in choose_order(task, examples):
        if len(positions) >= number:
            break
        positions += unit
    return positions


def choose_order(task: Task, examples: Sequence[Example]) -> Iterator[list[int]]:
    """Yield the positions of all examples with a known reference, in lists of examples that are scored together.

    Every stretch of the order has a share of every breakdown and label. To this end, the examples are sorted by
    breakdowns and label, and taken at even distances, as in van der Corput's sequence.
    """
    units: dict[str, list[int]] = {}
    for position, example in enumerate(examples):
        if task.has_answer(example):
            unit = unit_of(task, example) if task.scores_whole_units else example.example_id
            units.setdefault(unit, []).append(position)

    def stratum(unit: str) -> tuple[str | int, ...]:
        first = examples[units[unit][0]]
        groups = [str(first.metadata.get(key)) for key in task.breakdown_keys]
        return (*groups, first.label, content_seed("people", unit))

    ranked = sorted(units, key=stratum)
    start = content_seed("people", task.benchmark, task.name) % max(1, len(ranked))
    return (units[ranked[(start + index) % len(ranked)]] for index in spread_order(len(ranked)))


def form_of(task: Task, example: Example) -> AnswerForm:
    """Return how the page asks for an answer. Reasons are written as text, even if there are choices."""
    if task.choices(example) and not asks_for_reasons(task):
        return "choice"
    return "text" if task.answer_schema(example) is None else "fields"


def question_json(question: SampledQuestion) -> Json:
    """Return a question for the page: the prompt for models, the text for people, images, and form of the answer.

    Raises:
        DataError: the images cannot be read.
        TaskError: the task cannot make the question.
    """
    task, example, prompt = question.task, question.example, question.asked_input.question
    if isinstance(prompt, TaskError):
        raise prompt
    images = question.asked_task.opened.examples[question.position].images(task) if prompt.image_count else ()
    form, choices = form_of(task, example), dict(task.choices(example))

    def told(text: str) -> str:
        if form == "text":  # this text is read in the format that the prompt asks for
            return text
        return prompt_for_people(_without_choices(text, choices) if form == "choice" else text)

    parts = [told(part.text) if isinstance(part, TextPart) else part.index for part in prompt.parts]
    return {
        "question": question.token,
        "benchmark": task.benchmark,
        "task": task.name,
        "system": told(prompt.system),
        "parts": [part for part in parts if part != ""],
        "images": [f"data:image/jpeg;base64,{base64.b64encode(jpeg(image)).decode()}" for image in images],
        "prompt": prompt.as_text(),
        "form": form,
        "choices": choices,
        "schema": task.answer_schema(example),
        "scale": DEFAULT_BOX_FORMAT.scale,
    }


def answer_text(task: Task, example: Example, answer: object) -> str:
    """Return an answer from the page in the form for the task's parser.

    Raises DataError if the parser cannot read it.
    """
    form, choices = form_of(task, example), task.choices(example)
    if form == "fields":
        text = json.dumps(answer, ensure_ascii=False)
    elif not isinstance(answer, str) or (form == "choice" and answer not in choices):
        raise DataError("this answer is not among the choices, or not text. Fix: load the page again")
    else:
        text = answer if form == "text" else write_scores({label: float(label == answer) for label in choices})
    if len(text) > MAX_TEXT:
        problem = f"has more than {MAX_TEXT} characters"
    else:
        with guard(task, "parse", example):
            parsed = task.parse(text, example.inputs, DEFAULT_BOX_FORMAT)
        problem = parsed.reason if isinstance(parsed, ParseError) else ""
    if problem:
        raise DataError(f"this answer cannot be read: {problem}. Fix: answer in the form that the question asks for")
    return text


def explained_rows(task: Task, example: Example, text: str | None, box_format: BoxFormat) -> list[tuple[str, str]]:
    """Return the right, wrong and missing parts of an answer, in the task's words.

    Raises TaskError if the task raises an error.
    """
    prediction = None
    if text is not None:
        with guard(task, "parse", example):
            parsed = task.parse(text, example.inputs, box_format)
        prediction = None if isinstance(parsed, ParseError) else parsed
    with guard(task, "explain", example):
        return [(row.kind, row.text) for row in task.explain(example, prediction).rows]


def _without_choices(text: str, choices: Mapping[str, str]) -> str:
    """Return a text without the lines that list the choices, since the page shows choices as buttons."""
    listed = {f"{label}{mark} {choice}" for label, choice in choices.items() for mark in (".", ":", ")")}
    return "\n".join(line for line in text.split("\n") if line.strip() not in listed)
