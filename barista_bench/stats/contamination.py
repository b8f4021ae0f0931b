"""Check whether a model guesses better on a published question set than on a private one.

A model that has seen a published set in training answers it better without images than its videos explain. The
advantage on a set is the score of `text_only:MODEL` minus the score of `prior`, which knows only the answers to other
videos of the same set. The two sets have different videos, so the two advantages are independent. The interval of their
difference follows from the intervals of the advantages (Zou and Donner, Statistics in Medicine 27, 2008).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from barista_bench.core.intervals import CONFIDENCE, PERMUTATIONS
from barista_bench.errors import DataError
from barista_bench.runs.score.comparability import ABOUT_EXAMPLES, differences
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.stats.comparison import Comparison, compare_pair

GUESSER = "text_only:"
_Guesses = dict[tuple[str, str, str], tuple[ScoredRun, ScoredRun]]
"""By benchmark, task and model: the run without images, and the run of `prior`."""


@dataclass(frozen=True, slots=True)
class GuessComparison:
    """A model's advantage over `prior` without images, on the public and on the private set.

    `public` and `private` compare `text_only:MODEL` with `prior`. `interval` holds `difference`, the public advantage
    minus the private one. The intervals of all comparisons that were made together hold with a probability of 0.95. The
    interval is None if a set has too few videos.
    """

    model: str
    public: Comparison
    private: Comparison

    @property
    def difference(self) -> float:
        return self.public.difference - self.private.difference

    @property
    def interval(self) -> tuple[float, float] | None:
        public, private = self.public, self.private
        if public.low is None or public.high is None or private.low is None or private.high is None:
            return None
        below = math.hypot(public.difference - public.low, private.high - private.difference)
        above = math.hypot(public.high - public.difference, private.difference - private.low)
        return self.difference - below, self.difference + above

    @property
    def is_larger_on_public(self) -> bool:
        return self.interval is not None and self.interval[0] > 0


def compare_guesses(
    public: Sequence[ScoredRun], private: Sequence[ScoredRun], *, permutations: int = PERMUTATIONS
) -> tuple[GuessComparison, ...]:
    """Compare the advantages of each model and task that both sets have.

    Args:
        public: runs of `text_only:MODEL` and of `prior` on the published set. Other runs are ignored.
        private: the same on the private set.
        permutations: maximum number of permutations for the p-values of the advantages. The verdict uses no p-value.

    Raises:
        DataError: no model has all four runs, a model has two runs of a task, or the runs on the two sets differ in
            more than their questions.
    """
    of_public, of_private = _guesses(public), _guesses(private)
    shared = [key for key in of_public if key in of_private]
    if not shared:
        raise DataError(
            "no task has runs of one text_only:MODEL and of prior on both sets. "
            "Fix: ask text_only:MODEL and prior on the public and on the private set, then name the two folders"
        )
    for key in shared:
        _refuse_unlike(of_public[key][0], of_private[key][0])
    level = 1 - (1 - CONFIDENCE) / len(shared)

    def advantage(runs: tuple[ScoredRun, ScoredRun]) -> Comparison:
        return compare_pair(*runs, permutations=permutations, level=level)

    return tuple(
        GuessComparison(key[2].removeprefix(GUESSER), advantage(of_public[key]), advantage(of_private[key]))
        for key in shared
    )


def _guesses(runs: Sequence[ScoredRun]) -> _Guesses:
    by_model: dict[tuple[str, str, str], ScoredRun] = {}
    for run in runs:
        label = run.results.model.label
        if label == "prior" or label.startswith(GUESSER):
            earlier = by_model.setdefault((run.task.benchmark, run.task.name, label), run)
            if earlier is not run:
                raise DataError(f"{earlier.folder} and {run.folder} are both runs of {label}. Fix: name one of them")
    return {
        key: (run, by_model[*key[:2], "prior"])
        for key, run in by_model.items()
        if key[2] != "prior" and (*key[:2], "prior") in by_model
    }


def _refuse_unlike(public: ScoredRun, private: ScoredRun) -> None:
    folders = f"{public.folder} and {private.folder}"
    unlike = differences(public.results.comparability, private.results.comparability)
    if "examples" not in unlike:
        raise DataError(f"{folders} are of the same questions. Fix: build the private set from other videos")
    if others := {name: values for name, values in unlike.items() if name not in ABOUT_EXAMPLES}:
        listed = "; ".join(f"{name}: {values}" for name, values in others.items())
        raise DataError(f"{folders} differ in their {listed}. Fix: ask both sets in the same way")
