"""Collect a model's answers within the spending limits, and turn each answer into fields of a log record."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from barista_bench.core.model_names import ABLATIONS
from barista_bench.core.status import Status
from barista_bench.errors import BudgetError, ModelError
from barista_bench.models import AnsweredRequest, Completion, Failure, GenerationConfig, Model, Request, StreamingModel
from barista_bench.models.ablations import unwrap_ablations
from barista_bench.models.base import TOKEN_COUNTS
from barista_bench.models.served.requests import estimated_input_tokens
from barista_bench.runs.ask.config import SpendingSettings
from barista_bench.runs.described import Prices, read_prices
from barista_bench.runs.log.sample_log import SampleRecord, read_records


class TokenCounts(NamedTuple):
    """Token counts of some answers. A count that the model does not report is 0."""

    input: int = 0
    output: int = 0
    cached: int = 0

    @classmethod
    def of(cls, answer: Completion | SampleRecord) -> TokenCounts:
        return cls(answer.input_tokens or 0, answer.output_tokens or 0, answer.cached_tokens or 0)

    @property
    def total(self) -> int:
        return self.input + self.output


NOTHING = TokenCounts()


def sum_tokens(parts: Iterable[TokenCounts]) -> TokenCounts:
    return TokenCounts(*map(sum, zip(NOTHING, *parts, strict=True)))


def logged_tokens(samples: Iterable[Path], steps: Iterable[Path]) -> TokenCounts:
    """Return the tokens of all answers in these logs.

    The record of a finished sample includes the tokens of its steps. The steps have their own log.
    """
    by_sample: dict[tuple[str, int], tuple[list[TokenCounts], list[TokenCounts]]] = {}
    for place, paths in enumerate((samples, steps)):
        for record in chain.from_iterable(map(read_records, paths)):
            by_sample.setdefault((record.example_id, record.repetition), ([], []))[place].append(TokenCounts.of(record))
    return sum_tokens(max(map(sum_tokens, parts)) for parts in by_sample.values())


def prices_of(settings: SpendingSettings, model: str) -> Prices:
    """Return the prices of `model`. Raises ConfigError if the price file lacks this model."""
    kind, _, rest = model.partition(":")
    if rest and kind in (*ABLATIONS, "served"):
        return prices_of(settings, rest)
    return Prices() if settings.prices is None else read_prices(settings.prices, model)


class Spending:
    """The spending on one model's answers, including earlier starts, and the spending limits.

    Args:
        spent: tokens of earlier starts.
    """

    def __init__(
        self, settings: SpendingSettings, prices: Prices, config: GenerationConfig, spent: TokenCounts = NOTHING
    ) -> None:
        self.prices, self._config, self._spent_before, self._spent_here = prices, config, spent, NOTHING
        self._most_cost, self._most_tokens = settings.max_cost, settings.max_tokens_total
        self._is_bounded, self._says_tokens, self._samples = settings.is_bounded, True, 0
        self._under_way: dict[str, TokenCounts] = {}
        self._per_estimated: float | None = None

    def fits(self, request: Request) -> bool:
        """Return whether the limits hold even if this request and all pending requests use their maximum.

        `max_new_tokens` limits the output. The input is estimated from the answers so far.
        """
        if not self._is_bounded:
            return True
        at_most = sum_tokens([self._spent_before, self._spent_here, *self._under_way.values(), self._maximum(request)])
        has_tokens = self._most_tokens is None or at_most.total <= self._most_tokens
        has_money = self._most_cost is None or (self.prices.cost(*at_most) or 0.0) <= self._most_cost
        return self._says_tokens and has_tokens and has_money

    def begin(self, request: Request) -> None:
        """Record that a request is sent."""
        self._under_way[request.request_id] = self._maximum(request) if self._is_bounded else NOTHING

    def end(self, request: Request, answers: Sequence[Completion | Failure]) -> None:
        """Record the spending of a completed request."""
        del self._under_way[request.request_id]
        completions = [answer for answer in answers if isinstance(answer, Completion)]
        tokens = sum_tokens(map(TokenCounts.of, completions))
        self._spent_here, self._samples = sum_tokens([self._spent_here, tokens]), self._samples + len(completions)
        not_refused = [answer for answer in completions if answer.finish_reason != "refusal"]
        self._says_tokens &= all(None not in (answer.input_tokens, answer.output_tokens) for answer in not_refused)
        if tokens.input and self._is_bounded:
            factor = tokens.input / (estimated_input_tokens(request) * self._sample_count(request))
            self._per_estimated = max(factor, self._per_estimated or 0.0)

    def refusal(self, request: Request) -> BudgetError:
        """Return the error for a request that exceeds the limits and is not sent. No request may be pending."""
        if not self._says_tokens:
            return BudgetError(
                "stopped: the model does not report the tokens of its answers, so no limit can be enforced. "
                "Fix: leave max_cost and max_tokens_total out"
            )
        spent, maximum, bounds = sum_tokens([self._spent_before, self._spent_here]), self._maximum(request), []
        if self._most_tokens is not None:
            spent_text = f"{spent.total:,} tokens of max_tokens_total {self._most_tokens:,}"
            bounds.append(f"{spent_text}, and it could take {maximum.total:,}")
        if self._most_cost is not None:
            cost, most = self.prices.cost(*spent) or 0.0, self.prices.cost(*maximum) or 0.0
            bounds.append(f"{cost:.4f} US dollars of max_cost {self._most_cost:g}, and it could cost {most:.4f}")
        return BudgetError(
            f"stopped before the next request: spent are {'; '.join(bounds)}. All answers are logged. "
            "Fix: start the same command with a higher bound; nothing is asked twice"
        )

    def outlook(self, samples_left: float) -> str:
        """Return the spending so far and the estimated total after `samples_left` more samples.

        The estimate assumes that later samples cost as much as the samples of this start. Without known costs the text
        is empty.
        """
        spent = sum_tokens([self._spent_before, self._spent_here])
        if not self._samples or not self._spent_here.total:
            return ""
        here, cost, ahead = self._spent_here, self.prices.cost(*spent), samples_left / self._samples
        if cost is None:
            return f"{spent.total:,} of about {spent.total + round(here.total * ahead):,} tokens"
        return f"{cost:.4f} of about {cost + (self.prices.cost(*here) or 0.0) * ahead:.4f} US dollars"

    def _maximum(self, request: Request) -> TokenCounts:
        count = self._sample_count(request)
        factor = 1.0 if self._per_estimated is None else self._per_estimated
        return TokenCounts(round(estimated_input_tokens(request) * factor * count), self._config.max_new_tokens * count)

    def _sample_count(self, request: Request) -> int:
        return len(request.seeds) if self._config.temperature > 0 else 1


SubjectT = TypeVar("SubjectT")
_UNANSWERED = Failure("the model returned no answer")
_CUT = {
    "length": (Status.TRUNCATED, "the answer reached max_new_tokens"),
    "thinking": (Status.TRUNCATED_THINKING, "max_new_tokens was reached within the thoughts, before any answer"),
}
"""Finish reasons of truncated answers, each with its status and explanation."""


def answer_fields(completion: Completion | Failure) -> dict[str, Any]:
    """Return the fields of a completion that a record stores unchanged. A failure has no text."""
    names = ("text", "reasoning", "finish_reason", *TOKEN_COUNTS, "batch_size", "note")
    return {"text": None} if isinstance(completion, Failure) else {name: getattr(completion, name) for name in names}


def answer_status(completion: Completion | Failure) -> tuple[Status, str | None]:
    """Return the status that the model reports, and the reason if the status is not ok. Scoring reads the text.

    A truncated answer stays truncated even if it can be read.
    """
    if isinstance(completion, Failure):
        return Status.TASK_ERROR if completion.by_task else Status.INFRA_ERROR, completion.error
    if completion.finish_reason == "refusal":
        return Status.REFUSED, "the model refused"
    return _CUT.get(completion.finish_reason, (Status.OK, None))


def with_steps(steps: Sequence[SampleRecord], last: SampleRecord) -> SampleRecord:
    """Return the record of a sample: its last answer, the earlier answers, and the tokens and seconds of all answers.

    If any answer was truncated, the sample counts as truncated.
    """
    if not steps:
        return last
    parts = (*steps, last)
    seconds = last.seconds + sum(step.seconds for step in steps)
    merged = msgspec.structs.replace(last, seconds=seconds, earlier=tuple(step.text or "" for step in steps))
    if not last.is_finished:
        return merged
    cut_step = next((step for step in steps if step.finish_reason in _CUT), last)
    return msgspec.structs.replace(
        merged,
        status=cut_step.status,
        error=cut_step.error,
        finish_reason=cut_step.finish_reason,
        note=next((part.note for part in parts if part.note), None),
        **{name: total_or_unknown(getattr(part, name) for part in parts) for name in TOKEN_COUNTS},
    )


def total_or_unknown(counts: Iterable[int | None]) -> int | None:
    """Return the sum of the counts, or None if a count is unknown.

    >>> total_or_unknown([1, 2]), total_or_unknown([1, None])
    (3, None)
    """
    all_counts = list(counts)
    return None if None in all_counts else sum(count for count in all_counts if count is not None)


def answer_each(
    model: Model,
    requests: Iterable[tuple[SubjectT, Request]],
    config: GenerationConfig,
    spending: Spending | None = None,
) -> Iterator[tuple[SubjectT, list[Completion | Failure], float]]:
    """Yield each request as it is answered: its subject, one entry per seed, and the seconds per entry.

    Requests that the model does not answer come last, as failures. If the next request does not fit the limits, it
    waits until all pending requests are answered, because most answers use less than their maximum.

    Raises:
        ModelError: the model answers a request that was not sent.
        BudgetError: the next request does not fit the limits. All pending answers have been yielded.
    """
    in_flight: dict[str, tuple[SubjectT, Request]] = {}
    _, change = unwrap_ablations(model)  # the limits apply to the changed requests
    to_send = iter(requests)
    deferred: list[tuple[SubjectT, Request]] = []  # the request that does not fit yet

    def requests_that_fit() -> Iterator[Request]:
        for subject, request in chain(deferred, to_send):
            sent = change(request) if spending else request
            if spending and not spending.fits(sent):
                deferred[:] = [(subject, request)]
                return
            deferred.clear()
            if spending:
                spending.begin(sent)
            in_flight[request.request_id] = subject, sent
            yield request

    def take_out(name: str, completions: list[Completion | Failure]) -> tuple[SubjectT, list[Completion | Failure]]:
        subject, request = in_flight.pop(name)
        if spending:
            spending.end(request, completions)
        return subject, completions

    while True:
        for answered in _answers(model, requests_that_fit(), config):
            name = answered.request.request_id
            if name not in in_flight:
                raise ModelError(
                    f"model {model.identity.name}: answered {name!r}, which was not asked or was answered before. "
                    "Fix: correct the model"
                )
            count = len(in_flight[name][1].seeds)
            returned = [*answered.completions, *[None] * count][:count]
            checked = [_checked_completion(completion, name) for completion in returned]
            yield *take_out(name, checked), answered.seconds / max(1, count)
        for name, (_, request) in list(in_flight.items()):
            yield *take_out(name, [_UNANSWERED] * len(request.seeds)), 0.0
        if not deferred or spending is None:
            break
        if not spending.fits(change(deferred[0][1])):
            raise spending.refusal(change(deferred[0][1]))
    for subject, request in to_send:
        yield subject, [_UNANSWERED] * len(request.seeds), 0.0


def _answers(model: Model, requests: Iterable[Request], config: GenerationConfig) -> Iterator[AnsweredRequest]:
    """Yield answers as they arrive, from a stream or batch by batch."""
    if isinstance(model, StreamingModel):
        yield from model.stream(requests, config)
        return
    source = iter(requests)
    while batch := list(islice(source, model.batch_size)):
        begun = time.perf_counter()
        answers = model.generate(batch, config)
        fraction = (time.perf_counter() - begun) / len(batch)
        for index, request in enumerate(batch):
            yield AnsweredRequest(request, list(answers[index]) if index < len(answers) else [], fraction)


def _checked_completion(returned: object, example_id: str) -> Completion | Failure:
    """Return a completion of the model, or a failure if the completion is missing or malformed."""
    if isinstance(returned, Failure) or (isinstance(returned, Completion) and isinstance(returned.text, str)):
        return returned
    return Failure(f"{example_id}: the model returned {type(returned).__name__} for a completion")
