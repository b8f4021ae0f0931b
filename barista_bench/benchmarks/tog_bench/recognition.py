"""Which predicted object is which true one: by name, one to one.

The paper compares embeddings of category names (all-mpnet-base-v2) and does not state its threshold; `exact` and
`synonyms` need no model. A pair counts if its similarity reaches the threshold; of all one-to-one assignments the one
of greatest total similarity is taken (`scipy.optimize.linear_sum_assignment`). Where names leave it open, as between
two chairs, the pairs that overlap more are taken: a task does not say which chair is the first.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from barista_bench.benchmarks import packaged_data
from barista_bench.benchmarks.sentence_similarity import DECIMALS, DEFAULT_ENCODER, SentenceEncoder, sentence_encoder
from barista_bench.core.task import Fields

Matcher: TypeAlias = Literal["exact", "synonyms", "embeddings"]
Floats: TypeAlias = NDArray[np.float64]
ENCODER = DEFAULT_ENCODER
THRESHOLD = 0.6
"""Our choice: the paper states none. The report's sweep shows what others give."""

_ARTICLE = re.compile(r"\A(?:the|a|an|my|your|his|her)\s+", re.IGNORECASE)
_NUMBER = re.compile(r"\s+#?\d{1,3}\Z")
_BETWEEN = re.compile(r"[\s_,;\-]+")


def plain_name(name: str) -> str:
    """A name as it is compared: lower case, without an article, punctuation around it, or the number of its kind.

    >>> plain_name(" The Trash-Can. "), plain_name("chair 2"), plain_name("coffee_cup")
    ('trash can', 'chair', 'coffee cup')
    """
    text = _BETWEEN.sub(" ", name.casefold().strip(" \t\r\n.,;:!?'\"()[]*`"))
    return _NUMBER.sub("", _ARTICLE.sub("", text.strip())).strip() or text.strip()


@functools.cache
def synonym_groups() -> tuple[tuple[str, ...], ...]:
    """The packaged groups of names, usual name first."""
    groups = msgspec.convert(packaged_data(__package__, "synonyms.yaml"), list[list[str]])
    return tuple(tuple(plain_name(name) for name in group) for group in groups)


@functools.cache
def _group_of() -> dict[str, int]:
    return {name: number for number, group in enumerate(synonym_groups()) for name in group}


@dataclass(frozen=True, slots=True)
class Recogniser:
    """A way to compare names, and the similarity from which on two of them mean one thing.

    `exact`: 1 where the plain names are equal, else 0. `synonyms`: also where the predicted name is one of the true
    object's synonyms, or stands in one packaged group with its category. `embeddings`: the cosine of the plain names'
    embeddings, the best of category and annotated synonyms.
    """

    matcher: Matcher = "embeddings"
    threshold: float = THRESHOLD
    encoder: str = ENCODER

    def similarities(self, predicted: Sequence[str], true: Sequence[Sequence[str]]) -> Floats:
        """(predicted, true): how alike names are, 1 for the same. Raises ConfigError without the encoder.

        `true` are all right names of each object, its category first.
        """
        names = [plain_name(name) for name in predicted]
        right = [[plain_name(name) for name in item] for item in true]
        if self.matcher == "embeddings" and names:
            return np.stack([self._encoder.similarity(names, item).max(axis=1) for item in right], axis=1)
        return np.array([[self._same(name, item) for item in right] for name in names]).reshape(-1, len(true))

    def prepare(self, questions: Iterable[tuple[Sequence[str], Sequence[Sequence[str]]]]) -> None:
        """Embed the names of many answers together, (predicted, true) each: far faster than one by one."""
        if self.matcher == "embeddings":
            names: set[str] = set()
            for predicted, true in questions:
                names.update(map(plain_name, predicted), *(map(plain_name, item) for item in true))
            self._encoder.embed(sorted(names))

    @property
    def description(self) -> Fields:
        """How names are compared, for results; `revision` is None where names are not embedded."""
        return {
            "matcher": self.matcher,
            "threshold": self.threshold,
            "encoder": self.encoder,
            "revision": self._encoder.revision if self.matcher == "embeddings" else None,
        }

    @property
    def _encoder(self) -> SentenceEncoder:
        return sentence_encoder(self.encoder)

    def _same(self, name: str, right: Sequence[str]) -> float:
        if self.matcher == "exact":
            return float(name == right[0])
        group = _group_of().get(name)
        return float(name in right or (group is not None and group == _group_of().get(right[0])))


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
