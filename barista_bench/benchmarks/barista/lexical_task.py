"""What tasks with free-text answers share: scores, explanations and failures by words alone (`lexical.py`)."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple

import msgspec

from barista_bench.benchmarks.barista.common import PROMPT_PACKAGE, packaged_data
from barista_bench.benchmarks.barista.lexical import Overlap, is_said, lexical_statistics, overlap, unexpected
from barista_bench.benchmarks.explanations import explanation
from barista_bench.benchmarks.parsing import MAX_ANSWER
from barista_bench.core.graph_task import GraphTask
from barista_bench.core.statistics import SumStatistics
from barista_bench.core.task import (
    AnswerFailure,
    Example,
    Explanation,
    FailureKind,
    Prediction,
    Scored,
)


def labelled(text: str, label: str) -> str:
    r"""What follows the last `<label>:` that begins a line, up to that line's end; the whole text where there is none.

    The released expression is `^\s*label\s*:\s*(.+)$` without case, over lines
    (docs/upstream/barista.md). Leading white space is looked for within one line here: that finds the same answers, in
    linear time for any text.

    >>> labelled("I see a cup.\nDescription: a red cup\nBye", "description")
    'a red cup'
    >>> labelled(" A red cup. ", "description")
    'A red cup.'
    """
    text = text[:MAX_ANSWER]
    matches = re.findall(rf"^[^\S\n]*{label}\s*:\s*(.+)$", text, re.IGNORECASE | re.MULTILINE)
    return str(matches[-1] if matches else text).strip()


def after_last(text: str, marker: str) -> str:
    r"""All that follows the last `marker`, in either case, anywhere; the whole text where there is none (paper, A.3.3).

    >>> after_last("I think. answer: the lid\nwas opened.", "Answer:")
    'the lid\nwas opened.'
    """
    text = text[-MAX_ANSWER:]
    matches = list(re.finditer(re.escape(marker), text, re.IGNORECASE))
    return text[matches[-1].end() if matches else 0 :].strip()


@cache
def domain_vocabulary() -> dict[str, str]:
    """The release's 45 object categories, each with a short description: for judges and for made-up answers."""
    return msgspec.convert(packaged_data("vocabulary.yaml"), dict[str, Any])["categories"]


class Compared(NamedTuple):
    """What an answer's words are compared with, as `lexical.overlap` takes it; words of none of it are unexpected."""

    reference: str
    context: str = ""
    asked: str = ""


class ReferenceFact(NamedTuple):
    """One thing to say.

    Args:
        text: whose content words an answer must have.
        shown: the text in explanations.
        objects: ids of those that it is about.
        replaced: the kind of failure where an answer has other words instead.
    """

    text: str
    shown: str
    objects: tuple[str, ...]
    replaced: FailureKind = "missed"


class LexicalTask(GraphTask):
    """A task whose answer is one text, the field `answer_field` of a prediction."""

    benchmark = "barista"
    primary = "lexical_f1"
    sample_score = "lexical_f1"
    prompt_package = PROMPT_PACKAGE
    answer_field: ClassVar[str]

    @abstractmethod
    def compared(self, example: Example) -> Compared:
        """The texts that an answer is compared with."""

    @abstractmethod
    def facts(self, example: Example) -> list[ReferenceFact]:
        """What an answer should say; empty for released files that leave it out."""

    def described(self, example: Example) -> tuple[str, ...]:
        """Ids of the objects that failures of the answer as a whole are about; here none."""
        return ()

    def text_of(self, prediction: Prediction | None) -> str:
        """The text of an answer; empty where there is none."""
        return str(prediction.value[self.answer_field]) if prediction else ""

    @abstractmethod
    def category(self, example: Example) -> str:
        """The group of an example in the table `per_category`."""

    def statistics(self, samples: Sequence[Scored]) -> SumStatistics:
        """Means of `lexical_f1`, `lexical_precision`, `lexical_recall`; no readable or an empty answer scores 0."""
        overlaps = [self._overlap(sample.example, sample.prediction) for sample in samples]
        return lexical_statistics(overlaps, (self.category(sample.example) for sample in samples))

    def failures(self, example: Example, prediction: Prediction | None) -> tuple[AnswerFailure, ...]:
        """As in `explain`: facts that are missing, and words that no fact has.

        A fact is `missed`, or `replaced` where the answer has such other words instead.
        """
        if prediction is None:
            return self.unreadable(example)
        facts, described = self.facts(example), self.described(example)
        other, answer = self._unexpected(example, prediction), self.text_of(prediction)
        failures = [
            AnswerFailure(fact.replaced if other else "missed", fact.objects)
            for fact in facts
            if not is_said(fact.text, answer)
        ]
        if not facts and not overlap(answer, *self.compared(example)).recall:
            failures.append(AnswerFailure("missed", described))
        return (*failures, *([AnswerFailure("hallucinated", described)] if other else ()))

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        """By words alone: a fact is a hit where the answer has all its content words, whatever they refer to."""
        answer = self.text_of(prediction)
        facts = dict.fromkeys((fact.text, fact.shown) for fact in self.facts(example))
        return explanation(
            (shown for text, shown in facts if is_said(text, answer)),
            (shown for text, shown in facts if not is_said(text, answer)),
            (f"not in the reference: {word}" for word in self._unexpected(example, prediction)),
        )

    def _overlap(self, example: Example, prediction: Prediction | None) -> Overlap | None:
        """None without a readable answer."""
        return overlap(self.text_of(prediction), *self.compared(example)) if prediction else None

    def _unexpected(self, example: Example, prediction: Prediction | None) -> list[str]:
        return unexpected(self.text_of(prediction), *self.compared(example))
