"""The content of a ViSTa release, and readers of its three kinds of files.

The files are untrusted, so the readers limit their size.

Names follow the paper. The release's folders have other names for environments, and `remix` for general problem sets.
YAML values are read only as text, so that label ids such as `on`, `no` or `1` stay the same as in the JSON files.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from barista_bench.benchmarks.release_records import convert_record
from barista_bench.errors import DataError
from barista_bench.files.reading import load_yaml, read_bounded, read_bounded_text

ENVIRONMENTS = {"alfred": "virtual_home", "real_life": "real_world", "minecraft": "minecraft"}
"""Maps a folder of the release to the paper's name of the environment."""

FIRST_LEVEL = ("foundation", "extrapyramidal")
"""Folders of level 1: single actions, and other kinds of real-world sets (tracking, interactions, doors)."""

TYPES = {
    "objects": "objects",
    "containers": "objects",
    "object": "objects",
    "on_v_off": "object_properties",
    "sliced_v_whole": "object_properties",
    "clean": "actions",
    "cool": "actions",
    "heat": "actions",
    "pick_v_put": "actions",
    "slice": "actions",
    "toggle": "actions",
    "opening_v_closing": "actions",
    "foundation": "actions",
    "object_tracking": "tracking",
    "scramble": "tracking",
    "object_interaction": "interaction",
    "remix": "general",
    "permutation": "permutation",
}
"""Maps the release's type of a problem set to the paper's theme (section 3.1, tables 1, 2, 4, 5 and 8).

`foundation` is Minecraft's only set of level 1, which is about actions. Sets about doors that open or close are the
paper's action recognition in uncontrolled surroundings.
"""

THEMES = ("objects", "object_properties", "actions", "tracking", "interaction", "general", "permutation", "other")
"""Themes in the paper's order. `other` stands for types that the original release does not have."""


@dataclass(frozen=True, slots=True)
class LabelledVideo:
    """One video of a problem set.

    Args:
        video_id: path below the videos, `<environment's folder>/<path in the file>`.
        labels: ids of the descriptions that fit the video. There is one, except in Minecraft's `multilabel` set.
        entry: index in `<id>_data.json`, from 0.
    """

    video_id: str
    labels: tuple[str, ...]
    entry: int


@dataclass(frozen=True, slots=True)
class ProblemSet:
    """One problem set.

    Args:
        set_id: path below `tasks` without `.yaml`, such as `alfred/level_3/remix/<uuid>`.
        environment: the environment in the paper's words.
        level: number of consecutive actions, 1 to 8.
        type: the paper's theme.
        release_level: the level's folder, `foundation`, `extrapyramidal` or `level_<n>`.
        release_type: the type's folder, which lies in the level's folder.
        descriptions: maps label ids to texts, in the order of the file.
        prompt: the release's text about the set for a generative model (`prompt_gpt`).
        example: an example answer to `prompt` (`example_gpt`); None if the set has no example.
        videos: the videos in the order of the file.
        concepts: lists of the objects and actions that occur, by the release's names of the lists.
        shared_prefix: maps a label id to the number of steps that the description shares with the set's base video.
        slicing_consistent: the release's `is_consistent_wrt_slicing`; None if missing.
    """

    set_id: str
    environment: str
    level: int
    type: str
    release_level: str
    release_type: str
    descriptions: Mapping[str, str]
    prompt: str
    example: str | None
    videos: tuple[LabelledVideo, ...]
    concepts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shared_prefix: Mapping[str, int] = field(default_factory=dict)
    slicing_consistent: bool | None = None


MAX_YAML = 2**20
"""Maximum number of bytes of a problem set's description. The release's largest has 12 KB."""
MAX_CSV = 2**27
_REFETCH = "correct it, or fetch it again"


class VideoEntry(msgspec.Struct):
    """One entry of `<id>_data.json`: a video, and the ids of the fitting labels, separated by commas."""

    path: str
    label: str


class PrefixLength(msgspec.Struct):
    """The number of first steps that a description shares with the set's first description."""

    description: str
    shared_prefix: int


class SetMetadata(msgspec.Struct):
    """The release's metadata of a set, apart from the labels."""

    concepts: dict[str, list[str]] = {}
    is_consistent_wrt_slicing: bool | None = None
    prefix_lens: list[PrefixLength] = []


class SetDescription(msgspec.Struct):
    """One `<id>.yaml`: a problem set without its videos. `metadata` is kept as read; it should be a `SetMetadata`."""

    label_prompts: dict[str, str]
    prompt_gpt: str
    example_gpt: str | None = None
    metadata: object = None


class MetadataRow(msgspec.Struct):
    """One row of `metadata.csv`: a video, a description that fits the video, and the set that asks about it."""

    video: str
    level: int
    description: str
    environment: str
    problem_set_type: str
    problem_set: str


def read_description(path: Path) -> SetDescription:
    """Read one problem set's YAML file. Raises DataError that names file and field."""
    data = read_bounded(path, MAX_YAML, remedy=_REFETCH)
    content = load_yaml(data, str(path), error=DataError, remedy=_REFETCH, text_only=True)
    if isinstance(content, dict):  # keys without a value count as missing
        content = {key: value for key, value in content.items() if value != ""}
    return convert_record(content, SetDescription, _REFETCH, strict=False)


def read_rows(path: Path) -> Iterator[MetadataRow]:
    """Read the rows of `metadata.csv`. Raises DataError that names the file and the line of the first bad row."""
    text = read_bounded_text(path, MAX_CSV, remedy=_REFETCH)
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        for record in reader:
            yield msgspec.convert(record, MetadataRow, strict=False)
    except (csv.Error, msgspec.ValidationError) as error:
        raise DataError(f"{path}: line {reader.line_num}: {error}. Fix: {_REFETCH}") from error
