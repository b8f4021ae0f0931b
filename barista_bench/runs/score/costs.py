"""Costs of answers: tokens, seconds, dollars, and prices. Light: a leaderboard Space reads it (`hub/board.py`)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError

from barista_bench.errors import ConfigError
from barista_bench.files.reading import Amount, Count, Strict, first_complaint, load_yaml, read_bounded

if TYPE_CHECKING:
    from barista_bench.runs.log.sample_log import SampleRecord

_TOKEN_COUNTS: Final = ("input_tokens", "cached_tokens", "output_tokens", "thinking_tokens")
COST_NAMES: Final = (*_TOKEN_COUNTS, "seconds", "dollars")
"""Cached tokens are among the input's, those of thinking among the output's; seconds are of generation; US dollars."""


class Cost(Strict):
    """One kind of cost of answers: in all, and the mean over those `samples` of which the log says it.

    Repetitions of a greedy answer, which is generated once, count 0.
    """

    total: Count | Amount
    mean: Amount
    samples: Count


def costs_of(records: Sequence[SampleRecord], prices: Prices) -> dict[str, Cost]:
    """Costs by `COST_NAMES`; a kind that no record says has no entry."""
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
    """Input, output and cached tokens; what a record does not say counts 0."""
    names = ("input_tokens", "output_tokens", "cached_tokens")
    tokens_in, tokens_out, cached = (sum(getattr(record, name) or 0 for record in records) for name in names)
    return tokens_in, tokens_out, cached


def cost_text(name: str, value: float) -> str:
    """An amount of one of `COST_NAMES` for people.

    >>> cost_text("input_tokens", 12345.6), cost_text("seconds", 0.25), cost_text("dollars", 0.00012)
    ('12,346', '0.25', '0.000120')
    """
    if name == "dollars" and value < 1:
        return f"{value:.6f}"
    return f"{value:,.2f}" if name == "dollars" or value < 100 else f"{value:,.0f}"


def costs_in_words(costs: Mapping[str, Cost]) -> str:
    """One line: each a sample, and in all; says of how many samples where these are not the same for all.

    >>> costs_in_words({"output_tokens": Cost(total=700, mean=7.0, samples=100)})
    '7.00 output tokens a sample (700 in all, of 100 samples)'
    """
    return "; ".join(
        f"{cost_text(name, cost.mean)} {name.replace('_', ' ')} a sample "
        f"({cost_text(name, cost.total)} in all, of {cost.samples:,} samples)"
        for name, cost in costs.items()
    )


MAX_FILE = 2**20
"""Bytes of a file of prices."""
_Price = Annotated[float, Field(ge=0, le=1e9)]


class Prices(BaseModel):
    """US dollars a million tokens. Without `cached_input`, cached tokens cost what other input does.

    `input` and `output` are None where nothing says what a model costs.
    """

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True, frozen=True)

    input: _Price | None = None
    output: _Price | None = None
    cached_input: _Price | None = None

    def cost(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float | None:
        """US dollars, to the sixth place; None without prices. `cached_tokens` are among the input's.

        >>> Prices(input=2.0, output=8.0).cost(1_000_000, 500_000), Prices().cost(1, 1)
        (6.0, None)
        >>> Prices(input=2.0, output=8.0, cached_input=0.5).cost(1_000_000, 0, 400_000)
        1.4
        """
        if self.input is None or self.output is None:
            return None
        cached = self.input if self.cached_input is None else self.cached_input
        new_tokens = max(0, input_tokens - cached_tokens)
        return round((new_tokens * self.input + cached_tokens * cached + output_tokens * self.output) / 1e6, 6)


class _ModelPrices(Prices):
    input: _Price
    output: _Price


class _PriceList(RootModel[dict[str, _ModelPrices]]):
    """A file of prices: those of each model by its name."""


def read_prices(path: Path, model: str) -> Prices:
    """A model's prices, from a file of YAML or JSON: `NAME: {input: 2.5, output: 10, cached_input: 1.25}` for each.

    Args:
        model: its name as the file has it: without `served:` and without what a run withholds from it.

    Raises:
        ConfigError: the file is missing or of another form, or does not name the model.
    """
    remedy = "write one `NAME: {input: 2.5, output: 10}` a model, US dollars a million tokens"
    content = load_yaml(read_bounded(path, MAX_FILE, remedy=remedy, error=ConfigError), str(path), remedy=remedy)
    try:
        prices_by_model = _PriceList.model_validate(content).root
    except ValidationError as error:
        raise ConfigError(f"{path}: {first_complaint(error)}. Remedy: {remedy}") from error
    if model not in prices_by_model:
        names = ", ".join(sorted(prices_by_model)[:20]) or "none"
        raise ConfigError(f"{path}: has no prices of {model!r}, but of {names}. Remedy: add it")
    return Prices(**prices_by_model[model].model_dump())
