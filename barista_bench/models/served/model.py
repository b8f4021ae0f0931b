"""A model behind an OpenAI-compatible endpoint: vLLM, SGLang, `transformers serve`, hosted APIs.

What servers do with the settings, as far as we know:

- `seed` is sent with every call, cut to 31 bits, and most servers ignore it or keep to it only roughly. With several
  samples in one call (`n`), the first one's seed is sent.
- vLLM and SGLang take sampling settings that are not sent from the checkpoint; see `explicit_sampling`.
- `transformers serve` ignores `n`, `logprobs` and `response_format` in silence, answers other settings that it does
  not know (`top_k`, `repetition_penalty`) with 422, and samples only where the checkpoint's generation settings have
  `do_sample`, whatever the temperature. Its greedy answers equal those of `TransformersModel` on the same pixels, which
  needs `image_format="png"`: a JPEG has other ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec

from barista_bench.core.prompt import BoxFormat
from barista_bench.errors import ModelError
from barista_bench.models.base import Answered, Completion, Failure, GenerationConfig, ModelIdentity, Request
from barista_bench.models.checks import check_images
from barista_bench.models.local.loading import box_format_of
from barista_bench.models.reasoning import THINK_TAGS
from barista_bench.models.served.concurrency import LimitChange
from barista_bench.models.served.estimate import Estimate, cost, estimate
from barista_bench.models.served.images import ImageEncoding, ImageFormat
from barista_bench.models.served.settings import ServedSettings, resolve_url
from barista_bench.models.served.state import ServerState

_LIBRARIES = ("openai", "anyio", "httpx2", "tenacity")
_READY = 2  # requests that wait while all places are taken, so that none of them stays empty


class ServedModel:
    """Keeps the `StreamingModel` contract. Make one with `ServedModel.load`; one stream at a time.

    Attributes:
        window: requests at hand at the most, under way or waiting.
        state: what was learnt of the server; `state.input_tokens` and the like are what it says it has taken.
    """

    def __init__(self, settings: ServedSettings, box_format: BoxFormat) -> None:
        self.settings, self.box_format = settings, box_format
        self.identity = ModelIdentity(settings.name, settings.revision, settings.identity())
        self.batch_size = settings.max_concurrency
        self.window = settings.max_concurrency + _READY
        self.state = ServerState(settings.max_concurrency)

    def __repr__(self) -> str:
        return f"ServedModel({self.settings.name!r}, base_url={self.settings.base_url!r})"

    @classmethod
    def load(
        cls,
        name: str,
        *,
        base_url: str | None = None,
        api_key_env: str | None = None,
        revision: str | None = None,
        timeout: float = 600.0,
        max_concurrency: int = 16,
        max_attempts: int = 6,
        image_format: ImageFormat = "jpeg",
        jpeg_quality: int = 75,
        max_image_side: int | None = None,
        image_detail: str | None = None,
        structured_output: bool = False,
        box_format: BoxFormat | None = None,
        think_tags: tuple[str, str] = THINK_TAGS,
        prompt_opens_thinking: bool = False,
        thinking_budget_field: str | None = None,
        token_limit_field: str = "max_completion_tokens",  # noqa: S107  (the name of a request field)
        explicit_sampling: bool = False,
        omit: Sequence[str] = (),
        price_input: float | None = None,
        price_output: float | None = None,
        extra_body: Mapping[str, object] | None = None,
    ) -> ServedModel:
        """Check the settings. Nothing is sent before the first request.

        Args:
            name: as the server lists it.
            base_url: None for `OPENAI_BASE_URL`, else OpenAI's own. Plain http carries no key, but to this machine.
            api_key_env: environment variable that holds the key. None: `OPENAI_API_KEY` for OpenAI's own host over
                https, and no key for any other.
            revision: what the server runs, where you know it; results name it.
            timeout: seconds for one call, from sending to the last byte.
            max_concurrency: calls under way at the most; how many of them there are adapts to the server.
            max_attempts: of one call, the first included; then it is a `Failure`.
            image_format: `jpeg`, or `png` for exactly the pixels of the data.
            jpeg_quality: 1 to 100; 75 is what the released harness sends.
            max_image_side: images are shrunk to it, in pixels.
            image_detail: `low`, `high` or `auto`, where the server knows it.
            structured_output: hold answers to `Request.schema` (`response_format`, strict). A server that refuses
                it fails the request; whether one that takes it keeps to it is the server's doing.
            box_format: instead of the one of the model's family, which is guessed from the last part of its name.
            think_tags: opening and closing tag of reasoning that comes inside of the answer.
            prompt_opens_thinking: the chat template writes the opening tag, so that answers begin with reasoning.
            thinking_budget_field: where `thinking_budget` is told, e.g. `thinking_token_budget`; dots go into objects.
            token_limit_field: `max_completion_tokens`, or `max_tokens` for servers that know only the older name.
            explicit_sampling: send `top_k` and `repetition_penalty` even where they do nothing. vLLM and SGLang
                otherwise take the checkpoint's; hosted APIs refuse the fields.
            omit: of `temperature`, `top_p`, `seed`, those that the model refuses to be sent.
            price_input, price_output: USD for a million tokens.
            extra_body: further fields of every call. They are part of the identity: no secrets here.

        Raises:
            ModelError: a library or the key is missing.
            ConfigError: a setting is out of range or contradicts another one.
        """
        missing = [library for library in _LIBRARIES if find_spec(library) is None]
        if missing:
            raise ModelError(
                f"model {name}: asking a server needs {', '.join(missing)}. Remedy: pip install barista_bench[api]"
            )
        settings = ServedSettings(
            name=name,
            base_url=resolve_url(base_url),
            api_key_env=api_key_env,
            revision=revision,
            timeout=timeout,
            max_concurrency=max_concurrency,
            max_attempts=max_attempts,
            images=ImageEncoding(image_format, jpeg_quality, max_image_side),
            image_detail=image_detail,
            structured_output=structured_output,
            think_tags=think_tags,
            prompt_opens_thinking=prompt_opens_thinking,
            thinking_budget_field=thinking_budget_field,
            token_limit_field=token_limit_field,
            explicit_sampling=explicit_sampling,
            omit=tuple(omit),
            price_input=price_input,
            price_output=price_output,
            extra_body=dict(extra_body or {}),
        )
        settings.api_key()  # missing keys are said now, and not when the data are ready
        return cls(settings, box_format or box_format_of(name.rsplit("/", 1)[-1].lower()))

    def check(self, config: GenerationConfig) -> None:
        """Refuse generation settings that this model cannot keep to (ModelError); sends nothing."""
        self.settings.check(config)

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        """One list a request, in order, with one entry for each of its seeds; see `stream`."""
        for request in requests:
            check_images(request)
        answers: dict[int, list[Completion | Failure]] = {}
        for number, answered in self._numbered(requests, config):
            answers[number] = answered.completions
        return [answers[number] for number in range(len(requests))]

    def stream(self, requests: Iterable[Request], config: GenerationConfig) -> Iterator[Answered]:
        """Answers as they come. The samples of one request share a call where the server takes `n`.

        At temperature 0 a request is sent once and its answer repeated; the copies carry 0 tokens, so that the tokens
        of all completions add up to what was taken. For the same reason the samples of one call carry its input tokens
        once. Output tokens of one call are dealt out by the length of its texts.

        A consumer that stops early (closes the generator) cancels what is under way.

        Raises:
            ModelError: the server refuses key, model or address, the quota is used up, or it is down; answers that
                had come before are handed out first.
            ValueError: a prompt does not place its images exactly once; names the request.
        """
        for _, answered in self._numbered(requests, config):
            yield answered

    def _numbered(self, requests: Iterable[Request], config: GenerationConfig) -> Iterator[tuple[int, Answered]]:
        from barista_bench.models.served.client import open_calls

        self.check(config)
        source, held, more = enumerate(requests), 0, True
        with open_calls(self.settings, config, self.state) as calls:
            while held or more:
                done = calls.finished(wait=not more or held >= self.window)
                if done is not None:
                    held -= 1
                    yield done
                    continue
                number, request = next(source, (-1, None))
                if request is None:
                    more = False
                    continue
                check_images(request)
                calls.start(number, request)
                held += 1

    def estimate(self, requests: Iterable[Request], config: GenerationConfig) -> Estimate:
        """What a run would send and cost at the most; sends nothing. See `Estimate` for what is only estimated."""
        self.check(config)
        return estimate(requests, config, self.settings)

    def cost(self, input_tokens: int, output_tokens: int) -> float | None:
        """USD for so many tokens; None where no prices were given."""
        return cost(self.settings, input_tokens, output_tokens)

    @property
    def concurrency_trace(self) -> tuple[LimitChange, ...]:
        """How the number of calls under way was adapted, oldest first; the last 10,000 changes."""
        return tuple(self.state.limit.trace)
