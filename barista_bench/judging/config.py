"""Every setting of judging and of question generation, in one table each, as `runs.ask.config` has them for runs."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from barista_bench.core.task import ProtocolName
from barista_bench.models import GenerationConfig
from barista_bench.models.base import ABLATIONS, SCRIPTED, SPECIALISTS
from barista_bench.runs.ask.config import CLUSTER_HELP, Count, ModelSettings, Texts

OFFLINE = ("lexical", "oracle")
"""Judges that need no model: see `answers.py`."""
NO_JUDGES = {*SCRIPTED, *SPECIALISTS, *ABLATIONS} - {*OFFLINE}
"""Names that `load_model` knows and that cannot grade."""


class JudgeConfig(ModelSettings):
    """Who judges which run, and how. The descriptions are the help texts of the command line."""

    model: Literal[""] = Field("", description="The judge is named by judge.")
    run: Path = Field(description="Run folder whose answers are judged. The model that was run is not asked.")
    judge: str = Field(
        description="served:NAME, a local checkpoint folder, a Hub id, tiny, or an offline judge: lexical (word "
        "overlap, a floor and no published number) or oracle (tests)."
    )
    draws: Count = Field(3, description="Verdicts on each answer and criterion; their spread is reported.")
    rubric: Path | None = Field(
        None,
        description="Rubric file, release:FOLDER (your clone of the released repository), or domain:FILE (ours in a "
        "domain file's words), instead of ours.",
    )
    steps: Literal["given", "generate"] = Field(
        "given",
        description="Evaluation steps: those of the rubric, or worked out once by the judge and then frozen, as they "
        "also are for a rubric that lacks some.",
    )
    top_logprobs: int = Field(
        20, ge=0, le=20, description="Alternatives a token, to weight scores by probability; 0 where a server has none."
    )
    cluster: str | None = Field(None, description=CLUSTER_HELP)
    data: str | None = Field(None, description="Where the dataset lies now, if it has moved.")
    root: Path | None = Field(None, description="Folder of the videos of a linked dataset, if they have moved.")

    @model_validator(mode="after")
    def _can_grade(self) -> Self:
        if self.judge.partition(":")[0] in NO_JUDGES:
            raise ValueError(f"judge is {self.judge!r}, which cannot grade answers")
        if self.is_offline and self.steps == "generate":
            raise ValueError(f"the judge {self.judge} reads no steps: leave steps at given")
        if self.is_offline and self.cluster:
            raise ValueError(f"the judge {self.judge} needs no cluster: leave cluster out")
        return self

    @property
    def as_model(self) -> ModelSettings:
        """The judge as `load_model` takes it."""
        return self.model_copy(update={"model": self.judge})

    @property
    def is_offline(self) -> bool:
        return self.judge in OFFLINE

    @property
    def verdicts(self) -> int:
        """Draws that are made: an offline judge says the same each time."""
        return 1 if self.is_offline else self.draws

    @property
    def generation(self) -> GenerationConfig:
        if self.is_offline:
            return GenerationConfig(temperature=0.0)
        return dataclasses.replace(super().generation, top_logprobs=self.top_logprobs)


class QuestionConfig(ModelSettings):
    """Who writes questions about which release. The descriptions are the help texts of the command line."""

    model: str = Field(description="The writer: served:NAME, a local checkpoint folder or a Hub id.")
    source: str = Field(description="Data root of a release: one folder a video.")
    out: Path = Field(
        Path("questions"), description="Folder for <video>_qa_pairs.jsonl; videos that have theirs are left out."
    )
    protocol: ProtocolName = Field(
        "release",
        description="release: one try, kept if it can be read and is long enough; paper: it must name every change "
        "and nothing else.",
    )
    prompts: Path | None = Field(
        None,
        description="Prompt file, release:FOLDER (your clone of the released repository), or domain:FILE (ours in a "
        "domain file's words), instead of ours.",
    )
    attempts: Count = Field(3, description="Tries at one question before it is left out; for protocol=paper.")
    sampling: Texts = Field(
        (), description="Override of the published sampling, as build takes it, e.g. per_class=10 or spacing=12."
    )
    date: str | None = Field(
        None, pattern=r"^\d{4}-\d{2}-\d{2}$", description="Recorded as the day of writing; today if left out."
    )


class RewordConfig(ModelSettings):
    """Who puts which generated items into other words. The descriptions are the help texts of the command line."""

    model: str = Field(description="The writer: served:NAME, a local checkpoint folder or a Hub id.")
    folder: Path = Field(description="Folder that `generate` wrote. It is not changed.")
    out: Path = Field(Path("reworded"), description="Folder for review.jsonl, which `generate --review` takes.")
    domain: Path | None = Field(None, description="Domain file that the items were generated with, if any.")
