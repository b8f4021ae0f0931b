"""Write aids and their controls as text before the question, for the examples of one task."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from barista_bench.aids.facts import Fact, Scene, facts_of, in_order, shown_frames, unneeded_facts
from barista_bench.aids.false_facts import FalseFacts, false_facts
from barista_bench.aids.graph_rows import VideoRows, read_graph_rows
from barista_bench.aids.levels import Aid, Level, check_aids, needed_levels
from barista_bench.core.boxes import BoxFormat, describe_format, write_box
from barista_bench.core.example import Fields
from barista_bench.core.task import Example, Task
from barista_bench.data.dataset import ExampleSet

VERSION: Final = 1
"""Version of the texts, part of a run's identity. Increase it with every change of a text."""
TOLERANCE: Final = 0.1
"""Maximum difference in words between an inert aid and the true aid, as a fraction of the true aid."""
_HEADINGS: Final[Mapping[Level, str]] = {
    "objects": "Objects, with boxes as {format}:",
    "states": "States of objects:",
    "relations": "Relations between objects:",
    "activities": "Activities of the person who films:",
}


class AidBook:
    """The aids of the examples of one task. Pass only examples of these videos to its methods.

    Args:
        task: the task of the examples.
        videos: video id to graph.
    """

    def __init__(self, task: Task, videos: Mapping[str, VideoRows]) -> None:
        self.task, self._videos = task, videos
        self._needed: dict[tuple[str, Level], list[Fact]] = {}
        self._inert: dict[tuple[str, Level], list[Fact]] = {}
        self._false: dict[tuple[str, Level], FalseFacts | None] = {}

    @classmethod
    def open(cls, task: Task, examples: ExampleSet, data: str, aids: Iterable[Aid] = ()) -> AidBook:
        """Return the aids of a built dataset.

        Raises:
            ConfigError: the task does not admit one of `aids`.
            DataError: a graph table is missing, unreadable or lacks a video.
        """
        check_aids(task, aids)
        return cls(task, read_graph_rows(data, {example.video_id for example in examples.examples}))

    def levels(self, example: Example) -> tuple[Level, ...]:
        """Return the levels with facts that the question needs and an inert control of the same size."""
        return tuple(
            level
            for level in needed_levels(self.task, example)
            if self.needed(example, level) and self.inert(example, level)
        )

    def needed(self, example: Example, level: Level) -> list[Fact]:
        key = example.example_id, level
        if key not in self._needed:
            self._needed[key] = facts_of(level, self._scene(example))
        return self._needed[key]

    def inert(self, example: Example, level: Level) -> list[Fact]:
        """Return as many unneeded facts as needed ones, of about the same length; empty if the video lacks them."""
        key = example.example_id, level
        if key not in self._inert:
            needed = self.needed(example, level)
            self._inert[key] = (
                _choose_alike(needed, unneeded_facts(level, self._scene(example), needed)) if needed else []
            )
        return self._inert[key]

    def false(self, example: Example, level: Level) -> FalseFacts | None:
        """Return the false facts of a level and the target that follows; None where no other answer follows."""
        key = example.example_id, level
        if key not in self._false:
            needed = self.needed(example, level)
            self._false[key] = false_facts(level, self._scene(example), needed) if needed else None
        return self._false[key]

    def other_target(self, example: Example, level: Level) -> Fields | None:
        """Return the target that follows from the false aid; None if there is no false aid."""
        false = self.false(example, level)
        return None if false is None else false.target

    def text(self, example: Example, aids: Iterable[Aid], box_format: BoxFormat) -> str | None:
        """Return the text of the aids; empty if the question needs no aid, None if a needed one cannot be made."""
        blocks = []
        for aid in aids:
            if aid.level not in needed_levels(self.task, example) or not self.needed(example, aid.level):
                continue
            facts: Sequence[Fact] = self.needed(example, aid.level)
            renamed: Mapping[str, str] = {}
            if aid.variant == "inert":
                facts = self.inert(example, aid.level)
            elif aid.variant == "false":
                false = self.false(example, aid.level)
                facts, renamed = (false.facts, false.renamed) if false else ((), {})
            if not facts:
                return None
            blocks.append(self._block(example, aid.level, facts, renamed, box_format))
        return "\n".join([self._open_text(example), *blocks]) + "\n\n" if blocks else ""

    def texts(self, examples: Iterable[Example], aids: Collection[Aid], box_format: BoxFormat) -> dict[str, str]:
        """Return example id to `text`, without the examples for which an aid cannot be made."""
        texts = {example.example_id: self.text(example, aids, box_format) for example in examples}
        return {example_id: text for example_id, text in texts.items() if text is not None}

    def _open_text(self, example: Example) -> str:
        scene = self._scene(example)
        shown = ", ".join(f"{(f.frame_index - scene.frames[0]) / _rate(scene.video):.2f}" for f in example.frames)
        count = "frame is" if len(example.frames) == 1 else "frames are"
        return (
            f"Facts of this video, as annotated. Times are seconds after the first frame shown; the {count} at {shown}."
        )

    def _block(
        self, example: Example, level: Level, facts: Sequence[Fact], renamed: Mapping[str, str], box_format: BoxFormat
    ) -> str:
        scene = self._scene(example)
        heading = _HEADINGS[level].replace("{format}", describe_format(box_format))
        return "\n".join([heading, *(_line(fact, renamed, scene, box_format) for fact in facts)])

    def _scene(self, example: Example) -> Scene:
        return Scene(example, self._videos[example.video_id], shown_frames(example))


def texts_hash(texts: Mapping[str, str]) -> str:
    """Return the SHA-256 hash of the aids of a run, in hex."""
    return hashlib.sha256(json.dumps(sorted(texts.items()), ensure_ascii=True).encode()).hexdigest()


def _line(fact: Fact, renamed: Mapping[str, str], scene: Scene, box_format: BoxFormat) -> str:
    start, end = ((frame - scene.frames[0]) / _rate(scene.video) for frame in fact.span)
    is_moment = fact.span[1] - fact.span[0] == 1
    when = f"at {start:.2f}" if is_moment else f"from {start:.2f} to {end:.2f}"
    box = "" if fact.box is None else f" {json.dumps(write_box(fact.box, box_format, *scene.video.size))}"
    return f"- {fact.words(renamed)}{box} ({when})"


def _rate(video: VideoRows) -> float:
    """Return frames per second; 1 where the graph does not give it, so that times are frame numbers."""
    return video.fps or 1.0


def _choose_alike(needed: Sequence[Fact], pool: Sequence[Fact]) -> list[Fact]:
    """Pick one fact of the pool for each needed fact, of about the same length and preferably with the same names.

    Return an empty list if the pool is too small or the total length differs by more than `TOLERANCE`.
    """
    left, chosen = list(pool), []
    lengths = {fact: len(fact.words().split()) + 2 * (fact.span[1] - fact.span[0] > 1) for fact in (*needed, *pool)}
    surplus = 0
    for fact in needed:
        if not left:
            return []
        wanted = lengths[fact] - surplus
        best = min(
            range(len(left)),
            key=lambda index: (abs(lengths[left[index]] - wanted), left[index].names != fact.names, index),
        )
        surplus += lengths[left[best]] - lengths[fact]
        chosen.append(left.pop(best))
    return in_order(chosen) if abs(surplus) <= TOLERANCE * sum(lengths[fact] for fact in needed) else []
