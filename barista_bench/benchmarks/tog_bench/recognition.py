"""Which predicted object is which true one: by name, one to one.

The paper compares embeddings of category names (all-mpnet-base-v2) and does not state its threshold; `exact` and
`synonyms` need no model. A pair counts if its similarity reaches the threshold; of all one-to-one assignments the one
of greatest total similarity is taken (`scipy.optimize.linear_sum_assignment`). Where names leave it open, as between
two chairs, the pairs that overlap more are taken: a task does not say which chair is the first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from barista_bench.benchmarks import packaged_data
from barista_bench.benchmarks.name_matching import NameMatcher, plain_name
from barista_bench.benchmarks.sentence_similarity import DECIMALS

Floats: TypeAlias = NDArray[np.float64]


@functools.cache
def synonym_groups() -> tuple[tuple[str, ...], ...]:
    """The packaged groups of names, usual name first."""
    groups = msgspec.convert(packaged_data(__package__, "synonyms.yaml"), list[list[str]])
    return tuple(tuple(plain_name(name) for name in group) for group in groups)


@functools.cache
def _group_of() -> dict[str, int]:
    return {name: number for number, group in enumerate(synonym_groups()) for name in group}


@dataclass(frozen=True, slots=True)
class Recogniser(NameMatcher):
    """`synonyms`: also where the predicted name is one of the true object's synonyms, or stands in one packaged group
    with its category.
    """

    def _same(self, name: str, right: Sequence[str]) -> bool:
        if self.matcher == "exact":
            return name == right[0]
        group = _group_of().get(name)
        return name in right or (group is not None and group == _group_of().get(right[0]))


def assign(
    similarity: Floats, threshold: float, overlap: Callable[[int, int], float] = lambda predicted, true: 0.0
) -> list[int | None]:
    """For each predicted object the true one that it is, or None; one to one, at the greatest total similarity.

    Args:
        similarity: (predicted, true).
        threshold: least similarity of a pair, above 0.
        overlap: of a pair, from 0 to 1: decides between assignments of equal similarity.

    >>> assign(np.array([[0.9, 0.8], [0.9, 0.1]]), 0.5), assign(np.array([[0.4]]), 0.5)
    ([1, 0], [None])
    """
    matches: list[int | None] = [None] * similarity.shape[0]
    allowed = similarity >= threshold
    crowded = allowed & ((allowed.sum(axis=0) > 1)[None, :] | (allowed.sum(axis=1) > 1)[:, None])
    if not crowded.any():  # nothing to decide, as with most answers
        for row, column in zip(*(axis.tolist() for axis in np.nonzero(allowed)), strict=True):
            matches[row] = column
        return matches
    from scipy.optimize import linear_sum_assignment  # slow to import, and few commands score

    gain = np.where(allowed, np.round(similarity, DECIMALS), 0.0)
    # All overlaps together are worth less than the last decimal of one similarity.
    least = 10.0**-DECIMALS / (2 * min(similarity.shape) + 1)
    for row, column in zip(*(axis.tolist() for axis in np.nonzero(crowded)), strict=True):
        gain[row, column] += least * overlap(row, column)
    for row, column in zip(*(axis.tolist() for axis in linear_sum_assignment(-gain)), strict=True):
        if allowed[row, column]:
            matches[row] = column
    return matches
