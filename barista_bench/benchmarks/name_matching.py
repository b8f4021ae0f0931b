"""Compare a model's names with the right names: word for word, by synonyms, or by embeddings."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from barista_bench.benchmarks.sentence_similarity import DEFAULT_ENCODER, SentenceEncoder, sentence_encoder
from barista_bench.core.example import Fields
from barista_bench.core.options import Option, OptionValue

Matcher: TypeAlias = Literal["exact", "synonyms", "embeddings"]
Floats: TypeAlias = NDArray[np.float64]
THRESHOLD = 0.6
"""The similarity from which two names mean the same thing. It is our choice, since no paper states one.

To score a run with another value, use `--option threshold`.
"""


def matching_options(matcher: Matcher, help: str) -> dict[str, Option]:
    """Return the options of a task that compares names. `matcher` is the default."""
    return {
        "matcher": Option(matcher, help, changes="scores", choices=("embeddings", "synonyms", "exact")),
        "threshold": Option(
            THRESHOLD,
            "least similarity of two names for one thing; no paper states one",
            changes="scores",
            low=0.01,
            high=1.0,
        ),
        "encoder": Option(
            DEFAULT_ENCODER,
            "sentence encoder of matcher=embeddings: a folder or a Hub id",
            changes="scores",
            fetched_with=("matcher", "embeddings"),
        ),
    }


_ARTICLE = re.compile(r"\A(?:the|a|an|my|your|his|her)\s+", re.IGNORECASE)
_NUMBER = re.compile(r"\s+#?\d{1,3}\Z")
_BETWEEN = re.compile(r"[\s_,;\-]+")


def plain_name(name: str) -> str:
    """Return a name in a form for comparison: in lower case, without article, outer punctuation or trailing number.

    >>> plain_name(" The Trash-Can. "), plain_name("chair 2"), plain_name("coffee_cup")
    ('trash can', 'chair', 'coffee cup')
    """
    text = _BETWEEN.sub(" ", name.casefold().strip(" \t\r\n.,;:!?'\"()[]*`"))
    return _NUMBER.sub("", _ARTICLE.sub("", text.strip())).strip() or text.strip()


@dataclass(frozen=True, slots=True)
class NameMatcher(ABC):
    """A method of comparing names, and the similarity from which two names mean the same thing.

    With `exact` and `synonyms`, the similarity is 1 or 0, by `_is_same`. With `embeddings`, it is the cosine of the
    plain names' embeddings, for the best of all right names.
    """

    matcher: Matcher = "embeddings"
    threshold: float = THRESHOLD
    encoder: str = DEFAULT_ENCODER

    @classmethod
    def of(cls, chosen: Mapping[str, OptionValue]) -> Self:
        """Return the matcher selected by the `matching_options` of a task."""
        return msgspec.convert({name: chosen[name] for name in ("matcher", "threshold", "encoder")}, cls)

    def similarities(self, predicted: Sequence[str], true: Sequence[Sequence[str]]) -> Floats:
        """Return (predicted, true) similarities; equal names have 1. Raises ConfigError if the encoder cannot be
        loaded.

        `true` has all right names of each thing, with the usual name first.
        """
        names = [plain_name(name) for name in predicted]
        right = [[plain_name(name) for name in item] for item in true]
        if self.matcher == "embeddings" and names:
            return np.stack([self._encoder.similarity(names, item).max(axis=1) for item in right], axis=1)
        return np.array([[float(self._is_same(name, item)) for item in right] for name in names]).reshape(-1, len(true))

    def prepare(self, questions: Iterable[tuple[Sequence[str], Sequence[Sequence[str]]]]) -> None:
        """Embed the names of many answers together, each given as (predicted, true). This is much faster than one by
        one.
        """
        if self.matcher == "embeddings":
            names: set[str] = set()
            for predicted, true in questions:
                names.update(map(plain_name, predicted), *(map(plain_name, item) for item in true))
            self._encoder.embed(sorted(names))

    @property
    def description(self) -> Fields:
        """Return a description of the comparison, for results. `revision` is None without embeddings."""
        return {
            "matcher": self.matcher,
            "threshold": self.threshold,
            "encoder": self.encoder,
            "revision": self._encoder.revision if self.matcher == "embeddings" else None,
        }

    @property
    def _encoder(self) -> SentenceEncoder:
        return sentence_encoder(self.encoder)

    @abstractmethod
    def _is_same(self, name: str, right: Sequence[str]) -> bool:
        """Return True if a plain name is one of a thing's plain names, or a synonym of the thing's usual name."""
