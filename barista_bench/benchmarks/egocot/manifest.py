"""Where third-party media come from, and how they are cut. Nothing is fetched or run here: the recipe is data.

The format of the benchmark's own manifest is not public. Ours is a `.json` list or `.jsonl` file whose name says
`manifest`, one `ManifestEntry` a medium; docs/egocot.md shows one.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from barista_bench.benchmarks.clock_times import read_seconds
from barista_bench.benchmarks.egocot.records import read_records
from barista_bench.files.bounded import first_complaint
from barista_bench.files.paths import valid_video_id
from barista_bench.files.text_out import printable
from barista_bench.scene_graph import ProblemLog


def _seconds(value: object) -> float:
    seconds = read_seconds(value)
    if seconds is None:
        raise ValueError("is no number and no MM:SS.ss")
    return seconds


Text: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]
Address: TypeAlias = Annotated[
    str, StringConstraints(strip_whitespace=True, pattern=r"^https://[^\s\x00-\x20<>\"'\\]{1,2000}$")
]
Seconds: TypeAlias = Annotated[float, BeforeValidator(_seconds)]
Pixels: TypeAlias = Annotated[int, Field(strict=True, ge=1, le=16384)]


class ManifestEntry(BaseModel):
    """One medium. Times in seconds, sizes in pixels; None where the manifest does not say.

    Args:
        media_id: as in the annotations.
        dataset: whose video it is, e.g. `Ego4D`.
        uid, url: of the source video; one of them is needed.
        start, end: the part used, in the file also as MM:SS.ss.
        fps, width, height: of the cut video.
    """

    model_config = ConfigDict(frozen=True)

    media_id: Text
    dataset: Text
    uid: Text | None = None
    url: Address | None = None
    start: Seconds | None = None
    end: Seconds | None = None
    fps: Annotated[Seconds, Field(gt=0, le=1000)] | None = None
    width: Pixels | None = None
    height: Pixels | None = None

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        if not valid_video_id(f"{self.media_id}.mp4"):
            raise ValueError("media_id is no name of a file")
        if self.uid is None and self.url is None:
            raise ValueError("both uid and url are missing")
        if self.start is not None and self.end is not None and self.end <= self.start:
            raise ValueError("end is not after start")
        return self

    @property
    def fetch(self) -> str:
        """What to get, in words."""
        name = self.uid or self.url or self.media_id
        where = f" ({self.url})" if self.url and self.uid else ""
        return f"{name} of {self.dataset}{where}, under the terms of {self.dataset}"

    @property
    def recipe(self) -> tuple[str, ...]:
        """The ffmpeg command that cuts it, as an argument list; SOURCE.mp4 stands for the video that was got."""
        from_start = [] if self.start is None else ["-ss", f"{self.start:g}"]
        until = [] if self.end is None else ["-to", f"{self.end:g}"]
        filters = [] if self.fps is None else [f"fps={self.fps:g}"]
        if self.width is not None and self.height is not None:
            filters.append(f"scale={self.width}:{self.height}")
        shown = ["-vf", ",".join(filters)] if filters else []
        return ("ffmpeg", *from_start, *until, "-i", "SOURCE.mp4", *shown, "-an", f"media/{self.media_id}.mp4")

    @property
    def shown_recipe(self) -> str:
        """As one writes it in a shell."""
        return shlex.join(self.recipe)


def read_manifest(path: Path, log: ProblemLog) -> dict[str, ManifestEntry]:
    """The entries of a manifest by media id; bad ones are logged and left out."""
    entries: dict[str, ManifestEntry] = {}
    for key, record in read_records(path, log):
        try:
            entry = ManifestEntry.model_validate(record)
        except ValidationError as error:
            what = printable(f"{first_complaint(error)}; the entry is left out")
            log.error(key, what, "docs/egocot.md shows the format")
            continue
        if entry.media_id in entries:
            log.error(key, f"media_id {entry.media_id!r} stands twice; the first counts", "keep one")
        else:
            entries[entry.media_id] = entry
    return entries
