"""Shared by BARISTA's tasks: the release's wording, its even choice of frames, priors.

A benchmark whose examples are alike can be answered without looking. How well, is what the tasks' `prior_answer`
measures: it knows how the true answers of other videos are distributed, and of the example only its question.
"""

from __future__ import annotations

from pathlib import Path

from barista_bench.benchmarks.kinds.frames import Frames
from barista_bench.core.prompt import FROZEN_QUESTION, packaged_prompts
from barista_bench.core.task import Task
from barista_bench.scene_graph.domain import Domain, load_domain

PROMPT_PACKAGE = "barista_bench.benchmarks.barista"
RELEASED_WORDING = "release@4086ce5"
"""What the release's own wording is called: its commit."""


def domain_called(name: str | None) -> Domain:
    """The domain of a file; coffee making's for None and `default`. Raises ConfigError for no such file."""
    return load_domain(None if name in (None, "default") else Path(name))


def frozen_sentence(task: Task, **values: str) -> str:
    """The sentence that the release freezes with an example, in the task's wording, or in ours where that has none."""
    has_it = FROZEN_QUESTION in task.prompts.extra
    texts = task.prompts if has_it else packaged_prompts(task.prompt_package, task.name)
    return texts.text(FROZEN_QUESTION, **values)


def thin_frames(frames: Frames, fraction: float) -> Frames:
    """The even part of the frames that the release keeps: of a single one, that before the middle.

    >>> import numpy as np
    >>> thin_frames(np.arange(10), 0.1).tolist(), thin_frames(np.arange(10), 0.3).tolist()
    ([4], [0, 4, 9])
    """
    count = max(1, round(len(frames) * fraction))
    if count >= len(frames):
        return frames
    return frames[[(len(frames) - 1) // 2] if count == 1 else even_places(len(frames), count)]


def even_places(length: int, count: int) -> list[int]:
    """The release's even positions: `i * last // (count - 1)`; a single one stands in the middle, the later of two.

    Not `media/frame_choice`'s `evenly_spaced`: where there are fewer places than asked for, some come more than once.

    >>> even_places(10, 4), even_places(10, 1)
    ([0, 3, 6, 9], [5])
    """
    if count == 1:
        return [length // 2]
    return [i * (length - 1) // (count - 1) for i in range(count)]
