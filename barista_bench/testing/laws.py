"""Define the laws that every task must satisfy, one function per law. `check_task` checks all laws."""

from __future__ import annotations

import copy
import json
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

from barista_bench.core.boxes import BOX_ORDERS, DEFAULT_BOX_FORMAT, BoxFormat
from barista_bench.core.display import FAILURE_KINDS, OverlayKind, RowKind
from barista_bench.core.example import Example, ParseError, Prediction, Scored, content_seed
from barista_bench.core.options import OptionValue
from barista_bench.core.task import Task
from barista_bench.data.frozen import read_frozen, write_frozen
from barista_bench.data.rows import from_row, question_columns, row_features, to_row
from barista_bench.errors import BaristaError, ConfigError
from barista_bench.testing.hostile_answers import HOSTILE_ANSWERS, damaged_forms

BOX_FORMATS = tuple(BoxFormat(order, scale) for order in BOX_ORDERS for scale in (1000, 1, None))
"""All orders of coordinates, each on the grid of 1000, in fractions and in pixels."""
_MARGIN = 1e-9
_SECONDS = 2.0
"""Maximum CPU time in seconds for reading one answer: a hundred times the usual time."""
_ROUNDING = 0.05
"""Maximum loss of a sample's score if boxes are written as integers. The task's score may lose nothing."""


class LawError(BaristaError, AssertionError):
    """A task breaks a law. The message names the law, the task, the example, the error and the remedy."""


def check_task(task: type[Task], examples: Sequence[Example], *, options: Mapping[str, object] | None = None) -> None:
    """Check a task against all laws, in every box format and under every choice of its rules.

    Needs jsonschema for a task with an answer schema.

    Args:
        task: a task of a benchmark in `BENCHMARKS`.
        examples: examples of the task, best a few from each of several videos. If an option of the task changes
            examples, give examples for each of its choices.
        options: options of the task, if a test cannot use the defaults, such as a model that compares names.

    Raises:
        LawError: the task breaks a law.
    """
    for rules in choices_of_rules(task):
        case = _Case(*with_options(task, examples, {**(options or {}), **rules}))
        for law, (remedy, check) in _LAWS.items():
            case.look_at()
            try:
                check(case)
            except Exception as error:  # a task may be third-party code: any error that it raises breaks the law
                cause = "" if isinstance(error, _BrokenLaw) else f"raised {type(error).__name__}: "
                raise LawError(
                    f"{task.benchmark}/{task.name}{_in_words(rules)}{case.place}: broken is the law that "
                    f"{law}: {cause}{error!s:.300}. Fix: {remedy}"
                ) from error


def choices_of_rules(task: type[Task]) -> list[dict[str, OptionValue]]:
    """Return every combination of the options that define a run or a set; one empty one without such options."""
    rules = {name: option for name, option in task.options.items() if option.changes in ("examples", "run")}
    return [dict(zip(rules, values, strict=True)) for values in product(*(o.choices for o in rules.values()))]


def with_options(
    task_type: type[Task], examples: Sequence[Example], options: Mapping[str, object]
) -> tuple[Task, tuple[Example, ...]]:
    """Return the task with these options, and the examples that were made with them."""
    task = task_type(options=options)
    defaults = {name: option.default for name, option in task.options.items() if option.changes == "examples"}
    made = (e for e in examples if all(e.metadata.get(n, value) == task.chosen[n] for n, value in defaults.items()))
    return task, tuple(made)


def _in_words(options: Mapping[str, OptionValue]) -> str:
    return "".join(f" by the {name} {value}" for name, value in options.items())


def chance_answer(task: Task, example: Example, seed: int, box_format: BoxFormat) -> str:
    """Return the answer of the baseline `chance` with this seed."""
    return task.random_answer(example, random.Random(content_seed(example.example_id, seed)), box_format)  # noqa: S311


def answers_of(task: Task, example: Example, *, hostile: bool) -> list[str]:
    """Return distinct texts to read as an answer to the example: the reference, answers of `chance`, and no answer.

    With `hostile`, also return damaged references and hostile answers.
    """
    texts = [chance_answer(task, example, seed, DEFAULT_BOX_FORMAT) for seed in range(3)] + ["", "I cannot tell."]
    if task.has_answer(example):
        reference = task.reference_answer(example, DEFAULT_BOX_FORMAT)
        texts += [reference, *damaged_forms(reference)] if hostile else [reference]
    return list(dict.fromkeys([*texts, *HOSTILE_ANSWERS] if hostile else texts))


class _BrokenLaw(Exception):
    """The description of a broken law."""


def _demand(holds: bool, complaint: str) -> None:
    if not holds:
        raise _BrokenLaw(complaint)


def _brief(value: object) -> str:
    return text if len(text := ascii(value)) <= 80 else f"{text[:60]}... ({len(text)} characters)"


@dataclass
class _Case:
    """A task with one combination of options, and its examples. `place` is the place at which a law is checked."""

    task: Task
    examples: tuple[Example, ...]
    place: str = ""

    def look_at(self, example: Example | None = None, value: object = "") -> None:
        example_text = f", example {example.example_id}" if example else ""
        self.place = example_text if value == "" else f"{example_text}, {_brief(value)}"

    @cached_property
    def answerable(self) -> tuple[Example, ...]:
        """Return the examples whose answer is known."""
        answerable = tuple(filter(self.task.has_answer, self.examples))
        _demand(bool(answerable), f"no example{_in_words(self.task.example_options)} is given whose answer is known")
        return answerable

    @cached_property
    def formats(self) -> tuple[BoxFormat, ...]:
        """Return the box formats to check. A single format is enough for a task without boxes."""
        task, example = self.task, self.answerable[0]
        texts = {(task.prompt(example, each), task.reference_answer(example, each)) for each in BOX_FORMATS}
        return BOX_FORMATS if len(texts) > 1 else (DEFAULT_BOX_FORMAT,)

    def answers(self) -> Iterator[tuple[Example, str]]:
        """Yield every example with texts to read as its answer. Only the first answerable one gets hostile texts."""
        for example in self.examples:
            for text in answers_of(self.task, example, hostile=example is self.answerable[0]):
                self.look_at(example, text)
                yield example, text

    @cached_property
    def predictions(self) -> list[tuple[Example, Prediction | None]]:
        """Return the distinct readable answers, and None, for every example."""
        by_reading: dict[tuple[str, str], tuple[Example, Prediction | None]] = {}
        for example, text in self.answers():
            answer = self.task.parse(text, example.inputs, DEFAULT_BOX_FORMAT)
            if isinstance(answer, Prediction):
                by_reading.setdefault((example.example_id, repr(answer)), (example, answer))
        return [*((example, None) for example in self.examples), *by_reading.values()]

    def read(self, example: Example, text: str, box_format: BoxFormat) -> Prediction:
        answer = self.task.parse(text, example.inputs, box_format)
        if isinstance(answer, ParseError):
            raise _BrokenLaw(f"{_brief(text)} in {box_format} cannot be read ({answer.reason})")
        _demand(answer.dropped == 0, f"{answer.dropped} entries of {_brief(text)} in {box_format} are dropped")
        return answer


def _is_storable(value: object) -> bool:
    """Return whether a value is JSON that UTF-8 can encode, without NaN, Infinity and half a surrogate pair."""
    with suppress(TypeError, ValueError):
        return bool(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
    return False


_LAWS: dict[str, tuple[str, Callable[[_Case], None]]] = {}
"""Maps each law to its remedy and its check, in the order of this file. Later laws rely on earlier laws."""


def _law(law: str, remedy: str) -> Callable[[Callable[[_Case], None]], None]:
    def register(check: Callable[[_Case], None]) -> None:
        _LAWS[law] = remedy, check

    return register


@_law(
    "the reference scores the maximum",
    "make `reference_answer` write what `parse` reads as the target, in every box format, and `statistics` give 1; "
    "a task needs examples by all choices of its rules whose answers are known",
)
def _reference_scores_the_maximum(case: _Case) -> None:
    task = case.task
    for box_format in case.formats:
        rounding = _ROUNDING if len(case.formats) > 1 else _MARGIN
        samples = []
        for example in case.answerable:
            case.look_at(example)
            answer = case.read(example, task.reference_answer(example, box_format), box_format)
            samples.append(Scored(example, answer))
            score = task.score(example, answer)[task.sample_score]
            # Whole pixels of a small frame are far apart.
            is_right = box_format.scale is None or abs(score - 1) <= rounding
            _demand(is_right, f"in {box_format} its {task.sample_score} is {score}")
        case.look_at()
        metric = task.aggregate(samples)[task.primary]
        least = 0.0 if box_format.scale is None else 1 - _MARGIN
        is_right = isinstance(metric, float | int) and least <= metric <= 1 + _MARGIN
        _demand(is_right, f"in {box_format} {task.primary} is {metric!r}")


@_law("nothing is wrong with the reference", "make `explain` and `mistakes` follow the matching of `statistics`")
def _reference_has_no_faults(case: _Case) -> None:
    for example in case.answerable:
        case.look_at(example)
        answer = case.read(example, case.task.reference_answer(example, DEFAULT_BOX_FORMAT), DEFAULT_BOX_FORMAT)
        faults = [row for row in case.task.explain(example, answer).rows if row.kind != "hit"]
        _demand(not faults, f"`explain` finds {faults[:1]}")
        failures = case.task.failures(example, answer)
        _demand(not failures, f"`failures` finds {failures[:1]}")


@_law(
    "answers of baselines can be read",
    "write them as the prompt asks, or raise ConfigError for a baseline that the task has not",
)
def _baselines_can_be_read(case: _Case) -> None:
    for box_format in case.formats:
        for example in case.examples:
            for name, baseline in _baselines(case, example, box_format).items():
                case.look_at(example, name)
                text = _answer_of(baseline, example)
                _demand(text is not None or name != "random_answer", "every task has it")
                if text is not None:
                    case.read(example, text, box_format)
                    _demand(baseline(example) == text, f"{name} is another one the second time")


@_law(
    "`parse` reads any text, the same each time, and never raises",
    "return ParseError for what cannot be read, and leave out and count what is not finite JSON",
)
def _parse_takes_anything(case: _Case) -> None:
    task = case.task
    fresh = type(task)(options=task.chosen)
    for example, text in case.answers():
        inputs_before, started = copy.deepcopy(example.inputs), time.process_time()
        answers = []
        for box_format in case.formats:
            answer = task.parse(text, example.inputs, box_format)
            _demand(isinstance(answer, Prediction | ParseError), f"gave {answer!r:.80}")
            if isinstance(answer, Prediction):
                _demand(_is_storable(answer.value), "gave what is not finite JSON of UTF-8 text")
                _demand(answer.dropped >= 0, f"dropped is {answer.dropped}")
            answers.append(answer)
        _demand(time.process_time() - started < _SECONDS * len(case.formats), "takes long: make it linear in the text")
        again = [fresh.parse(text, inputs_before, box_format) for box_format in case.formats]
        _demand(repr(again) == repr(answers), "another task object reads it otherwise")
        _demand(example.inputs == inputs_before, "changed the inputs")


@_law("whatever is read can be scored", "make `parse` refuse it, or `statistics` give a finite score of 1 at most")
def _readable_answers_can_be_scored(case: _Case) -> None:
    for example, answer in case.predictions:
        case.look_at(example, answer)
        if case.task.has_answer(example):
            scores = case.task.score(example, answer)
            _demand(all(map(math.isfinite, scores.values())), f"scores are {scores}")
            _demand(scores[case.task.sample_score] <= 1 + _MARGIN, "scores more than the reference")


@_law(
    "whatever is read can be shown",
    "make `parse` refuse it, or the methods of `Display` take any answer that it gives, and None",
)
def _readable_answers_can_be_shown(case: _Case) -> None:
    task = case.task
    for example, answer in case.predictions:
        case.look_at(example, answer)
        if task.has_answer(example):
            row_kinds = {row.kind for row in task.explain(example, answer).rows}
            _demand(row_kinds <= set(get_args(RowKind)), f"`explain` gives rows of the kinds {row_kinds}")
            kinds = {failure.kind for failure in task.failures(example, answer)}
            _demand(kinds <= set(FAILURE_KINDS), f"`failures` gives the kinds {kinds}")
        images = len(task.image_captions(example))
        for overlay in task.overlays(example, answer):
            _demand(0 <= overlay.image < images, f"an overlay is on image {overlay.image} of {images}")
            _demand(overlay.kind in get_args(OverlayKind), f"an overlay is {overlay.kind}")
            _demand(len(overlay.box) == 4 and all(map(math.isfinite, overlay.box)), f"an overlay is {overlay.box}")
        if answer is not None:
            task.show_to_judge(example, answer)
            if task.has_answer(example):
                task.rationale(example, answer)
            with suppress(ConfigError):  # not offered
                target = task.as_target(example, answer)
                _demand(target is None or _is_storable(target.write()), "`as_target` is not finite JSON")
            with suppress(ConfigError):
                labels = task.answered_choices(answer) if task.choices(example) else ()
                _demand(set(labels) <= set(task.choices(example)), f"`answered_choices` are {labels}")


@_law("choices can be scored", "read a finite number for each of `choices` as `core.example.read_scores` does")
def _choices_can_be_scored(case: _Case) -> None:
    for example in case.examples:
        case.look_at(example)
        choices, right = case.task.choices(example), case.task.correct_choices(example)
        _demand(set(right) <= set(choices), f"`correct_choices` {right} are not among {list(choices)}")
        if choices:
            scores = {label: float(label in right) for label in choices}
            case.read(example, json.dumps({"scores": scores}), DEFAULT_BOX_FORMAT)


@_law(
    "examples survive being stored",
    "declare every field in the types of `inputs`, `target`, `metadata` and `evidence`, and register the task",
)
def _examples_survive(case: _Case) -> None:
    from datasets import Dataset

    task = case.task
    for example in case.examples:
        case.look_at(example)
        columns = {name: getattr(example, name) for name in ("inputs", "target", "metadata", "evidence")}
        columns |= {"facets": task.facets(example), "request_inputs": task.request_inputs(example)}
        for name, fields in columns.items():
            _demand(_is_storable(fields), f"{name} is not finite JSON of UTF-8 text")
    rows = [
        to_row(example, index, "0" * 64) | question_columns(task, example) | {"images": []}
        for index, example in enumerate(case.examples)
    ]
    stored = tuple(map(from_row, Dataset.from_list(rows, features=row_features(task, "frozen"))))
    with TemporaryDirectory() as folder:
        write_frozen(case.examples, Path(folder) / "frozen.jsonl")
        frozen = tuple(read_frozen(Path(folder) / "frozen.jsonl", task.benchmark))
    for example, row, line in zip(case.examples, stored, frozen, strict=True):
        case.look_at(example)
        _demand(row == example, f"a row of `datasets` came back as {row}")
        _demand(line == example, f"a frozen line came back as {line}")


@_law(
    "the schema accepts the reference and the baselines",
    "make `answer_schema` describe what `reference_answer` and `random_answer` write",
)
def _schema_takes_the_reference(case: _Case) -> None:
    for example in case.answerable:
        if (schema := case.task.answer_schema(example)) is None:
            continue
        from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

        Draft202012Validator.check_schema(schema)
        for box_format in case.formats:
            for name, answer in {**_baselines(case, example, box_format), "reference_answer": None}.items():
                case.look_at(example, name)
                text = _answer_of(answer, example) if answer else case.task.reference_answer(example, box_format)
                if text is not None:
                    Draft202012Validator(schema).validate(json.loads(text))


@_law("what is asked hides the reference", "read `inputs` alone in what model, parser and baselines see")
def _questions_hide_the_reference(case: _Case) -> None:
    task = case.task
    for index, example in enumerate(case.examples):
        # The reference of another question: the prompt must neither need it nor change with it.
        other = case.examples[index - 1]
        untrue = replace(example, target=other.target, evidence=other.evidence)
        elsewhere = replace(untrue, label=other.label, metadata=other.metadata)
        for box_format in case.formats:
            question = (
                lambda shown, box_format=box_format: task.prompt(shown, box_format),
                lambda shown, box_format=box_format: task.follow_up(shown, ("a description",), box_format),
                *(task.choices, task.request_inputs, task.answer_schema, task.image_captions),
            )
            case.look_at(example, "what is asked")
            _demand(all(part(example) == part(elsewhere) for part in question), "changes with what is not `inputs`")
            for name, baseline in _baselines(case, example, box_format).items():
                if name not in ("centre_answer", "first_mask_answer"):  # these may belong to the true objects
                    case.look_at(example, name)
                    _demand(_answer_of(baseline, example) == _answer_of(baseline, untrue), "changes with the reference")


def _baselines(case: _Case, example: Example, box_format: BoxFormat) -> dict[str, Callable[[Example], str]]:
    """Return the baselines by name. They see no images. `prior_answer` uses the references of other videos."""
    task = case.task
    others = tuple(other for other in case.answerable if other.video_id != example.video_id)
    return {
        "random_answer": lambda question: chance_answer(task, question, 0, box_format),
        "prior_answer": lambda question: task.prior_answer(question, others, box_format),
        "prior_answer without others": lambda question: task.prior_answer(question, (), box_format),
        "centre_answer": lambda question: task.centre_answer(question, box_format),
        "first_mask_answer": lambda question: task.first_mask_answer(question, box_format),
    }


def _answer_of(baseline: Callable[[Example], str], example: Example) -> str | None:
    """Return the answer of a baseline, or None if the task lacks this baseline."""
    with suppress(ConfigError):
        return baseline(example)
    return None
