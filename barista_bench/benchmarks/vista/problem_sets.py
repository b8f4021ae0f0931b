"""What a ViSTa release holds: problem sets, each some videos to be matched with some descriptions.

Names are the paper's: its environments are called otherwise in the release's folders, and what it calls general problem
sets is `remix` there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ENVIRONMENTS = {"alfred": "virtual_home", "real_life": "real_world", "minecraft": "minecraft"}
"""Folder of the release to the paper's name."""

FIRST_LEVEL = ("foundation", "extrapyramidal")
"""Folders of level 1: single actions, and what the real world has beyond them (tracking, interactions, doors)."""

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
"""The release's type of a problem set to the paper's theme (section 3.1, tables 1, 2, 4, 5 and 8).

`foundation` is Minecraft's one set of level 1, on actions. Doors that open or close are the paper's action recognition
in uncontrolled surroundings.
"""

THEMES = ("objects", "object_properties", "actions", "tracking", "interaction", "general", "permutation", "other")
"""In the paper's order; `other` are types that the release does not have."""


@dataclass(frozen=True, slots=True)
class LabelledVideo:
    """One video of a problem set.

    Args:
        video_id: its path below the videos: `<environment's folder>/<path in the file>`.
        labels: ids of the descriptions that fit it: one, but for Minecraft's `multilabel`.
        entry: its index in `<id>_data.json`, from 0.
    """

    video_id: str
    labels: tuple[str, ...]
    entry: int


@dataclass(frozen=True, slots=True)
class ProblemSet:
    """One problem set.

    Args:
        set_id: its path below `tasks`, without `.yaml`: `alfred/level_3/remix/<uuid>`.
        environment: in the paper's words.
        level: 1 to 8, how many actions follow one another.
        type: the paper's theme.
        release_level: the folder: `foundation`, `extrapyramidal` or `level_<n>`.
        release_type: the folder below.
        descriptions: label id to text, in the order of the file.
        prompt: the release's words about the set for a generative model (`prompt_gpt`).
        example: an example answer for it (`example_gpt`); None where the set has none.
        videos: in the order of the file.
        concepts: lists of objects and actions that occur, by the release's names.
        shared_prefix: label id to the number of steps that its description shares with the set's base video.
        slicing_consistent: the release's `is_consistent_wrt_slicing`; None where it does not say.
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
