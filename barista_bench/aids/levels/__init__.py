"""List the levels, one module each. `moment`, `zoom` and `marks` are pictures, and the others are text.

`moment` shows the important frames again. `zoom` shows parts of frames in full size. `marks` numbers the objects of a
frame, and gives the same level as `objects`. `zoom` shows where to look. So a task that asks for a place does not admit
`zoom`, unless the question gives the place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from barista_bench.aids.level import Level as Level
from barista_bench.aids.levels.activities import ACTIVITIES
from barista_bench.aids.levels.marks import MARKS
from barista_bench.aids.levels.moment import MOMENT
from barista_bench.aids.levels.objects import OBJECTS
from barista_bench.aids.levels.relations import RELATIONS
from barista_bench.aids.levels.states import STATES
from barista_bench.aids.levels.zoom import ZOOM

LevelName: TypeAlias = Literal["moment", "zoom", "marks", "objects", "states", "relations", "activities"]
LEVELS: Final[Mapping[LevelName, Level]] = {
    "moment": MOMENT,
    "zoom": ZOOM,
    "marks": MARKS,
    "objects": OBJECTS,
    "states": STATES,
    "relations": RELATIONS,
    "activities": ACTIVITIES,
}
"""Levels by name, in the order of a prompt."""
PICTURES: Final = frozenset(name for name, level in LEVELS.items() if level.pictures)
"""Levels that are shown, and not told as text."""
