"""Define the conditions that two scores must share to be ranked together. The record is stored with each score.

This module imports little, since a leaderboard Space loads it (`hub/board.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import ConfigDict, JsonValue

from barista_bench.files.reading import Strict
from barista_bench.runs.described import SHORT

SHA256: Final = re.compile(r"[0-9a-f]{64}")
ABOUT_EXAMPLES = frozenset({"split", "limit", "examples"})
"""Fields of a record that define the questions, not how the questions were asked."""
_ABSENT = object()


class JudgeRecord(Strict):
    """The judge that gave some verdicts, and how it judged.

    `rubric` and `prompt` are hashes. `steps` is a hash if the steps were given. `held` tells whether verdicts were
    constrained to a JSON Schema.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    revision: str | None
    method: str
    rubric: str
    prompt: str
    steps: str
    generation: dict[str, JsonValue]
    held: bool


class Comparability(Strict):
    """Scores are comparable if their records are equal. `differences` explains differences in words.

    `options` are the task's options that differ from its defaults. `limit` is the limit on the number of examples.
    `held` tells whether answers were constrained to a JSON Schema. `judge` is None for scores without a judge.
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
    held: bool
    judge: JudgeRecord | None = None

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def key(self) -> str:
        """Return the record as a text for grouping and sorting."""
        return json.dumps(self.model_dump(), sort_keys=True)

    @property
    def answers(self) -> Comparability:
        """Return the record without the judge. It covers the questions and the reading of answers."""
        return self.model_copy(update={"judge": None})

    @property
    def parts(self) -> dict[str, JsonValue]:
        """Return the fields of the record by their names in plain words."""
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
            "structured output": self.held,
        }
        if judge is not None:
            parts |= {
                "judge's structured output": judge.held,
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
        """Return the options that differ from the task's defaults, e.g. `matcher=exact`, or an empty string."""
        return ", ".join(f"{name}={json.dumps(value)}".replace('"', "") for name, value in self.options.items())


def differences(first: Comparability, second: Comparability) -> dict[str, str]:
    """Map each differing field to `this and that`. If the result is empty, the scores are comparable."""
    parts, other_parts = first.parts, second.parts
    names = [name for name in {**parts, **other_parts} if parts.get(name, _ABSENT) != other_parts.get(name, _ABSENT)]
    return {name: f"{_part_text(name, parts)} and {_part_text(name, other_parts)}" for name in names}


def distinguishing_parts(records: Sequence[Comparability]) -> list[str]:
    """Return the fields that distinguish each record from other records of its task, e.g. `wording 'ours v2'`.

    A task's only record has an empty text.
    """
    return [
        ", ".join(
            f"{name} {_part_text(name, record.parts)}"
            for name in dict.fromkeys(
                name
                for other in records
                if (other.benchmark, other.task) == (record.benchmark, record.task)
                for name in differences(record, other)
            )
        )
        for record in records
    ]


def _part_text(name: str, parts: Mapping[str, JsonValue]) -> str:
    if name not in parts:
        return "by default" if name.startswith("option ") else "none"
    value = parts[name]
    if isinstance(value, str) and SHA256.fullmatch(value):
        return value[:SHORT]
    return "none" if value is None else repr(value)[:200]
