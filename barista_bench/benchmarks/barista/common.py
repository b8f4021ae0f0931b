"""What all BARISTA tasks share: metadata that analysis groups by, protocols, what is usual, how the release reads JSON.

A benchmark whose examples are alike can be answered without looking. How well, is what the tasks' `prior_answer`
measures: it knows how the true answers of other videos are distributed, and of the example only its question.

The released parsers (`read_released`, docs/upstream/barista.md) are strict in some places and generous in others: a
fence counts only where its first line ends right after a plain tag, an entry that is not valid rejects a list of
interactions but not one of relations, numbers may be texts. Where the released run stops, at a number without bounds
or at nesting too deep, the answer cannot be read here.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from barista_bench.benchmarks.parsing import MAX_ANSWER
from barista_bench.core.deriving import Sampling
from barista_bench.core.example import Int64, TypedFields
from barista_bench.core.prompt import FROZEN_QUESTION, packaged_prompts
from barista_bench.core.task import Example, Fields, ParseError, Prediction, Task
from barista_bench.scene_graph import VideoGraph
from barista_bench.scene_graph.domain import Domain, load_domain

PROMPT_PACKAGE = "barista_bench.benchmarks.barista"
WORDING = "release@4086ce5"
"""What the release's own wording is called: its commit."""


def domain_of(sampling: Sampling) -> Domain:
    """The domain that a sampling names; coffee making's where it names none. Raises ConfigError for no such file."""
    return load_domain(None if sampling.domain in (None, "default") else Path(sampling.domain))


class FrameMetadata(TypedFields):
    """What analysis groups by; `split` is filled in by the builder, which sees all videos."""

    preparation: str
    split: str
    activities: list[str]
    steps: list[str]
    device: str
    frame_count: Int64
    fps: float


def frame_metadata(graph: VideoGraph, frame: int) -> Fields:
    """The metadata of an example at one frame."""
    return FrameMetadata(
        preparation=graph.preparation,
        split="",
        activities=[segment.name for segment in graph.activities(frame)],
        steps=[segment.name for segment in graph.steps(frame)],
        device=graph.video.recording_device_type or "unknown",
        frame_count=graph.frame_count,
        fps=graph.video.fps or 0.0,
    ).write()


def frozen_sentence(task: Task, **values: str) -> str:
    """The sentence that the release freezes with an example, in the task's wording, or in ours where that has none."""
    has_it = FROZEN_QUESTION in task.prompts.extra
    texts = task.prompts if has_it else packaged_prompts(task.prompt_package, task.name)
    return texts.text(FROZEN_QUESTION, **values)


KEPT = 256
"""Sets of examples of which the outcome is kept: more than a benchmark has videos."""

Result = TypeVar("Result")
Name = TypeVar("Name", str, int, tuple[str, ...])


@dataclass(frozen=True, slots=True)
class _Same:
    """A tuple of examples, compared as the very same object: examples have no hash."""

    examples: tuple[Example, ...]

    def __hash__(self) -> int:
        return id(self.examples)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.examples is self.examples


def remembered(make: Callable[[Sequence[Example]], Result]) -> Callable[[Sequence[Example]], Result]:
    """`make`, called once for each of the last `KEPT` tuples; for a list, which may change, every time."""
    kept = lru_cache(KEPT)(lambda same: make(same.examples))

    @wraps(make)
    def call(examples: Sequence[Example]) -> Result:
        return kept(_Same(examples)) if isinstance(examples, tuple) else make(examples)

    return call


def most_frequent(values: Iterable[Name]) -> Name:
    """The value that is there most often; of several the first in sorted order.

    Raises:
        ValueError: there are no values.

    >>> most_frequent(["lid", "cup", "cup", "lid"])
    'cup'
    """
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], value))


_Arguments = ParamSpec("_Arguments")


_RELEASED_FENCE = re.compile(r"```\w*\n(.*?)```", re.DOTALL)


def within_bounds(
    read: Callable[_Arguments, Prediction | ParseError],
) -> Callable[_Arguments, Prediction | ParseError]:
    """The reader, for which a number or nesting that Python cannot hold makes an answer unreadable."""

    @wraps(read)
    def reader(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Prediction | ParseError:
        try:
            return read(*args, **kwargs)
        except (OverflowError, RecursionError):
            return ParseError("the answer holds a number, or nesting, without bounds")

    return reader


def body_of(text: str) -> str:
    r"""The body of the first fenced block where there is one, else the text; white space around it removed.

    >>> body_of("So: ```json\n[1]\n``` Bye."), body_of("```json \n[1]\n```")
    ('[1]', '```json \n[1]\n```')
    """
    text = text[:MAX_ANSWER].strip()
    fence = _RELEASED_FENCE.search(text)
    return fence[1].strip() if fence else text


def array_in(body: str) -> list[object] | None:
    """The body as a JSON list; None where it is anything else."""
    try:
        array_alone = json.loads(body)
    except ValueError:
        return None
    return array_alone if isinstance(array_alone, list) else None
