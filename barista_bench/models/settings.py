"""Tables of settings: each setting is stated once, with its type, range, default and help text.

`ServedSettings`, `CheckpointSettings` and `TransformersSettings` say what a kind of model takes when it is loaded.
`runs.ask.config` puts them together into the settings of a run, from which the command line is made.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from barista_bench.core.prompt import BoxFormat
from barista_bench.errors import ConfigError
from barista_bench.files.credentials import check_address, check_variable_name, refuse_credentials

ENVIRONMENT_PREFIX = "BARISTA_BENCH_"
MAX_SHOWN = 200
"""Characters of a value or a name that an error shows."""

_NEVER_SHOWN = frozenset({"extra_body", "base_url", "api_key_env"})
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
    """What every model takes that generates text."""

    think_tags: Names | None = Field(
        None,
        description="Opening and closing tag of reasoning, with a comma between; <think>,</think> if left out.",
        min_length=2,
        max_length=2,
    )
    box_format: BoxFormatSetting = Field(
        None, description="How the model writes boxes, e.g. yxyx/1000, xyxy/1 or xyxy/pixels, if not as its family."
    )

    @property
    def tags(self) -> tuple[str, str] | None:
        """The think tags that were asked for."""
        return (self.think_tags[0], self.think_tags[1]) if self.think_tags else None


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
    shown = _shown(name)
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
    got = "" if hidden else f", got {_shown(first['input'])}"
    return f"{name}: {first['msg']}{got}. Remedy: give another value{wanted}"


def _shown(value: object) -> str:
    """A value for a message, cut; of one that Python itself will not write out, what it is."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # integers of more than 4300 digits, deep nesting
        return f"a {type(value).__name__} that is too long to show"
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."
