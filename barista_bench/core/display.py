"""The third part of a task: how a sample is shown to people, and told to judges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from barista_bench.core.example import Example, Fields, Prediction, evidence_objects
from barista_bench.core.failures import AnswerFailure, FailureKind

if TYPE_CHECKING:
    from barista_bench.scene_graph import Rle

Verdict: TypeAlias = Literal["hit", "miss", "wrong"]
OverlayKind: TypeAlias = Literal["reference", "predicted", "given"]


@dataclass(frozen=True, slots=True)
class Judged:
    """One sample as a judge sees it: the question, the reference made from the annotations, and the answer."""

    question: str
    reference: str
    answer: str


@dataclass(frozen=True, slots=True)
class Rationale:
    """One sample as a judge of reasoning sees it: the answer, its reasons, and the reference."""

    question: str
    correct_answer: str
    reference_reasoning: str
    answer: str
    reasoning: str

    @property
    def is_empty(self) -> bool:
        return not self.reasoning.strip()


@dataclass(frozen=True, slots=True)
class ExplanationRow:
    """One reason for a score: `hit` is right, `miss` is true but not answered, `wrong` is answered but not true."""

    verdict: Verdict
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The reasons for a sample's score, for people."""

    rows: tuple[ExplanationRow, ...]

    @classmethod
    def of(cls, hits: Iterable[str] = (), misses: Iterable[str] = (), wrong: Iterable[str] = ()) -> Explanation:
        """One row a text, in the order of the arguments: right, true but not answered, answered but not true."""
        verdicts: tuple[tuple[Verdict, Iterable[str]], ...] = (("hit", hits), ("miss", misses), ("wrong", wrong))
        return cls(tuple(ExplanationRow(verdict, text) for verdict, texts in verdicts for text in texts))


@dataclass(frozen=True, slots=True)
class Overlay:
    """One box, and the mask in it where there is one, to draw over an image of a sample, for people.

    Args:
        image: which of `Task.images`, from 0.
        box: [x0, y0, x1, y1] in pixels of that image; a predicted one may lie outside of it.
        kind: `reference` is what scoring compares with, `predicted` what was answered, `given` what the question shows.
        label: a few words.
        mask: what the box is around, in pixels of a frame of any size, which is stretched over the image.
    """

    image: int
    box: tuple[float, float, float, float]
    kind: OverlayKind
    label: str = ""
    mask: Rle | None = None


class Display(ABC):
    """The third part of a task: for people and judges; no figure is made of it."""

    row_note: ClassVar[str]
    """A description of one example, in a line, for dataset cards."""
    failure_kinds: ClassVar[Mapping[Verdict, FailureKind]] = {"miss": "missed", "wrong": "hallucinated"}
    """The kind of failure that a row of `explain` tells of, where `mistakes` is not overridden."""

    @abstractmethod
    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        """The reasons for the example's score: hits first, then misses, then wrong answers."""

    def failures(self, example: Example, prediction: Prediction | None) -> tuple[AnswerFailure, ...]:
        """The failures of an answer; empty where it is right. One that cannot be read fails once, in all objects."""
        if prediction is None:
            return (AnswerFailure("format", evidence_objects(example)),)
        return tuple(self.mistakes(example, prediction))

    def mistakes(self, example: Example, prediction: Prediction) -> Iterable[AnswerFailure]:
        """The failures of an answer that can be read, by the matching that its score is made of.

        Here misses and wrong answers as `explain` tells them, of the `failure_kinds`; tasks that know more override it.
        """
        rows, kinds = self.explain(example, prediction).rows, self.failure_kinds
        return [AnswerFailure(kinds[row.verdict]) for row in rows if row.verdict in kinds]

    def overlays(self, example: Example, prediction: Prediction | None) -> tuple[Overlay, ...]:
        """Boxes to draw over the example's images. Without a prediction, those of question and reference."""
        return ()

    def image_captions(self, example: Example) -> tuple[str, ...]:
        """Captions of `images`, in their order."""
        return tuple(f"frame {frame.frame_index}" for frame in example.frames)

    def facets(self, example: Example) -> Fields:
        """Keys of analysis beside `metadata`: from question and reference, never from an answer."""
        return {}

    def judged(self, example: Example, prediction: Prediction) -> Judged | None:
        """The sample as a judge sees it; None for a task that no judge scores.

        The criteria stand in `rubrics/<name>.yaml`.
        """
        return None

    def rationale(self, example: Example, prediction: Prediction) -> Rationale | None:
        """The sample as a judge of reasoning sees it; None for a task that asks for none."""
        return None
