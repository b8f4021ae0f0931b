"""Describe failures of answers, in one vocabulary for all tasks."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

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
