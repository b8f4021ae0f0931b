"""Judges of the tests' own: they read the form that they are given, and remember what they were asked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from barista_bench.models import Completion, Failure, GenerationConfig, ModelIdentity, Request
from barista_bench.prompt import BoxFormat, TextPart

_MATERIAL = re.compile(r"^BEGIN (MATERIAL-[0-9a-f]{16})\n(.*)\nEND \1$", re.MULTILINE)


def user_text(request: Request) -> str:
    return "".join(part.text for part in request.prompt.parts if isinstance(part, TextPart))


def material(request: Request) -> dict[str, str]:
    """What stands between the markers."""
    (found,) = _MATERIAL.findall(user_text(request))
    return json.loads(found[1])


def criterion(request: Request) -> str:
    return re.search(r"^Criterion: (\w+)$", user_text(request), re.MULTILINE)[1]


def verdict(score: object, reason: str = "because") -> Completion:
    return Completion(json.dumps({"score": score, "reason": reason}), input_tokens=100, output_tokens=10)


Answer = Callable[[Request, int], Completion | Failure]


class ScriptedJudge:
    """Answers by `answer(request, place of the draw among those asked)`."""

    def __init__(self, answer: Answer, name: str = "scripted-judge", batch_size: int = 4) -> None:
        self.identity = ModelIdentity(name, revision="r1")
        self.box_format = BoxFormat()
        self.batch_size = batch_size
        self.answer = answer
        self.asked: list[tuple[str, int]] = []
        self.requests: list[Request] = []
        self.configs: list[GenerationConfig] = []

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        self.requests += requests
        self.configs.append(config)
        self.asked += [(request.request_id, seed) for request in requests for seed in request.seeds]
        return [[self.answer(request, place) for place, _ in enumerate(request.seeds)] for request in requests]
