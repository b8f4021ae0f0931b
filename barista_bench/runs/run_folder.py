"""Define the files of a run folder and its `run.json`, which describes the samples.

`run.json` is checked against one schema whenever it is written or read, since a run folder may come from another
person.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from barista_bench.aids.texts import AidBook
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.options import MAX_NUMBER, OptionValue
from barista_bench.core.prompt import PromptTexts
from barista_bench.core.task import Task
from barista_bench.core.training_videos import Sha256, videos_digest
from barista_bench.data.dataset import ExampleSet
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.reading import Line, first_complaint, read_bounded_json
from barista_bench.files.writing import write_whole
from barista_bench.models import ModelIdentity, Request
from barista_bench.runs.described import MAX_REPETITIONS, ModelInfo, Prices, Wording
from barista_bench.runs.log.inputs import prompt_options
from barista_bench.runs.log.sample_log import log_files, refuse_other_version
from barista_bench.version import __version__

log = logging.getLogger(__name__)

CONFIG_FILE = "run.json"
JUDGES = "judges"
"""Folder with one subfolder per judge of the run."""
JUDGE_FILE = "judge.json"
OWN_EXAMPLES = "examples.jsonl"
"""File with the examples of an imported run. So the run can be scored without its source files."""
MAX_BYTES = 16 * 2**20
"""Maximum bytes of a `run.json`. Each prompt may have a MiB."""
_MAX_DEPTH = 16
_MAX_TEXT = 10_000
"""Maximum characters of a setting or of the model's name."""
_START_AGAIN = "start the run with the same command again, which keeps its answers and writes this file again"
_VERSIONED_PACKAGES = ("datasets", "torch", "transformers", "llguidance", "openai", "av", "pillow", "numpy")


def _checked_json(value: object, depth: int = 0) -> object:
    """Refuse JSON that a part of the package cannot write or show: huge numbers, long texts, deep nesting."""
    if isinstance(value, int | float) and not abs(value) <= MAX_NUMBER:  # rejects NaN too
        raise ValueError("holds a number that is not finite, or too large")
    if isinstance(value, str) and len(value) > _MAX_TEXT:
        raise ValueError(f"holds a text of more than {_MAX_TEXT} characters")
    if isinstance(value, list | dict):
        if depth == _MAX_DEPTH:
            raise ValueError("is nested too deeply")
        for inner in value.values() if isinstance(value, dict) else value:
            _checked_json(inner, depth + 1)
    return value


_Json = Annotated[Any, AfterValidator(_checked_json)]
Location: TypeAlias = str | Path | None
"""Current location of data, or None for the location in `run.json`."""


class _Part(BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True, protected_namespaces=()
    )


class RunModel(ModelInfo):
    model_config = _Part.model_config

    name: Annotated[str, StringConstraints(max_length=_MAX_TEXT)]
    revision: Annotated[str, StringConstraints(max_length=_MAX_TEXT)] | None
    settings: dict[str, _Json]

    @property
    def asked_as(self) -> dict[str, Any]:
        """Return the part of a sample's key that names the model. It has the box format, since prompts depend on it."""
        return self.model_dump(exclude={"box_format"})


class RunIdentity(_Part):
    """The settings that must not change when the run is started again."""

    benchmark: str
    task: str
    task_version: Annotated[int, Field(ge=0, le=10**6)]
    split: str
    content_hash: str
    prompts_hash: str | None
    model: RunModel
    generation: dict[str, _Json]
    options: dict[str, _Json] = {}


class ChosenPart(_Part):
    """The part of a set that a run asks: the choice in words, the size of the set, and the ids of the part."""

    words: Line
    of: Annotated[int, Field(ge=1, le=MAX_NUMBER)]
    ids: Annotated[list[Annotated[str, StringConstraints(max_length=_MAX_TEXT)]], Field(min_length=1)]


class RunData(_Part):
    """The paths of the data, and the limit on the number of examples."""

    path: str
    absolute_path: str | None = None
    root: str | None
    absolute_root: str | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_NUMBER)] | None
    part: ChosenPart | None = None


class _Prompts(_Part):
    version: Annotated[int, Field(ge=-MAX_NUMBER, le=MAX_NUMBER)]
    system: str
    user: str
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    extra: dict[str, str] = {}
    wording: Wording


class ImportedFolder(_Part):
    folder: str
    predictions_sha256: str
    thinking_tokens: _Json


class RunDescription(_Part):
    """The content of `run.json`.

    `barista_bench` is the version that wrote the file. `imported` describes the source of an imported run. `name` is
    the user's name for the model and is not part of its identity.
    """

    barista_bench: Line
    identity: RunIdentity
    repetitions: Annotated[int, Field(ge=1, le=MAX_REPETITIONS)]
    data: RunData
    prompts: _Prompts
    protocol: Literal["release", "paper"]
    versions: dict[Line, Line]
    name: Line = ""
    options: dict[str, _Json] = {}
    run_answers: dict[str, list[Annotated[str, StringConstraints(max_length=_MAX_TEXT)]]] = {}
    """The answers of another run that the questions contain (`Task.run_answers`)."""
    prices: Prices = Prices()
    training_videos: Annotated[list[Sha256], Field(validate_default=True)] = []
    """SHA-256 of each recorded training video of the run's checkpoint and adapter."""
    trained_on: list[Sha256] = []
    """The `training_videos` that occur in the run's examples.

    This list is for people, and scoring computes it again.
    """
    imported: list[ImportedFolder] = []

    @field_validator("training_videos")
    @classmethod
    def _check_training_videos(cls, videos: list[Sha256], info: ValidationInfo) -> list[Sha256]:
        """Check the digest of the videos. It is part of the model's identity and of every sample's key."""
        settings = info.data["identity"].model.settings if "identity" in info.data else {}
        if settings.get("training_videos", videos_digest(videos)) != videos_digest(videos):
            raise ValueError("are not those that identity.model.settings.training_videos is the digest of")
        return videos

    @property
    def wording(self) -> PromptTexts:
        return PromptTexts(**self.prompts.model_dump())

    @property
    def all_options(self) -> dict[str, Any]:
        """Return the task options with which the run was started."""
        return {**self.options, **self.identity.options}


@dataclass(frozen=True, slots=True)
class OpenedTask:
    """One task of a run, opened before anything is asked.

    Args:
        data: source of the examples.
        only: ids of the examples to ask, or None for all.
        aids: the aids of the task, if they are already made.
        part: the choice that selected `examples`, or None if the set is complete.
        change: a change of each request, for example by an aid. `aid_lines` holds the aids as JSON.
    """

    task: Task
    examples: ExampleSet
    folder: Path
    data: str
    only: frozenset[str] | None = None
    aids: AidBook | None = None
    part: ChosenPart | None = None
    change: Callable[[Request], Request] | None = None
    aid_lines: tuple[bytes, ...] = ()


def other_options(task: Task) -> dict[str, OptionValue]:
    """Return the options of a task except the protocol. Records store the protocol separately."""
    return {name: value for name, value in task.chosen.items() if name != "protocol"}


def run_description(
    folder: Path,
    task: Task,
    *,
    content_hash: str,
    prompts_hash: str | None,
    model: ModelIdentity,
    box_format: BoxFormat,
    generation: Mapping[str, Any],
    repetitions: int,
    data: RunData,
    split: str = "all",
    versions: Mapping[str, str] = {"barista_bench": __version__},
    **other_fields: object,
) -> RunDescription:
    """Return the description of the run folder `folder`. The defaults suit imported runs.

    Raises:
        DataError: the description could not be read back.
    """
    description = {
        "barista_bench": __version__,
        "protocol": task.protocol,
        "prompts": asdict(task.prompts),
        "options": other_options(task),
        "run_answers": task.run_answers,
        "identity": {
            "benchmark": task.benchmark,
            "task": task.name,
            "task_version": task.version,
            "split": split,
            "content_hash": content_hash,
            "prompts_hash": prompts_hash,
            "model": {**asdict(model), "box_format": asdict(box_format)},
            "generation": generation,
            "options": prompt_options(task),
        },
        "versions": versions,
        "repetitions": repetitions,
        "data": data.model_dump(),
        **other_fields,
    }
    return _parse_description(json.loads(json.dumps(description)), folder / CONFIG_FILE)


def read_run(folder: str | Path) -> RunDescription:
    """Return the description of a run folder.

    Raises:
        DataError: the folder has no valid `run.json`. The message names the file and the field.
    """
    path = Path(folder) / CONFIG_FILE
    remedy = _START_AGAIN if log_files(Path(folder)) else "run `barista-bench run`"
    description = read_bounded_json(path, MAX_BYTES, what="no run here", remedy=remedy)
    return _parse_description(description, path)


def _parse_description(description: object, path: Path) -> RunDescription:
    try:
        return RunDescription.model_validate(description)
    except ValidationError as error:
        raise DataError(f"{path}: {first_complaint(error)}. Fix: {_START_AGAIN}") from error


def claim(folder: Path, description: RunDescription, is_answered: Callable[[], bool] = lambda: False) -> None:
    """Write the run's description, or check that the folder belongs to this run.

    The number of repetitions may change between starts.

    Args:
        is_answered: returns whether the folder's logs hold answers of this run and no other answers. Then a lost or
            damaged description is written again.

    Raises:
        ConfigError: the folder holds another run, or its description is missing or damaged.
        DataError: a log has another version.
    """
    logs = log_files(folder)
    for file in logs:
        refuse_other_version(file)
    problem, path = "", folder / CONFIG_FILE
    if path.exists():
        try:
            before = read_run(folder)
        except DataError as error:
            problem = str(error).partition(" Fix:")[0].rstrip(".")
        else:
            before, description = _with_known_prompts(before, description), _with_known_prompts(description, before)
            if difference := first_difference(before, description):
                name, old, new = difference
                problem = f"{folder}: holds a run with {name} {old!r}, not {new!r}"
                if _rules(before) != _rules(description):
                    raise ConfigError(f"{problem}. Fix: use another --out")
    elif any(file.stat().st_size for file in logs):
        problem = f"{folder}: holds samples, but no {CONFIG_FILE} that says of what"
    if problem and not is_answered():
        raise ConfigError(f"{problem}. Fix: use another --out")
    if problem:
        log.warning("%s. It is written again: the answers that lie there are this run's", problem)
    write_run(folder, description)


def _rules(description: RunDescription) -> tuple[str, int, str]:
    """Return the facts that the logs cannot confirm: the rules for reading answers, and the split's name."""
    return description.protocol, description.identity.task_version, description.identity.split


def write_run(folder: Path, description: RunDescription) -> None:
    """Write the run's description, replacing an existing one."""
    write_whole(folder / CONFIG_FILE, json.dumps(description.model_dump(), indent=1, sort_keys=True) + "\n")


def _with_known_prompts(description: RunDescription, other: RunDescription) -> RunDescription:
    """Fill in a missing digest of prompts from the other description. The prompt of each example is checked anyway."""
    if description.identity.prompts_hash is not None:
        return description
    identity = description.identity.model_copy(update={"prompts_hash": other.identity.prompts_hash})
    return description.model_copy(update={"identity": identity})


def first_difference(before: RunDescription, now: RunDescription) -> tuple[str, object, object] | None:
    """Return the name and both values of the first condition that differs between two runs, or None."""
    old, new = (
        {
            "limit": run.data.limit,
            "choice": run.data.part and run.data.part.words,
            "protocol": run.protocol,
            **run.identity.model_dump(),
        }
        for run in (before, now)
    )
    return _first_difference("", old, new)


def _first_difference(name: str, old: object, new: object) -> tuple[str, object, object] | None:
    if isinstance(old, dict) and isinstance(new, dict):
        names = {key: f"{name}.{key}" if name else key for key in {**new, **old}}
        inner = (_first_difference(inner_name, old.get(key), new.get(key)) for key, inner_name in names.items())
        return next(filter(None, inner), None)
    return None if old == new else (name, old, new)


def package_versions() -> dict[str, str]:
    """Return the versions of the packages that influence answers and scores."""
    return {name: _version(name) for name in _VERSIONED_PACKAGES}


@cache  # each version is read from a file, so the result is cached
def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def judge_folders(run: str | Path) -> list[Path]:
    """Return the folders of all judges of a run, sorted by name. `judge_folder.py` describes their content."""
    return sorted(path.parent for path in (Path(run) / JUDGES).glob(f"*/{JUDGE_FILE}"))
