"""Define the settings of `build` in one table for Python and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from barista_bench.benchmarks import parse_pairs
from barista_bench.core.settings import CLUSTER_HELP, Count, Names, SettingsTable
from barista_bench.data.rows import FramesMode
from barista_bench.data.stored_images import JPEG_QUALITY

Pairs = Annotated[
    Mapping[str, Any], BeforeValidator(lambda value: parse_pairs(value) if isinstance(value, list | tuple) else value)
]
"""Values by name. On the command line, `name=value` may be repeated."""


class BuildSettings(SettingsTable):
    """Settings of `build`. The descriptions are the help texts of the command line."""

    source: str | Path = Field(
        description=(
            "Data root, or a Hub dataset id such as ramblr/BARISTA; for other benchmarks, the folder of "
            "the annotations."
        )
    )
    out: Path | None = Field(
        None,
        description="Dataset folder to write; named after the benchmark by default. It replaces an earlier dataset, "
        "but no folder with other files.",
    )
    benchmark: str = Field("barista", description="Benchmark of the release.")
    videos: Path | None = Field(
        None, description="Folder of another benchmark's videos, if they are not below the source."
    )
    configs: Names = Field(
        (), description="Configs to write (tasks and graph tables), separated by commas or repeated; all by default."
    )
    frames: FramesMode = Field(
        "frozen", description="Store the pixels (frozen), or decode them from the videos on access (linked)."
    )
    sampling: Pairs = Field(
        default_factory=dict,
        description="Change of the published sampling, e.g. limit=50 or relations.frame_step=100; may be repeated.",
    )
    split_file: Path | None = Field(None, description='JSON {"train": [video ids], "test": [video ids]}.')
    revision: str | None = Field(None, description="Commit of a Hub dataset.")
    protocol: Literal["release", "paper"] = Field(
        "release", description="Rules to follow where they differ: the released code or the paper."
    )
    options: Mapping[str, Any] = Field(
        default_factory=dict,
        description="Task options that change examples; a task ignores options that it does not have.",
    )
    jpeg_quality: int = Field(
        JPEG_QUALITY, ge=1, le=100, description="JPEG quality of frozen frames. The released harness uses 75."
    )
    cache: bool = Field(
        True,
        description="Also prepare the datasets cache, so that you can load the dataset from any folder. Earlier "
        "entries stay.",
    )
    layout: Literal["ours", "release"] = Field(
        "ours", description="A dataset folder (ours), or frozen JSONL for the benchmark's own harness (release)."
    )
    prompts: Path | None = Field(
        None, description=("Prompts for the texts frozen with --layout release; the packaged prompts by default.")
    )
    strict: bool = Field(False, description="Stop at the first error in the release.")
    dry_run: bool = Field(False, description="Only count the examples by preparation and class; write nothing.")
    num_proc: Count = Field(1, description="Number of processes; does not change the result.")
    cluster: str | None = Field(None, description=CLUSTER_HELP)
    progress: bool = Field(False, description="Show progress bars.")

    @property
    def task_options(self) -> dict[str, Any]:
        """Return the options of the tasks, including the protocol."""
        return {**({} if self.protocol == "release" else {"protocol": self.protocol}), **self.options}
