"""All text for the terminal, logs, Markdown, CSV, LaTeX and HTML goes through here.

Names and answers come from models, servers and files of others. Here they lose all that would command a terminal,
reverse the order of letters, end a line, a cell or a tag, or be a formula. Data files (JSON, JSONL, Parquet) hold texts
as they are.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:
    import pandas as pd

_MARKUP = re.compile(r"([\\`*\[\]|~])")
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # Tab and line ends, which start some too, become spaces
_NUMBER = re.compile(r"[+-]?[\d,]*\.?\d+(e[+-]?\d+)?( %)?")


def printable(text: str, keep: str = "") -> str:
    r"""Printable characters, and those to keep, as they are; all others (controls, bidi marks, halves) escaped.

    >>> print(printable("caf\u00e9\x1b[2J\nerror: none \u202e"))
    café\x1b[2J\nerror: none \u202e
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode("ascii") for c in text)


def one_line(text: str) -> str:
    r"""As `printable`, all white space as single spaces.

    >>> print(one_line(" a\n\tb\u00a0\x1b[2J"))
    a b \x1b[2J
    """
    return printable(" ".join(text.split()))


def first_line(error: BaseException) -> str:
    r"""The first line of an error's text, without its full stop; the error's name where it has no text.

    >>> first_line(OSError("No config.json here.\nSee the documentation.")), first_line(MemoryError())
    ('No config.json here', 'MemoryError')
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def echo(*lines: str, color: str | None = None, err: bool = False) -> None:
    """Write to the terminal: each argument is one line, whatever it holds."""
    import typer  # here, since models and readers use this module too

    for line in lines:
        typer.secho(printable(line), fg=color, err=err)


class LogFormatter(logging.Formatter):
    """One line a message; of a traceback, the lines of it."""

    def format(self, record: logging.LogRecord) -> str:
        record = logging.makeLogRecord({**vars(record), "msg": printable(record.getMessage()), "args": ()})
        return printable(super().format(record), keep="\n")


def markdown(text: str) -> str:
    r"""Text that Markdown shows as it is, on one line: no markup, no link, no cell border.

    >>> markdown("a|b <img> [x](y)")
    'a\\|b &lt;img&gt; \\[x\\](y)'
    """
    text = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKUP.sub(r"\\\1", text)


def csv(frame: pd.DataFrame) -> str:
    """A table for spreadsheets: a text that they would take for a formula has an apostrophe in front."""
    return _cleaned(frame, _no_formula).to_csv(index=False, lineterminator="\n")


def latex(frame: pd.DataFrame, column_format: str) -> str:
    """A `tabular` with booktabs' rules; all that LaTeX has a meaning for is escaped."""
    return _cleaned(frame, one_line).to_latex(index=False, escape=True, column_format=column_format)


def html(value: object) -> object:
    """Texts that a template is given, before it escapes them (`finalize` of a Jinja environment with autoescape)."""
    return printable(value, keep="\n\t") if isinstance(value, str) and not isinstance(value, Markup) else value


def _cleaned(frame: pd.DataFrame, clean: Callable[[str], str]) -> pd.DataFrame:
    from pandas import Series
    from pandas.api.types import is_numeric_dtype

    cleaned = frame.set_axis(range(frame.shape[1]), axis="columns")  # names may repeat
    for column in cleaned.columns:
        if not is_numeric_dtype(cleaned[column]):
            values = [clean(value) if isinstance(value, str) else value for value in cleaned[column]]
            cleaned[column] = Series(values, cleaned.index, dtype="object")
    return cleaned.set_axis([clean(str(name)) for name in frame.columns], axis="columns")


def _no_formula(text: str) -> str:
    text = one_line(text)
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text
