"""Find the levels that made single answers wrong, if repetitions and a control allow it.

A set of levels is a cause of a wrong example if the example is right in all repetitions with the aids of this set and
of every larger set. All smallest sets are listed. The same rule, applied to the inert aids, gives the false rate. Inert
aids have as many answers and cannot correct an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from barista_bench.aids.levels import LevelName
from barista_bench.diagnosis.conditions import Condition, Design, LevelSet, PlannedExample, inert_aids, true_aids

RIGHT: Final = 0.5
"""Minimum sample score of a right answer. Lower scores are wrong."""
LEAST_REPETITIONS: Final = 2
MOST_FALSE: Final = 0.1
"""False rate above which no causes are named."""


class SingleCauses(NamedTuple):
    """Maps example ids to the smallest sets of levels, with the false rate.

    None if the answers do not allow the rule.
    """

    by_example: Mapping[str, list[list[LevelName]]]
    false_rate: float | None


def single_causes(
    planned: Sequence[PlannedExample],
    design: Design,
    repetitions: int,
    scores: Callable[[PlannedExample, Condition], Sequence[float]],
) -> SingleCauses:
    """Return the causes of the wrong examples.

    `scores` returns an example's sample scores in a condition, one per repetition.
    """
    fitting = [each for each in planned if design == "full" or len(each.order) == 1]
    wrong = [each for each in fitting if max(scores(each, ())) < RIGHT]
    if repetitions < LEAST_REPETITIONS or not wrong:
        return SingleCauses({}, None)

    def smallest(each: PlannedExample, variant: Callable[[LevelSet], Condition]) -> list[list[LevelName]]:
        sets = [told for told in each.sets("full") if told]
        right = {told for told in sets if min(scores(each, variant(told))) >= RIGHT}
        sure = [told for told in sets if all(other in right for other in sets if told <= other)]
        return [sorted(told) for told in sure if not any(other < told for other in sure)]

    false_rate = sum(bool(smallest(each, inert_aids)) for each in wrong) / len(wrong)
    if false_rate > MOST_FALSE:
        return SingleCauses({}, false_rate)
    found = {each.example.example_id: smallest(each, true_aids) for each in wrong}
    return SingleCauses({name: causes for name, causes in found.items() if causes}, false_rate)
