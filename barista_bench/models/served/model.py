"""Asks a model behind an OpenAI-compatible endpoint: vLLM, SGLang, `transformers serve`, hosted APIs.

Known behaviour of servers:

- `seed` is sent with every call, cut to 31 bits, but most servers ignore the seed or follow it only roughly. With
  several samples in one call (`n`), the first sample's seed is sent.
- If sampling settings are missing, vLLM and SGLang take them from the checkpoint; see `explicit_sampling`.
- `transformers serve` silently ignores `n`, `logprobs` and `response_format`. It rejects other unknown settings
(`top_k`, `repetition_penalty`) with status 422. Whatever the temperature, it samples only if the checkpoint's
generation settings have `do_sample`. For the same pixels, its greedy answers equal the answers of `TransformersModel`.
The pictures of a frozen set are sent with the same pixels; for a linked set this needs `image_format="png"`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from barista_bench.core.settings import check_settings
from barista_bench.errors import ConfigError, ModelError, require_extra
from barista_bench.models.base import AnsweredRequest, GenerationConfig, ModelIdentity, NumberedStream, Request
from barista_bench.models.box_formats import box_format_of
from barista_bench.models.served.errors import Endpoint
from barista_bench.models.served.requests import RunCost, estimate, has_field
from barista_bench.models.served.settings import ServedSettings
from barista_bench.models.served.state import ServerState

_READY = 2  # requests that wait while all calls are running, so that a finished call is followed at once


class ServedModel(NumberedStream):
    """A `StreamingModel` behind a server; make one with `ServedModel.load`, and run one stream at a time.

    The samples of one request share a call if the server supports `n`. At temperature 0, a request is sent once and its
    answer is repeated. The copies count 0 tokens, so that the tokens of all completions add up to the tokens used. For
    the same reason, only one sample of a call counts the input tokens, and the output tokens are divided in proportion
    to the lengths of the texts.

    A consumer that stops early (closes the generator) cancels running calls. A ModelError is raised if the server is
    down, refuses the key, the model or the address, or the quota is used up. Earlier answers are yielded before the
    error.

    Attributes:
        window: limit of requests at hand, running or waiting.
        state: the state of the server, as learned so far.
    """

    sends_files = True

    def __init__(self, name: str, settings: ServedSettings) -> None:
        self.name, self.settings = name, settings
        self.box_format = settings.box_format or box_format_of(name.rsplit("/", 1)[-1].lower())
        self.identity = ModelIdentity(name, settings.revision, settings.identity())
        self.batch_size = settings.max_concurrency
        self.window = settings.max_concurrency + _READY
        self.state = ServerState(settings.max_concurrency)
        self.batches: Path | None = None
        """The folder that records batches, for `batch_api`."""

    def __repr__(self) -> str:
        return f"ServedModel({self.name!r}, base_url={self.settings.url!r})"

    @classmethod
    def load(cls, name: str, **settings: Any) -> ServedModel:  # noqa: ANN401  (`ServedSettings` says which)
        """Check the settings. Nothing is sent before the first request.

        Args:
            name: the model's name on the server. The last part of the name also selects the architecture's box format.
            settings: fields of `ServedSettings`, which describes each of them.

        Raises:
            ModelError: a library or the key is missing.
            ConfigError: the name is empty, or a setting is unknown, out of range or contradicts another setting.
        """
        require_extra(f"model {name}: asking a server", "openai", "anyio", "httpx2", "tenacity", extra="api")
        if not name.strip():
            raise ConfigError("the model's name is empty. Fix: give the name that the server lists")
        table = check_settings(ServedSettings, settings)
        if table.frames_as == "video" and table.image_format == "png":
            raise ConfigError("frames of a video are sent as JPEG. Fix: leave image_format out, or frames_as=video")
        if table.reasoning_value is not None and has_field(table.extra_body, table.reasoning_field):
            raise ConfigError(
                f"extra_body sets {table.reasoning_field}, which `reasoning` also sets. Fix: leave out one"
            )
        model = cls(
            name, check_settings(ServedSettings, settings | {"base_url": table.url})
        )  # the settings, with the address from the environment
        model._endpoint()  # reports a missing key now, and not after the data are prepared
        return model

    def _endpoint(self) -> Endpoint:
        return Endpoint(self.name, self.settings.url, self.settings.key_env, self.settings.api_key())

    def check(self, config: GenerationConfig) -> None:
        """Raise an error for generation settings that this model does not support. Sends nothing.

        Raises:
            ModelError: a thinking budget is set, but no field to send it in.
        """
        if config.thinking_budget is not None and self.settings.thinking_budget_field is None:
            raise ModelError(
                f"model {self.name}: servers differ in how they take a thinking budget. Fix: name the field with "
                "thinking_budget_field (dots go into objects), or leave thinking_budget out"
            )

    def _numbered_answers(
        self, requests: Iterable[Request], config: GenerationConfig, *, at_once: bool
    ) -> Iterator[tuple[int, AnsweredRequest]]:
        from barista_bench.models.served.client import open_calls

        self.check(config)
        if self.settings.batch_api:
            from barista_bench.models.served.batches import batch_answers

            if self.batches is None:
                raise ConfigError("batch_api needs a run folder. Fix: leave it out here")
            yield from batch_answers(self._endpoint(), self.settings, config, self.batches, requests)
            return
        source, in_flight, has_more = enumerate(requests), 0, True
        with open_calls(self._endpoint(), self.settings, config, self.state) as calls:
            while in_flight or has_more:
                numbered_answer = calls.next_result(wait=not has_more or in_flight >= self.window)
                if numbered_answer is not None:
                    in_flight -= 1
                    yield numbered_answer
                    continue
                number, request = next(source, (-1, None))
                if request is None:
                    has_more = False
                    continue
                request.check_images()
                calls.start(number, request)
                in_flight += 1

    def estimate(self, requests: Iterable[Request], config: GenerationConfig) -> RunCost:
        """Estimate the maximum number of tokens of a run. Sends nothing."""
        self.check(config)
        return estimate(requests, config, self.settings)
