"""What models return: answers as they come, checked, and what became of each sample."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import islice

from barista_bench.core.prompt import BoxFormat
from barista_bench.core.task import Json, ParseError, Status, Task
from barista_bench.models import Answered, Completion, Failure, GenerationConfig, Model, Request, StreamingModel


def answers_of(model: Model, requests: Iterable[Request], config: GenerationConfig) -> Iterator[Answered]:
    """Answers as they come: from a stream, or batch by batch."""
    if isinstance(model, StreamingModel):
        yield from model.stream(requests, config)
        return
    source = iter(requests)
    while batch := list(islice(source, model.batch_size)):
        begun = time.perf_counter()
        answers = model.generate(batch, config)
        share = (time.perf_counter() - begun) / len(batch)
        for index, request in enumerate(batch):
            yield Answered(request, list(answers[index]) if index < len(answers) else [], share)


def checked_completion(returned: object, example_id: str) -> Completion | Failure:
    """What a model returned: a missing or malformed completion is a failure of that sample."""
    if isinstance(returned, Failure) or (isinstance(returned, Completion) and isinstance(returned.text, str)):
        return returned
    return Failure(f"{example_id}: the model returned {type(returned).__name__} for a completion")


def sample_status(
    task: Task, inputs: dict[str, Json], completion: Completion | Failure, boxes: BoxFormat
) -> tuple[Status, str | None]:
    """What became of a sample, and why where it is not ok. A truncated answer stays truncated even if it parses."""
    if isinstance(completion, Failure):
        return Status.INFRA_ERROR, completion.error
    if completion.finish_reason == "refusal":
        return Status.REFUSED, "the model refused"
    if completion.finish_reason == "length":
        return Status.TRUNCATED, "the answer reached max_new_tokens"
    parsed = task.parse(completion.text, inputs, boxes)
    return (Status.PARSE_ERROR, parsed.reason) if isinstance(parsed, ParseError) else (Status.OK, None)
