"""How a task scores: one statement of its figures, from which all numbers anywhere are made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from barista_bench.core.example import Example, Json, Prediction, Scored
from barista_bench.core.statistics import SampleStatistics


class Scoring(ABC):
    """The second part of a task."""

    primary: ClassVar[str]
    """The figure that stands for the task in tables."""
    sample_score: ClassVar[str]
    """The score that stands for one sample."""
    breakdown_keys: ClassVar[tuple[str, ...]]
    """Keys of `metadata` by which every result is broken down."""
    whole_clusters: ClassVar[bool] = False
    """Whether the examples of a cluster are scored together, so that analysis must not group by what cuts one apart."""

    @abstractmethod
    def statistics(self, samples: Sequence[Scored]) -> SampleStatistics:
        """What the figures of these samples of one run are made of. No readable answer scores as the protocol says."""

    def score(self, example: Example, prediction: Prediction | None) -> dict[str, float]:
        """The figures of one sample; of many, ask their `statistics` once."""
        scores = self.statistics([Scored(example, prediction)]).scores()
        return {name: float(value[0]) for name, value in scores.items()}

    def aggregate(self, samples: Sequence[Scored]) -> dict[str, Json]:
        """The task's figures over all samples of one run, and the tables beside them."""
        return self.statistics(samples).published()

    def cluster(self, example: Example) -> str:
        """What the example belongs to when intervals are made: what is drawn with all that belongs to it."""
        return example.video_id
