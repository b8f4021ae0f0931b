"""Tables of settings: each setting is stated once, with its type, range, default and help text.

`ServedSettings`, `CheckpointSettings`, `TransformersSettings` and `VllmSettings` say what a kind of model takes when it
is loaded. `runs.ask.config` puts them together into the settings of a run, from which the command line is made.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from barista_bench.core.boxes import BoxFormat
from barista_bench.errors import ConfigError, ModelError
from barista_bench.files.text_out import check_address, check_variable_name, check_way, is_local, refuse_credentials
from barista_bench.models.answers import THINK_TAGS, Reasoning, switch_value
from barista_bench.models.base import FramesAs, video_settings

ENVIRONMENT_PREFIX = "BARISTA_BENCH_"
MAX_SHOWN = 200
"""Characters of a value or a name that an error shows."""

_NEVER_SHOWN = frozenset({"extra_body", "engine_args", "template_kwargs", "base_url", "api_key_env"})
"""Where people put secrets, in their place or by mistake."""


def _split_names(value: object) -> object:
    """Names, each text one of them or several with commas between."""
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        return value
    return tuple(part.strip() for text in texts for part in text.split(",") if part.strip())


def one_or_all(value: object) -> object:
    """A single text is a list of one: stop strings may hold commas."""
    return (value,) if isinstance(value, str) else value


def _read_json(value: object) -> object:
    """Flags and variables hold JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error


def _json_object(name: str, value: dict[str, Any]) -> dict[str, Any]:
    """A setting that can be written as JSON, and holds no key."""
    refuse_credentials(name, value)  # of JSON text, which was not looked into before
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"is not a JSON object ({type(error).__name__})") from error
    return value


def _read_box_format(value: object) -> object:
    return BoxFormat.parse(value) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_split_names)]
Texts = Annotated[tuple[str, ...], BeforeValidator(one_or_all)]
JsonObject = Annotated[dict[str, Any], BeforeValidator(_read_json)]
BoxFormatSetting = Annotated[BoxFormat | None, BeforeValidator(_read_box_format)]
Count = Annotated[int, Field(ge=1)]


class SettingsTable(BaseModel):
    """A table of settings. Make one with `checked`, which names what is wrong in a `ConfigError`."""

    # Inputs are hidden, since the text of pydantic's error stands in tracebacks, and settings may hold secrets.
    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=(), hide_input_in_errors=True
    )

    revision: str | None = Field(
        None, description="Commit of a Hub checkpoint; of a served model what the server runs, where you know it."
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_credentials(cls, values: object) -> object:
        """First of all, since later errors show values: no setting is a key, whatever it is called."""
        if isinstance(values, Mapping):
            for name, value in values.items():
                if name == "base_url" and isinstance(value, str):
                    check_address(name, value)
                    continue
                if name == "api_key_env" and isinstance(value, str):
                    check_variable_name(name, value)
                refuse_credentials(str(name), value)
        return values


class GeneratorSettings(SettingsTable):
    """Settings of every model that generates text."""

    think_tags: Names | None = Field(
        None,
        description="Opening and closing tag of reasoning, with a comma between; <think>,</think> if left out.",
        min_length=2,
        max_length=2,
    )
    reasoning: Reasoning | None = Field(
        None, description="Whether, or how hard, the model reasons first, if it has a switch; its own way if left out."
    )
    box_format: BoxFormatSetting = Field(
        None, description="How the model writes boxes, e.g. yxyx/1000, xyxy/1 or xyxy/pixels, if not as its family."
    )
    frames_as: FramesAs = Field(
        "images",
        description="How images that follow each other reach the model; as one video with the times of frames.",
    )
    video_fps: float | None = Field(
        None, gt=0, description="Of a video: frames shown a second, instead of the times at which they were filmed."
    )
    structured_output: bool = Field(
        False,
        description="Hold answers to their JSON Schema while they are written: a local model token by token, a server "
        "by response_format (strict).",
    )

    @model_validator(mode="after")
    def _speaks_of_videos(self) -> Self:
        if self.video_fps is not None and self.frames_as != "video":
            raise ValueError("video_fps is set, but frames are sent as images: add frames_as=video")
        return self

    @property
    def tags(self) -> tuple[str, str] | None:
        """The think tags that were asked for."""
        return (self.think_tags[0], self.think_tags[1]) if self.think_tags else None

    def identity_of_answers(self) -> dict[str, str | bool | None]:
        """How a local model was asked to write its answers, for its identity; None where that is left to it."""
        return {
            "box_format": str(self.box_format) if self.box_format else None,
            "think_tags": " ".join(self.think_tags) if self.think_tags else None,
            "reasoning": self.reasoning,
            "structured_output": self.structured_output or None,
        }


SettingsT = TypeVar("SettingsT", bound=SettingsTable)


def checked(kind: type[SettingsT], values: Mapping[str, Any]) -> SettingsT:
    """The settings of a table.

    Raises:
        ConfigError: a setting is unknown (names the nearest one) or its value cannot be used.
    """
    for name in values:
        check_known(name, "setting", kind)
    try:
        return kind(**values)
    except ValidationError as error:
        raise ConfigError(_first_complaint(error, kind)) from error


def part_of(settings: SettingsTable, kind: type[SettingsTable]) -> dict[str, Any]:
    """Those of the settings that are also in the table `kind`, by name."""
    return {name: getattr(settings, name) for name in kind.model_fields}


def check_known(name: object, what: str, kind: type[SettingsTable]) -> None:
    """Raise ConfigError, with the nearest name, for a name that is not in the table."""
    if name in kind.model_fields:
        return
    shown = _value_text(name)
    near = difflib.get_close_matches(str(name) if len(shown) < MAX_SHOWN else shown, kind.model_fields, n=1, cutoff=0)
    raise ConfigError(f"no {what} {shown}. Remedy: the nearest is {near[0]!r}")


def _first_complaint(error: ValidationError, kind: type[SettingsTable]) -> str:
    first = error.errors()[0]
    name = str(first["loc"][0]) if first["loc"] else "settings"
    if first["type"] == "missing":
        return (
            f"{name} is missing. Remedy: give it as a flag, in the run file, or as {ENVIRONMENT_PREFIX}{name.upper()}"
        )
    field = kind.model_fields.get(name)
    wanted = f" ({field.description})" if field else ""
    # What no single field is to blame for has all settings as its input.
    hidden = not first["loc"] or name in _NEVER_SHOWN
    got = "" if hidden else f", got {_value_text(first['input'])}"
    return f"{name}: {first['msg']}{got}. Remedy: give another value{wanted}"


def _value_text(value: object) -> str:
    """A value for a message, cut; of one that Python itself will not write out, what it is."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # integers of more than 4300 digits, deep nesting
        return f"a {type(value).__name__} that is too long to show"
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


class WeightSettings(SettingsTable):
    """Settings of every way of running a checkpoint."""

    device: str = Field("auto", description="auto (a CUDA GPU if there is one), cpu, cuda, split (over all GPUs), ...")
    dtype: str = Field("auto", description="auto (the checkpoint's own), float32, bfloat16, ...")
    trust_remote_code: bool = Field(False, description="Run code that the checkpoint brings.")


class CheckpointSettings(WeightSettings):
    """Settings of every kind of checkpoint that transformers runs."""

    attn_implementation: str | None = Field(None, description="sdpa, flash_attention_2, ...")


_RESERVED_ARGUMENTS = frozenset(
    {"model", "tokenizer", "revision", "dtype", "trust_remote_code", "tensor_parallel_size", "data_parallel_size"}
    | {"load_format", "max_logprobs", "skip_tokenizer_init", "logits_processors", "worker_cls", "seed"}
    | {"structured_outputs_config"}
)
_MEMORY_ARGUMENTS = frozenset(
    {"gpu_memory_utilization", "kv_cache_memory_bytes", "cpu_offload_gb", "max_num_seqs", "max_num_batched_tokens"}
    | {"enforce_eager", "mm_processor_cache_gb"}
)


class VllmSettings(WeightSettings, GeneratorSettings):
    """Settings of `--engine vllm`: the keywords of `VllmModel.load`."""

    engine_python: Path | None = Field(
        None, description="Of --engine vllm: interpreter of the environment that has vllm, if it is another one."
    )
    engine_args: JsonObject = Field(
        default_factory=dict,
        description='Of --engine vllm: further arguments of its `LLM`, as JSON: {"max_model_len": 32768}.',
    )
    engine_requests: Count = Field(
        64, description="Of --engine vllm: prompts at it at the most; their images are held in memory."
    )
    engine_timeout: float = Field(
        1800.0, gt=0, description="Of --engine vllm: seconds without a sign of life, after which it is started again."
    )
    tensor_parallel: Count = Field(1, description="Of --engine vllm: GPUs that share one copy of the weights.")

    @field_validator("engine_args")
    @classmethod
    def _are_free(cls, arguments: dict[str, Any]) -> dict[str, Any]:
        if taken := sorted(_RESERVED_ARGUMENTS & set(arguments)):
            raise ValueError(f"sets {taken}, which other settings decide, or nothing may")
        return _json_object("engine_args", arguments)

    @property
    def answer_args(self) -> dict[str, Any]:
        """Those of the `engine_args` that may change an answer."""
        return {name: value for name, value in self.engine_args.items() if name not in _MEMORY_ARGUMENTS}


class TransformersSettings(CheckpointSettings, GeneratorSettings):
    """Settings of a vision-language model: the keywords of `TransformersModel.load`."""

    batch_size: Count | Literal["auto"] = Field(8, description="The most prompts generated together, or auto.")
    quantization: Literal["4bit", "8bit"] | None = Field(
        None, description="4bit (NF4) or 8bit (LLM.int8) through bitsandbytes, on a CUDA GPU."
    )
    adapter: str | None = Field(None, description="LoRA adapter: a folder or a Hub id; needs peft.")
    adapter_revision: str | None = Field(None, description="Commit of a Hub adapter.")
    min_pixels: Count | None = Field(None, description="Of an image, where the processor takes a limit.")
    max_pixels: Count | None = Field(None, description="Of an image, where the processor takes a limit.")
    chat_template: Path | None = Field(None, description="File of a chat template (Jinja) instead of the checkpoint's.")
    template_kwargs: JsonObject = Field(
        default_factory=dict,
        description='Variables of the chat template, as JSON: {"enable_thinking": false}. No secrets here.',
    )

    @field_validator("template_kwargs")
    @classmethod
    def _are_json(cls, variables: dict[str, Any]) -> dict[str, Any]:
        return _json_object("template_kwargs", variables)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.min_pixels is not None and self.max_pixels is not None and self.min_pixels > self.max_pixels:
            raise ValueError(f"min_pixels is {self.min_pixels}, above max_pixels {self.max_pixels}: exchange them")
        return self


DEFAULT_URL = "https://api.openai.com/v1"
DEFAULT_KEY_ENV = "OPENAI_API_KEY"
"""Holds the key for the host of `DEFAULT_URL`, and is read for no other host unless it is named."""
OMITTABLE = frozenset({"temperature", "top_p", "seed"})

# Written from the request, the generation settings or the other settings: a second value would win in silence.
_RESERVED_FIELDS = frozenset(
    {"model", "messages", "n", "seed", "stream", "temperature", "top_p", "stop", "logprobs", "top_logprobs"}
    | {"response_format", "max_completion_tokens", "max_tokens"}
)
_OUTSIDE_IDENTITY = frozenset(
    {"api_key_env", "timeout", "max_concurrency", "max_attempts"}
    | {"revision", "box_format"}  # fields of the model's own
    | {"frames_as", "video_fps"}  # named where frames are videos
    | {"reasoning", "reasoning_field"}  # named where it is set
)


class ServedSettings(GeneratorSettings):
    """Settings of a served model: the keywords of `ServedModel.load`."""

    base_url: str | None = Field(
        None,
        description="Of a served model: an OpenAI-compatible endpoint. OPENAI_BASE_URL, else OpenAI's own, if left "
        "out. Plain http carries no key, but to this machine.",
    )
    api_key_env: str | None = Field(
        None,
        description="Name of the environment variable that holds the key; OPENAI_API_KEY for OpenAI's own host alone.",
    )
    timeout: float = Field(
        600.0, gt=0, description="Seconds that one served call may take, from sending to the last byte."
    )
    max_concurrency: int = Field(
        16, ge=1, le=1024, description="Served calls in flight at the most; how many there are adapts to the server."
    )
    max_attempts: int = Field(6, ge=1, le=100, description="Attempts at one served call.")
    image_format: Literal["jpeg", "png"] | None = Field(
        None,
        description="Of images sent to a served model: encode them anew. Left out, they go out byte by byte as a "
        "frozen set stores them, and frames of a linked set as a frozen one would.",
    )
    jpeg_quality: int | None = Field(
        None, ge=1, le=100, description="Of images sent to a served model: encode them anew as JPEG. 75 if left out."
    )
    max_image_side: int | None = Field(None, ge=16, description="Longer sides of images are scaled down to it, pixels.")
    image_detail: Literal["low", "high", "auto"] | None = Field(
        None, description="low, high or auto, where a server knows it."
    )
    prompt_opens_thinking: bool = Field(False, description="A served model's template writes the opening think tag.")
    reasoning_field: str = Field(
        "reasoning_effort",
        description="Field of a served call that holds reasoning; dots go into objects: "
        "chat_template_kwargs.enable_thinking where vLLM or SGLang serves a template with that switch.",
        min_length=1,
    )
    thinking_budget_field: str | None = Field(
        None,
        description="Field of a call that holds the thinking budget, e.g. thinking_token_budget; dots go into objects.",
    )
    token_limit_field: Literal["max_completion_tokens", "max_tokens"] = Field(
        "max_completion_tokens", description="max_tokens for older servers."
    )
    explicit_sampling: bool = Field(
        False,
        description="Send top_k and repetition_penalty even where they are off: vLLM and SGLang take the checkpoint's "
        "otherwise, hosted APIs refuse them.",
    )
    omit: Names = Field((), description="Of temperature, top_p and seed, those a served model refuses.")
    extra_body: JsonObject = Field(
        default_factory=dict, description="Further fields of every served call, as JSON. No secrets here."
    )

    @field_validator("omit")
    @classmethod
    def _can_be_omitted(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := sorted(set(names) - OMITTABLE):
            raise ValueError(f"{unknown} cannot be left out")
        return names

    @field_validator("extra_body")
    @classmethod
    def _is_free_to_send(cls, body: dict[str, Any]) -> dict[str, Any]:
        if taken := sorted(_RESERVED_FIELDS & set(body)):
            raise ValueError(f"sets {taken}: use the setting of that meaning instead")
        return _json_object("extra_body", body)

    @model_validator(mode="after")
    def _belong_together(self) -> Self:
        if self.base_url is not None and self.api_key_env is not None:
            check_way("base_url", self.base_url)
        return self

    @property
    def reasoning_value(self) -> bool | str | None:
        """What the `reasoning_field` holds; None for no such field.

        Raises:
            ConfigError: it cannot say what is wanted.
        """
        if self.reasoning is None:
            return None
        value = switch_value(self.reasoning_field.rpartition(".")[2], self.reasoning)
        if value is None:
            remedy = "say off, low, medium or high" if self.reasoning == "on" else "say on or off"
            raise ConfigError(
                f"reasoning is {self.reasoning!r}, which the field {self.reasoning_field} cannot say. "
                f"Remedy: {remedy}, or name another reasoning_field"
            )
        return value

    @property
    def url(self) -> str:
        """The server's address, without a slash at the end."""
        return (self.base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL).rstrip("/")

    @property
    def key_env(self) -> str | None:
        """The variable that holds the key for this server: the named one, or the default at the default host alone."""
        return self.api_key_env or (DEFAULT_KEY_ENV if self.is_default_host else None)

    @property
    def is_default_host(self) -> bool:
        """Whether the server is OpenAI's own, over https."""
        parts, default = urlsplit(self.url), urlsplit(DEFAULT_URL)
        return (parts.scheme, parts.hostname, parts.port or 443) == (default.scheme, default.hostname, 443)

    def api_key(self) -> str:
        """The key, read from the environment each time, so that no object holds it for longer than a run.

        Raises:
            ModelError: the variable that should hold it is not set, or holds no key.
        """
        if self.key_env is None:
            return ""
        key = os.environ.get(self.key_env, "").strip()
        if not key:
            # A name that was given is not repeated: who gives the key instead gives the name of no variable.
            named = "that api_key_env names" if self.api_key_env else DEFAULT_KEY_ENV
            raise ModelError(
                f"{self.url} is asked with a key, and the environment variable {named} is empty. "
                "Remedy: set it, or give another api_key_env or base_url"
            )
        if any(not 32 < ord(letter) < 127 for letter in key):
            raise ModelError(
                f"the key in {self.key_env} holds characters that no header can. "
                "Remedy: set it again, without spaces or line breaks"
            )
        return key

    def identity(self) -> dict[str, str | int | float | bool | None]:
        """The settings that change answers.

        Servers on this machine are all `local`: their ports change from start to start.
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
