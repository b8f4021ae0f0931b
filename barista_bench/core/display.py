"""The third part of a task: how a sample is shown to people and to judges, and how its failures are named."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias

from barista_bench.core.example import Example, Fields, Prediction, evidence_objects, graph_facts

if TYPE_CHECKING:
    from barista_bench.scene_graph import Rle

RowKind: TypeAlias = Literal["hit", "miss", "wrong"]
OverlayKind: TypeAlias = Literal["reference", "predicted", "given"]
FailureKind: TypeAlias = Literal[
    "format",
    "missed",
    "hallucinated",
    "duplicate",
    "loose_box",
    "loose_mask",
    "loose_hand",
    "wrong_hand",
    "wrong_object",
    "wrong_verb",
    "wrong_attribute",
    "wrong_relation",
    "wrong_direction",
    "wrong_time",
    "wrong_order",
    "wrong_option",
]
FAILURE_KINDS: dict[FailureKind, str] = {
    "format": "no readable answer",
    "missed": "true and asked for, but nothing of it is in the answer",
    "hallucinated": "answered, and nothing true is like it",
    "duplicate": "answered more often than it is true",
    "loose_box": "the right place, but the box overlaps the true one too little",
    "loose_mask": "the right place, but the mask overlaps the true one too little",
    "loose_hand": "the right interaction and hand, but the hand's box overlaps the true one too little",
    "wrong_hand": "right but for which hand it is",
    "wrong_object": "right but for the object",
    "wrong_verb": "another verb than the true one",
    "wrong_attribute": "another property than the true one",
    "wrong_relation": "the right two objects, in another relation",
    "wrong_direction": "the right relation, the wrong way round",
    "wrong_time": "the right object, at another time",
    "wrong_order": "the right actions, in another order",
    "wrong_option": "another of the given options than the true one",
}
"""Kinds of mistakes in an answer, for all tasks. Each task uses the kinds that fit it."""


class AnswerFailure(NamedTuple):
    """One failure of an answer. `objects` are the ids of the annotated objects that the failure is about, if any."""

    kind: FailureKind
    objects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgedSample:
    """One sample as a judge sees it: the question, the reference from the annotations, and the answer."""

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
    """One reason for a score.

    A `hit` is answered and true, a `miss` is true but not answered, and a `wrong` is answered but not true.
    """

    kind: RowKind
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The reasons for a sample's score, for people."""

    rows: tuple[ExplanationRow, ...]

    @classmethod
    def of(cls, hits: Iterable[str] = (), misses: Iterable[str] = (), wrong: Iterable[str] = ()) -> Explanation:
        """Make one row per text: first the hits, then the misses, then the wrong answers."""
        kinds: tuple[tuple[RowKind, Iterable[str]], ...] = (("hit", hits), ("miss", misses), ("wrong", wrong))
        return cls(tuple(ExplanationRow(kind, text) for kind, texts in kinds for text in texts))


@dataclass(frozen=True, slots=True)
class Overlay:
    """One box, and possibly its mask, to draw over an image of a sample for people.

    Args:
        image: index in `Task.images`, from 0.
        box: [x0, y0, x1, y1] in pixels of that image. A predicted box may lie outside the image.
        kind: `reference` for the reference, `predicted` for the answer, `given` for boxes that the question shows.
        label: a short text.
        mask: mask of the boxed object, in pixels of a frame of any size. The mask is stretched over the image.
    """

    image: int
    box: tuple[float, float, float, float]
    kind: OverlayKind
    label: str = ""
    mask: Rle | None = None


class Display(ABC):
    """The third part of a task: display for people and judges. No score depends on this part."""

    row_note: ClassVar[str]
    """A description of one example in one line, for dataset cards."""
    failure_kinds: ClassVar[Mapping[RowKind, FailureKind]] = {"miss": "missed", "wrong": "hallucinated"}
    """The kind of failure that each kind of row of `explain` stands for, unless a task overrides `mistakes`."""

    @abstractmethod
    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        """Return the reasons for the example's score: hits first, then misses, then wrong answers."""

    def failures(self, example: Example, prediction: Prediction | None) -> tuple[AnswerFailure, ...]:
        """Return the failures of an answer; a right answer has none.

        An unreadable answer has one failure, about all objects.
        """
        if prediction is None:
            return (AnswerFailure("format", evidence_objects(example)),)
        return tuple(self.mistakes(example, prediction))

    def mistakes(self, example: Example, prediction: Prediction) -> Iterable[AnswerFailure]:
        """Return the failures of a readable answer, by the matching that the score uses.

        By default, these are the misses and wrong answers of `explain`, with kinds from `failure_kinds`. Tasks that
        know more details override this method.
        """
        rows, kinds = self.explain(example, prediction).rows, self.failure_kinds
        return [AnswerFailure(kinds[row.kind]) for row in rows if row.kind in kinds]

    def asked_facts(self, example: Example) -> Mapping[str, Sequence[str]]:
        """Return the facts of the graph that an answer states, each with its objects.

        An answer is wrong about a fact if one of its failures names all of these objects; without objects, if it fails
        at all.
        """
        return dict.fromkeys(graph_facts(example), ())

    def overlays(self, example: Example, prediction: Prediction | None) -> tuple[Overlay, ...]:
        """Return boxes to draw over the example's images.

        Without a prediction, these are the boxes of the question and the reference.
        """
        return ()

    def image_captions(self, example: Example) -> tuple[str, ...]:
        """Return one caption per image of `images`, in order."""
        return tuple(f"frame {frame.frame_index}" for frame in example.frames)

    def facets(self, example: Example) -> Fields:
        """Return the keys of analysis that are not in `metadata`.

        They come from the question and the reference, never from an answer.
        """
        return {}

    def show_to_judge(self, example: Example, prediction: Prediction) -> JudgedSample | None:
        """Return the sample as a judge sees it; None for a task that no judge scores.

        The criteria are in `rubrics/<name>.yaml`.
        """
        return None

    def rationale(self, example: Example, prediction: Prediction) -> Rationale | None:
        """Return the sample as a judge of reasoning sees it; None for a task that asks for no reasons."""
        return None
