"""Settings of a served model: its address, where its key comes from, and the data sent to it."""

from __future__ import annotations

import json
import os
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from barista_bench.core.settings import JsonObject, Names, json_object
from barista_bench.errors import ConfigError, ModelError
from barista_bench.files.text_out import is_local, refuse_key_in_clear
from barista_bench.models.answers import THINK_TAGS, switch_value
from barista_bench.models.base import video_settings
from barista_bench.models.settings import GeneratorSettings

DEFAULT_URL = "https://api.openai.com/v1"
DEFAULT_KEY_ENV = "OPENAI_API_KEY"
"""Variable with the key for the host of `DEFAULT_URL`. For other hosts it is read only if the user names it."""
OMITTABLE = frozenset({"temperature", "top_p", "seed"})
# These fields are set from the request and the settings. A second value would replace them without a warning.
_RESERVED_FIELDS = frozenset(
    {"model", "messages", "n", "seed", "stream", "temperature", "top_p", "stop", "logprobs", "top_logprobs"}
    | {"response_format", "max_completion_tokens", "max_tokens"}
)
_OUTSIDE_IDENTITY = frozenset(
    {"api_key_env", "timeout", "max_concurrency", "max_attempts", "batch_api"}
    | {"revision", "box_format"}  # the model has these fields itself
    | {"frames_as", "video_fps"}  # named in the identity where frames are sent as videos
    | {"reasoning", "reasoning_field"}  # named in the identity where reasoning is set
)


class ServedSettings(GeneratorSettings):
    """Settings of a served model: the keyword arguments of `ServedModel.load`."""

    base_url: str | None = Field(
        None,
        description=(
            "OpenAI-compatible endpoint of a served model; by default OPENAI_BASE_URL, or OpenAI's own. "
            "Over plain http, a key is sent only to this machine."
        ),
    )
    api_key_env: str | None = Field(
        None, description=("Environment variable with the key. Only OpenAI's own host uses OPENAI_API_KEY by default.")
    )
    timeout: float = Field(
        600.0, gt=0, description="Maximum seconds of one served call, from sending to the last byte."
    )
    max_concurrency: int = Field(
        16, ge=1, le=1024, description="Maximum number of simultaneous served calls; the number adapts to the server."
    )
    max_attempts: int = Field(6, ge=1, le=100, description="Maximum number of attempts at one served call.")
    batch_api: bool = Field(
        False, description="Ask through the provider's batch API (/v1/batches): cheaper, with up to a day's wait."
    )
    image_format: Literal["jpeg", "png"] | None = Field(
        None,
        description=(
            "Encode the images for a served model again in this format. By default, the stored bytes are "
            "sent; frames of a linked set are encoded as a frozen set encodes them."
        ),
    )
    jpeg_quality: int | None = Field(
        None,
        ge=1,
        le=100,
        description=(
            "Encode the images for a served model again as JPEG with this quality; 75 for --image-format jpeg."
        ),
    )
    image_detail: Literal["low", "high", "auto"] | None = Field(
        None, description="Detail of images (low, high or auto), if the server supports it."
    )
    prompt_opens_thinking: bool = Field(
        False, description="The chat template of the served model writes the opening think tag."
    )
    reasoning_field: str = Field(
        "reasoning_effort",
        description=(
            "Request field that switches reasoning; dots address nested fields, e.g. "
            "chat_template_kwargs.enable_thinking for vLLM or SGLang."
        ),
        min_length=1,
    )
    thinking_budget_field: str | None = Field(
        None,
        description="Request field of the thinking budget, e.g. thinking_token_budget; dots address nested fields.",
    )
    token_limit_field: Literal["max_completion_tokens", "max_tokens"] = Field(
        "max_completion_tokens", description="Request field of the token limit; max_tokens for older servers."
    )
    explicit_sampling: bool = Field(
        False,
        description=(
            "Send top_k and repetition_penalty even if they are off. Otherwise vLLM and SGLang use the "
            "checkpoint's values; hosted APIs refuse these fields."
        ),
    )
    omit: Names = Field(
        (), description=("Parameters not to send, because the served model refuses them: temperature, top_p, seed.")
    )
    extra_body: JsonObject = Field(
        default_factory=dict, description="Further fields of every served call, as JSON. Do not put secrets here."
    )

    @field_validator("omit")
    @classmethod
    def _check_omit(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := sorted(set(names) - OMITTABLE):
            raise ValueError(f"{unknown} cannot be left out")
        return names

    @field_validator("extra_body")
    @classmethod
    def _check_extra_body(cls, body: dict[str, Any]) -> dict[str, Any]:
        if reserved := sorted(_RESERVED_FIELDS & set(body)):
            raise ValueError(f"sets {reserved}: use the setting of that meaning instead")
        return json_object("extra_body", body)

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.base_url is not None and self.api_key_env is not None:
            refuse_key_in_clear("base_url", self.base_url)
        return self

    @property
    def reasoning_value(self) -> bool | str | None:
        """Return the value of `reasoning_field`; None if the field is not set.

        Raises:
            ConfigError: the field has no value for this reasoning.
        """
        if self.reasoning is None:
            return None
        value = switch_value(self.reasoning_field.rpartition(".")[2], self.reasoning)
        if value is None:
            remedy = (
                "say --reasoning off, low, medium or high" if self.reasoning == "on" else "say --reasoning on or off"
            )
            raise ConfigError(
                f"reasoning is {self.reasoning!r}, which the field {self.reasoning_field} cannot say. "
                f"Fix: {remedy}, or name another --reasoning-field"
            )
        return value

    @property
    def url(self) -> str:
        """The server's address, without a final slash."""
        return (self.base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL).rstrip("/")

    @property
    def key_env(self) -> str | None:
        """The variable with this server's key: the named variable, or at the default host the default variable."""
        return self.api_key_env or (DEFAULT_KEY_ENV if self.is_default_host else None)

    @property
    def is_default_host(self) -> bool:
        """True if the server is OpenAI's own server, over https."""
        parts, default = urlsplit(self.url), urlsplit(DEFAULT_URL)
        return (parts.scheme, parts.hostname, parts.port or 443) == (default.scheme, default.hostname, 443)

    def api_key(self) -> str:
        """Return the key. It is read from the environment each time, so that no object holds it longer than a run.

        Raises:
            ModelError: the variable is not set, or contains no key.
        """
        if self.key_env is None:
            return ""
        key = os.environ.get(self.key_env, "").strip()
        if not key:
            # The given name is not repeated: a user who gives the key by mistake has put it in place of the name.
            variable = "that api_key_env names" if self.api_key_env else DEFAULT_KEY_ENV
            raise ModelError(
                f"{self.url} is asked with a key, and the environment variable {variable} is empty. "
                "Fix: set it, or give another api_key_env or base_url"
            )
        if any(not 32 < ord(letter) < 127 for letter in key):
            raise ModelError(
                f"the key in {self.key_env} holds characters that no header can. "
                "Fix: set it again, without spaces or line breaks"
            )
        return key

    def identity(self) -> dict[str, str | int | float | bool | None]:
        """Return the settings that change answers.

        The address of every server on this machine is `local`, since ports change from start to start.
        """
        return {
            **self.model_dump(include=set(ServedSettings.model_fields) - _OUTSIDE_IDENTITY),
            **video_settings(self.frames_as, self.video_fps),
            **({"reasoning": self.reasoning, "reasoning_field": self.reasoning_field} if self.reasoning else {}),
            "base_url": "local" if is_local(self.url) else self.url,
            "think_tags": " ".join(self.tags or THINK_TAGS),
            "omit": " ".join(sorted(self.omit)) or None,
            "extra_body": json.dumps(self.extra_body, sort_keys=True) if self.extra_body else None,
        }
