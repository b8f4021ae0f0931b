"""Answers of models that score given texts instead of generating one.

A dual encoder answers `{"scores": {"A": 0.31, "B": 0.27}}`, one finite number for each label of `Task.choices`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping

import msgspec

MAX_TEXT = 2**20
"""Characters of an answer that are read."""


class _ScoredChoices(msgspec.Struct, forbid_unknown_fields=True):
    scores: dict[str, float]


def write_scores(scores: Mapping[str, float]) -> str:
    """The answer of a model that scores; rounded to six decimals, so that hardware does not change it.

    >>> write_scores({"A": 0.31000000001, "B": -0.5})
    '{"scores": {"A": 0.31, "B": -0.5}}'
    """
    return json.dumps({"scores": {label: round(float(value), 6) for label, value in scores.items()}})


def read_scores(text: str, labels: Collection[str]) -> dict[str, float] | None:
    """The scores of such an answer, in the order of `labels`; None where the text is anything else.

    >>> read_scores('{"scores": {"B": 1, "A": 0.5}}', ["A", "B"])
    {'A': 0.5, 'B': 1.0}
    >>> read_scores("(A)", ["A", "B"])
    """
    if len(text) > MAX_TEXT or not text.lstrip().startswith("{"):
        return None
    try:
        scores = msgspec.json.decode(text, type=_ScoredChoices).scores
    except (msgspec.MsgspecError, UnicodeError):
        return None
    if set(scores) != set(labels) or not all(map(math.isfinite, scores.values())):
        return None
    return {label: scores[label] for label in labels}
