"""Define every setting of a run in one table, and split work over processes.

Settings have the same names and meanings as keywords in Python, flags, keys of a run file and environment variables. A
keyword or flag overrides the environment (`BARISTA_BENCH_MAX_NEW_TOKENS`). The environment overrides the run file, and
the run file overrides the default.

Each process gets whole videos. All processes compute the same distribution without communication.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast, get_args

from pydantic import BeforeValidator, Field, model_validator

from barista_bench.benchmarks import parse_pairs
from barista_bench.core.settings import (
    CLUSTER_HELP,
    ENVIRONMENT_PREFIX,
    Count,
    Names,
    SettingsT,
    SettingsTable,
    Texts,
    check_known,
    check_settings,
    one_or_all,
)
from barista_bench.errors import ConfigError
from barista_bench.files.reading import Line, load_yaml, read_bounded
from barista_bench.models import GenerationConfig
from barista_bench.models.served.settings import ServedSettings
from barista_bench.models.settings import TransformersSettings, VllmSettings
from barista_bench.runs.decide.contest import Goal
from barista_bench.runs.described import MAX_REPETITIONS
from barista_bench.runs.score.stopping import GoalKind

MAX_FILE = 2**20
"""Maximum bytes of a run file."""


def _as_pairs(value: object) -> object:
    """Return options as `name=value` texts. Run files may also write them as a mapping."""
    if not isinstance(value, Mapping):
        return one_or_all(value)
    return tuple(f"{name}={text if isinstance(text, str) else json.dumps(text)}" for name, text in value.items())


OptionPairs = Annotated[tuple[str, ...], BeforeValidator(_as_pairs)]


class AskingSettings(SettingsTable):
    """Settings of the model and of generation. `GenerationConfig` defines the valid ranges."""

    model: str = Field(
        description="oracle, chance, prior, centre_box, copy_first_mask, kitchen, tiny, a local checkpoint folder, "
        "a Hub id, served:NAME, sam3:NAME, dual:NAME or predictions:FILE; text_only:, first_frame: or shuffled_frames: "
        "before any of them."
    )
    temperature: float = Field(0.7, description="0 for greedy decoding.")
    max_new_tokens: int = Field(4096, description="Maximum number of tokens of an answer, including reasoning.")
    top_p: float = Field(1.0, description="Nucleus sampling; 1 turns it off.")
    top_k: int | None = Field(None, description="Sample only from the k most likely tokens.")
    repetition_penalty: float = Field(1.0, description="Values above 1 make tokens that already occurred less likely.")
    stop: Texts = Field((), description="Text that ends an answer; may be repeated.")
    thinking_budget: int | None = Field(None, description="Maximum number of reasoning tokens before the answer.")

    @model_validator(mode="after")
    def _check_ranges(self) -> Self:
        _ = self.generation
        return self

    @property
    def generation(self) -> GenerationConfig:
        """Return the generation settings of the run.

        Raises:
            ConfigError: a value is out of range.
        """
        shared = AskingSettings.model_fields.keys() & GenerationConfig.__dataclass_fields__.keys()
        return GenerationConfig(**{name: getattr(self, name) for name in shared})


class ModelSettings(ServedSettings, VllmSettings, TransformersSettings, AskingSettings):
    """The settings that runs and judges share: the model, and how to ask it."""

    engine: Literal["transformers", "vllm"] = Field("transformers", description="Engine that runs a local checkpoint.")

    threshold: float = Field(0.5, ge=0, le=1, description="Minimum confidence of a box (sam3 only).")
    mask_threshold: float = Field(0.5, ge=0, le=1, description="Minimum confidence of a mask pixel (sam3 only).")
    progress: bool = Field(False, description="Show progress bars.")


class SpendingSettings(SettingsTable):
    """Limits on the cost and the tokens of model calls."""

    prices: Path | None = Field(
        None,
        description="Price file, YAML or JSON: `NAME: {input: 2.5, output: 10, cached_input: 1.25}`, in US dollars per "
        "million tokens.",
    )
    max_cost: float | None = Field(
        None,
        gt=0,
        description="Maximum cost of all starts together in US dollars; needs prices. A request "
        "that could exceed it is not "
        "sent; rerun the same command with a higher limit to continue.",
    )
    max_tokens_total: Count | None = Field(
        None, description="Maximum number of input and output tokens of all starts together; works like max_cost."
    )

    @model_validator(mode="after")
    def _check_prices(self) -> Self:
        if self.max_cost is not None and self.prices is None:
            raise ValueError("max_cost is set, but there is no price file: add prices")
        return self

    @property
    def is_bounded(self) -> bool:
        return self.max_cost is not None or self.max_tokens_total is not None


class StoppingSettings(SettingsTable):
    """Settings that stop a run before every example is answered."""

    until: str | None = Field(
        None,
        description=(
            "Stop as soon as this is certain: decided or decided-over-videos (which model is better; "
            "needs --against), above=0.6 (the score is above or below 0.6), within=0.03 (half the "
            "interval's width). Run again without this flag to ask the rest."
        ),
    )
    against: Path | None = Field(
        None, description="Complete run on the same questions to compare with, or the folder of its tasks."
    )
    alpha: float = Field(0.05, gt=0, lt=1, description="Maximum probability of a wrong decision (with --until).")

    @model_validator(mode="after")
    def _check_goal(self) -> Self:
        _ = self.goal
        return self

    @property
    def goal(self) -> Goal | None:
        """Return the question to decide, or None to ask every example. Raises ValueError for an unknown question."""
        if self.until is None:
            if self.against is not None:
                raise ValueError("against is set, but until is not: say until=decided")
            return None
        kind, _, text = self.until.partition("=")
        try:
            value = float(text) if text else 0.0
        except ValueError:
            value = math.nan
        if (
            kind not in get_args(GoalKind)
            or bool(text) != (kind in ("above", "within"))
            or (text and not 0 < value < 1)
        ):
            raise ValueError(f"until is {self.until!r}: say decided, decided-over-videos, above=0.6 or within=0.03")
        if (self.against is not None) != kind.startswith("decided"):
            raise ValueError(f"until={kind} goes {'without' if self.against else 'with'} against")
        return Goal(cast("GoalKind", kind), value)


class RunConfig(StoppingSettings, SpendingSettings, ModelSettings):
    """Settings of a run. The descriptions are the help texts of the command line."""

    data: str = Field(
        description="Dataset folder written by build, name in the datasets cache, Hub dataset id, "
        "or frozen JSONL file; "
        "with --benchmark all, a folder of dataset folders."
    )
    out: Path = Field(description="Folder for the run folders, one per task. Name the same folder again to resume.")
    benchmark: str = Field(
        "barista",
        description="Benchmark of the tasks, if the dataset does not name it; all for every benchmark in data.",
    )
    option: OptionPairs = Field(
        (), description="Task option, name=value or task.name=value; may be repeated.", max_length=100
    )
    task: Names = Field(("all",), description="Tasks to run, separated by commas, or all.", min_length=1)
    split: str = Field(
        "all",
        description="all, train, test, ...: published scores use all; use test for a model that you trained.",
        min_length=1,
        max_length=100,
    )
    repetitions: int = Field(3, ge=1, le=MAX_REPETITIONS, description="Answers per question; published results use 3.")
    limit: Count | None = Field(
        None, description="Ask only the first LIMIT examples of each task, after all other selections."
    )
    videos: Names = Field(
        (), description="Ask only the examples of these videos, separated by commas.", max_length=10_000
    )
    example_ids: Path | None = Field(None, description="Ask only the examples in this file, one id per line.")
    where: Texts = Field(
        (),
        description=(
            "Ask only examples with this metadata, e.g. preparation=capsule; may be repeated, and then "
            "all conditions must hold."
        ),
        max_length=20,
    )
    failed_in: Path | None = Field(
        None, description=("Ask only examples to which this run gave no readable answer: a run folder, or its parent.")
    )
    frames: Count | None = Field(
        None,
        description="Maximum number of images per question, evenly spread. The text of the question does not change.",
    )
    max_side: int | None = Field(None, ge=16, description="Maximum longer side of images in pixels, with every engine.")
    sweep: Texts = Field(
        (),
        description=(
            "Run once for each value of a setting or task option: NAME=VALUE,VALUE. Repeat the flag to "
            "run all combinations. One table and one chart compare the runs."
        ),
        max_length=5,
    )
    shots: Count | None = Field(
        None, description=("Number of worked examples before each question, from other videos of the split train.")
    )
    shots_seed: int = Field(0, description="Seed of the choice of worked examples.")
    root: Path | None = Field(None, description="Folder with the videos of a linked dataset or frozen file.")
    prompts: Path | None = Field(
        None,
        description="Prompts that replace the packaged ones: a prompt file, a folder of <task>.yaml, or domain:FILE "
        "(packaged prompts with the words of a domain file).",
    )
    protocol: Literal["release", "paper"] = Field(
        "release", description="Rules to follow where they differ: the released code or the paper."
    )
    aid: Names = Field(
        (),
        description=(
            "True facts of the graph to add to the question, e.g. objects,states. LEVEL:inert adds "
            "irrelevant facts, LEVEL:false wrong facts, and objects=RUN the model's own answers. "
            "Leaderboards do not accept such a run."
        ),
        max_length=9,
    )
    view: Names = Field(
        (),
        description=(
            "Show less evidence, or transform the question: hide_evidence, hide_elsewhere, only_evidence,"
            " mirrored or reversed. Leaderboards do not accept such a run."
        ),
        max_length=5,
    )
    graph: str | None = Field(
        None,
        description="Dataset with the graph tables for aids and views, if data was generated from its videos.",
        max_length=4096,
    )

    name: Line = Field("", description="Name of the model in tables, comparisons and reports; does not change answers.")
    cluster: str | None = Field(None, description=CLUSTER_HELP)
    workers: Count = Field(2, description="Threads that decode frames in advance.")
    frame_cache_mib: Count = Field(512, description="Cache for frames that several tasks share, in MiB.")

    @property
    def options(self) -> dict[str, Any]:
        """Return the task options in the form that `task_options` takes."""
        return parse_pairs([*self.option, *([] if self.protocol == "release" else [f"protocol={self.protocol}"])])


QUESTION_SETTINGS = frozenset(
    {"data", "benchmark", "task", "split", "root", "prompts", "protocol", "option", "box_format", "image_format"}
)
"""The settings of `RunConfig` that define the questions. They also apply if another harness asks."""


def resolve_settings(
    table: type[SettingsT],
    explicit: Mapping[str, Any],
    *,
    file: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> SettingsT:
    """Return the settings of a table.

    Keywords or flags take precedence over the environment, and the environment over the run file.

    Args:
        table: a settings class such as `RunConfig`.
        explicit: the settings that the caller set. Unset settings are absent, not None.
        file: YAML file with a mapping of settings. As with flags, its relative paths start at the working directory.
        environment: variables to read; None for `os.environ`.
        defaults: the caller's defaults. They replace the table's defaults.

    Raises:
        ConfigError: a setting is unknown or its value is invalid. For an unknown setting, the message names the nearest
            match.
    """
    variables = _from_environment(os.environ if environment is None else environment, table)
    content: object = {}
    if file is not None:
        data = read_bounded(file, MAX_FILE, remedy="name a run file", error=ConfigError)
        content = load_yaml(data, str(file), remedy="write one `name: value` a line")
    if not isinstance(content, dict):
        raise ConfigError(f"{file}: is not a mapping. Fix: write one `name: value` per line")
    for name in content:
        check_known(name, f"setting in {file}:", table)
    return check_settings(table, {**(defaults or {}), **content, **variables, **explicit})


def _from_environment(environment: Mapping[str, str], table: type[SettingsTable]) -> dict[str, str]:
    """Return the values of variables that belong to this table.

    Variables of other tables (runs, judges) are ignored.
    """
    all_names = {name for any_table in _tables(ModelSettings) for name in any_table.model_fields}
    settings = {}
    for variable, value in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        if name in table.model_fields or name not in all_names:
            check_known(name, f"setting {variable} (environment):", table)
            settings[name] = value
    return settings


def _tables(table: type[SettingsTable]) -> list[type[SettingsTable]]:
    return [table, *(subtable for child in table.__subclasses__() for subtable in _tables(child))]
