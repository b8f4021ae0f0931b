"""How long what is next on a video will take a person: an estimate, and what it rests on.

Where decisions say how long they took (`seconds`), masks take what they took in this project. The studio does not count
the seconds of people at work; without such a record the keystroke-level model's figures stand in
(tests/studio/test_real_clip_in_browser.py: 123 s for 22 masks on the five keyframes of a real clip, contacts and
statements among it).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barista_bench.studio.workspace import Json

MASK_SECONDS = 5.6
DOUBT_SECONDS = 1.35 + 0.28 + 1.1
"""To look at a frame, and a key or a click."""
_OBJECTS = 5
"""On a keyframe, as long as none of the video is annotated."""
_FEWEST = 20
"""Masks below which the seconds of a project say little."""


class Pace(NamedTuple):
    """Seconds a mask takes, over `masks` of the project's decisions; 0 masks: by the model."""

    mask_seconds: float
    masks: int


def pace_of(cards: Sequence[Json]) -> Pace:
    """Over the videos whose decisions say how long they took."""
    timed = [(card["logged_seconds"], card["masks"]) for card in cards if card.get("logged_seconds")]
    masks = sum(count for _, count in timed)
    return Pace(sum(seconds for seconds, _ in timed) / masks, masks) if masks >= _FEWEST else Pace(MASK_SECONDS, 0)


def time_left(card: Json, pace: Pace, length: float | None) -> Json | None:
    """Seconds of what is next, and the masks that the pace rests on; None where a person has nothing to do."""
    if card["next"] == "contacts" and length:
        return {"seconds": length, "masks": 0, "of": "length"}  # it is watched once
    if card["next"] == "keyframes":
        on_each = card["masks"] / card["annotated"] if card["annotated"] else _OBJECTS
        masks = (card["asked"] - card["done"]) * on_each
        return {"seconds": masks * pace.mask_seconds, "masks": pace.masks, "of": "masks"}
    if card["next"] == "doubtful":
        return {"seconds": card["doubtful"] * DOUBT_SECONDS, "masks": 0, "of": "frames"}
    return None
