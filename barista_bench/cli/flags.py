"""Make command-line flags from tables of settings, and complete names in the shell."""

from __future__ import annotations

import glob
import inspect
import os
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from barista_bench.benchmarks import BENCHMARKS, task_names
from barista_bench.cli.output import is_quiet, show_bars, write_sections
from barista_bench.cli.tree import ParentCommand
from barista_bench.core.model_names import ABLATIONS, BASELINES
from barista_bench.core.plugins import plugin_entries
from barista_bench.core.settings import SettingsT, SettingsTable, check_settings
from barista_bench.hub.settings import UploadSettings
from barista_bench.models.served.settings import ServedSettings
from barista_bench.models.settings import (
    CheckpointSettings,
    GeneratorSettings,
    TransformersSettings,
    VllmSettings,
    WeightSettings,
)
from barista_bench.runs.ask.config import SpendingSettings, StoppingSettings, resolve_settings

RARE = "Rare settings"
ABOUT_IMAGES = {
    *("box_format", "min_pixels", "max_pixels", "frames_as", "video_fps"),
    *("image_format", "image_detail", "jpeg_quality"),
}
"""Settings of models without a meaning for commands that ask by text."""
_ARGUMENTS, _OPTIONS = "Arguments", "Options"


class FlagsBySection(ParentCommand):
    """A command with many flags. Its help lists the flags in sections, and rarely used flags come last."""

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401  (as typer has it)
        """Write the flags by their `rich_help_panel`, as plain text."""
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in (_ARGUMENTS, _OPTIONS, *_TABLES, RARE)}
        for parameter in self.get_params(ctx):
            panel = getattr(parameter, "rich_help_panel", None)
            if record := parameter.get_help_record(ctx):
                section = _ARGUMENTS if parameter.param_type_name == "argument" else _OPTIONS
                sections.setdefault(panel or section, []).append(record)
        write_sections(formatter, sections)


def _keyword(name: str, default: object, annotation: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


CONFIG_FLAG = _keyword(
    "config", None, Annotated[Path | None, typer.Option(help="Settings file: YAML, one `name: value` per line.")]
)


def switch(name: str, text: str) -> inspect.Parameter:
    """Return a switch that is off by default, for the parameter `more` of `flag_command`."""
    return _keyword(name, False, Annotated[bool, typer.Option(f"--{name.replace('_', '-')}", help=text)])


DRY_RUN_FLAG = switch("dry_run", "Count requests, images, tokens and cost without asking anything.")


def flag_command(
    group: typer.Typer,
    settings_type: type[SettingsTable],
    *,
    positional: str = "",
    config: bool = True,
    dry_run: bool = False,
    more: Sequence[inspect.Parameter] = (),
    hidden: Collection[str] = (),
    **command: Any,  # noqa: ANN401  (as typer's `command` has it)
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Turn a function of keywords into a command with one flag per field.

    `positional` names the fields that may be given in order without their flags. `hidden` names the fields without a
    flag. `config`, `dry_run` and `more` add flags. Flags have no defaults: None or an empty list means "not given", and
    `named_flags` drops such values. With `config`, a file or the environment may provide a required setting.
    """
    fields = {name: field for name, field in settings_type.model_fields.items() if name not in hidden}
    first = positional.split()
    fields = {**{name: fields[name] for name in first if name in fields}, **fields}
    parameters = [
        _parameter(settings_type, name, field, positional=name in first, has_file=config)
        for name, field in fields.items()
    ]
    parameters += [*([CONFIG_FLAG] if config else []), *([DRY_RUN_FLAG] if dry_run else []), *more]

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        function.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return group.command(cls=FlagsBySection, **command)(function)

    return decorate


def named_flags(flags: dict[str, Any]) -> dict[str, Any]:
    """Return the flags that the caller gave."""
    return {name: value for name, value in flags.items() if value not in (None, [])}


def resolve_flags(settings_type: type[SettingsT], flags: dict[str, Any], **defaults: object) -> SettingsT:
    """Return the settings from a command's flags, with progress bars unless --quiet.

    The key `config` is removed from `flags`.
    """
    has_file, file = "config" in flags, flags.pop("config", None)
    flags_set = named_flags(flags)
    if "progress" in settings_type.model_fields:
        defaults = {"progress": True, **defaults}
        if is_quiet():
            flags_set["progress"] = False
    if has_file:
        settings = resolve_settings(settings_type, flags_set, file=file, defaults=defaults)
    else:
        settings = check_settings(settings_type, {**defaults, **flags_set})
    show_bars(bool(getattr(settings, "progress", True)))
    return settings


def complete_tasks(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete tasks of the named benchmark, or of all benchmarks. After a comma, complete the next task."""
    benchmarks = [name for name in BENCHMARKS if name == ctx.params.get("benchmark")]
    names = [task for benchmark in benchmarks or BENCHMARKS for task in task_names(benchmark)]
    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in _names_starting_with(last, ("all", *names))]


def complete_models(incomplete: str) -> list[str]:
    """Complete model names other than checkpoints, prefixes before a colon, and folders."""
    kind, colon, rest = incomplete.partition(":")
    if colon and kind in ABLATIONS:
        return [f"{kind}:{name}" for name in complete_models(rest)]
    kinds = (f"{name}:" for name in (*ABLATIONS, *plugin_entries("models")))
    folders = (path for path in glob.glob(f"{glob.escape(incomplete)}*") if os.path.isdir(path))
    return [*_names_starting_with(incomplete, (*BASELINES, *kinds)), *folders]


def _names_starting_with(beginning: str, names: Iterable[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name.startswith(beginning)]


_COMPLETIONS: dict[str, Callable[..., list[str]]] = {
    "benchmark": lambda incomplete: _names_starting_with(incomplete, ("all", *BENCHMARKS)),
    "model": complete_models,
    "task": complete_tasks,
}
_TABLES: dict[str, tuple[type[SettingsTable], ...]] = {
    "Upload": (UploadSettings,),
    "Costs": (SpendingSettings,),
    "Fewer answers": (StoppingSettings,),
    "Models that write text": (GeneratorSettings,),
    "Served models": (ServedSettings,),
    "Local checkpoints": (WeightSettings, CheckpointSettings, TransformersSettings),
    "vLLM": (VllmSettings,),
}
"""Sections of the help, and the tables that declare the settings of each section."""
_RARELY_SET = frozenset(
    {"revision", "think_tags", "box_format", "top_p", "top_k", "repetition_penalty", "stop", "thinking_budget"}
    | {"reasoning_field", "threshold", "mask_threshold", "cluster", "workers", "frame_cache_mib"}
)


def _parameter(
    table: type[SettingsTable], name: str, field: FieldInfo, *, positional: bool, has_file: bool
) -> inspect.Parameter:
    text, default = str(field.description), field.get_default(call_default_factory=True, validated_data={})
    if default is True:
        text += f" [default: {name.replace('_', '-')}]"
    elif not field.is_required() and default is not False and default not in (None, (), {}, ""):
        text += f" [default: {','.join(default) if isinstance(default, tuple) else default}]"
    # A switch needs its opposite only if a file or the environment may turn the switch on.
    names = () if has_file or default is not False or name == "progress" else (f"--{name.replace('_', '-')}",)
    option = typer.Option(*names, help=text, rich_help_panel=_panel(table, name), autocompletion=_COMPLETIONS.get(name))
    annotation = Annotated[_type(field), typer.Argument(help=text) if positional else option]  # type: ignore[valid-type]
    is_required = field.is_required() and not has_file
    return _keyword(name, inspect.Parameter.empty if is_required else None, annotation)


def _panel(table: type[SettingsTable], name: str) -> str | None:
    """Return the section of a setting.

    Rare settings share a section. Settings for some models have one per kind of model.
    """
    if name in _RARELY_SET:
        return RARE
    declaring = ((title, part) for title, parts in _TABLES.items() for part in parts if issubclass(table, part))
    return next((title for title, part in declaring if name in vars(part).get("__annotations__", {})), None)


def _type(field: FieldInfo) -> Any:  # noqa: ANN401  (a type, which has no type of its own)
    """Return the type of a field's flag: a switch, repeated text, a choice, a number, or text that is checked later."""
    annotation = field.annotation
    if annotation is bool:
        return bool | None
    if get_origin(annotation) in (tuple, Mapping):  # a mapping as `name=value` texts
        return list[str] | None
    alternatives = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
    not_none = [option for option in alternatives if option is not type(None)]
    not_none = [get_args(option)[0] if get_args(option)[:1] == (int,) else option for option in not_none]  # `Count`
    if len(not_none) == 1 and (not_none[0] in (int, float, Path) or get_origin(not_none[0]) is Literal):
        return not_none[0] | None
    return str | None
