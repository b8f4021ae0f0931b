"""Command-line flags from a table of settings, so that each setting is written down once."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from barista_bench.runs.ask.config import ModelSettings

CONFIG_FLAG = inspect.Parameter(
    "config",
    inspect.Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[Path | None, typer.Option(help="Settings file: YAML, one `name: value` a line.")],
)
DRY_RUN_FLAG = inspect.Parameter(
    "dry_run",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[bool, typer.Option("--dry-run", help="Count requests, images, tokens and cost; ask nothing.")],
)


def with_flags(
    function: Callable[..., None],
    kind: type[ModelSettings],
    *,
    positional: str,
    extra: Sequence[inspect.Parameter] = (CONFIG_FLAG, DRY_RUN_FLAG),
    hidden: Collection[str] = (),
) -> Callable[..., None]:
    """Give a function of keywords one flag a field but the `hidden` ones; `positional` may stand without its name.

    No flag has a default of its own: None or an empty list is "not given", and `given` leaves those out.
    """
    fields = {name: field for name, field in kind.model_fields.items() if name not in hidden}
    parameters = [_parameter(name, field, name == positional) for name, field in fields.items()]
    parameters += extra
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return function


def given(flags: dict[str, Any]) -> dict[str, Any]:
    """The flags that the caller named."""
    return {name: value for name, value in flags.items() if value not in (None, [])}


def _parameter(name: str, field: FieldInfo, positional: bool) -> inspect.Parameter:
    shown = _help(field)
    kind = typer.Argument(help=shown) if positional else typer.Option(help=shown)
    annotation = Annotated[_type(field), kind]  # type: ignore[valid-type]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _help(field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True, validated_data={})
    if field.is_required() or default in (None, (), {}, False):
        return str(field.description)
    return f"{field.description} [default: {','.join(default) if isinstance(default, tuple) else default}]"


def _type(field: FieldInfo) -> Any:  # noqa: ANN401  (a type, which has no type of its own)
    """What the command line makes of a field: switches, repeated texts, choices, numbers, else text to be checked."""
    kind = field.annotation
    if kind is bool:
        return bool | None
    if get_origin(kind) is tuple:
        return list[str] | None
    options = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    plain = [option for option in options if option is not type(None)]
    if len(plain) == 1 and (plain[0] in (int, float) or get_origin(plain[0]) is Literal):
        return plain[0] | None
    return str | None
