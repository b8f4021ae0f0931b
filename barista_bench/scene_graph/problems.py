"""Problems of annotation files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, get_args

Severity = Literal["error", "warning"]

KEPT_PER_FILE = 1000
"""Errors, and as many warnings, kept word for word for one file; the rest are only counted, to bound memory."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An `error` cost a record or a video; a `warning` cost nothing.

    Args:
        file: path relative to the data root.
        key: where in the file, e.g. `annotations[12].bbox`; empty for the whole file.
        what: what is wrong and what was done about it.
        remedy: what the owner of the data can do.
    """

    severity: Severity
    file: str
    key: str
    what: str
    remedy: str

    def __str__(self) -> str:
        where = f"{self.file}: {self.key}" if self.key else self.file
        return f"{self.severity}: {where}: {self.what}. Remedy: {self.remedy}"


@dataclass(slots=True)
class ProblemLog:
    """Collects the problems of one file. Errors and warnings are limited separately: neither hides the other."""

    file: str
    kept: list[Problem] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, severity: Severity, key: str, what: str, remedy: str) -> None:
        self.counts[severity] += 1
        if self.counts[severity] <= KEPT_PER_FILE:
            self.kept.append(Problem(severity, self.file, key, what, remedy))

    def error(self, key: str, what: str, remedy: str) -> None:
        self.add("error", key, what, remedy)

    def warning(self, key: str, what: str, remedy: str) -> None:
        self.add("warning", key, what, remedy)

    def __iter__(self) -> Iterator[Problem]:
        """The problems kept, and how many more there were."""
        yield from self.kept
        for severity in get_args(Severity):
            if (more := self.counts[severity] - KEPT_PER_FILE) > 0:
                what = f"{more} further {severity}(s), not listed"
                yield Problem(severity, self.file, "", what, "correct those listed")
