"""The settings of models that write texts, in tables like those for runs in `runs.ask.config`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from barista_bench.core.settings import Count, Names, Paths, Texts
from barista_bench.runs.ask.config import ModelSettings


class QuestionConfig(ModelSettings):
    """Settings of a model that writes questions. The descriptions are the help texts of the command line."""

    model: str = Field(description="The writer: served:NAME, a local checkpoint folder or a Hub id.")
    source: str = Field(description="Data root of a release: one folder per video.")
    out: Path = Field(
        Path("questions"), description="Folder for <video>_qa_pairs.jsonl; videos that have this file are skipped."
    )
    protocol: Literal["release", "paper"] = Field(
        "release",
        description=(
            "release: one try per question, kept if it can be read and is long enough. paper: the "
            "question must name every change and nothing else."
        ),
    )
    prompts: Path | None = Field(
        None,
        description="Prompt file (of several tasks: its writer), or domain:FILE (ours in a domain file's words), "
        "instead of ours.",
    )
    attempts: Count = Field(3, description="Maximum number of tries per question, for protocol=paper.")
    sampling: Texts = Field(
        (), description="Override of the published sampling, as build takes it, e.g. per_class=10 or spacing=12."
    )
    date: str | None = Field(None, pattern=r"^\d{4}-\d{2}-\d{2}$", description="Date to record; today by default.")


class RewordConfig(ModelSettings):
    """Settings of a model that rewords generated items.

    The descriptions are the help texts of the command line.
    """

    model: str = Field(description="The writer: served:NAME, a local checkpoint folder or a Hub id.")
    folder: Path = Field(description="Folder that `generate` wrote. It is not changed.")
    out: Path = Field(Path("reworded"), description="Folder for review.jsonl, which `generate --review` takes.")
    domain: Path | None = Field(None, description="Domain file that the items were generated with, if any.")


class WriteConfig(ModelSettings):
    """Settings of a model that writes items about videos with tracked objects.

    The descriptions are the help texts of the command line.
    """

    model: str = Field(description="The writer, which sees images: served:NAME, a local checkpoint folder or a Hub id.")
    checker: str | None = Field(None, description="Model that checks the items; by default the writer.")
    source: Path = Field(description="Folder that `annotate export` wrote. Only names and masks of objects are used.")
    out: Path = Field(Path("written"), description="Folder for a release of each family, review.jsonl and the replies.")
    families: Names = Field(("tog_bench", "egocot"), description="Benchmarks to write items for, separated by commas.")
    per_video: Count = Field(4, description="Maximum number of items per video and family.")
    frames: Count = Field(8, description="Number of frames that the models see of a video.")
    domain: Path | None = Field(None, description="Domain file with the names of objects; coffee making by default.")
    prompts: Path | None = Field(
        None, description="Prompt file with the texts of each family and of the checker, instead of ours."
    )
    review: Paths = Field((), description="Completed review.jsonl; repeat it for each reviewer. The majority counts.")
    lead: Path | None = Field(
        None, description="Review file of a lead, whose verdicts count instead of the majority's."
    )
