"""What tasks with free-text answers share: scores, explanations and failures by words alone (`lexical.py`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from barista_bench.benchmarks.barista.common import PROMPT_PACKAGE
from barista_bench.benchmarks.barista.lexical import (
    NO_OVERLAP,
    Overlap,
    is_said,
    overlap,
    sample_figures,
    summary,
    unexpected,
)
from barista_bench.benchmarks.pooling import Floats, mean_figures
from barista_bench.core.graph_task import GraphTask
from barista_bench.core.task import (
    Example,
    Explanation,
    ExplanationRow,
    Failure,
    FailureKind,
    Json,
    Prediction,
    Scored,
)


class Compared(NamedTuple):
    """What an answer's words are compared with, as `lexical.overlap` takes it; words of none of it are unexpected."""

    reference: str
    context: str = ""
    asked: str = ""


class Fact(NamedTuple):
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
    def facts(self, example: Example) -> list[Fact]:
        """What an answer should say; empty in released files that do not tell it."""

    def described(self, example: Example) -> tuple[str, ...]:
        """Ids of the objects that failures of the answer as a whole are about; here none."""
        return ()

    def said(self, prediction: Prediction | None) -> str:
        """The text of an answer; empty where there is none."""
        return str(prediction.value[self.answer_field]) if prediction else ""

    def score(self, example: Example, prediction: Prediction | None) -> dict[str, float]:
        """`lexical_f1`, `lexical_precision` and `lexical_recall`; no readable or an empty answer scores 0."""
        return sample_figures(self._overlap(example, prediction) or NO_OVERLAP)

    def aggregate(self, samples: Sequence[Scored]) -> dict[str, Json]:
        scores = [self._overlap(s.example, s.prediction) for s in samples]
        return summary(scores, (str(s.example.target["category"]) for s in samples), "per_category")

    def resampled(self, samples: Sequence[Scored], weights: Floats) -> dict[str, Floats]:
        scores = [self.score(s.example, s.prediction) for s in samples]
        return mean_figures(scores, [s.prediction is None for s in samples], weights)

    def failures(self, example: Example, prediction: Prediction | None) -> tuple[Failure, ...]:
        """As `explain` tells it: facts that are not said, and words that no fact has.

        A fact is `missed`, or `replaced` where the answer has such other words instead.
        """
        if prediction is None:
            return self.unreadable(example)
        facts, described = self.facts(example), self.described(example)
        other = self._unexpected(example, prediction)
        said = self.said(prediction)
        found = [
            Failure(fact.replaced if other else "missed", fact.objects)
            for fact in facts
            if not is_said(fact.text, said)
        ]
        if not facts and not self.score(example, prediction)["lexical_recall"]:
            found.append(Failure("missed", described))
        return (*found, *([Failure("hallucinated", described)] if other else ()))

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        """By words alone: a fact is a hit where all its content words are said, whatever they are said of."""
        said = self.said(prediction)
        facts = dict.fromkeys((fact.text, fact.shown) for fact in self.facts(example))
        rows = [ExplanationRow("hit" if is_said(text, said) else "miss", shown) for text, shown in facts]
        wrong = self._unexpected(example, prediction)
        extra = [ExplanationRow("wrong", f"not in the reference: {word}") for word in wrong]
        return Explanation((*sorted(rows, key=lambda row: row.verdict == "miss"), *extra))

    def _overlap(self, example: Example, prediction: Prediction | None) -> Overlap | None:
        """None without a readable answer."""
        if prediction is None:
            return None
        reference, context, asked = self.compared(example)
        return overlap(self.said(prediction), reference, context=context, asked=asked)

    def _unexpected(self, example: Example, prediction: Prediction | None) -> list[str]:
        return unexpected(self.said(prediction), *self.compared(example))
