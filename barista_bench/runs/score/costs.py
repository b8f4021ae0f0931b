"""Compute the costs of answers: tokens, seconds, dollars.

This module imports little, since a leaderboard Space loads it (`hub/board.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from barista_bench.files.reading import Amount, Count, Strict
from barista_bench.runs.described import Prices

if TYPE_CHECKING:
    from barista_bench.runs.log.sample_log import SampleRecord

_TOKEN_COUNTS: Final = ("input_tokens", "cached_tokens", "output_tokens", "thinking_tokens")
COST_NAMES: Final = (*_TOKEN_COUNTS, "seconds", "dollars")
"""Input includes cached tokens, and output includes reasoning tokens.

Seconds measure generation. Costs are in US dollars.
"""


class Cost(Strict):
    """One kind of cost: its total, and its mean over the `samples` for which the log has this cost.

    A greedy answer is generated once, so its repetitions cost 0.
    """

    total: Count | Amount
    mean: Amount
    samples: Count


def costs_of(records: Sequence[SampleRecord], prices: Prices) -> dict[str, Cost]:
    """Return costs by `COST_NAMES`. A cost that no record has is left out."""
    amounts: dict[str, tuple[float, int]] = {
        name: (sum(counts), len(counts))
        for name in _TOKEN_COUNTS
        if (counts := [count for record in records if (count := getattr(record, name)) is not None])
    }
    if seconds := [record.seconds for record in records if record.is_finished]:
        amounts["seconds"] = math.fsum(seconds), len(seconds)
    with_tokens = [record for record in records if None not in (record.input_tokens, record.output_tokens)]
    if with_tokens and (dollars := prices.cost(*token_sums(with_tokens))) is not None:
        amounts["dollars"] = dollars, len(with_tokens)
    return {
        name: Cost(total=round(total, 6), mean=round(total / samples, 9), samples=samples)
        for name, (total, samples) in amounts.items()
    }


def token_sums(records: Sequence[SampleRecord]) -> tuple[int, int, int]:
    """Return input, output and cached tokens. Missing counts are 0."""
    names = ("input_tokens", "output_tokens", "cached_tokens")
    tokens_in, tokens_out, cached = (sum(getattr(record, name) or 0 for record in records) for name in names)
    return tokens_in, tokens_out, cached


def cost_text(name: str, value: float) -> str:
    """Format an amount of a cost in `COST_NAMES`.

    >>> cost_text("input_tokens", 12345.6), cost_text("seconds", 0.25), cost_text("dollars", 0.00012)
    ('12,346', '0.25', '0.000120')
    """
    if name == "dollars" and value < 1:
        return f"{value:.6f}"
    return f"{value:,.2f}" if name == "dollars" or value < 100 else f"{value:,.0f}"


def costs_in_words(costs: Mapping[str, Cost]) -> str:
    """Return a line with each cost per sample and in total, and its number of samples.

    >>> costs_in_words({"output_tokens": Cost(total=700, mean=7.0, samples=100)})
    '7.00 output tokens a sample (700 in all, of 100 samples)'
    """
    return "; ".join(
        f"{cost_text(name, cost.mean)} {name.replace('_', ' ')} a sample "
        f"({cost_text(name, cost.total)} in all, of {cost.samples:,} samples)"
        for name, cost in costs.items()
    )
