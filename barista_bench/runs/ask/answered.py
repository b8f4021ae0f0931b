"""The answers of any model to any requests, and what a record of the log says of each, without reading it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, TypeVar

import msgspec

from barista_bench.core.example import Status
from barista_bench.errors import ModelError
from barista_bench.models import Answered, Completion, Failure, GenerationConfig, Model, Request, StreamingModel
from barista_bench.models.base import TOKEN_COUNTS
from barista_bench.runs.ask.spending import Spending
from barista_bench.runs.log.sample_log import SampleRecord

AskedT = TypeVar("AskedT")
_UNANSWERED = Failure("the model returned no answer")
_CUT = {
    "length": (Status.TRUNCATED, "the answer reached max_new_tokens"),
    "thinking": (Status.TRUNCATED_THINKING, "max_new_tokens was reached within the thoughts, before any answer"),
}
"""Finish reasons of what was cut off, each with its status and why."""


def answer_fields(completion: Completion | Failure) -> dict[str, Any]:
    """The fields of a completion that a record takes as they are; of a failure there is no text."""
    names = ("text", "reasoning", "finish_reason", *TOKEN_COUNTS, "batch_size")
    return {"text": None} if isinstance(completion, Failure) else {name: getattr(completion, name) for name in names}


def answer_status(completion: Completion | Failure) -> tuple[Status, str | None]:
    """The status of a sample as far as the model says, and why where it is not ok: the text is read by scoring.

    A truncated answer stays truncated even if it can be read.
    """
    if isinstance(completion, Failure):
        return Status.TASK_ERROR if completion.by_task else Status.INFRA_ERROR, completion.error
    if completion.finish_reason == "refusal":
        return Status.REFUSED, "the model refused"
    return _CUT.get(completion.finish_reason, (Status.OK, None))


def with_steps(steps: Sequence[SampleRecord], last: SampleRecord) -> SampleRecord:
    """The record of a sample: of the last answer, with the answers before it, and tokens and seconds of all.

    An answer that was cut on the way makes the sample a truncated one.
    """
    if not steps:
        return last
    parts = (*steps, last)
    seconds = last.seconds + sum(step.seconds for step in steps)
    whole = msgspec.structs.replace(last, seconds=seconds, earlier=tuple(step.text or "" for step in steps))
    if not last.finished:
        return whole
    cut = next((step for step in steps if step.finish_reason in _CUT), last)
    return msgspec.structs.replace(
        whole,
        status=cut.status,
        error=cut.error,
        finish_reason=cut.finish_reason,
        **{name: total(getattr(part, name) for part in parts) for name in TOKEN_COUNTS},
    )


def total(counts: Iterable[int | None]) -> int | None:
    """Their sum; None where one of them is not known."""
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)


def each_answered(
    model: Model, requests: Iterable[tuple[AskedT, Request]], config: GenerationConfig, spending: Spending | None = None
) -> Iterator[tuple[AskedT, list[Completion | Failure], float]]:
    """The requests, as they are answered: one entry for each of its seeds, and the seconds of each. What the model does
    not answer comes last, as failures.

    Where the next request does not fit what may be spent, all that is under way is answered first: it mostly takes
    less than it could.

    Raises:
        ModelError: the model answers what it was not asked.
        BudgetError: the next request does not fit; all that was sent has been handed out.
    """
    in_flight: dict[str, tuple[AskedT, Request]] = {}
    to_send = iter(requests)
    held: list[tuple[AskedT, Request]] = []  # what does not fit yet

    def sent() -> Iterator[Request]:
        for asked, request in chain(held, to_send):
            if spending and not spending.fits(request):
                held[:] = [(asked, request)]
                return
            held.clear()
            if spending:
                spending.begin(request)
            in_flight[request.request_id] = asked, request
            yield request

    def done(name: str, completions: list[Completion | Failure]) -> tuple[AskedT, list[Completion | Failure]]:
        asked, request = in_flight.pop(name)
        if spending:
            spending.end(request, completions)
        return asked, completions

    while True:
        for answered in _answers(model, sent(), config):
            name = answered.request.request_id
            if name not in in_flight:
                raise ModelError(
                    f"model {model.identity.name}: answered {name!r}, which was not asked or was answered before. "
                    "Remedy: correct the model"
                )
            count = len(in_flight[name][1].seeds)
            returned = [*answered.completions, *[None] * count][:count]
            checked = [_checked(completion, name) for completion in returned]
            yield *done(name, checked), answered.seconds / max(1, count)
        for name, (_, request) in list(in_flight.items()):
            yield *done(name, [_UNANSWERED] * len(request.seeds)), 0.0
        if not held or spending is None:
            break
        if not spending.fits(held[0][1]):
            raise spending.refusal(held[0][1])
    for asked, request in to_send:
        yield asked, [_UNANSWERED] * len(request.seeds), 0.0


def _answers(model: Model, requests: Iterable[Request], config: GenerationConfig) -> Iterator[Answered]:
    """Answers as they come: from a stream, or batch by batch."""
    if isinstance(model, StreamingModel):
        yield from model.stream(requests, config)
        return
    source = iter(requests)
    while batch := list(islice(source, model.batch_size)):
        begun = time.perf_counter()
        answers = model.generate(batch, config)
        fraction = (time.perf_counter() - begun) / len(batch)
        for index, request in enumerate(batch):
            yield Answered(request, list(answers[index]) if index < len(answers) else [], fraction)


def _checked(returned: object, example_id: str) -> Completion | Failure:
    """The completions of a model, checked: a missing or malformed completion is a failure of that sample."""
    if isinstance(returned, Failure) or (isinstance(returned, Completion) and isinstance(returned.text, str)):
        return returned
    return Failure(f"{example_id}: the model returned {type(returned).__name__} for a completion")
