"""What two figures must share to stand in one rank: one record, stored with every figure; nothing else decides.

Light on purpose: a leaderboard Space reads it (see `hub/board.py`).
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import (
    ConfigDict,
    JsonValue,
    ModelWrapValidatorHandler,
    ValidationInfo,
    computed_field,
    model_validator,
)

from barista_bench.files.bounded import Strict

SHORT = 12
"""Characters that are shown of hashes."""
ABOUT_EXAMPLES = frozenset({"split", "limit", "examples"})
"""Parts of a record that say what was asked about, not how."""


class JudgeRecord(Strict):
    """Who gave the verdicts and by what. `rubric` and `prompt` are hashes; `steps` is one too where they were given."""

    model_config = ConfigDict(frozen=True)

    name: str
    revision: str | None
    method: str
    rubric: str
    prompt: str
    steps: str
    generation: dict[str, JsonValue]


class Comparability(Strict):
    """Figures are comparable where this is equal; `differences` says in words why others are not.

    `options` are those of the task that are not its defaults. `limit` is the number of examples that the run was cut
    to. `judge` is None for figures that no judge gave.
    """

    model_config = ConfigDict(frozen=True)

    benchmark: str
    task: str
    task_version: int
    protocol: str
    wording: str
    options: dict[str, JsonValue]
    split: str
    limit: int | None
    content_hash: str
    judge: JudgeRecord | None = None

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def key(self) -> str:
        """The record as one text, to group and sort by."""
        return json.dumps(self.model_dump(), sort_keys=True)

    @property
    def answers(self) -> Comparability:
        """The same without the judge: what was asked and how it was read."""
        return self.model_copy(update={"judge": None})

    @property
    def parts(self) -> dict[str, JsonValue]:
        """What the record says, by its name in plain words."""
        judge = self.judge
        parts: dict[str, JsonValue] = {
            "benchmark": self.benchmark,
            "task": self.task,
            "task version": self.task_version,
            "protocol": self.protocol,
            "wording": self.wording,
            **{f"option {name}": value for name, value in self.options.items()},
            "split": self.split,
            "limit": self.limit,
            "examples": self.content_hash,
        }
        if judge is not None:
            parts |= {
                "judge": judge.name,
                "judge revision": judge.revision,
                "judge method": judge.method,
                "rubric": judge.rubric,
                "judge prompt": judge.prompt,
                "evaluation steps": judge.steps,
                **{f"judge {name}": value for name, value in judge.generation.items()},
            }
        return parts

    @property
    def options_in_words(self) -> str:
        """The options other than the task's defaults, e.g. `matcher=exact`; empty where there are none."""
        return ", ".join(f"{name}={json.dumps(value)}".replace('"', "") for name, value in self.options.items())


class Recorded(Strict, ABC):
    """Figures in a file with their record beside them: a file in which the two contradict each other is refused."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    @abstractmethod
    def comparability(self) -> Comparability:
        """Made of the other fields, so that it cannot say anything else."""

    @model_validator(mode="wrap")
    @classmethod
    def _as_stored(cls, content: Any, handler: ModelWrapValidatorHandler[Any], info: ValidationInfo) -> Any:  # noqa: ANN401
        if not isinstance(content, dict):
            return handler(content)
        figures = handler({name: value for name, value in content.items() if name != "comparability"})
        stored = content.get("comparability")
        if info.mode == "json" and stored != figures.comparability.model_dump(mode="json"):
            raise ValueError("comparability: is not that of the figures beside it")
        return figures


def differences(first: Comparability, second: Comparability) -> dict[str, str]:
    """What differs between two records, by its name, as `this and that`. Empty: the figures are comparable."""
    one, other = first.parts, second.parts
    names = [name for name in {**one, **other} if one.get(name, _ABSENT) != other.get(name, _ABSENT)]
    return {name: f"{_shown(name, one)} and {_shown(name, other)}" for name in names}


def told_apart(records: Sequence[Comparability]) -> list[str]:
    """For each record what distinguishes it from others of its task, e.g. `wording 'ours v2'`; empty if it is alone."""
    return [
        ", ".join(
            f"{name} {_shown(name, one.parts)}"
            for name in dict.fromkeys(
                name
                for other in records
                if (other.benchmark, other.task) == (one.benchmark, one.task)
                for name in differences(one, other)
            )
        )
        for one in records
    ]


_ABSENT = object()
_SHA256 = re.compile(r"[0-9a-f]{64}")


def _shown(name: str, parts: Mapping[str, JsonValue]) -> str:
    if name not in parts:
        return "the default" if name.startswith("option ") else "none"
    value = parts[name]
    if isinstance(value, str) and _SHA256.fullmatch(value):
        return value[:SHORT]
    return "none" if value is None else repr(value)[:200]
