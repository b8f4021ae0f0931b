"""The option `protocol`: whose rules hold, those of a benchmark's released code or, where it differs, its paper's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import msgspec

from barista_bench.benchmarks import packaged_data
from barista_bench.core.options import Option, OptionValue
from barista_bench.core.task import Task


@dataclass(frozen=True, slots=True)
class ProtocolRule:
    """One rule on which a benchmark's release and its paper differ, in words.

    `changes` says what depends on the protocol here: `nothing` where a rule is only documented.
    """

    changes: Literal["examples", "images", "prompt", "parsing", "scores", "nothing"]
    rule: str
    release: str
    paper: str


@dataclass(frozen=True, slots=True)
class Protocol(Option):
    """The option, and the rules that depend on it."""

    rules: tuple[ProtocolRule, ...] = ()


def protocol(rules: Sequence[ProtocolRule]) -> dict[str, Option]:
    """The option of a task on which release and paper differ in these rules."""
    freezes = any(rule.changes in ("examples", "images") for rule in rules)
    whose = "whose rules: the released code's, or the paper's where they differ"
    choices = ("release", "paper")
    return {"protocol": Protocol("release", whose, "examples" if freezes else "run", choices, rules=tuple(rules))}


@cache
def _all_rules(package: str) -> dict[str, tuple[ProtocolRule, ...]]:
    return msgspec.convert(packaged_data(package, "protocols.yaml"), dict[str, tuple[ProtocolRule, ...]])


def packaged_protocol(package: str, task: str) -> dict[str, Option]:
    """The option by the rules in a package's `protocols.yaml`."""
    return protocol(_all_rules(package)[task])


def rules_of(task: type[Task]) -> tuple[ProtocolRule, ...]:
    """The rules of a task that depend on the protocol, or are only documented; none without the option."""
    option = task.options.get("protocol")
    return option.rules if isinstance(option, Protocol) else ()


def by_protocol(task: type[Task], protocol: str) -> dict[str, OptionValue]:
    """The option with this value, where the task has it: records name the protocol of every task."""
    return {"protocol": protocol} if "protocol" in task.options else {}
