"""How a task is shown: why a sample scored as it did, boxes to draw, what judges read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from barista_bench.core.example import Example, Fields, Prediction, evidence_objects
from barista_bench.core.explanation import AnswerFailure, Explanation, FailureKind, Judged, Overlay, Rationale, Verdict


class Display(ABC):
    """The third part of a task: for people and judges; no figure is made of it."""

    row_note: ClassVar[str]
    """What one example is, in a line, for dataset cards."""
    failure_kinds: ClassVar[Mapping[Verdict, FailureKind]] = {"miss": "missed", "wrong": "hallucinated"}
    """The kind of failure that a row of `explain` tells of, where `failures` is not overridden."""

    @abstractmethod
    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        """Why the example scores as it does, hits first, then misses, then wrong answers."""

    def failures(self, example: Example, prediction: Prediction | None) -> tuple[AnswerFailure, ...]:
        """What is wrong with an answer, by the matching that its score is made of; empty where nothing is.

        An answer that cannot be read fails once, in all objects of the example's evidence. Here misses and wrong
        answers as `explain` tells them, of the `failure_kinds`; tasks that know more override it.
        """
        if prediction is None:
            return self.unreadable(example)
        rows, kinds = self.explain(example, prediction).rows, self.failure_kinds
        return tuple(AnswerFailure(kinds[row.verdict]) for row in rows if row.verdict in kinds)

    @staticmethod
    def unreadable(example: Example) -> tuple[AnswerFailure, ...]:
        """The failures of an answer that cannot be read."""
        return (AnswerFailure("format", evidence_objects(example)),)

    def overlays(self, example: Example, prediction: Prediction | None) -> tuple[Overlay, ...]:
        """Boxes to draw over the example's images. Without a prediction, those of the question and the truth alone."""
        return ()

    def image_captions(self, example: Example) -> tuple[str, ...]:
        """What each of `images` shows, in their order."""
        return tuple(f"frame {frame.frame_index}" for frame in example.frames)

    def facets(self, example: Example) -> Fields:
        """What analysis may group examples by beside `metadata`: from question and truth, never from an answer."""
        return {}

    def judged(self, example: Example, prediction: Prediction) -> Judged | None:
        """What a judge is shown; None for a task that no judge scores. The criteria stand in `rubrics/<name>.yaml`."""
        return None

    def rationale(self, example: Example, prediction: Prediction) -> Rationale | None:
        """What a judge of reasoning is shown; None for a task that asks for none."""
        return None
