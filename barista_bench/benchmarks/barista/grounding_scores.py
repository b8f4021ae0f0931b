"""What phrase grounding's figures are made of: boxes compared with the truth once, and counted anew for each draw."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from barista_bench.core.example import PixelBox, TypedFields
from barista_bench.core.statistics import Figures, Floats, SampleStatistics
from barista_bench.metrics.interaction_f1.scoring import box_iou
from barista_bench.metrics.mean_ap.inputs import RawImage
from barista_bench.metrics.mean_ap.scoring import Evaluated, evaluate_images, figures, tables
from barista_bench.metrics.mean_ap.spread import spread_of

SPREAD_ORDERS = 20
"""Random orders that the spread of the mean average precision is taken over; its bounds hold for all."""


class AnsweredBoxes(TypedFields):
    """A prediction: [x0, y0, x1, y1] in pixels, and where given a confidence of each box, 0 to 1."""

    boxes: list[PixelBox]
    scores: list[float] | None = None

    def as_image(self, category: str) -> RawImage:
        scores = {"scores": self.scores} if self.boxes and self.scores is not None else {}
        return {"boxes": self.boxes, "labels": category, **scores}


class BoxStatistics(SampleStatistics):
    """COCO's mean average precision, which is no function of sums over samples, and figures beside it.

    All confidences are 1, as released, unless every sample that has boxes has `scores` for them, as only the paper's
    protocol reads them: those of a detector rank its boxes over all images, while a mixture would rank answers by
    whether they have any.

    Args:
        answers: (S,) the answered boxes of each sample, each sample one image; None where there is no readable answer.
        references: (S,) the true boxes.
    """

    def __init__(self, answers: Sequence[RawImage | None], references: Sequence[RawImage]) -> None:
        self._answers, self._references = answers, references

    @property
    def size(self) -> int:
        return len(self._references)

    @cached_property
    def evaluated(self) -> Evaluated:
        """All boxes, matched in torchmetrics' single precision."""
        ranked = all("scores" in answer for answer in self._answers if answer and answer["boxes"])
        plain = [answer and {"boxes": answer["boxes"], "labels": answer["labels"]} for answer in self._answers]
        return evaluate_images(self._answers if ranked else plain, self._references, rounding="float32")

    def figures(self, weights: Floats) -> Figures:
        is_plain = weights.shape[0] == 1 and bool((weights == 1).all())
        return figures(self.evaluated, None if is_plain else weights)

    def scores(self) -> dict[str, Floats]:
        """Mean over the answered boxes of the best IoU with any true one; 0 without a readable or filled answer."""
        best = [
            [max(box_iou(box, true) for true in truth["boxes"]) for box in answer["boxes"]] if answer else []
            for answer, truth in zip(self._answers, self._references, strict=True)
        ]
        return {"mean_best_iou": np.array([sum(ious) / len(ious) if ious else 0.0 for ious in best])}

    def among(self, samples: Sequence[int]) -> BoxStatistics:
        return BoxStatistics([self._answers[at] for at in samples], [self._references[at] for at in samples])

    def tables(self) -> dict[str, Any]:
        spread = spread_of(self.evaluated, orders=SPREAD_ORDERS)
        return {**tables(self.evaluated), "tie_spread": {name: spread[name] for name in ("map", "map_50", "map_75")}}
