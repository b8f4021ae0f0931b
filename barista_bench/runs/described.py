"""Define how a run's model, wording and prices are written and read.

This module imports little, since a leaderboard Space loads it (`hub/board.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue, RootModel, StringConstraints, ValidationError

from barista_bench.core.boxes import BoxFormat, BoxOrder
from barista_bench.core.prompt import WORDING_PATTERN
from barista_bench.errors import ConfigError
from barista_bench.files.reading import Strict, first_complaint, load_yaml, read_bounded

MAX_REPETITIONS = 1000
"""Maximum repetitions of a run."""
SHORT = 12
"""Number of characters of a hash that are shown."""
Wording: TypeAlias = Annotated[str, StringConstraints(pattern=WORDING_PATTERN)]
"""The name of the wording that was asked (`PromptTexts.wording`)."""


class BoxFormatInfo(Strict):
    order: BoxOrder
    scale: Annotated[int, Field(ge=1, le=10**6)] | None

    @property
    def format(self) -> BoxFormat:
        return BoxFormat(self.order, self.scale)


class ModelInfo(Strict):
    name: str
    box_format: BoxFormatInfo
    revision: str | None
    settings: dict[str, JsonValue]

    @property
    def label(self) -> str:
        """Return the model's name for comparisons. The adapter's content and worked examples are part of the name."""
        return model_label(self.name, self.settings)


def model_label(name: str, settings: Mapping[str, JsonValue]) -> str:
    adapter, shots = settings.get("adapter"), settings.get("shots")
    name = f"{name} + adapter {adapter[:SHORT]}" if isinstance(adapter, str) and adapter else name
    return f"{name} + {shots} shots" if isinstance(shots, int) else name


DECISION_FILE = "decision.json"
"""File with the decision of a run that stopped early, in a run folder or in a judge's folder."""
AIDS_FILE = "aids.jsonl"
"""File of a run folder with the aids of each example: their text, and their data in pixels."""
MAX_FILE = 2**20
"""Maximum bytes of a price file."""
_Price = Annotated[float, Field(ge=0, le=1e9)]


class Prices(BaseModel):
    """US dollars per million tokens. If `cached_input` is not set, cached tokens have the price of other input.

    `input` and `output` are None if the price is unknown.
    """

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True, frozen=True)

    input: _Price | None = None
    output: _Price | None = None
    cached_input: _Price | None = None

    def cost(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float | None:
        """Return the cost in US dollars to six decimals, or None without prices.

        `cached_tokens` are part of the input tokens.

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
    """A price file. It maps each model's name to its prices."""


def read_prices(path: Path, model: str) -> Prices:
    """Read a model's prices from a YAML or JSON file with `NAME: {input: 2.5, output: 10, cached_input: 1.25}` per
    model.

    Args:
        model: the model's name in the file, without `served:` and without an ablation's prefix.

    Raises:
        ConfigError: the file is missing, malformed, or lacks the model.
    """
    remedy = "write one `NAME: {input: 2.5, output: 10}` a model, US dollars a million tokens"
    content = load_yaml(read_bounded(path, MAX_FILE, remedy=remedy, error=ConfigError), str(path), remedy=remedy)
    try:
        prices_by_model = _PriceList.model_validate(content).root
    except ValidationError as error:
        raise ConfigError(f"{path}: {first_complaint(error)}. Fix: {remedy}") from error
    if model not in prices_by_model:
        names = ", ".join(sorted(prices_by_model)[:20]) or "none"
        raise ConfigError(f"{path}: has no prices of {model!r}, but of {names}. Fix: add it")
    return Prices(**prices_by_model[model].model_dump())
