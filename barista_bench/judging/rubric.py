"""Read rubrics. A rubric is a versioned YAML file with a judge's criteria and the meaning of its scores.

Our rubrics are in `rubrics/<task>.yaml` of a benchmark's package. Users may supply their own rubrics, in a file for one
task or in a prompt file for several tasks (`core/prompt_files.py`). The results hold the rubric's hash and origin.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from barista_bench.benchmarks import get_benchmark, name_wording
from barista_bench.core.prompt import hash_name
from barista_bench.core.prompt_files import REMEDY, domain_file_of, in_domain_words, our_wording, read_prompt_set
from barista_bench.core.task import Task
from barista_bench.errors import ConfigError
from barista_bench.files.reading import MAX_YAML, first_complaint, load_yaml, read_bounded
from barista_bench.scene_graph.domain import load_domain

TOP_SCORE = 10
_REMEDY = "correct it, docs/judging.md shows one"


class _RubricModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True, strict=True)


class Band(_RubricModel):
    """The meaning of scores from `low` to `high`, both included."""

    low: int
    high: int
    text: str = Field(min_length=1)


class Criterion(_RubricModel):
    """An aspect that a judge scores from 0 to 10.

    Args:
        bands: meanings that cover the whole scale in order, without gaps.
        steps: how to judge. Without steps, the judge generates its own.
        lexical: the task's own score, from 0 to 1, that the offline judge `lexical` uses for this criterion.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")
    text: str = Field(min_length=1)
    bands: list[Band] = Field(min_length=1, max_length=TOP_SCORE + 1)
    steps: list[str] = Field(default_factory=list, max_length=20)
    lexical: str | None = None

    @field_validator("bands")
    @classmethod
    def _check_bands(cls, bands: list[Band]) -> list[Band]:
        scores = [score for band in bands for score in range(band.low, min(band.high, 2 * TOP_SCORE) + 1)]
        if scores != list(range(TOP_SCORE + 1)):
            raise ValueError(f"bands cover {scores}, but must cover each score from 0 to {TOP_SCORE} once and in order")
        return bands

    @property
    def scale(self) -> str:
        """Return the bands as lines of text."""
        return "\n".join(f"{band.low} to {band.high}: {band.text}" for band in self.bands)


class _RubricFile(_RubricModel):
    """The content of a rubric file. `question` replaces every example's own question."""

    version: int
    introduction: str
    question: str = ""
    vocabulary: bool = False
    criteria: list[Criterion] = Field(min_length=1, max_length=20)

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        names = [criterion.name for criterion in self.criteria]
        if len(set(names)) < len(names):
            raise ValueError(f"criteria are called {names}: a name occurs twice")
        return self


class Rubric(_RubricFile):
    """A rubric as read from its file. `words` maps the domain's categories to descriptions, if the rubric shows them.

    `sha256` covers the file's bytes and, if the rubric shows the vocabulary, also the vocabulary.
    """

    words: dict[str, str] = Field(default_factory=dict)
    sha256: str
    wording: str

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(criterion.name for criterion in self.criteria)

    @property
    def vocabulary_text(self) -> str:
        """Return `words` as text for a form."""
        if not self.words:
            return ""
        heading = "Categories of this domain. Synonyms that people really use are fine; a vaguer name is worse."
        return "\n".join(["", heading, *(f"- {word}: {text}" for word, text in self.words.items()), ""])


def load_rubric(task: Task, path: str | Path | None = None) -> Rubric:
    """Return our rubric of a task, our rubric with the vocabulary of `domain:FILE`, or the user's rubric.

    The user's rubric is in a rubric file or a prompt file.

    Raises ConfigError if no judge scores this task, or the file is not a rubric. The message names the file and the
    field.
    """
    if path is None:
        return _packaged_rubric(task.prompt_package, task.name)
    domain_file = domain_file_of(path)
    if domain_file is not None:
        return _domain_rubric(task.prompt_package, task.name, domain_file)
    data = read_bounded(path, MAX_YAML, what="no rubric file", remedy=REMEDY, error=ConfigError)
    content = load_yaml(data, str(path), remedy=_REMEDY)
    prompt_set = read_prompt_set(path)
    if prompt_set is None:
        return _read_rubric(content, data, str(path), task.prompt_package)
    section = prompt_set.rubric(task.name)
    rubric = _read_rubric(
        section, json.dumps(section, sort_keys=True).encode(), f"{path}: rubrics.{task.name}", task.prompt_package
    )
    return rubric.model_copy(update={"wording": name_wording(get_benchmark(task.benchmark), prompt_set, rubric.sha256)})


@functools.cache
def _packaged_rubric(package: str, task: str) -> Rubric:
    return _domain_rubric(package, task, None)


def _domain_rubric(package: str, task: str, domain_file: Path | None) -> Rubric:
    path = resources.files(package).joinpath("rubrics", f"{task}.yaml") if package else None
    if path is None or not path.is_file():
        raise ConfigError(f"no judge scores the task {task}. Fix: give a rubric file with --rubric, or judge another")
    words = load_domain(domain_file).categories if domain_file else None
    data = in_domain_words(path.read_bytes(), domain_file)
    name = f"{package}/rubrics/{task}.yaml"
    rubric = _read_rubric(load_yaml(data, name), data, name, package, words)
    return rubric.model_copy(update={"wording": our_wording(rubric.version, rubric.sha256, domain_file)})


def _read_rubric(
    fields: object, data: bytes, name: str, package: str, categories: Mapping[str, str] | None = None
) -> Rubric:
    """Return the rubric from a file's content.

    Args:
        data: the bytes to hash.
        name: name of the rubric in error messages.
        categories: replace the benchmark's own categories, if the rubric shows categories.
    """
    content = _checked_content(fields, name)
    file_hash = hashlib.sha256(data)
    words: dict[str, str] = {}
    if content.vocabulary:
        words = dict(categories) if categories is not None else _vocabulary(package, name)
        file_hash.update(json.dumps(words).encode())
    sha256 = file_hash.hexdigest()
    return Rubric(**content.model_dump(), words=words, sha256=sha256, wording=hash_name("file", sha256))


def _checked_content(content: object, name: str) -> _RubricFile:
    try:
        return _RubricFile.model_validate(content)
    except ValidationError as error:
        complaint = first_complaint(error)
        raise ConfigError(f"{name}: {complaint}. Fix: {_REMEDY}") from error


def _vocabulary(package: str, name: str) -> dict[str, str]:
    """Return the benchmark's object categories with their descriptions, if it has any."""
    benchmark = package.rpartition(".")[2]
    words = get_benchmark(benchmark).vocabulary if benchmark else None
    if words is None:
        raise ConfigError(f"{name}: vocabulary: this benchmark does not define one. Fix: leave it out")
    return dict(words())
