"""Requests from many threads as batches of one model."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from barista_bench.core.prompt import Prompt, TextPart
from barista_bench.errors import ModelError
from barista_bench.harness.batching import Batcher
from barista_bench.models import Completion, Failure, GenerationConfig, Request
from barista_bench.models.base import ScriptedModel

COUNT = 64


class Batched(ScriptedModel):
    """Fails on a whole batch with a request called `0`."""

    def __init__(self) -> None:
        super().__init__("batched", lambda name, seed: f"{name}/{seed}", batch_size=4)
        self.batches: list[list[str]] = []

    def generate(self, requests: list[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        self.batches.append([request.request_id for request in requests])
        if "0" in self.batches[-1]:
            raise RuntimeError("out of memory")
        return super().generate(requests, config)


def asked(name: int) -> Request:
    return Request(str(name), Prompt("", (TextPart("?"),)), (), seeds=(name,))


def test_each_thread_gets_its_own_answer_while_others_come_to_wait() -> None:
    model = Batched()
    batcher = Batcher(model)
    configs = [GenerationConfig(temperature=warmth) for warmth in (0.0, 1.0)]
    with ThreadPoolExecutor(COUNT) as threads:
        futures = {
            name: threads.submit(batcher.answer, batcher.put(asked(name), configs[name % 2]))
            for name in range(1, COUNT + 1)
        }
    assert {name: future.result().text for name, future in futures.items()} == {n: f"{n}/{n}" for n in futures}
    assert sorted(name for batch in model.batches for name in batch) == sorted(map(str, futures))
    assert all(len({int(name) % 2 for name in batch}) == 1 and len(batch) <= 4 for batch in model.batches)


def test_every_request_of_a_batch_that_failed_says_why() -> None:
    batcher = Batcher(Batched())
    waiting = [batcher.put(asked(name), GenerationConfig()) for name in range(4)]
    with pytest.raises(RuntimeError, match="out of memory"):
        batcher.answer(waiting[2])
    for other in (waiting[0], waiting[3]):
        with pytest.raises(ModelError, match="its batch failed: RuntimeError: out of memory"):
            batcher.answer(other)
