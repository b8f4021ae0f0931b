"""Prompts are data: the wording of a task stands in a versioned YAML file, and users may bring their own.

A prompt file is `{version: int, system: text, user: text}`, with `{name}` places that the task fills; tasks that ask in
several steps or wordings have further texts in `extra: {name: text}`. A set is one such file for one task, or a folder
of files called `<task>.yaml`. Its hash stands in the results.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from barista_bench.bounded_files import read_bounded
from barista_bench.errors import ConfigError
from barista_bench.yaml_files import MAX_BYTES, load_yaml

_KEYS = {"version", "system", "user"}


@dataclass(frozen=True, slots=True)
class PromptTexts:
    """The wording of one task. `sha256` is of the file's bytes."""

    version: int
    system: str
    user: str
    sha256: str
    extra: Mapping[str, str] = field(default_factory=dict)

    def text(self, name: str, **values: str) -> str:
        """One of the further texts, with values for its places.

        Raises:
            ConfigError: the wording has no such text.
        """
        if name not in self.extra:
            raise ConfigError(f"the prompt file has no text extra.{name}, which this task asks. Remedy: write one")
        return fill(self.extra[name], values)

    def fill(self, **values: str) -> tuple[str, str]:
        """System and user text with values for their `{name}` places. Other braces stand: prompts show JSON.

        >>> PromptTexts(1, 'Answer {"a": 1}', "Find {what}", "").fill(what="cups")
        ('Answer {"a": 1}', 'Find cups')
        """
        return fill(self.system, values), fill(self.user, values)


def fill(template: str, values: Mapping[str, str]) -> str:
    """Put values into their places, each once and none into another's value."""
    parts = [template]
    for name, value in values.items():
        place = f"{{{name}}}"
        parts = [
            piece
            for index, part in enumerate(parts)
            for piece in (_interleave(part.split(place), value) if index % 2 == 0 else [part])
        ]
    return "".join(parts)


def _interleave(pieces: list[str], value: str) -> list[str]:
    """Text and value in turn, so that texts stay at even places."""
    out = [pieces[0]]
    for piece in pieces[1:]:
        out += [value, piece]
    return out


@functools.cache
def packaged_prompts(package: str, task: str) -> PromptTexts:
    """Our own wording of a task: `prompts/<task>.yaml` in the benchmark's package."""
    path = resources.files(package).joinpath("prompts", f"{task}.yaml")
    return _parse(path.read_bytes(), f"{package}/prompts/{task}.yaml")


def load_prompts(path: str | Path, task: str) -> PromptTexts:
    """The wording of `task` from a file, or from `<task>.yaml` in a folder.

    Raises:
        ConfigError: there is no such file, or it is no prompt file; names file and key.
    """
    file = Path(path) / f"{task}.yaml" if Path(path).is_dir() else Path(path)
    remedy = "write one, which holds the text for one task, or leave --prompts out"
    data = read_bounded(file, MAX_BYTES, what="no prompt file", remedy=remedy, error=ConfigError)
    return _parse(data, str(file))


def _kind(value: object) -> str:
    """What a value is, never the value: a small file can spell a huge one."""
    return type(value).__name__


def _parse(data: bytes, name: str) -> PromptTexts:
    content = load_yaml(data, name)
    if not isinstance(content, dict) or set(content) - {"extra"} != _KEYS:
        found = sorted(map(str, content)) if isinstance(content, dict) else type(content).__name__
        raise ConfigError(f"{name}: has {found}. Remedy: give exactly {sorted(_KEYS)}, and extra where a task has it")
    extra = content.get("extra", {})
    if not isinstance(extra, dict) or not all(isinstance(part, str) for item in extra.items() for part in item):
        raise ConfigError(f"{name}: extra is no mapping of names to texts. Remedy: write `name: text` below it")
    if type(content["version"]) is not int:
        raise ConfigError(f"{name}: version is {_kind(content['version'])}. Remedy: give a whole number")
    for key in ("system", "user"):
        if not isinstance(content[key], str):
            raise ConfigError(f"{name}: {key} is {_kind(content[key])}. Remedy: give text")
    sha256 = hashlib.sha256(data).hexdigest()
    return PromptTexts(content["version"], content["system"], content["user"], sha256, extra)
