"""Define tables of settings: each setting is defined once, with its type, range, default and help text.

A table gives the fields of a Python call and the flags of a command (`cli/flags.py`). `models/settings.py` has the
tables of models, and `runs/ask/config.py` combines them into the settings of a run.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from barista_bench.errors import ConfigError, flag_of
from barista_bench.files.text_out import check_address, check_variable_name, refuse_credentials

ENVIRONMENT_PREFIX = "BARISTA_BENCH_"
CLUSTER_HELP = "Address of a Ray cluster that does the work: HOST:PORT, or auto if this machine is one of its nodes."
MAX_SHOWN = 200
"""Maximum number of characters of a value or a name that an error shows."""

_ARGUMENTS = frozenset({"data", "run", "folder", "project"})
"""Settings that commands take without a flag."""
_NEVER_SHOWN = frozenset({"extra_body", "engine_args", "template_kwargs", "base_url", "api_key_env"})
"""Settings into which people put secrets, on purpose or by mistake."""


def _split_names(value: object) -> object:
    """Split each text into names at commas."""
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        return value
    return tuple(part.strip() for text in texts for part in text.split(",") if part.strip())


def one_or_all(value: object) -> object:
    """Return a single text or path as a list with one element. It may contain commas, so it is not split."""
    return (value,) if isinstance(value, str | Path) else value


def _read_json(value: object) -> object:
    """Return the value of JSON text from flags and variables; other values stay unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error


def json_object(name: str, value: dict[str, Any]) -> dict[str, Any]:
    """Return the setting unchanged. Raises ValueError if it cannot be written as JSON or contains credentials."""
    refuse_credentials(name, value)  # the earlier check did not look into JSON text
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"is not a JSON object ({type(error).__name__})") from error
    return value


Names = Annotated[tuple[str, ...], BeforeValidator(_split_names)]
Texts = Annotated[tuple[str, ...], BeforeValidator(one_or_all)]
Paths = Annotated[tuple[Path, ...], BeforeValidator(one_or_all)]
JsonObject = Annotated[dict[str, Any], BeforeValidator(_read_json)]
Count = Annotated[int, Field(ge=1)]


class SettingsTable(BaseModel):
    """A table of settings. Make a table with `check_settings`, which raises a `ConfigError` that names the fault."""

    # Inputs are hidden, since tracebacks show the text of pydantic's error and settings may contain secrets.
    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=(), hide_input_in_errors=True
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_credentials(cls, values: object) -> object:
        """Refuse credentials in any setting. This check runs first, since later errors show values."""
        if isinstance(values, Mapping):
            for name, value in values.items():
                if name == "base_url" and isinstance(value, str):
                    check_address(name, value)
                    continue
                if name == "api_key_env" and isinstance(value, str):
                    check_variable_name(name, value)
                refuse_credentials(str(name), value)
        return values


SettingsT = TypeVar("SettingsT", bound=SettingsTable)


def check_settings(table: type[SettingsT], values: Mapping[str, Any]) -> SettingsT:
    """Return the settings of a table.

    Raises:
        ConfigError: a setting is unknown, or its value is invalid. For an unknown setting, the error names the nearest
        name.
    """
    for name in values:
        check_known(name, "setting", table)
    try:
        return table(**values)
    except ValidationError as error:
        raise ConfigError(_first_complaint(error, table)) from error


def part_of(settings: SettingsTable, table: type[SettingsTable]) -> dict[str, Any]:
    """Return the settings, by name, that `table` also has."""
    return {name: getattr(settings, name) for name in table.model_fields}


def check_known(name: object, noun: str, table: type[SettingsTable]) -> None:
    """Raise ConfigError for a name that is not in the table. The error suggests the nearest name."""
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
    # The input of an error about several fields is all settings.
    is_hidden = not complaint["loc"] or name in _NEVER_SHOWN
    value_text = "" if is_hidden else f", got {_value_text(complaint['input'])}"
    what = f"another {flag_of(name)}" if field else "other settings"
    return f"{name}: {complaint['msg']}{value_text}. Fix: give {what}{description}"


def _value_text(value: object) -> str:
    """Return a value as text for a message, shortened. For a value that Python cannot print, return its type."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # integers of more than 4300 digits, deep nesting
        return f"a {type(value).__name__} that is too long to show"
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."
