"""A served model before a server that stands in for a real one, and what its tests ask."""

import json
from collections.abc import Callable, Iterable, Sequence

from PIL import Image

from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from barista_bench.errors import ModelError
from barista_bench.models import AnsweredRequest, Completion, Failure, GenerationConfig, Request
from barista_bench.models.served.model import ServedModel
from tests.served_standin import Call, Fault, ServedStandIn

SAMPLED, GREEDY = GenerationConfig(temperature=0.7, max_new_tokens=64), GenerationConfig(temperature=0.0)


def request(number: int = 0, seeds: tuple[int, ...] = (11, 12, 13), schema: dict | None = None) -> Request:
    image = Image.new("RGB", (32, 24), (number % 256, 0, 0))
    return Request(f"r{number}", Prompt("", (ImagePart(0), TextPart(f"{number}?"))), (image,), seeds, schema=schema)


def load(server: ServedStandIn, **settings: object) -> ServedModel:
    return ServedModel.load("m", **{"base_url": server.url, "api_key_env": None, "timeout": 5.0, **settings})


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
    """The fault meets the request of this number alone."""
    return lambda call: fault if f"{number}?" in json.dumps(call.body) else None


def texts(answers: list[list[Completion | Failure]]) -> list[list[str]]:
    return [[entry.text if isinstance(entry, Completion) else entry.error for entry in entries] for entries in answers]


def drain(stream: Iterable[AnsweredRequest]) -> tuple[list[AnsweredRequest], ModelError | None]:
    """The answers of a stream, and the error that ends it."""
    got: list[AnsweredRequest] = []
    try:
        for answered in stream:
            got.append(answered)
    except ModelError as error:
        return got, error
    return got, None
