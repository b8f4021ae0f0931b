"""Read prompt files: the packaged file of a task, and users' own.

Users give a file for one task, a folder of `<task>.yaml` files, or one file for several tasks.

A file of several tasks has `tasks: {task: texts}`, `rubrics: {task: content of a rubric file}` for judges, and `writer:
texts` for the writer of questions. Each of these sections may be missing. `release: BENCHMARK` says that the texts are
the release's. The hashes of the texts are then checked (`benchmarks.name_wording`).
"""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
from pydantic import Field, ValidationError

from barista_bench.core.prompt import PromptTexts, fill, hash_name
from barista_bench.errors import ConfigError
from barista_bench.files.reading import MAX_YAML, Strict, first_complaint, load_yaml, read_bounded
from barista_bench.scene_graph.domain import load_domain

REMEDY = "write one (docs/prompt_files.md shows how), or let scripts/released_prompts.py write the release's"
"""The advice in errors about a missing prompt file."""
WRITER = "questions"
"""The task whose texts the writer of questions uses."""
_SECTIONS = {"tasks", "rubrics", "writer"}


class TaskTexts(Strict):
    """The fields of a prompt file for one task."""

    version: int
    system: str
    user: str
    extra: dict[str, str] = Field(default_factory=dict)


def parse_prompts(data: bytes, name: str) -> PromptTexts:
    """Parse a prompt file of one task. Raises ConfigError, which names file and field."""
    try:
        texts = TaskTexts.model_validate(load_yaml(data, name), strict=True)
    except ValidationError as error:
        raise ConfigError(
            f"{name}: {first_complaint(error)}. Fix: give exactly version (a whole number), system and user "
            "(texts), and extra (names and texts) where a task has it"
        ) from error
    return PromptTexts(sha256=hashlib.sha256(data).hexdigest(), **texts.model_dump())


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


def packaged_prompts(package: str, task: str, domain_file: Path | None = None) -> PromptTexts:
    """Return our wording of a task, with the words of a domain file.

    It comes from `prompts/<task>.yaml` in the benchmark's package.

    Args:
        domain_file: None for the domain file of coffee making.

    Raises:
        ConfigError: the domain file cannot be read, or has no words for prompts.
    """
    return (_read_packaged_once if domain_file is None else _read_packaged)(package, task, domain_file)


def _read_packaged(package: str, task: str, domain_file: Path | None) -> PromptTexts:
    path = resources.files(package).joinpath("prompts", f"{task}.yaml")
    data = in_domain_words(path.read_bytes(), domain_file)
    texts = parse_prompts(data, f"{package}/prompts/{task}.yaml")
    return replace(texts, wording=our_wording(texts.version, texts.sha256, domain_file))


_read_packaged_once = functools.cache(_read_packaged)


def our_wording(version: int, sha256: str, domain_file: Path | None) -> str:
    """Return the name of a packaged wording in results.

    The name is `ours v2`, or `domain:<hash>` with the words of another domain.
    """
    return hash_name("domain", sha256) if domain_file else f"ours v{version}"


def in_domain_words(data: bytes, domain_file: Path | None) -> bytes:
    """Return a packaged file with `{domain.NAME}` places filled from a domain file, by default the file of coffee
    making.
    """
    if b"{domain." not in data:
        return data
    domain = load_domain(domain_file)
    if domain.prompts is None:
        raise ConfigError(f"{domain_file}: prompts: missing. Fix: add it as in the package's domain.yaml")
    words = {f"domain.{name}": text for name, text in msgspec.structs.asdict(domain.prompts).items()}
    return fill(data.decode(), words).encode()


def domain_file_of(path: str | Path) -> Path | None:
    """Return the domain file of a setting `domain:FILE`; None for other paths."""
    text = str(path)
    return Path(text.removeprefix("domain:")).expanduser() if text.startswith("domain:") else None
