"""Code shared by BARISTA's tasks: the release's wording, and its choice of evenly spaced frames.

If the examples of a benchmark resemble each other, a model can answer without looking at the frames. Each task's
`prior_answer` measures how well. It knows how the true answers of other videos are distributed. Of the example itself
it knows only the question.
"""

from __future__ import annotations

from pathlib import Path

from barista_bench.benchmarks.kinds.frames import Frames
from barista_bench.core.prompt import FROZEN_QUESTION
from barista_bench.core.prompt_files import packaged_prompts
from barista_bench.core.task import Task
from barista_bench.scene_graph.domain import Domain, load_domain

PROMPT_PACKAGE = "barista_bench.benchmarks.barista"
RELEASED_WORDING = "release@4086ce5"
"""Name of the release's wording: the commit of the release."""


def load_named_domain(name: str | None) -> Domain:
    """Return the domain in a file; None and `default` stand for coffee making.

    Raises ConfigError if there is no such file.
    """
    return load_domain(None if name in (None, "default") else Path(name))


def frozen_sentence(task: Task, **values: str) -> str:
    """Return the sentence that the release freezes with an example.

    The sentence comes from the task's wording. If that wording lacks the sentence, it comes from the packaged wording.
    """
    has_it = FROZEN_QUESTION in task.prompts.extra
    texts = task.prompts if has_it else packaged_prompts(task.prompt_package, task.name)
    return texts.text(FROZEN_QUESTION, **values)


def thin_frames(frames: Frames, fraction: float) -> Frames:
    """Return the evenly spaced frames that the release keeps. A single frame is the middle one, or the earlier of two.

    >>> import numpy as np
    >>> thin_frames(np.arange(10), 0.1).tolist(), thin_frames(np.arange(10), 0.3).tolist()
    ([4], [0, 4, 9])
    """
    count = max(1, round(len(frames) * fraction))
    if count >= len(frames):
        return frames
    return frames[[(len(frames) - 1) // 2] if count == 1 else even_places(len(frames), count)]


def even_places(length: int, count: int) -> list[int]:
    """Return the release's evenly spaced positions, `i * last // (count - 1)`.

    A single position is the middle one, or the later of two. Unlike `evenly_spaced` of `media/frame_choice`, this
    function repeats positions if `count` exceeds `length`.

    >>> even_places(10, 4), even_places(10, 1)
    ([0, 3, 6, 9], [5])
    """
    if count == 1:
        return [length // 2]
    return [i * (length - 1) // (count - 1) for i in range(count)]
