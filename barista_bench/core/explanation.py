"""Records that explain a score to people and judges: reasons, failures, boxes to draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

Verdict: TypeAlias = Literal["hit", "miss", "wrong"]
OverlayKind: TypeAlias = Literal["truth", "predicted", "given"]
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
"""What can be wrong with an answer, for all tasks; each uses those that fit it."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a judge is shown of one sample: the question, the reference made from the annotations, and the answer."""

    question: str
    reference: str
    answer: str


@dataclass(frozen=True, slots=True)
class Rationale:
    """What a judge of reasoning is shown of one sample: the answer, why it was given, and what is true."""

    question: str
    correct_answer: str
    reference_reasoning: str
    answer: str
    reasoning: str

    @property
    def is_empty(self) -> bool:
        return not self.reasoning.strip()


class AnswerFailure(NamedTuple):
    """One thing that is wrong with an answer. `objects` are ids of the annotated objects that it is about, if any."""

    kind: FailureKind
    objects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExplanationRow:
    """One reason for a score: `hit` is right, `miss` is true but not answered, `wrong` is answered but not true."""

    verdict: Verdict
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a sample scored as it did, for people."""

    rows: tuple[ExplanationRow, ...]


@dataclass(frozen=True, slots=True)
class Overlay:
    """One box to draw over an image of a sample, for people.

    Args:
        image: which of `Task.images`, from 0.
        box: [x0, y0, x1, y1] in pixels of that image; a predicted one may lie outside of it.
        kind: `truth` is what scoring compares with, `predicted` what was answered, `given` what the question shows.
        label: a few words.
    """

    image: int
    box: tuple[float, float, float, float]
    kind: OverlayKind
    label: str = ""
