"""Tables of settings: each setting is defined once, with its type, range, default and help text.

`CheckpointSettings`, `TransformersSettings`, `VllmSettings` and `ServedSettings` (`models/served/settings.py`) define
the settings for loading a kind of model. `runs.ask.config` combines them into the settings of a run, which define the
command line.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from barista_bench.core.boxes import BoxFormat
from barista_bench.errors import ConfigError, flag_of
from barista_bench.files.text_out import check_address, check_variable_name, refuse_credentials
from barista_bench.models.answers import Reasoning
from barista_bench.models.base import FramesAs

ENVIRONMENT_PREFIX = "BARISTA_BENCH_"
MAX_SHOWN = 200
"""Characters of a value or a name that an error shows."""

_ARGUMENTS = frozenset({"data", "run", "folder", "project"})
"""Settings that commands take without a flag."""
_NEVER_SHOWN = frozenset({"extra_body", "engine_args", "template_kwargs", "base_url", "api_key_env"})
"""Settings where people put secrets, in their place or by mistake."""


def _split_names(value: object) -> object:
    """Split names at commas, in each text."""
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        return value
    return tuple(part.strip() for text in texts for part in text.split(",") if part.strip())


def one_or_all(value: object) -> object:
    """Return a single text as a list with one element: stop strings may hold commas."""
    return (value,) if isinstance(value, str) else value


def _read_json(value: object) -> object:
    """Return the value of JSON text, from flags and variables; any other value unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error


def json_object(name: str, value: dict[str, Any]) -> dict[str, Any]:
    """Return the setting unchanged. Raises ValueError unless it can be written as JSON, and holds no credentials."""
    refuse_credentials(name, value)  # of JSON text, which was not looked into before
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"is not a JSON object ({type(error).__name__})") from error
    return value


Names = Annotated[tuple[str, ...], BeforeValidator(_split_names)]
Texts = Annotated[tuple[str, ...], BeforeValidator(one_or_all)]
JsonObject = Annotated[dict[str, Any], BeforeValidator(_read_json)]
BoxFormatSetting = Annotated[
    BoxFormat | None, BeforeValidator(lambda value: BoxFormat.parse(value) if isinstance(value, str) else value)
]
Count = Annotated[int, Field(ge=1)]


class SettingsTable(BaseModel):
    """A table of settings. Make one with `checked`, whose `ConfigError` names the fault."""

    # Inputs are hidden, since tracebacks show the text of pydantic's error, and settings may hold secrets.
    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=(), hide_input_in_errors=True
    )

    revision: str | None = Field(
        None, description="Commit of a Hub checkpoint; of a served model what the server runs, where you know it."
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_credentials(cls, values: object) -> object:
        """Refuse credentials in any setting of any name. This check is first, since later errors show values."""
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
        description="Opening and closing tag of reasoning, with a comma between; those of common models if left out.",
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
    def _check_video_settings(self) -> Self:
        if self.video_fps is not None and self.frames_as != "video":
            raise ValueError("video_fps is set, but frames are sent as images: add frames_as=video")
        return self

    @property
    def tags(self) -> tuple[str, str] | None:
        """The think tags that were set."""
        return (self.think_tags[0], self.think_tags[1]) if self.think_tags else None

    def identity_of_answers(self) -> dict[str, str | bool | None]:
        """The form of answers that a local model was asked for, for its identity; None if it is free."""
        return {
            "box_format": str(self.box_format) if self.box_format else None,
            "think_tags": " ".join(self.think_tags) if self.think_tags else None,
            "reasoning": self.reasoning,
            "structured_output": self.structured_output or None,
        }


SettingsT = TypeVar("SettingsT", bound=SettingsTable)


def check_settings(table: type[SettingsT], values: Mapping[str, Any]) -> SettingsT:
    """Return the settings of a table.

    Raises:
        ConfigError: a setting is unknown (names the nearest name) or its value is invalid.
    """
    for name in values:
        check_known(name, "setting", table)
    try:
        return table(**values)
    except ValidationError as error:
        raise ConfigError(_first_complaint(error, table)) from error


def part_of(settings: SettingsTable, table: type[SettingsTable]) -> dict[str, Any]:
    """Return the settings that `table` has too, by name."""
    return {name: getattr(settings, name) for name in table.model_fields}


def check_known(name: object, noun: str, table: type[SettingsTable]) -> None:
    """Raise ConfigError, with the nearest name, for a name that is not in the table."""
    if name in table.model_fields:
        return
    name_text = _value_text(name)
    wrong = str(name) if len(name_text) < MAX_SHOWN else name_text
    near = difflib.get_close_matches(wrong, table.model_fields, n=1, cutoff=0)
    raise ConfigError(f"no {noun} {name_text}. Fix: the nearest is {near[0]!r}")


def _first_complaint(error: ValidationError, table: type[SettingsTable]) -> str:
    complaint = error.errors()[0]
    name = str(complaint["loc"][0]) if complaint["loc"] else "settings"
    if complaint["type"] == "missing":
        place = "an argument" if name in _ARGUMENTS else flag_of(name)
        variable = f"{ENVIRONMENT_PREFIX}{name.upper()}"
        return f"{name} is missing. Fix: give it as {place}, in the run file, or as {variable}"
    field = table.model_fields.get(name)
    description = f" ({field.description})" if field else ""
    # An error that concerns several fields has all settings as its input.
    is_hidden = not complaint["loc"] or name in _NEVER_SHOWN
    value_text = "" if is_hidden else f", got {_value_text(complaint['input'])}"
    what = f"another {flag_of(name)}" if field else "other settings"
    return f"{name}: {complaint['msg']}{value_text}. Fix: give {what}{description}"


def _value_text(value: object) -> str:
    """Return a value for a message, cut; for a value that Python cannot print, its type."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # integers of more than 4300 digits, deep nesting
        return f"a {type(value).__name__} that is too long to show"
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


class WeightSettings(SettingsTable):
    """Settings for all ways of running a checkpoint."""

    device: str = Field("auto", description="auto (a CUDA GPU if there is one), cpu, cuda, split (over all GPUs), ...")
    dtype: str = Field("auto", description="auto (the checkpoint's own), float32, bfloat16, ...")
    trust_remote_code: bool = Field(False, description="Run code that the checkpoint brings.")


class CheckpointSettings(WeightSettings):
    """Settings for all kinds of checkpoints that transformers runs."""

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
        64, description="Of --engine vllm: prompts in it at most; their images are held in memory."
    )
    engine_timeout: float = Field(
        1800.0, gt=0, description="Of --engine vllm: seconds without a sign of life, after which it is started again."
    )
    tensor_parallel: Count = Field(1, description="Of --engine vllm: GPUs that share one copy of the weights.")

    @field_validator("engine_args")
    @classmethod
    def _check_engine_args(cls, arguments: dict[str, Any]) -> dict[str, Any]:
        if reserved := sorted(_RESERVED_ARGUMENTS & set(arguments)):
            raise ValueError(f"sets {reserved}, which other settings decide, or nothing may")
        return json_object("engine_args", arguments)

    @property
    def answer_args(self) -> dict[str, Any]:
        """The `engine_args` that may change an answer."""
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
    def _check_template_kwargs(cls, variables: dict[str, Any]) -> dict[str, Any]:
        return json_object("template_kwargs", variables)

    @model_validator(mode="after")
    def _check_pixels(self) -> Self:
        if self.min_pixels is not None and self.max_pixels is not None and self.min_pixels > self.max_pixels:
            raise ValueError(f"min_pixels is {self.min_pixels}, above max_pixels {self.max_pixels}: exchange them")
        return self
