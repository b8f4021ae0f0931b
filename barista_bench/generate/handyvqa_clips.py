"""Clips of HanDyVQA about a scene: which frames a question's clip has, and which of them its task shows."""

from __future__ import annotations

import math
from typing import NamedTuple

from barista_bench.benchmarks.handyvqa.choice_tasks import OptionsTask
from barista_bench.benchmarks.handyvqa.release import HALF_WINDOW_S
from barista_bench.generate.scene import Scene
from barista_bench.media.frame_choice import evenly_spaced

SHOWN = OptionsTask.sampling.frames or 16
"""Frames that the tasks show of a clip."""
_CLOSE_S = 1e-6
"""Seconds by which the times of frames may be off, as in `media.frame_choice`."""


class ClipWindow(NamedTuple):
    """Frames [start, stop) around `centre`, and those of them that are shown, in order."""

    centre: int
    start: int
    stop: int
    shown: tuple[int, ...]


def clip_around(scene: Scene, centre: int) -> ClipWindow:
    """The frames within 2.5 s of a frame, as far as the video has them."""
    half = (HALF_WINDOW_S + _CLOSE_S) * scene.fps
    start = max(0, math.ceil(centre - half))
    stop = min(scene.frame_count, math.floor(centre + half) + 1)
    return ClipWindow(centre, start, stop, tuple(start + at for at in evenly_spaced(stop - start, SHOWN)))


def clip_halfway(scene: Scene, frame: int) -> tuple[ClipWindow, int] | None:
    """The clip halfway through which a frame, or one next to it, is shown, and that frame; None near the video's ends,
    where no clip has it in its middle."""
    step = math.ceil(2 * HALF_WINDOW_S * scene.fps / (SHOWN - 1))
    clips = [clip_around(scene, c) for c in range(max(0, frame - step), min(scene.frame_count, frame + step + 1))]
    rows = [(abs(at - frame), abs(clip.centre - frame), at, clip) for clip in clips for at in clip.shown]
    rows = [row for row in rows if row[0] <= step // 2 and abs(2 * row[2] - row[3].start - row[3].stop) <= 2 * step]
    return (min(rows)[3], min(rows)[2]) if rows else None
