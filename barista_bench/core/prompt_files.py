"""Read users' prompt files: a file for one task, a folder of `<task>.yaml` files, or one file for several tasks.

A file of several tasks has `tasks: {task: texts}`, `rubrics: {task: content of a rubric file}` for judges, and `writer:
texts` for the writer of questions. Each of these sections may be missing. `release: BENCHMARK` says that the texts are
the release's. The hashes of the texts are then checked (`benchmarks.name_wording`).
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from barista_bench.core.prompt import PromptTexts, TaskTexts, parse_prompts
from barista_bench.errors import ConfigError
from barista_bench.files.reading import MAX_YAML, Strict, first_complaint, load_yaml, read_bounded

REMEDY = "write one (docs/prompt_files.md shows how), or let scripts/released_prompts.py write the release's"
"""The advice in errors about a missing prompt file."""
WRITER = "questions"
"""The task whose texts the writer of questions uses."""
_SECTIONS = {"tasks", "rubrics", "writer"}


class _SetContent(Strict):
    release: str = ""
    tasks: dict[str, TaskTexts] = Field(default_factory=dict)
    rubrics: dict[str, dict[str, Any]] = Field(default_factory=dict)
    writer: TaskTexts | None = None


class PromptSet(_SetContent):
    """A prompt file of several tasks, at `path`."""

    path: str

    def texts(self, task: str) -> PromptTexts:
        """Return the wording of a task. Raises ConfigError if the file has no wording for the task."""
        texts = self.writer if task == WRITER else self.tasks.get(task)
        if texts is None:
            raise self._missing_error("writer" if task == WRITER else f"tasks.{task}", list(self.tasks))
        content = texts.model_dump()
        return PromptTexts(sha256=content_hash(content), **content)

    def rubric(self, task: str) -> dict[str, Any]:
        """Return the rubric of a task, in the form of a rubric file. Raises ConfigError if the file has none for the
        task.
        """
        if task not in self.rubrics:
            raise self._missing_error(f"rubrics.{task}", list(self.rubrics))
        return self.rubrics[task]

    def _missing_error(self, field: str, present: list[str]) -> ConfigError:
        return ConfigError(f"{self.path}: {field}: not there (it has {', '.join(present) or 'none'}). Fix: write it")


def content_hash(content: object) -> str:
    """Return the SHA-256 of one section of a prompt file."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def read_prompt_set(path: str | Path) -> PromptSet | None:
    """Return the content of a prompt file of several tasks; None for a folder and for a file of one task.

    Raises ConfigError if the file cannot be read or has an unknown field.
    """
    if Path(path).is_dir():
        return None
    content = load_yaml(_read(path), str(path))
    if not isinstance(content, dict) or not _SECTIONS & set(content):
        return None
    try:
        fields = _SetContent.model_validate(content, strict=True)
    except ValidationError as error:
        raise ConfigError(
            f"{path}: {first_complaint(error)}. Fix: correct it, docs/prompt_files.md shows one"
        ) from error
    return PromptSet(path=str(path), **fields.model_dump())


def load_prompts(path: str | Path, task: str) -> PromptTexts:
    """Return the wording of `task` from a file, or from `<task>.yaml` in a folder.

    Raises ConfigError if the file does not exist or is not a prompt file. The error names file and key.
    """
    if prompt_set := read_prompt_set(path):
        return prompt_set.texts(task)
    file = Path(path) / f"{task}.yaml" if Path(path).is_dir() else Path(path)
    return parse_prompts(_read(file), str(file))


def _read(path: str | Path) -> bytes:
    return read_bounded(path, MAX_YAML, what="no prompt file", remedy=REMEDY, error=ConfigError)
