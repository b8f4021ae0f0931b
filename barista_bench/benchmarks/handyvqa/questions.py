"""Questions with lettered options: what those with one right option and those with several have in common."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from barista_bench.benchmarks.handyvqa.answers import parse_letters, written
from barista_bench.benchmarks.handyvqa.clips import Shown
from barista_bench.benchmarks.handyvqa.common import HandyvqaTask
from barista_bench.benchmarks.handyvqa.records import letters
from barista_bench.benchmarks.handyvqa.release import Question
from barista_bench.core.prompt import BoxFormat, ImagePart, Prompt, TextPart
from barista_bench.core.task import (
    Example,
    Explanation,
    ExplanationRow,
    FailureKind,
    Fields,
    ParseError,
    Prediction,
    Scored,
    Verdict,
)


class ChoiceTask(HandyvqaTask):
    """A category of multiple-choice questions."""

    version = 2
    failure_kinds: ClassVar[Mapping[Verdict, FailureKind]] = {"miss": "missed", "wrong": "wrong_option"}

    def asked(self, question: Question, shown: Shown) -> tuple[Fields, Fields]:
        return self.stated(question)

    @staticmethod
    def stated(question: Question) -> tuple[Fields, Fields]:
        """`inputs` and `target`, which do not depend on the clip."""
        return (
            {"question": question.question, "options": list(question.options)},
            {"correct": list(question.correct)},
        )

    def columns(self) -> tuple[dict[str, Any], dict[str, Any]]:
        from datasets import List, Value

        return {"question": Value("string"), "options": List(Value("string"))}, {"correct": List(Value("int32"))}

    def prompt(self, example: Example, boxes: BoxFormat) -> Prompt:
        count, options = len(example.frames), options_of(example)
        lines = written(letters(len(options)), options)
        question = str(example.inputs["question"])
        system, user = self.prompts.fill(frame_count=str(count), question=question, options=lines)
        return Prompt(system, (*map(ImagePart, range(count)), TextPart(user)))

    def choices(self, example: Example) -> Mapping[str, str]:
        options = options_of(example)
        return dict(zip(letters(len(options)), options, strict=True))

    def parse(self, text: str, inputs: Fields, boxes: BoxFormat) -> Prediction | ParseError:
        """Both readings of `answers`, and the scores of models that score."""
        return parse_letters(text, cast("Sequence[str]", inputs["options"]))

    def facets(self, example: Example) -> Fields:
        return {"options": len(options_of(example))}

    def reference_answer(self, example: Example, boxes: BoxFormat) -> str:
        return written(truth_of(example), options_of(example))

    def prior_answer(self, example: Example, others: Sequence[Example], boxes: BoxFormat) -> str:
        """The option at the place where the right ones of other videos stand most often; at a tie the first."""
        options = options_of(example)
        counts = Counter(label for other in others for label in truth_of(other))
        likeliest = max(letters(len(options)), key=lambda label: counts[label])
        return written([likeliest], options)

    def explained(self, example: Example, said: Sequence[str]) -> Explanation:
        """Right, missed and wrong options of an answer that names `said`."""
        options, truth = options_of(example), truth_of(example)
        texts = dict(zip(letters(len(options)), options, strict=True))
        rows = [ExplanationRow("hit", f"({label}) {texts[label]}") for label in truth if label in said]
        rows += [ExplanationRow("miss", f"({label}) {texts[label]}") for label in truth if label not in said]
        rows += [ExplanationRow("wrong", f"({label}) {texts[label]}") for label in said if label not in truth]
        return Explanation(tuple(rows))


def options_of(example: Example) -> list[str]:
    """The texts of a question's options, A first."""
    return [str(option) for option in cast("Sequence[str]", example.inputs["options"])]


def truth_of(example: Example) -> list[str]:
    """The labels of the right options, in order; a wrong record has none."""
    labels = letters(len(options_of(example)))
    return [labels[place] for place in cast("Sequence[int]", example.target["correct"])]


def by_options(samples: Sequence[Scored]) -> dict[int, list[Scored]]:
    """Samples by the number of options that their questions have, fewest first."""
    groups: dict[int, list[Scored]] = defaultdict(list)
    for sample in samples:
        groups[len(options_of(sample.example))].append(sample)
    return dict(sorted(groups.items()))
