"""Define every setting of judging in one table, as `runs.ask.config` does for runs."""

from __future__ import annotations

import dataclasses
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from barista_bench.core.model_names import ABLATIONS, SCRIPTED
from barista_bench.core.settings import CLUSTER_HELP, Count
from barista_bench.models import GenerationConfig
from barista_bench.runs.ask.config import ModelSettings, SpendingSettings, StoppingSettings

OFFLINE = ("lexical", "oracle")
"""Judges that work without a model (`answers.py`)."""


class JudgeConfig(StoppingSettings, SpendingSettings, ModelSettings):
    """Settings of a judge. The descriptions are the help texts of the command line."""

    model: Literal[""] = Field("", description="Not used: name the judge with judge.")
    run: Path = Field(description="Run folder with the answers to judge. The model of the run is not called.")
    judge: str = Field(
        description="served:NAME, a local checkpoint folder, a Hub id, tiny, or an offline judge: lexical (word "
        "overlap, a lower bound that is not published) or oracle (for tests)."
    )
    verdicts_per_answer: Count = Field(3, description="Verdicts per answer and criterion; their spread is reported.")
    rubric: Path | None = Field(
        None,
        description="Rubrics that replace the packaged ones: a rubric file, a prompt file with rubrics, or domain:FILE "
        "(packaged rubrics with the words of a domain file).",
    )
    steps: Literal["given", "generate"] = Field(
        "given",
        description="Evaluation steps: given by the rubric, or generated once by the judge and then frozen. Steps that "
        "a rubric lacks are always generated.",
    )
    top_logprobs: int = Field(
        20,
        ge=0,
        le=20,
        description="Alternatives per token, to weight scores by probability; 0 if the server offers none.",
    )
    structured_output: bool = Field(
        False,
        description="Constrain replies to the form's JSON Schema, so that each can be read. By default, a local judge "
        "is constrained if llguidance is installed, and a served judge is not.",
    )
    cluster: str | None = Field(None, description=CLUSTER_HELP)
    data: str | None = Field(None, description="Current location of the dataset, if it has moved.")
    root: Path | None = Field(None, description="Folder with the videos of a linked dataset, if they have moved.")

    @model_validator(mode="after")
    def _check_judge(self) -> Self:
        from barista_bench.runs.ask.catalog import specialists

        name = self.judge.partition(":")[0]
        if name not in OFFLINE and name in {*SCRIPTED, *ABLATIONS, *specialists()}:
            raise ValueError(f"judge is {self.judge!r}, which cannot grade answers")
        if self.is_offline and self.steps == "generate":
            raise ValueError(f"the judge {self.judge} does not use steps: leave steps at given")
        if self.is_offline and self.cluster:
            raise ValueError(f"the judge {self.judge} needs no cluster: leave cluster out")
        return self

    @property
    def as_model(self) -> ModelSettings:
        """Return the judge's settings in the form that `load_model` takes."""
        return self.model_copy(update={"model": self.judge, "structured_output": self.is_held})

    @property
    def is_local(self) -> bool:
        """Return whether the judge is a checkpoint that runs on this machine."""
        from barista_bench.runs.ask.catalog import is_checkpoint

        return not self.is_offline and is_checkpoint(self.judge)

    @property
    def is_held(self) -> bool:
        """Return whether the judge's replies are constrained to its form."""
        if "structured_output" in self.model_fields_set:
            return self.structured_output
        return self.is_local and find_spec("llguidance") is not None

    @property
    def is_offline(self) -> bool:
        return self.judge in OFFLINE

    @property
    def verdicts(self) -> int:
        """Return the number of verdicts per answer and criterion: 1 for an offline judge, which never varies."""
        return 1 if self.is_offline else self.verdicts_per_answer

    @property
    def generation(self) -> GenerationConfig:
        if self.is_offline:
            return GenerationConfig(temperature=0.0)
        return dataclasses.replace(super().generation, top_logprobs=self.top_logprobs)
