"""Judges of the tests: they read their form, and remember their requests."""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.prompt import TextPart
from barista_bench.judging.results import JudgedResults
from barista_bench.judging.scoring import score_judged
from barista_bench.judging.session import judge
from barista_bench.models import Completion, Failure, GenerationConfig, ModelIdentity, Request

VQA = "temporal_vqa"
ONE_CRITERION = """
version: 2
introduction: Grade.
criteria:
  - {name: fit, text: "Fit?", steps: [Look.], bands: [{low: 0, high: 10, text: any}]}
"""
"""A rubric file."""
_MATERIAL = re.compile(r"^BEGIN (MATERIAL-[0-9a-f]{16})\n(.*)\nEND \1$", re.MULTILINE)


def user_text(request: Request) -> str:
    return "".join(part.text for part in request.prompt.parts if isinstance(part, TextPart))


def material(request: Request) -> dict[str, str]:
    """The text between the markers."""
    (match,) = _MATERIAL.findall(user_text(request))
    return json.loads(match[1])


def criterion(request: Request) -> str:
    return re.search(r"^Criterion: (\w+)$", user_text(request), re.MULTILINE)[1]


def verdict(score: object, reason: str = "because") -> Completion:
    return Completion(json.dumps({"score": score, "reason": reason}), input_tokens=100, output_tokens=10)


def by_hash(request: Request, draw: int) -> Completion:
    """A score that depends only on answer, criterion and draw."""
    content = json.dumps([material(request), criterion(request), draw])
    return verdict(hashlib.sha256(content.encode()).digest()[0] % 11)


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
        return [[self.answer(request, draw) for draw, _ in enumerate(request.seeds)] for request in requests]


def judged(run: Path, name: str = "any", **settings: object) -> JudgedResults:
    """Judge a run, and read the results."""
    session = judge(run, name, **settings)
    return score_judged(session.run, session.folder).results
