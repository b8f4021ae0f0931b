"""The command itself, and what its parts share; flags are made from tables of settings, each written down once."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""
LINE = "interrupted"


class ending_at_once:
    """Ctrl-C ends the process with one line: an import that is broken off would show its insides."""

    def __enter__(self) -> None:
        self._is_set = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._is_set:
            try:
                signal.signal(signal.SIGINT, _end)
            except ValueError:  # of a thread: Ctrl-C goes to the main one
                self._is_set = False

    def __exit__(self, *error: object) -> None:
        if self._is_set:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: object) -> None:
    os.write(2, f"{LINE}\n".encode())
    os._exit(INTERRUPTED)


with ending_at_once():  # little is imported above: nothing is understood before
    import inspect
    import logging
    import sys
    import types
    from collections.abc import Callable, Collection, Iterator
    from contextlib import contextmanager
    from enum import StrEnum
    from pathlib import Path
    from typing import Annotated, Any, Literal, Union, get_args, get_origin

    import typer
    from pydantic.fields import FieldInfo
    from typer.core import TyperGroup

    from barista_bench import __version__
    from barista_bench.benchmarks import parse_pairs
    from barista_bench.errors import BaristaError
    from barista_bench.files.text_out import LogFormatter, echo, system_problem
    from barista_bench.runs.ask.config import CLUSTER_HELP, ModelSettings

if TYPE_CHECKING:
    from barista_bench.runs.ask.asking import AskCounts
    from barista_bench.runs.score.scoring import ScoredRun


class Commands(TyperGroup):
    """All commands."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401  (as typer has it)
        """One line for Ctrl-C too."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            echo(LINE, err=True)
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    name="barista-bench",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Evaluate vision-language models on egocentric video, from one scene graph.\n\n"
    "The way of the data: mini or a release -> validate -> build -> run -> score -> report.",
)


class ProtocolChoice(StrEnum):
    release = "release"
    paper = "paper"


Protocol = Annotated[
    ProtocolChoice, typer.Option(help="Whose rules: the released code's, or the paper's where they differ.")
]
Options = Annotated[
    list[str] | None,
    typer.Option(help="Option of the task that changes scores alone, name=value; may be given several times."),
]
Cluster = Annotated[str | None, typer.Option(help=CLUSTER_HELP)]
Progress = Annotated[bool, typer.Option(help="Show progress bars.")]
Data = Annotated[str | None, typer.Option(help="Where the dataset lies now, if it has moved.")]
Root = Annotated[Path | None, typer.Option(help="Folder of the videos of a linked dataset, if they have moved.")]


def scored_runs(
    folders: list[Path], data: str | None, root: Path | None, option: list[str] | None
) -> tuple[ScoredRun, ...]:
    """The runs that a command is about, scored as its flags say."""
    from barista_bench.api import load_results

    return load_results(folders, data=data, root=root, options=parse_pairs(option or [])).runs


def exit_on_failures(counts: AskCounts, what: str, hint: str = "") -> None:
    """End the command with exit code 1 where some of what was asked failed."""
    if counts.failed:
        echo(
            f"error: {counts.failed} {what} failed, first: {counts.first_failure}. Remedy: see to the cause{hint} and "
            "start the same command again; only they are asked",
            color="red",
            err=True,
        )
        raise typer.Exit(1)


def main() -> None:
    """The entry point. What this package raises on purpose ends as one line and exit code 1."""
    with ending_at_once():
        handler = logging.StreamHandler()
        handler.setFormatter(LogFormatter("%(levelname)s %(name)s: %(message)s"))
        logging.basicConfig(level=logging.WARNING, handlers=[handler])
        command = typer.main.get_command(app)
        # The tracker of a worker that was ended removes what the worker's libraries left, and need not say so.
        sys.warnoptions.append("ignore:resource_tracker")
    command()


@contextmanager
def explained() -> Iterator[None]:
    """One line for what went wrong, and exit code 1."""
    try:
        yield
    except (BaristaError, OSError) as error:
        message = system_problem(error) if isinstance(error, OSError) else str(error)
        echo(f"error: {' '.join(message.splitlines())}", color="red", err=True)
        raise typer.Exit(1) from error


def _version(asked: bool) -> None:
    if asked:
        echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


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
    dry_run: bool = False,
    hidden: Collection[str] = (),
) -> Callable[..., None]:
    """Give a function of keywords one flag a field but the `hidden` ones; `positional` may stand without its name.

    No flag has a default of its own: None or an empty list is "not given", and `given` leaves those out.
    """
    fields = {name: field for name, field in kind.model_fields.items() if name not in hidden}
    parameters = [_parameter(name, field, name == positional) for name, field in fields.items()]
    parameters += [CONFIG_FLAG, DRY_RUN_FLAG] if dry_run else [CONFIG_FLAG]
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
