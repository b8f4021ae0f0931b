"""Define tasks whose answer is one or several lettered choices.

A task adds the code that makes its examples, and its prompt, `prompts/<name>.yaml`. The prompt may have places for
`{image}`, `{question}`, `{choices}` (one line per choice) and `{letters}`. If a release has other columns, or other
rules of reading or scoring, its task overrides `choices`, `correct_choices`, `answered_choices`, `parse` or
`statistics`. Everything else builds on these methods.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from string import ascii_uppercase
from typing import ClassVar, Literal, cast

from barista_bench.benchmarks.kinds.choice_reading import read_choices
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.display import AnswerFailure, Explanation
from barista_bench.core.example import (
    Example,
    Fields,
    Inputs,
    Json,
    ParseError,
    Prediction,
    Scored,
    Target,
    TypedFields,
    evidence_objects,
    read_scores,
)
from barista_bench.core.option_order import NAME, ORDER
from barista_bench.core.options import Option
from barista_bench.core.prompt import Prompt
from barista_bench.core.statistics import MicroF1, SampleStatistics, mean_statistics
from barista_bench.core.task import Task

NO_CHOICE = ParseError("it names none of the choices, or several")


class LetteredChoice(TypedFields):
    """One choice of a question. `choice_id` is its letter."""

    choice_id: str
    text: str


class ChoiceInputs(Inputs):
    question: str
    choices: list[LetteredChoice]


class RightChoice(Target):
    choice_id: str


def shuffled_choices(right: str, distractors: Iterable[str], seed: int) -> tuple[list[LetteredChoice], RightChoice]:
    """Return the choices of a question in the order shown, A first, and the right choice.

    >>> shuffled_choices("cup", ["jug", "lid"], seed=1)[1]
    RightChoice(choice_id='C')
    """
    texts = [right, *distractors]
    random.Random(seed).shuffle(texts)  # noqa: S311
    choices = [LetteredChoice(letter, text) for letter, text in zip(ascii_uppercase, texts, strict=False)]
    return choices, RightChoice(choices[texts.index(right)].choice_id)


class ChosenLetter(TypedFields):
    """A prediction."""

    choice_id: str


class ChoiceTask(Task):
    """Questions with choices. By default, one choice is right and accuracy is the score."""

    primary: ClassVar[str] = "accuracy"
    primary_note: ClassVar[str] = "Fraction of questions answered with the right letter."
    sample_score: ClassVar[str] = "accuracy"
    decided_by: ClassVar[Literal["mean"] | MicroF1 | None] = "mean"
    answer_note: ClassVar[str] = "the letter of a choice"
    inputs_type: ClassVar[type[Inputs]] = ChoiceInputs
    target_type: ClassVar[type[Target]] = RightChoice
    right_key: ClassVar[str] = "choice_id"
    """The key of the target that holds the right label."""
    options: ClassVar[Mapping[str, Option]] = {}

    def __init_subclass__(cls, **keywords: object) -> None:
        """Give every such task the option `order`."""
        super().__init_subclass__(**keywords)
        cls.options = {**cls.options, NAME: ORDER}

    def choices(self, example: Example) -> Mapping[str, str]:
        return {choice.choice_id: choice.text for choice in ChoiceInputs.of(example).choices}

    def correct_choices(self, example: Example) -> Sequence[str]:
        return (RightChoice.of(example).choice_id,)

    def with_order(self, example: Example, order: Sequence[int]) -> Example:
        choices = cast("list[dict[str, Json]]", example.inputs["choices"])
        labels = [choice["choice_id"] for choice in choices]
        moved = [{**choices[place], "choice_id": label} for label, place in zip(labels, order, strict=True)]
        new_labels = {labels[place]: label for label, place in zip(labels, order, strict=True)}
        target = dict(example.target)
        target[self.right_key] = new_labels.get(target[self.right_key])
        return replace(example, inputs={**example.inputs, "choices": moved}, target=target)

    def answered_choices(self, prediction: Prediction) -> Sequence[str]:
        return (ChosenLetter.read(prediction.value).choice_id,)

    def prompt(self, example: Example, box_format: BoxFormat) -> Prompt:
        choices, count = self.choices(example), len(example.frames)
        return self.prompts.prompt(
            count,
            frame_count=str(count),
            question=ChoiceInputs.of(example).question,
            choices="\n".join(f"{label}. {text}" for label, text in choices.items()),
            letters=", ".join(choices),
        )

    def parse(self, text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
        """Return the choice that an answer names (`choice_reading.py`), or the choice that a model scores highest."""
        return read_choice(text, {choice.choice_id: choice.text for choice in ChoiceInputs.read(inputs).choices})

    def statistics(self, samples: Sequence[Scored]) -> SampleStatistics:
        """Return coverage, and accuracy over all samples. An unreadable answer counts as wrong."""
        right = [
            s.prediction is not None and self.answered_choices(s.prediction) == self.correct_choices(s.example)
            for s in samples
        ]
        return mean_statistics([{"accuracy": float(hit)} for hit in right], [s.prediction is not None for s in samples])

    def answer_text(self, labels: Sequence[str], example: Example) -> str:
        """Write an answer with these labels, in the prompt's format."""
        return "ANSWER: " + ", ".join(labels)

    def reference_answer(self, example: Example, box_format: BoxFormat) -> str:
        return self.answer_text(self.correct_choices(example), example)

    def random_answer(self, example: Example, rng: random.Random, box_format: BoxFormat) -> str:
        return self.answer_text([rng.choice(list(self.choices(example)))], example)

    def prior_answer(self, example: Example, others: Sequence[Example], box_format: BoxFormat) -> str:
        """Return the most frequent right letter of other videos, weighted by `prior_weight`. At a tie, the first letter
        wins.
        """
        counts: Counter[str] = Counter()
        for other in others:
            for label in self.correct_choices(other):
                counts[label] += self.prior_weight(example, other, len(others))
        return self.answer_text([max(self.choices(example), key=lambda label: counts[label])], example)

    def prior_weight(self, example: Example, other: Example, count: int) -> int:
        """Return the weight of `other`, one of `count` examples of other videos, in an example's prior. By default, all
        weights are equal.
        """
        return 1

    def mistakes(self, example: Example, prediction: Prediction) -> Iterable[AnswerFailure]:
        """Return missed right choices and wrong choices. For questions with one right choice, return only wrong
        choices.
        """
        right, answered = self.correct_choices(example), self.answered_choices(prediction)
        objects = evidence_objects(example)
        wrong = [AnswerFailure("wrong_option", objects) for label in answered if label not in right]
        missed = [AnswerFailure("missed", objects) for label in right if label not in answered]
        return wrong or missed if len(right) == 1 else [*missed, *wrong]

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        """Explain an answer by its right, missed and wrong choices."""
        texts, right = self.choices(example), self.correct_choices(example)
        answered = self.answered_choices(prediction) if prediction else ()
        return Explanation.of(
            (f"{label}: {texts[label]}" for label in right if label in answered),
            (f"{label}: {texts[label]}" for label in right if label not in answered),
            (f"{label}: {texts[label]}" for label in answered if label not in right),
        )


def read_choice(text: str, choices: Mapping[str, str]) -> Prediction | ParseError:
    """Return a `ChosenLetter`: the choice with the best score, or else the choice found by `read_choices`."""
    scores = read_scores(text, choices)
    if scores is not None:
        return Prediction(ChosenLetter(max(scores, key=lambda label: scores[label])).write())
    reading = read_choices(text, choices)
    return Prediction(ChosenLetter(reading.labels[0]).write()) if reading else NO_CHOICE
