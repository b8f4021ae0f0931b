"""A model whose answers a function writes: baselines and tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barista_bench.core.prompt import BoxFormat
from barista_bench.models.base import Completion, Failure, GenerationConfig, ModelIdentity, Request


class ScriptedModel:
    """Answers by calling `answer(request_id, seed)`. It never looks at images."""

    def __init__(self, name: str, answer: Callable[[str, int], str], *, batch_size: int = 8) -> None:
        self.identity = ModelIdentity(name=name)
        self.box_format = BoxFormat()
        self.batch_size = batch_size
        self._answer = answer

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        return [[Completion(self._answer(r.request_id, seed)) for seed in r.seeds] for r in requests]
