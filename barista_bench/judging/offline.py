"""Judges that need no model.

`lexical` turns the task's own word overlap (`benchmarks/barista/lexical.py`) into scores, deterministically. It is a
floor: it knows neither paraphrase nor negation nor who does what, and its numbers must never be published as those of a
judge. It exists so that the whole way can be run without a network.

`oracle` gives full marks to the reference's own answer and none to any other. It exists for tests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from barista_bench.errors import ConfigError
from barista_bench.judging.items import JudgeItem
from barista_bench.judging.rubric import TOP_SCORE, Criterion, Rubric
from barista_bench.judging.verdicts import as_text
from barista_bench.models.scripted import ScriptedModel


def offline_judge(name: str, rubric: Rubric, items: Sequence[JudgeItem]) -> ScriptedModel:
    """A scripted model that answers the forms of these items.

    Raises:
        ConfigError: `lexical` is asked about a criterion that names no figure of the task.
    """
    write = _lexical if name == "lexical" else _oracle
    replies: Mapping[str, str] = {
        form_id(item.item, criterion.name): write(item, criterion) for item in items for criterion in rubric.criteria
    }
    return ScriptedModel(name, lambda asked, seed: replies[asked])


def form_id(item: str, criterion: str) -> str:
    """Identity of one form: an item and a criterion."""
    return f"{item}:{criterion}"


def tenths(share: float) -> int:
    """A figure from 0 to 1 as a score from 0 to 10, halves up.

    >>> tenths(0.0), tenths(0.25), tenths(0.949), tenths(1.0)
    (0, 3, 9, 10)
    """
    return min(TOP_SCORE, max(0, math.floor(share * TOP_SCORE + 0.5)))


def _lexical(item: JudgeItem, criterion: Criterion) -> str:
    if criterion.lexical is None or criterion.lexical not in item.figures:
        raise ConfigError(
            f"the rubric's criterion {criterion.name} names no figure for the judge lexical ({criterion.lexical}). "
            f"Remedy: set its `lexical` to one of {', '.join(sorted(item.figures))}, or use another judge"
        )
    share = item.figures[criterion.lexical]
    return as_text(
        {"score": tenths(share), "reason": f"{criterion.lexical} is {share:.3f}; words were counted, not read"}
    )


def _oracle(item: JudgeItem, criterion: Criterion) -> str:
    if item.perfect:
        return as_text({"score": TOP_SCORE, "reason": "the reference's own answer"})
    return as_text({"score": 0, "reason": "another answer than the reference's own"})
