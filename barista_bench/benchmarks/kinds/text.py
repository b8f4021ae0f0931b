"""Define tasks whose answer is one text. Scores, explanations and failures depend on words shared with a reference.

These scores are a lower bound, not the published scores. The paper's scores of referring and temporal VQA come from a
language model as judge (G-Eval). Such a judge understands paraphrase, negation and roles of actions; counting shared
words does not. So the scores here are called `lexical_*`. They must never be reported as the paper's Correctness,
Accuracy or Completeness.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

from barista_bench.benchmarks.lexical import NO_OVERLAP, Overlap, is_said, unexpected_words, word_overlap
from barista_bench.core.deriving import GraphTask
from barista_bench.core.display import AnswerFailure, Explanation, FailureKind
from barista_bench.core.example import Example, Prediction, Scored
from barista_bench.core.options import SamplingT
from barista_bench.core.statistics import Metrics, Row, Sums, SumStatistics, fraction

METRICS = {"lexical_f1": "f1", "lexical_precision": "precision", "lexical_recall": "recall"}
"""Maps each score to the field of `Overlap` whose mean it is."""


def lexical_statistics(overlaps: Sequence[Overlap | None], categories: Iterable[str]) -> SumStatistics:
    """Return means over all samples, and `per_category`. None stands for an unreadable answer, which scores 0.

    >>> result = lexical_statistics([Overlap(1.0, 1.0, 1.0), None], ["a", "b"]).published_metrics()
    >>> result["lexical_f1"], result["coverage"], result["per_category"]["b"]["support"]
    (0.5, 0.5, 1)
    """
    rows: list[Row] = []
    for overlap_or_none, category in zip(overlaps, categories, strict=True):
        score = overlap_or_none or NO_OVERLAP
        row: dict[Hashable, float] = {name: getattr(score, field) for name, field in METRICS.items()}
        row |= {(category, name): value for name, value in row.items()}
        row |= {(category, "support"): 1.0, "n_failed": float(overlap_or_none is None)}
        rows.append(row)
    return SumStatistics(rows, _means, sample_scores={name: name for name in METRICS}, tables=_tables)


def _means(sums: Sums) -> Metrics:
    means = {name: fraction(sums[name], sums["n"]) for name in METRICS}
    return {**means, "coverage": 1 - fraction(sums["n_failed"], sums["n"])}


def _tables(sums: Row) -> dict[str, Any]:
    support = {key[0]: count for key, count in sums.items() if isinstance(key, tuple) and key[1] == "support" and count}
    per_category = {
        category: {**{name: sums[category, name] / count for name in METRICS}, "support": int(count)}
        for category, count in sorted(support.items())
    }
    return {"per_category": per_category, "n": int(sums["n"]), "n_failed": int(sums["n_failed"])}


class ComparedTexts(NamedTuple):
    """The texts that an answer is compared with by `word_overlap`. Words in none of these texts are unexpected."""

    reference: str
    context: str = ""
    question: str = ""


class ReferenceFact(NamedTuple):
    """One fact that an answer should state.

    Args:
        text: the content words of this text must appear in the answer.
        display_text: the fact's text in explanations.
        objects: ids of the fact's objects.
        replaced_kind: the kind of failure if an answer has other words instead.
    """

    text: str
    display_text: str
    objects: tuple[str, ...]
    replaced_kind: FailureKind = "missed"


class TextTask(GraphTask[SamplingT]):
    """A task whose answer is one text. The text is the field `answer_field` of a prediction."""

    primary = "lexical_f1"
    primary_note = "Mean F1 of the facts and words that answer and reference share."
    sample_score = "lexical_f1"
    floor = "word overlap"
    decided_by = "mean"
    answer_field: ClassVar[str]

    @abstractmethod
    def comparison(self, example: Example) -> ComparedTexts:
        """Return the texts that an answer is compared with."""

    @abstractmethod
    def facts(self, example: Example) -> list[ReferenceFact]:
        """Return the facts that an answer should state; empty for released files without facts."""

    def described_objects(self, example: Example) -> tuple[str, ...]:
        """Return the ids of the objects in failures of the complete answer. By default, there are none."""
        return ()

    def text_of(self, prediction: Prediction | None) -> str:
        """Return the text of an answer; empty without a readable answer."""
        return str(prediction.value[self.answer_field]) if prediction else ""

    @abstractmethod
    def category(self, example: Example) -> str:
        """Return the group of an example in the table `per_category`."""

    def statistics(self, samples: Sequence[Scored]) -> SumStatistics:
        """Return the means of `lexical_f1`, `lexical_precision` and `lexical_recall`.

        Unreadable and empty answers score 0.
        """
        overlaps = [
            word_overlap(self.text_of(s.prediction), *self.comparison(s.example)) if s.prediction else None
            for s in samples
        ]
        return lexical_statistics(overlaps, (self.category(sample.example) for sample in samples))

    def mistakes(self, example: Example, prediction: Prediction) -> Iterable[AnswerFailure]:
        """Return missing facts, and words that are in no fact, as in `explain`.

        A fact is `missed`, or has its `replaced_kind` if the answer has other words of that kind instead.
        """
        facts, objects = self.facts(example), self.described_objects(example)
        unexpected, answer = self._unexpected_words(example, prediction), self.text_of(prediction)
        failures = [
            AnswerFailure(fact.replaced_kind if unexpected else "missed", fact.objects)
            for fact in facts
            if not is_said(fact.text, answer)
        ]
        if not facts and not word_overlap(answer, *self.comparison(example)).recall:
            failures.append(AnswerFailure("missed", objects))
        return (*failures, *([AnswerFailure("hallucinated", objects)] if unexpected else ()))

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        """Explain an answer by its words: a fact is a hit if the answer contains its content words."""
        answer = self.text_of(prediction)
        facts = dict.fromkeys((fact.text, fact.display_text) for fact in self.facts(example))
        return Explanation.of(
            (display_text for text, display_text in facts if is_said(text, answer)),
            (display_text for text, display_text in facts if not is_said(text, answer)),
            (f"not in the reference: {word}" for word in self._unexpected_words(example, prediction)),
        )

    def _unexpected_words(self, example: Example, prediction: Prediction | None) -> list[str]:
        return unexpected_words(self.text_of(prediction), *self.comparison(example))
