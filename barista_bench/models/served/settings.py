"""How a served model is asked: the settings of `ServedModel.load`, checked, and which of them change answers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from barista_bench.errors import ConfigError, ModelError
from barista_bench.files.credentials import check_address, check_variable_name, check_way, is_local, refuse_credentials
from barista_bench.models.base import GenerationConfig
from barista_bench.models.reasoning import THINK_TAGS
from barista_bench.models.served.images import ImageEncoding

DEFAULT_URL = "https://api.openai.com/v1"
DEFAULT_KEY_ENV = "OPENAI_API_KEY"
"""Holds the key for the host of `DEFAULT_URL`, and is read for no other host unless it is named."""
TOKEN_LIMIT_FIELDS = ("max_completion_tokens", "max_tokens")
IMAGE_DETAILS = ("low", "high", "auto")
OMITTABLE = frozenset({"temperature", "top_p", "seed"})

# Written from the request, the generation settings or the other settings: a second value would win in silence.
_OWN_FIELDS = frozenset(
    {"model", "messages", "n", "seed", "stream", "temperature", "top_p", "stop", "logprobs", "top_logprobs"}
    | {"response_format", *TOKEN_LIMIT_FIELDS}
)

Extra = dict[str, object]


@dataclass(frozen=True, slots=True)
class ServedSettings:
    """See `ServedModel.load` for each of them.

    Raises:
        ConfigError: a value is out of range or contradicts another one.
    """

    name: str
    base_url: str
    api_key_env: str | None = None
    revision: str | None = None
    timeout: float = 600.0
    max_concurrency: int = 16
    max_attempts: int = 6
    images: ImageEncoding = field(default_factory=ImageEncoding)
    image_detail: str | None = None
    structured_output: bool = False
    think_tags: tuple[str, str] = THINK_TAGS
    prompt_opens_thinking: bool = False
    thinking_budget_field: str | None = None
    token_limit_field: str = "max_completion_tokens"  # noqa: S105  (the name of a request field)
    explicit_sampling: bool = False
    omit: tuple[str, ...] = ()
    price_input: float | None = None
    price_output: float | None = None
    extra_body: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_address("base_url", self.base_url)
        if self.api_key_env is not None:
            check_variable_name("api_key_env", self.api_key_env)
            check_way("base_url", self.base_url)
        _wanted(bool(self.name.strip()), "the model's name is empty", "give the name that the server lists")
        _wanted(0 < self.timeout < float("inf"), f"timeout is {self.timeout}", "give seconds above 0")
        for name, top in (("max_concurrency", 1024), ("max_attempts", 100)):
            value = getattr(self, name)
            _wanted(1 <= value <= top, f"{name} is {value}", f"give a whole number from 1 to {top}")
        _wanted(
            self.token_limit_field in TOKEN_LIMIT_FIELDS,
            f"token_limit_field is {self.token_limit_field!r}",
            f"use one of {', '.join(TOKEN_LIMIT_FIELDS)}",
        )
        _wanted(
            self.image_detail is None or self.image_detail in IMAGE_DETAILS,
            f"image_detail is {self.image_detail!r}",
            f"use one of {', '.join(IMAGE_DETAILS)}",
        )
        _wanted(all(self.think_tags), f"think_tags are {self.think_tags!r}", "give two tags, neither empty")
        unknown = sorted(set(self.omit) - OMITTABLE)
        _wanted(not unknown, f"omit names {unknown}", f"only {', '.join(sorted(OMITTABLE))} can be left out")
        _check_prices(self.price_input, self.price_output)
        self._check_extra_body()

    def _check_extra_body(self) -> None:
        taken = sorted(_OWN_FIELDS & set(self.extra_body))
        _wanted(not taken, f"extra_body sets {taken}", "use the setting of that meaning instead")
        try:
            json.dumps(self.extra_body, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ConfigError(f"extra_body is no JSON object ({error}). Remedy: give JSON values only") from error
        refuse_credentials("extra_body", self.extra_body)

    @property
    def key_env(self) -> str | None:
        """The variable that holds the key for this server: the named one, or the default at the default host alone."""
        return self.api_key_env or (DEFAULT_KEY_ENV if self.is_default_host else None)

    @property
    def is_default_host(self) -> bool:
        """Whether the server is OpenAI's own, over https."""
        parts, default = urlsplit(self.base_url), urlsplit(DEFAULT_URL)
        return (parts.scheme, parts.hostname, parts.port or 443) == (default.scheme, default.hostname, 443)

    def api_key(self) -> str:
        """The key, read from the environment each time, so that no object holds it for longer than a run.

        Raises:
            ModelError: a variable is to hold it, and is not set.
        """
        if self.key_env is None:
            return ""
        key = os.environ.get(self.key_env, "").strip()
        if not key:
            # A name that was given is not repeated: who gives the key instead gives the name of no variable.
            named = "that api_key_env names" if self.api_key_env else DEFAULT_KEY_ENV
            raise ModelError(
                f"model {self.name}: {self.base_url} is asked with a key, and the environment variable {named} is "
                "empty. Remedy: set it, or give another api_key_env or base_url"
            )
        if any(not 32 < ord(letter) < 127 for letter in key):
            raise ModelError(
                f"model {self.name}: the key in {self.key_env} holds characters that no header can. "
                "Remedy: set it again, without spaces or line breaks"
            )
        return key

    def check(self, config: GenerationConfig) -> None:
        """Refuse generation settings that this model cannot keep to.

        Raises:
            ModelError: a thinking budget is wanted, but not how the server is told.
        """
        if config.thinking_budget is not None and self.thinking_budget_field is None:
            raise ModelError(
                f"model {self.name}: servers differ in how they take a thinking budget. Remedy: name the field with "
                "thinking_budget_field (dots go into objects), or leave thinking_budget out"
            )

    def identity(self) -> dict[str, str | int | float | bool | None]:
        """What changes answers. Servers on this machine are all `local`: their ports change from start to start."""
        told: dict[str, str | int | float | bool | None] = {
            "base_url": "local" if is_local(self.base_url) else self.base_url,
            "image_format": self.images.format,
            "jpeg_quality": self.images.quality if self.images.format == "jpeg" else None,
            "max_image_side": self.images.max_side,
            "image_detail": self.image_detail,
            "structured_output": self.structured_output,
            "think_tags": " ".join(self.think_tags),
            "prompt_opens_thinking": self.prompt_opens_thinking,
            "thinking_budget_field": self.thinking_budget_field,
            "token_limit_field": self.token_limit_field,
            "explicit_sampling": self.explicit_sampling,
            "omit": " ".join(sorted(self.omit)) or None,
            "extra_body": json.dumps(self.extra_body, sort_keys=True) if self.extra_body else None,
        }
        return told


def resolve_url(base_url: str | None) -> str:
    """The server's address: as given, else `OPENAI_BASE_URL`, else OpenAI's own; without a slash at the end."""
    return (base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL).rstrip("/")


def with_field(body: Mapping[str, object], dotted: str, value: object) -> Extra:
    """A copy of `body` with one more field; dots go into objects (`chat_template_kwargs.thinking_budget`)."""
    first, _, rest = dotted.partition(".")
    inner = body.get(first)
    below = inner if isinstance(inner, Mapping) else {}
    return {**body, first: with_field(below, rest, value) if rest else value}


def _check_prices(price_input: float | None, price_output: float | None) -> None:
    _wanted((price_input is None) == (price_output is None), "only one price is given", "give both, or neither")
    for price in (price_input, price_output):
        _wanted(price is None or 0 <= price < float("inf"), f"a price is {price}", "give USD for a million tokens")


def _wanted(holds: bool, wrong: str, remedy: str) -> None:
    if not holds:
        raise ConfigError(f"{wrong}. Remedy: {remedy}")
