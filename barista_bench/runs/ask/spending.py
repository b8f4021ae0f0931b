"""What asking takes: tokens and US dollars so far, whether the next request still fits, and what it will come to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from barista_bench.errors import BudgetError
from barista_bench.models import Completion, Failure, GenerationConfig, Request
from barista_bench.models.base import ABLATIONS
from barista_bench.models.prices import Prices, read_prices
from barista_bench.models.served.requests import estimated_input_tokens
from barista_bench.runs.ask.config import SpendingSettings
from barista_bench.runs.log.sample_log import SampleRecord, read_records


class Tokens(NamedTuple):
    """Tokens of some answers; what nobody says counts 0."""

    input: int = 0
    output: int = 0
    cached: int = 0

    @classmethod
    def of(cls, answer: Completion | SampleRecord) -> Tokens:
        return cls(answer.input_tokens or 0, answer.output_tokens or 0, answer.cached_tokens or 0)

    @property
    def total(self) -> int:
        return self.input + self.output


NOTHING = Tokens()


def summed(parts: Iterable[Tokens]) -> Tokens:
    return Tokens(*map(sum, zip(Tokens(), *parts, strict=True)))


def logged_tokens(samples: Iterable[Path], steps: Iterable[Path]) -> Tokens:
    """What the answers in these logs took; a sample has the tokens of its steps, which are logged apart too."""
    by_log = []
    for paths in (samples, steps):
        by_name: dict[tuple[str, int], list[Tokens]] = {}
        for path in paths:
            for record in read_records(path):
                by_name.setdefault((record.example_id, record.run), []).append(Tokens.of(record))
        by_log.append({name: summed(parts) for name, parts in by_name.items()})
    of_samples, of_steps = by_log
    return summed(max(of_samples.get(name, Tokens()), of_steps.get(name, Tokens())) for name in of_samples | of_steps)


def prices_of(settings: SpendingSettings, model: str) -> Prices:
    """What the model of that setting costs. Raises ConfigError where a file of prices does not say it."""
    kind, _, rest = model.partition(":")
    if rest and kind in (*ABLATIONS, "served"):
        return prices_of(settings, rest)
    return Prices() if settings.prices is None else read_prices(settings.prices, model)


class Spending:
    """What one model's answers take, those of earlier starts included, against the bounds of the settings.

    Args:
        spent: by earlier starts.
    """

    def __init__(
        self, settings: SpendingSettings, prices: Prices, config: GenerationConfig, spent: Tokens = NOTHING
    ) -> None:
        self.prices, self._config, self._before, self._here = prices, config, spent, NOTHING
        self._most_cost, self._most_tokens = settings.max_cost, settings.max_tokens_total
        self._is_bounded = settings.is_bounded
        self._under_way: dict[str, Tokens] = {}
        self._samples = 0
        self._per_estimated: float | None = None
        self._says_tokens = True

    def fits(self, request: Request) -> bool:
        """Whether the bounds hold even if all that is under way, and this request too, take the most they can.

        Output is known to end at `max_new_tokens`; input is estimated, by how the answers so far were.
        """
        if not self._is_bounded:
            return True
        at_most = summed([self._before, self._here, *self._under_way.values(), self._most(request)])
        has_tokens = self._most_tokens is None or at_most.total <= self._most_tokens
        has_money = self._most_cost is None or (self._cost(at_most) or 0.0) <= self._most_cost
        return self._says_tokens and has_tokens and has_money

    def begin(self, request: Request) -> None:
        """Take note of a request that is sent."""
        self._under_way[request.request_id] = self._most(request) if self._is_bounded else NOTHING

    def end(self, request: Request, answers: Sequence[Completion | Failure]) -> None:
        """Take note of what a request that was sent has taken."""
        del self._under_way[request.request_id]
        given = [answer for answer in answers if isinstance(answer, Completion)]
        took = summed(map(Tokens.of, given))
        self._here, self._samples = summed([self._here, took]), self._samples + len(given)
        self._says_tokens &= all(
            answer.finish_reason == "refusal" or None not in (answer.input_tokens, answer.output_tokens)
            for answer in given
        )
        if took.input and self._is_bounded:
            factor = took.input / (estimated_input_tokens(request) * self._draws(request))
            self._per_estimated = max(factor, self._per_estimated or 0.0)

    def refusal(self, request: Request) -> BudgetError:
        """Why a request that does not fit is not sent. Nothing may be under way."""
        if not self._says_tokens:
            return BudgetError(
                "stopped: the model does not say how many tokens its answers take, so that no bound can be kept. "
                "Remedy: leave max_cost and max_tokens_total out"
            )
        spent, most, told = summed([self._before, self._here]), self._most(request), []
        if self._most_tokens is not None:
            of = f"{spent.total:,} tokens of max_tokens_total {self._most_tokens:,}"
            told.append(f"{of}, and it could take {most.total:,}")
        if self._most_cost is not None:
            cost, more = self._cost(spent) or 0.0, self._cost(most) or 0.0
            told.append(f"{cost:.4f} US dollars of max_cost {self._most_cost:g}, and it could cost {more:.4f}")
        return BudgetError(
            f"stopped before the next request: spent are {'; '.join(told)}. All answers are logged. "
            "Remedy: start the same command with a higher bound; nothing is asked twice"
        )

    def outlook(self, left: float) -> str:
        """What was spent, and what it will be with so many more samples like those of this start; empty if unknown."""
        spent = summed([self._before, self._here])
        if not self._samples or not self._here.total:
            return ""
        here, cost = self._here, self._cost(spent)
        if cost is None:
            return f"{spent.total:,} of about {spent.total + round(here.total / self._samples * left):,} tokens"
        return f"{cost:.4f} of about {cost + (self._cost(here) or 0.0) / self._samples * left:.4f} US dollars"

    def _most(self, request: Request) -> Tokens:
        draws = self._draws(request)
        factor = 1.0 if self._per_estimated is None else self._per_estimated
        return Tokens(round(estimated_input_tokens(request) * factor * draws), self._config.max_new_tokens * draws)

    def _draws(self, request: Request) -> int:
        return len(request.seeds) if self._config.temperature > 0 else 1

    def _cost(self, tokens: Tokens) -> float | None:
        return self.prices.cost(*tokens)
