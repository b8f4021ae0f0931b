"""The laws that every task keeps, each a function; `check_task` holds a task to all of them."""

from __future__ import annotations

import copy
import json
import math
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

from barista_bench.core.boxes import BOX_ORDERS, DEFAULT_BOXES, BoxFormat
from barista_bench.core.failures import FAILURE_KINDS
from barista_bench.core.options import PROTOCOLS, ProtocolName
from barista_bench.core.task import Example, OverlayKind, ParseError, Prediction, Scored, Task, Verdict, content_seed
from barista_bench.data.frozen import read_frozen, write_frozen
from barista_bench.data.rows import from_row, question_columns, row_features, to_row
from barista_bench.errors import BaristaError, ConfigError
from barista_bench.testing.hostile_answers import HOSTILE_ANSWERS, damaged

BOX_FORMATS = tuple(BoxFormat(order, scale) for order in BOX_ORDERS for scale in (1000, 1, None))
"""All orders, each on the grid, in fractions and in pixels."""
_MARGIN = 1e-9
_SURROGATE = re.compile("[\ud800-\udfff]")
_ROUNDING = 0.05
"""What the score of one sample may lose where a box is written in whole numbers; the task's figure loses nothing."""


class LawError(BaristaError, AssertionError):
    """A task breaks a law; names the law, the task, the example, what is wrong, and the remedy."""


def check_task(task: type[Task], examples: Sequence[Example], *, options: Mapping[str, object] | None = None) -> None:
    """Hold a task to the laws that all tasks keep, in every box format, under both protocols where these differ.

    The truth scores 1 and no answer of the baselines is unreadable; whatever a model may answer is read without an
    error, the same each time; whatever is read can be scored and shown; what is asked depends on `inputs` alone; the
    schema takes the reference answer; examples survive being stored.

    Args:
        task: of a benchmark in `BENCHMARKS`.
        examples: some of its own, a handful of several videos at best. A task whose protocols freeze different
            examples needs some of both.
        options: of the task, where its defaults need what a test lacks, such as a model that compares names.

    Raises:
        LawError: it breaks one.
        ConfigError: the task has an answer schema, and jsonschema is not installed.
    """
    for protocol in PROTOCOLS if task.protocol_rules else PROTOCOLS[:1]:
        case = _Case(task(protocol=protocol, options=options), of_protocol(examples, task, protocol))
        if not case.known:
            remedy = f"give check_task some that were built with protocol={protocol}, and whose answers are known"
            raise case.broken("there are examples", None, "none was given", remedy)
        for law, remedy, holds in _LAWS:
            holds(case, law, remedy)


def of_protocol(examples: Sequence[Example], task: type[Task], protocol: ProtocolName) -> tuple[Example, ...]:
    """The examples that a protocol shows: all, unless it freezes its own."""
    if not task.freezes_by_protocol():
        return tuple(examples)
    return tuple(example for example in examples if example.metadata.get("protocol", "release") == protocol)


@dataclass(frozen=True)
class _Case:
    """A task under one protocol, and examples of it."""

    task: Task
    examples: tuple[Example, ...]

    def broken(self, law: str, example: Example | None, what: str, remedy: str) -> LawError:
        where = f"{self.task.benchmark}/{self.task.name} by the protocol {self.task.protocol}"
        where += f", example {example.example_id}" if example else ""
        return LawError(f"{where}: broken is the law that {law}: {what}. Remedy: {remedy}")

    @cached_property
    def known(self) -> tuple[Example, ...]:
        """Those whose answer is known."""
        return tuple(filter(self.task.has_answer, self.examples))

    @cached_property
    def formats(self) -> tuple[BoxFormat, ...]:
        """The box formats: one is enough for a task that neither asks for boxes nor shows some."""
        example = self.known[0]
        told = {(self.task.prompt(example, boxes), self.task.reference_answer(example, boxes)) for boxes in BOX_FORMATS}
        return BOX_FORMATS if len(told) > 1 else (DEFAULT_BOXES,)

    @cached_property
    def parsed(self) -> dict[str, dict[str, Prediction | ParseError]]:
        """By the example's id and the text of an answer, what is read: the first example is answered in every way."""
        return {
            example.example_id: {
                text: self.task.parse(text, example.inputs, DEFAULT_BOXES)
                for text in answers_of(self.task, example, hostile=example is self.known[0])
            }
            for example in self.examples
        }

    @cached_property
    def predictions(self) -> list[tuple[Example, Prediction | None]]:
        """The distinct answers that can be read, and none, for every example."""
        found: list[tuple[Example, Prediction | None]] = []
        for example in self.examples:
            read = (answer for answer in self.parsed[example.example_id].values() if isinstance(answer, Prediction))
            found += [(example, None), *((example, answer) for answer in {repr(a): a for a in read}.values())]
        return found

    @contextmanager
    def held(self, law: str, remedy: str, example: Example | None = None, what: str = "") -> Iterator[None]:
        """Names law, task and example of what is raised inside."""
        try:
            yield
        except LawError:
            raise
        except _Wrong as error:
            raise self.broken(law, example, f"{what}{error}", remedy) from None
        except Exception as error:  # a task is anybody's code: whatever it raises breaks the law
            raise self.broken(law, example, f"{what}raised {type(error).__name__}: {error!s:.200}", remedy) from error


class _Wrong(Exception):
    """What is wrong, in words."""


def _demand(holds: bool, what: str) -> None:
    if not holds:
        raise _Wrong(what)


def _brief(text: str) -> str:
    return ascii(text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)")


def _readable(case: _Case, example: Example, text: str, boxes: BoxFormat) -> Prediction:
    answer = case.task.parse(text, example.inputs, boxes)
    if isinstance(answer, ParseError):
        raise _Wrong(f"{_brief(text)} in {boxes} cannot be read ({answer.reason})")
    _demand(answer.dropped == 0, f"{answer.dropped} entries of {_brief(text)} in {boxes} are dropped")
    return answer


def chance_answer(task: Task, example: Example, seed: int, boxes: BoxFormat) -> str:
    """What the baseline `chance` answers by this seed."""
    return task.random_answer(example, random.Random(content_seed(example.example_id, seed)), boxes)  # noqa: S311


def answers_of(task: Task, example: Example, *, hostile: bool) -> list[str]:
    """Texts to read as its answer, each once: the truth, chance and none; the truth damaged and the hostile ones."""
    texts = [chance_answer(task, example, seed, DEFAULT_BOXES) for seed in range(3)] + ["", "I cannot tell."]
    if task.has_answer(example):
        reference = task.reference_answer(example, DEFAULT_BOXES)
        texts += [reference, *damaged(reference)] if hostile else [reference]
    return list(dict.fromkeys([*texts, *HOSTILE_ANSWERS] if hostile else texts))


def _is_json(value: object) -> bool:
    """Whether a value is JSON without NaN and Infinity."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_json(inner) for key, inner in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_json, value))
    return math.isfinite(value) if isinstance(value, float) else isinstance(value, str | bool | int | None)


def _is_storable(value: object) -> bool:
    """Whether it is such JSON, and its text has a UTF-8 form: half a surrogate pair has none."""
    return _is_json(value) and not _SURROGATE.search(json.dumps(value, ensure_ascii=False))


# ---------------------------------------------------------------- the laws


def _truth_scores_the_maximum(case: _Case, law: str, remedy: str) -> None:
    task = case.task
    for boxes in case.formats:
        samples = []
        for example in case.known:
            with case.held(law, remedy, example):
                answer = _readable(case, example, task.reference_answer(example, boxes), boxes)
                samples.append(Scored(example, answer))
                if boxes.scale is not None:  # whole pixels of a small frame are far apart
                    score = task.score(example, answer)[task.sample_score]
                    margin = _ROUNDING if len(case.formats) > 1 else _MARGIN
                    _demand(1 - margin <= score <= 1 + _MARGIN, f"in {boxes} its {task.sample_score} is {score}")
        with case.held(law, remedy):
            figure = task.aggregate(samples)[task.primary]
            _demand(isinstance(figure, float | int), f"{task.primary} is {figure!r}")
            if boxes.scale is not None:
                _demand(abs(figure - 1) <= _MARGIN, f"in {boxes} {task.primary} is {figure}")  # type: ignore[operator]


def _truth_has_no_faults(case: _Case, law: str, remedy: str) -> None:
    for example in case.known:
        with case.held(law, remedy, example):
            answer = _readable(case, example, case.task.reference_answer(example, DEFAULT_BOXES), DEFAULT_BOXES)
            faults = [row for row in case.task.explain(example, answer).rows if row.verdict != "hit"]
            _demand(not faults, f"`explain` finds {faults[:1]}")
            failures = case.task.failures(example, answer)
            _demand(not failures, f"`failures` finds {failures[:1]}")


def _baselines_can_be_read(case: _Case, law: str, remedy: str) -> None:
    for boxes in case.formats:
        for example in case.examples:
            for name, baseline in _baselines(case, example, boxes).items():
                with case.held(law, remedy, example, f"{name}: "):
                    text = _offered(baseline, example)
                    _demand(text is not None or name != "random_answer", "every task has it")
                    if text is not None:
                        _readable(case, example, text, boxes)
                        _demand(baseline(example) == text, "is another one the second time")


def _parse_takes_anything(case: _Case, law: str, remedy: str) -> None:
    task = case.task
    with case.held(law, remedy):
        untouched = type(task)(protocol=task.protocol, options=task.chosen)
    for example in case.examples:
        asked = copy.deepcopy(example.inputs)
        for text in answers_of(task, example, hostile=example is case.known[0]):
            with case.held(law, remedy, example, f"parse of {_brief(text)}: "):
                for boxes in case.formats:
                    answer = task.parse(text, example.inputs, boxes)
                    _demand(isinstance(answer, Prediction | ParseError), f"gave {answer!r:.80}")
                    if isinstance(answer, Prediction):
                        # Logs hold no half pair: one that stands in the answer may stay, JSON must not spell one.
                        _demand(_is_json(answer.value), "gave what is no finite JSON")
                        told = _is_storable(answer.value) or _SURROGATE.search(text)
                        _demand(bool(told), "gave text that has no UTF-8 form")
                        _demand(answer.dropped >= 0, f"dropped is {answer.dropped}")
                _demand(
                    repr(untouched.parse(text, asked, boxes)) == repr(answer), "another task object reads it otherwise"
                )
                _demand(example.inputs == asked, "changed the inputs")


def _readable_answers_can_be_scored(case: _Case, law: str, remedy: str) -> None:
    for example, answer in case.predictions:
        if case.task.has_answer(example):
            with case.held(law, remedy, example, f"{answer!r:.80}: "):
                scores = case.task.score(example, answer)
                _demand(case.task.sample_score in scores, f"has no {case.task.sample_score}")
                _demand(all(map(math.isfinite, scores.values())), f"scores are {scores}")
                _demand(scores[case.task.sample_score] <= 1 + _MARGIN, "scores more than the truth")


def _readable_answers_can_be_shown(case: _Case, law: str, remedy: str) -> None:
    task = case.task
    for example, answer in case.predictions:
        with case.held(law, remedy, example, f"{answer!r:.80}: "):
            if task.has_answer(example):
                verdicts = {row.verdict for row in task.explain(example, answer).rows}
                _demand(verdicts <= set(get_args(Verdict)), f"`explain` gives the verdicts {verdicts}")
                kinds = {failure.kind for failure in task.failures(example, answer)}
                _demand(kinds <= set(FAILURE_KINDS), f"`failures` gives the kinds {kinds}")
            images = len(task.image_captions(example))
            for overlay in task.overlays(example, answer):
                _demand(0 <= overlay.image < images, f"an overlay is on image {overlay.image} of {images}")
                _demand(overlay.kind in get_args(OverlayKind), f"an overlay is {overlay.kind}")
                _demand(len(overlay.box) == 4 and _is_json([*overlay.box]), f"an overlay's box is {overlay.box}")
            if answer is not None:
                _check_other_uses(task, example, answer)


def _check_other_uses(task: Task, example: Example, answer: Prediction) -> None:
    for read in (task.judged, task.rationale):
        shown = read(example, answer)
        texts = [getattr(shown, name) for name in shown.__slots__] if shown else []
        _demand(all(isinstance(text, str) for text in texts), f"`{read.__name__}` holds what is no text")
    try:
        target = task.as_target(example, answer)
    except ConfigError:  # not offered
        target = None
    _demand(target is None or _is_json(target.write()), "`as_target` is no finite JSON")
    choices = task.choices(example)
    if choices:
        try:
            named = task.answered_choices(answer)
        except ConfigError:  # not offered
            return
        _demand(set(named) <= set(choices), f"`answered_choices` are {named}")


def _choices_can_be_scored(case: _Case, law: str, remedy: str) -> None:
    for example in case.examples:
        with case.held(law, remedy, example):
            choices, right = case.task.choices(example), case.task.right_choices(example)
            _demand(set(right) <= set(choices), f"`right_choices` {right} are not among {list(choices)}")
            if choices:
                scores = {label: float(label in right) for label in choices}
                _readable(case, example, json.dumps({"scores": scores}), DEFAULT_BOXES)


def _columns_are_json(case: _Case, law: str, remedy: str) -> None:
    for example in case.examples:
        with case.held(law, remedy, example):
            for name in ("inputs", "target", "metadata", "evidence"):
                _demand(_is_storable(getattr(example, name)), f"{name} is no finite JSON")
            for name in ("facets", "request_inputs"):
                _demand(_is_storable(getattr(case.task, name)(example)), f"{name} is no finite JSON")
            _demand(all(isinstance(text, str) for text in case.task.image_captions(example)), "a caption is no text")


def _rows_survive(case: _Case, law: str, remedy: str) -> None:
    from datasets import Dataset

    with case.held(law, remedy, what="rows: "):
        rows = [
            to_row(example, index, "0" * 64) | question_columns(case.task, example) | {"images": []}
            for index, example in enumerate(case.examples)
        ]
        stored = Dataset.from_list(rows, features=row_features(case.task, "frozen"))
        _compare(case, law, remedy, [from_row(row) for row in stored])
    with case.held(law, remedy, what="frozen lines: "), TemporaryDirectory() as folder:
        path = Path(folder) / "frozen.jsonl"
        write_frozen(case.examples, path)
        _compare(case, law, remedy, list(read_frozen(path, case.task.benchmark)))


def _compare(case: _Case, law: str, remedy: str, read: Sequence[Example]) -> None:
    _demand(len(read) == len(case.examples), f"{len(read)} of {len(case.examples)} came back")
    for example, back in zip(case.examples, read, strict=True):
        for name in ("frames", "label", "inputs", "target", "metadata", "evidence"):
            if getattr(example, name) != getattr(back, name):
                raise case.broken(law, example, f"{name} came back as {getattr(back, name)!r:.200}", remedy)


def _schema_takes_the_truth(case: _Case, law: str, remedy: str) -> None:
    task = case.task
    if all(task.answer_schema(example) is None for example in case.examples):
        return
    if find_spec("jsonschema") is None:
        raise ConfigError("check_task needs jsonschema for answer schemas. Remedy: pip install jsonschema")
    import jsonschema  # type: ignore[import-untyped]

    for example in case.known:
        schema = task.answer_schema(example)
        for boxes in case.formats if schema is not None else ():
            with case.held(law, remedy, example, f"in {boxes}: "):
                jsonschema.Draft202012Validator.check_schema(schema)
                for text in (task.reference_answer(example, boxes), chance_answer(task, example, 0, boxes)):
                    jsonschema.Draft202012Validator(schema).validate(json.loads(text))


def _questions_hide_the_truth(case: _Case, law: str, remedy: str) -> None:
    for index, example in enumerate(case.examples):
        # The truth of another question: what is asked must neither need it nor change with it.
        other = case.examples[index - 1]
        untrue = replace(example, target=other.target, evidence=other.evidence)
        elsewhere = replace(untrue, label=other.label, metadata=other.metadata)
        for boxes in case.formats:
            for name, seen in _asked(case.task, boxes).items():
                with case.held(law, remedy, example, f"{name}: "):
                    _demand(seen(example) == seen(elsewhere), "changes with target, label, metadata or evidence")
            for name, said in _baselines(case, example, boxes).items():
                if name in _BLIND:
                    with case.held(law, remedy, example, f"{name}: "):
                        _demand(_offered(said, example) == _offered(said, untrue), "changes with target or evidence")


def _asked(task: Task, boxes: BoxFormat) -> dict[str, Callable[[Example], object]]:
    """What a model is shown of an example."""
    return {
        "prompt": lambda example: task.prompt(example, boxes),
        "follow_up": lambda example: task.follow_up(example, ("a description",), boxes),
        "choices": task.choices,
        "request_inputs": task.request_inputs,
        "answer_schema": task.answer_schema,
        "image_captions": task.image_captions,
    }


def _baselines(case: _Case, example: Example, boxes: BoxFormat) -> dict[str, Callable[[Example], str]]:
    """What models that see nothing answer to an example; `example` is what the others are no examples of."""
    task = case.task
    others = tuple(other for other in case.known if other.video_id != example.video_id)
    return {
        "random_answer": lambda asked: chance_answer(task, asked, 0, boxes),
        "prior_answer": lambda asked: task.prior_answer(asked, others, boxes),
        "prior_answer without others": lambda asked: task.prior_answer(asked, (), boxes),
        "centre_answer": lambda asked: task.centre_answer(asked, boxes),
        "copied_answer": lambda asked: task.copied_answer(asked, boxes),
    }


_BLIND = ("random_answer", "prior_answer")
"""Baselines that know nothing of the truth; the middle may be that of the true objects."""


def _offered(baseline: Callable[[Example], str], example: Example) -> str | None:
    """What a baseline says; None for one that the task has not."""
    try:
        return baseline(example)
    except ConfigError:
        return None


_LAWS: tuple[tuple[str, str, Callable[[_Case, str, str], None]], ...] = (
    (
        "the truth scores the maximum",
        "make `reference_answer` write what `parse` reads as the target, in every box format, and `statistics` give 1",
        _truth_scores_the_maximum,
    ),
    (
        "nothing is wrong with the truth",
        "make `explain` and `mistakes` follow the matching of `statistics`",
        _truth_has_no_faults,
    ),
    (
        "answers of baselines can be read",
        "write them as the prompt asks, or raise ConfigError for a baseline that the task has not",
        _baselines_can_be_read,
    ),
    (
        "`parse` reads any text, the same each time, and never raises",
        "return ParseError for what cannot be read, and leave out and count what is no finite JSON",
        _parse_takes_anything,
    ),
    (
        "whatever is read can be scored",
        "make `parse` refuse it, or `statistics` give a finite score of 1 at the most",
        _readable_answers_can_be_scored,
    ),
    (
        "whatever is read can be shown",
        "make `parse` refuse it, or the methods of `Display` take any answer that it gives, and None",
        _readable_answers_can_be_shown,
    ),
    (
        "choices can be scored",
        "read a finite number for each of `choices` as `core.example.read_scores` does",
        _choices_can_be_scored,
    ),
    ("examples hold finite JSON alone", "write numbers, texts, lists and objects of these", _columns_are_json),
    (
        "examples survive being stored",
        "declare every field in the types of `inputs`, `target`, `metadata` and `evidence`, and register the task",
        _rows_survive,
    ),
    (
        "the schema accepts the truth and chance",
        "make `answer_schema` describe what `reference_answer` and `random_answer` write",
        _schema_takes_the_truth,
    ),
    (
        "what is asked hides the truth",
        "read `inputs` alone in what model, parser and baselines see",
        _questions_hide_the_truth,
    ),
)
"""Law, remedy, and what holds a task to it. The truth comes first: what follows stands on it."""
