"""Explanations out of texts: what an answer has, what it misses, and what it has wrong."""

from __future__ import annotations

from collections.abc import Iterable

from barista_bench.core.task import Explanation, ExplanationRow


def explanation(hits: Iterable[str] = (), misses: Iterable[str] = (), wrong: Iterable[str] = ()) -> Explanation:
    """One row a text, in the order of the arguments."""
    return Explanation(
        (
            *(ExplanationRow("hit", text) for text in hits),
            *(ExplanationRow("miss", text) for text in misses),
            *(ExplanationRow("wrong", text) for text in wrong),
        )
    )
