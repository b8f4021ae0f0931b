"""The tree of commands. One-word names are in sections, and two-word names are below their first word."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from barista_bench.cli import EXIT_INTERRUPTED, INTERRUPTED_LINE
from barista_bench.cli.output import echo, write_sections

SECTIONS = {
    "Start here": ("demo", "evaluate", "report"),
    "Make data": ("mini", "import-graph", "validate", "build", "generate", "annotate"),
    "Evaluate": ("preflight", "plan", "run", "score", "judge", "diagnose"),
    "Look": ("compare", "show", "studio"),
    "Share": ("export", "publish"),
}
"""Commands by purpose, in the order of the help."""
_OTHERS = "Commands"


class Commands(TyperGroup):
    """A group of commands.

    A name may have two words, such as `show stats`. Its first word is then a `ParentCommand`.
    """

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401  (as typer has it)
        """Return the one-word names in the order of the help. Shells complete these names."""
        order = [name for names in _sections(ctx).values() for name in names]
        names = [name for name in self.commands if " " not in name]
        return sorted(names, key=lambda name: order.index(name) if name in order else len(order))

    def related_commands(self, parent: str) -> list[str]:
        """Return the two-word names that begin with the parent's name."""
        return [name for name in self.commands if name.startswith(f"{parent} ")]

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:  # noqa: ANN401
        """Return the command that the first two arguments name, or else the command that the first argument names."""
        first, typed = args[0], " ".join(args[:2])
        if typed in self.commands:
            return typed, self.commands[typed], args[2:]
        command = self.commands.get(first)
        if command is None or (
            isinstance(command, ParentCommand) and command.no_args_is_help and not args[1].startswith("-")
        ):
            self._refuse(ctx, first if command is None else typed)
        return super().resolve_command(ctx, args)

    def _refuse(self, ctx: Any, typed: str) -> None:  # noqa: ANN401
        if ctx.resilient_parsing:
            return
        names_by_word = {name.split()[-1]: name for name in self.commands} | {name: name for name in self.commands}
        nearest = get_close_matches(typed, names_by_word, n=1)
        ctx.fail(f"No such command {typed!r}." + "".join(f" Did you mean {names_by_word[word]!r}?" for word in nearest))

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401  (as typer has it)
        """List the commands by section as plain text, each with the full first sentence of its help."""
        sections, names = _sections(ctx), self.list_commands(ctx)
        placed = {section: [name for name in names if name in within] for section, within in sections.items()}
        placed[_OTHERS] = [name for name in names if not any(name in within for within in sections.values())]
        write_sections(formatter, {section: self.rows(names) for section, names in placed.items()})

    def rows(self, names: Iterable[str]) -> list[tuple[str, str]]:
        """Return each name with the full first sentence of the command's help."""
        return [(name, self.commands[name].get_short_help_str(sys.maxsize)) for name in names]

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401  (as typer has it)
        """Also end with one line on Ctrl-C."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            echo(INTERRUPTED_LINE, err=True)
            raise typer.Exit(EXIT_INTERRUPTED) from None


class ParentCommand(TyperCommand):
    """A command whose name is the first word of other commands. Its help lists these commands."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401  (as typer has it)
        """List the related commands."""
        group = ctx.parent.command
        write_sections(formatter, {"Related commands": group.rows(group.related_commands(self.name))})


def _sections(ctx: Any) -> dict[str, tuple[str, ...]]:  # noqa: ANN401
    """Return the sections of the top level. Groups below have no sections."""
    return {} if ctx.parent else SECTIONS
