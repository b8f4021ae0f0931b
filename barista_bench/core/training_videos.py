"""Record by SHA-256 which videos a model is trained on and which videos are held out.

An exported training set contains this file, and an adapter made from the set has a copy beside it. So a run with the
adapter knows the adapter's training videos, for examples of any benchmark.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints, field_validator

from barista_bench.core.boxes import BoxFormat
from barista_bench.errors import DataError
from barista_bench.files.owned_folders import TRAINING_SET
from barista_bench.files.reading import read_model

VIDEOS_FILE = TRAINING_SET.manifest
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
_REMEDY = "export the training set again"


class TrainingVideos(BaseModel):
    """The SHA-256 of each training video and each test video. `box_format` is None if no text contains boxes.

    The record is read from the manifest of an export. The manifest's list of files is ignored.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    videos: frozenset[Sha256]
    held_out: frozenset[Sha256] = frozenset()
    box_format: str | None = None

    @field_validator("box_format")
    @classmethod
    def _check_box_format(cls, value: str | None) -> str | None:
        if value is not None:
            BoxFormat.parse(value)
        return value

    @classmethod
    def read(cls, folder: Path) -> TrainingVideos:
        """Read the record of an export or an adapter. Raises DataError if it is missing or broken."""
        return read_model(folder / VIDEOS_FILE, cls, what="no record of training videos", remedy=_REMEDY)

    def write(self, folder: Path) -> None:
        """Write `VIDEOS_FILE` with sorted hashes."""
        content = {"videos": sorted(self.videos), "held_out": sorted(self.held_out), "box_format": self.box_format}
        (folder / VIDEOS_FILE).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def videos_digest(hashes: Iterable[str]) -> str:
    """Return the SHA-256 of a set of videos, given by their hashes in any order."""
    return hashlib.sha256("".join(sorted(set(hashes))).encode()).hexdigest()


def join_without_leaks(sets: Mapping[str, TrainingVideos]) -> TrainingVideos:
    """Join several sets, given by name, into one training set.

    Raises DataError if one set trains on a test video of another set, or if the box formats differ.
    """
    for name, training_set in sets.items():
        for other_name, other_set in sets.items():
            if leaked := training_set.videos & other_set.held_out:
                raise DataError(
                    f"{name}: {len(leaked)} of its {len(training_set.videos)} training videos are test videos of "
                    f"{other_name}, first: SHA-256 {min(leaked)[:12]}. Fix: move them to the test split "
                    "(`build --split-file`), or leave that set out"
                )
    formats = {each.box_format for each in sets.values()} - {None}
    if len(formats) > 1:
        raise DataError(f"boxes are written as {' and '.join(sorted(map(str, formats)))}. Fix: {_REMEDY}, all alike")
    return TrainingVideos(
        videos=frozenset[str]().union(*(each.videos for each in sets.values())),
        held_out=frozenset[str]().union(*(each.held_out for each in sets.values())),
        box_format=next(iter(formats), None),
    )
