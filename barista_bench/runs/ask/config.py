"""Every setting of a run, in one table: keywords in Python, flags on the command line, keys in a run file, and
environment variables are the same names with the same meaning.

A value is taken from the first of: keyword or flag, environment (`BARISTA_BENCH_MAX_NEW_TOKENS`), run file, default.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from barista_bench.core.prompt import BoxFormat
from barista_bench.errors import ConfigError
from barista_bench.files.bounded import read_bounded
from barista_bench.files.credentials import check_address, check_variable_name, refuse_credentials
from barista_bench.files.yaml_files import load_yaml
from barista_bench.models import GenerationConfig

ENVIRONMENT_PREFIX = "BARISTA_BENCH_"
MAX_FILE = 2**20
"""Bytes of a run file."""
MAX_RUNS = 1000
"""Repetitions of a run."""
MAX_SHOWN = 200
"""Characters of a value or a name that an error shows."""

_NEVER_SHOWN = frozenset({"extra_body", "base_url", "api_key_env"})
"""Where people put secrets, in their place or by mistake."""


def _several(value: object) -> object:
    """Names, each text one of them or several with commas between."""
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        return value
    return tuple(part.strip() for text in texts for part in text.split(",") if part.strip())


def _one_or_all(value: object) -> object:
    """Stop strings may hold commas: a single string is one of them."""
    return (value,) if isinstance(value, str) else value


def _as_pairs(value: object) -> object:
    """Run files may write a mapping, flags and variables write `name=value`."""
    if not isinstance(value, Mapping):
        return _one_or_all(value)
    return tuple(f"{name}={text if isinstance(text, str) else json.dumps(text)}" for name, text in value.items())


def _json(value: object) -> object:
    """Flags and variables hold JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error


Names = Annotated[tuple[str, ...], BeforeValidator(_several)]
Pairs = Annotated[tuple[str, ...], BeforeValidator(_as_pairs)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_one_or_all)]
Count = Annotated[int, Field(ge=1)]


class ModelSettings(BaseModel):
    """A model and how it is asked: what runs and judges have in common."""

    # Inputs are hidden, since the text of pydantic's error stands in tracebacks, and settings may hold secrets.
    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=(), hide_input_in_errors=True
    )

    model: str = Field(
        "oracle",
        description="oracle, chance, prior, centre_box, tiny, a local checkpoint folder, a Hub id, served:NAME, "
        "sam3:NAME, dual:NAME or predictions:FILE; text_only:, first_frame: or shuffled_frames: before any of them.",
    )
    temperature: float = Field(0.7, ge=0, le=100, description="0 for greedy decoding.")
    max_new_tokens: Count = Field(4096, description="The most tokens an answer may take, reasoning included.")
    top_p: float = Field(1.0, gt=0, le=1, description="Nucleus sampling; 1 for none.")
    top_k: Count | None = Field(None, description="Sample from the k likeliest tokens only.")
    repetition_penalty: float = Field(1.0, gt=0, description="Above 1, tokens that were used become less likely.")
    stop: Texts = Field((), description="Text that ends an answer; may be given several times.")
    thinking_budget: int | None = Field(None, ge=0, description="The most tokens of reasoning before the answer.")

    batch_size: Count | Literal["auto"] = Field(8, description="Prompts generated together, or auto.")
    revision: str | None = Field(None, description="Commit of a Hub checkpoint.")
    device: str = Field("auto", description="auto, cpu, cuda, split (over all GPUs), ...")
    dtype: str = Field("auto", description="auto, float32, bfloat16, ...")
    attn_implementation: str | None = Field(None, description="sdpa, flash_attention_2, ...")
    quantization: Literal["4bit", "8bit"] | None = Field(None, description="Through bitsandbytes.")
    adapter: str | None = Field(None, description="LoRA adapter: a folder or a Hub id; needs peft.")
    adapter_revision: str | None = Field(None, description="Commit of a Hub adapter.")
    trust_remote_code: bool = Field(False, description="Run code that the checkpoint brings.")
    min_pixels: Count | None = Field(None, description="Of an image, where the processor takes a limit.")
    max_pixels: Count | None = Field(None, description="Of an image, where the processor takes a limit.")
    frames_as: Literal["images", "video"] = Field("images", description="How frames of one clip reach the processor.")
    video_fps: float | None = Field(None, gt=0, description="Frames a second to give to a processor of videos.")
    think_tags: Names | None = Field(
        None, description="Opening and closing tag of reasoning, with a comma between.", min_length=2, max_length=2
    )
    threshold: float = Field(0.5, ge=0, le=1, description="Least confidence of a box; for sam3.")
    mask_threshold: float = Field(0.5, ge=0, le=1, description="Of a mask's pixels; for sam3.")
    box_format: str | None = Field(
        None, description="How the model writes boxes, e.g. yxyx/1000, xyxy/1 or xyxy/pixels, if not as its family."
    )

    base_url: str | None = Field(None, description="Of a served model: an OpenAI-compatible endpoint.")
    api_key_env: str | None = Field(
        None,
        description="Name of the environment variable that holds the key; OPENAI_API_KEY for OpenAI's own host alone.",
    )
    timeout: float = Field(600.0, gt=0, description="Seconds that one served call may take.")
    max_concurrency: Count = Field(16, description="Served calls in flight at the most.")
    max_attempts: Count = Field(6, description="Attempts at one served call.")
    image_format: Literal["jpeg", "png"] = Field("jpeg", description="Of images sent to a served model.")
    jpeg_quality: int = Field(75, ge=1, le=100, description="Of images sent to a served model.")
    max_image_side: Count | None = Field(None, description="Longer sides of images are scaled down to it, pixels.")
    image_detail: str | None = Field(None, description="low, high or auto, where a server knows it.")
    structured_output: bool = Field(False, description="Hold a served model to the answer's JSON Schema.")
    prompt_opens_thinking: bool = Field(False, description="A served model's template writes the opening think tag.")
    thinking_budget_field: str | None = Field(None, description="Field of a call that holds the thinking budget.")
    token_limit_field: str = Field("max_completion_tokens", description="max_tokens for older servers.")
    explicit_sampling: bool = Field(False, description="Send top_k and repetition_penalty even where they are off.")
    omit: Names = Field((), description="Of temperature, top_p and seed, those a served model refuses.")
    extra_body: Annotated[dict[str, Any], BeforeValidator(_json)] = Field(
        default_factory=dict, description="Further fields of every served call, as JSON. No secrets here."
    )
    price_input: float | None = Field(None, ge=0, description="US dollars a million input tokens.")
    price_output: float | None = Field(None, ge=0, description="US dollars a million output tokens.")

    progress: bool = Field(False, description="Show progress bars.")

    @model_validator(mode="before")
    @classmethod
    def _no_credentials(cls, values: object) -> object:
        """First of all, since later errors show values: no setting is a key, whatever it is called."""
        if isinstance(values, Mapping):
            for name, value in values.items():
                if name == "api_key_env" and isinstance(value, str):
                    check_variable_name(name, value)
                refuse_credentials(str(name), value)
        return values

    @field_validator("extra_body")
    @classmethod
    def _body_without_credentials(cls, value: dict[str, Any]) -> dict[str, Any]:
        refuse_credentials("extra_body", value)
        return value

    @field_validator("base_url")
    @classmethod
    def _plain_address(cls, value: str | None) -> str | None:
        if value is not None:
            check_address("base_url", value)
        return value

    @field_validator("box_format")
    @classmethod
    def _readable_box_format(cls, value: str | None) -> str | None:
        if value is not None:
            BoxFormat.parse(value)
        return value

    @model_validator(mode="after")
    def _prices_together(self) -> Self:
        if (self.price_input is None) != (self.price_output is None):
            raise ValueError("price_input and price_output belong together")
        return self

    @property
    def generation(self) -> GenerationConfig:
        names = {setting.name for setting in fields(GenerationConfig)} & ModelSettings.model_fields.keys()
        return GenerationConfig(**{name: getattr(self, name) for name in names})

    @property
    def tags(self) -> tuple[str, str] | None:
        """The think tags that were asked for; None leaves them to the model's family."""
        return (self.think_tags[0], self.think_tags[1]) if self.think_tags else None

    @property
    def boxes(self) -> BoxFormat | None:
        """The box format that was asked for; None leaves it to the model's family."""
        return None if self.box_format is None else BoxFormat.parse(self.box_format)


class RunConfig(ModelSettings):
    """What is run, on what, and how. The descriptions are the help texts of the command line."""

    data: str = Field(
        description="Dataset folder made by build, name in the datasets cache, Hub dataset id, or frozen JSONL file; "
        "with --benchmark all, a folder of dataset folders."
    )
    out: Path = Field(description="Run folder; with several tasks the folder of their run folders. Same one: go on.")
    benchmark: str = Field(
        "barista",
        description="Whose tasks they are, where a built folder does not say; all for every one that data holds.",
    )
    option: Pairs = Field(
        (), description="Of a task, name=value or task.name=value; may be given several times.", max_length=100
    )
    task: Names = Field(
        ("relations",),
        description="Configs to run, with commas, or all, as `evaluate` and sets without relations do by default.",
        min_length=1,
    )
    split: str = Field(
        "all",
        description="all, train, test, ...: the published numbers use all; a trained model wants test.",
        min_length=1,
        max_length=100,
    )
    runs: int = Field(3, ge=1, le=MAX_RUNS, description="Repetitions; the protocol asks for three.")
    limit: Count | None = Field(None, description="Only the first so many examples of each task.")
    root: Path | None = Field(None, description="Folder of the videos of a linked dataset or frozen file.")
    prompts: Path | None = Field(
        None,
        description="Prompt file, folder of <task>.yaml, or release:FOLDER (your clone of the released repository), "
        "instead of our wording.",
    )
    protocol: Literal["release", "paper"] = Field(
        "release", description="Whose rules: the released code's, or the paper's where they differ."
    )

    workers: Count = Field(2, description="Threads that decode frames ahead.")
    frame_cache_mib: Count = Field(512, description="Memory for frames that several tasks share, in MiB.")


SettingsT = TypeVar("SettingsT", bound=ModelSettings)


def resolve(
    kind: type[SettingsT],
    given: Mapping[str, Any],
    *,
    file: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> SettingsT:
    """Settings from keywords or flags, the environment, and a run file, in this order of precedence.

    Args:
        kind: the table, such as `RunConfig`.
        given: those that the caller named; others are absent, not None.
        file: YAML mapping of settings. Relative paths in it are relative to the working directory, as flags are.
        environment: None for `os.environ`.
        defaults: of the caller, instead of those in the table.

    Raises:
        ConfigError: a setting is unknown (names the nearest one) or its value cannot be used.
    """
    variables = _from_environment(os.environ if environment is None else environment, kind)
    return checked(kind, {**(defaults or {}), **_from_file(file, kind), **variables, **given})


def checked(kind: type[SettingsT], settings: Mapping[str, Any]) -> SettingsT:
    """As `resolve`, of the settings alone."""
    for name in settings:
        _refuse_unknown(name, "setting", kind)
    try:
        return kind(**settings)
    except ValidationError as error:
        raise ConfigError(_first_complaint(error, kind)) from error


def _first_complaint(error: ValidationError, kind: type[ModelSettings]) -> str:
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
    got = "" if hidden else f", got {_shown(first['input'])}"
    return f"{name}: {first['msg']}{got}. Remedy: give another value{wanted}"


def _shown(value: object) -> str:
    """A value for a message, cut; of one that Python itself will not write out, what it is."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # integers of more than 4300 digits, deep nesting
        return f"a {type(value).__name__} that is too long to show"
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def _refuse_unknown(name: object, what: str, kind: type[ModelSettings]) -> None:
    if name in kind.model_fields:
        return
    shown = _shown(name)
    near = difflib.get_close_matches(str(name) if len(shown) < MAX_SHOWN else shown, kind.model_fields, n=1, cutoff=0)
    raise ConfigError(f"no {what} {shown}. Remedy: the nearest is {near[0]!r}")


def _from_file(file: str | Path | None, kind: type[ModelSettings]) -> dict[str, Any]:
    if file is None:
        return {}
    data = read_bounded(file, MAX_FILE, remedy="name a run file", error=ConfigError)
    content = load_yaml(data, str(file), remedy="write one `name: value` a line")
    if not isinstance(content, dict):
        raise ConfigError(f"{file}: is no mapping. Remedy: write one `name: value` a line")
    for name in content:
        _refuse_unknown(name, f"setting in {file}:", kind)
    return content


def _from_environment(environment: Mapping[str, str], kind: type[ModelSettings]) -> dict[str, str]:
    """Variables of this table; those of another one (runs, judges) are its own business."""
    known_anywhere = {name for table in _tables(ModelSettings) for name in table.model_fields}
    settings = {}
    for variable, value in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        if name in kind.model_fields or name not in known_anywhere:
            _refuse_unknown(name, f"setting {variable} (environment):", kind)
            settings[name] = value
    return settings


def _tables(kind: type[ModelSettings]) -> list[type[ModelSettings]]:
    return [kind, *(table for below in kind.__subclasses__() for table in _tables(below))]
