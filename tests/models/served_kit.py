"""A served model before a stand-in server, and the requests of its tests."""

import json
import threading
from collections.abc import Callable, Iterable, Sequence

import pytest
from PIL import Image

from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from barista_bench.errors import ModelError
from barista_bench.models import AnsweredRequest, Completion, Failure, GenerationConfig, Request
from barista_bench.models.served import client as served_client
from barista_bench.models.served.model import ServedModel
from tests.served_standin import Call, Fault, ServedStandIn

SAMPLED, GREEDY = GenerationConfig(temperature=0.7, max_new_tokens=64), GenerationConfig(temperature=0.0)


def request(number: int = 0, seeds: tuple[int, ...] = (11, 12, 13), schema: dict | None = None) -> Request:
    image = Image.new("RGB", (32, 24), (number % 256, 0, 0))
    return Request(f"r{number}", Prompt("", (ImagePart(0), TextPart(f"{number}?"))), (image,), seeds, schema=schema)


def load(server: ServedStandIn, **settings: object) -> ServedModel:
    return ServedModel.load("m", **{"base_url": server.url, "api_key_env": None, "timeout": 60.0, **settings})


def ask(
    faults: Callable[[Call], Fault | None], requests: Sequence[Request], config: GenerationConfig, **settings: object
) -> tuple[list[list[Completion | Failure]], list[Call]]:
    """Answers of a server with these faults, and the calls that it got."""
    with ServedStandIn(faults) as server:
        return load(server, **settings).generate(requests, config), server.calls


def answer(fault: Fault | None, config: GenerationConfig = GREEDY, **settings: object) -> Completion | Failure:
    """The answer to one request with one seed, where every attempt meets the fault."""
    [[entry]], _ = ask(lambda call: fault, [request(seeds=(1,))], config, **{"max_attempts": 2, **settings})
    return entry


def no_fault(call: Call) -> None:
    """The decision of a server without faults."""


def only(number: int, fault: Fault) -> Callable[[Call], Fault | None]:
    """The fault meets only the request with this number."""
    return lambda call: fault if f"{number}?" in json.dumps(call.body) else None


def texts(answers: list[list[Completion | Failure]]) -> list[list[str]]:
    return [[entry.text if isinstance(entry, Completion) else entry.error for entry in entries] for entries in answers]


def count_outcomes(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """Is released whenever the answer of a request, or its error, is there to be handed out."""
    there, start = threading.Semaphore(0), served_client.Calls.start

    def counted(calls: served_client.Calls, number: int, request: Request) -> None:
        start(calls, number, request)
        calls._futures[number].add_done_callback(lambda done: there.release())

    monkeypatch.setattr(served_client.Calls, "start", counted)
    return there


def drain(stream: Iterable[AnsweredRequest]) -> tuple[list[AnsweredRequest], ModelError | None]:
    """The answers of a stream, and the error that ends it."""
    got: list[AnsweredRequest] = []
    try:
        for answered in stream:
            got.append(answered)
    except ModelError as error:
        return got, error
    return got, None
