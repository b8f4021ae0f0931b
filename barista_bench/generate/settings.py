"""The settings of `generate`, in one table for Python and the command line."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from barista_bench.core.settings import CLUSTER_HELP, Count, Names, Paths, SettingsTable


class GenerateSettings(SettingsTable):
    """Settings of `generate`. The descriptions are the help texts of the command line."""

    source: Path = Field(description="Scene graphs in the release layout: one folder per video.")
    out: Path | None = Field(None, description="New folder for a release of each family and the evidence of each item.")
    families: Names = Field(
        ("vista", "handyvqa", "tog_bench", "egocot"),
        description="Benchmarks whose questions to generate, separated by commas.",
    )
    per_subtask: Count = Field(200, description="Maximum number of items per subtask.")
    seed: int = Field(0, description="Seed; the same graphs, domain and seed give the same bytes.")
    domain: Path | None = Field(
        None, description="Domain file: names, values and their relations; coffee making by default."
    )
    review: Paths = Field(
        (),
        description="Completed review.jsonl of an earlier call with the same settings: rejected items are dropped, "
        "revised texts used. Repeat it for several reviewers: the majority counts.",
    )
    lead: Path | None = Field(
        None, description="Review file of a lead, whose verdicts count instead of the majority's."
    )
    ceiling: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Accuracy that a text-only guesser may reach on a subtask (`show audit`); chance by default.",
    )
    difficulty: str = Field(
        "easy:hard", description="Difficulty of the questions: easy, medium, hard or a range of these."
    )
    splits: str | None = Field(
        None,
        description="Fractions of the videos in train, val and test, such as 0.6,0.2,0.2, for handyvqa; all videos "
        "are in test by default.",
    )
    strict: bool = Field(False, description="Fail and write nothing if one of the families has no questions.")
    num_proc: Count = Field(1, description="Number of processes; each holds one video at a time.")
    cluster: str | None = Field(None, description=CLUSTER_HELP)
    progress: bool = Field(False, description="Show progress bars.")
