"""Turn aids and their controls into text and pictures before the question, for the examples of one task."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from barista_bench.aids.facts import (
    Fact,
    QuestionScene,
    facts_of,
    graph_evidence,
    graph_video,
    is_traced,
    shown_frames,
    sort_facts,
    unneeded_facts,
)
from barista_bench.aids.false_facts import FalseFacts, false_facts
from barista_bench.aids.graph_rows import Box, VideoRows, read_graph_rows
from barista_bench.aids.levels import PICTURES, Aid, Level, View, check_aids, needed_levels, task_levels
from barista_bench.aids.picture_facts import other_pictures, picture_facts
from barista_bench.aids.views import Viewed, viewed
from barista_bench.core.boxes import BoxFormat, describe_format, write_box
from barista_bench.core.example import Example, Fields
from barista_bench.core.task import Task
from barista_bench.data.dataset import ExampleSet
from barista_bench.errors import ConfigError

VERSION: Final = 2
"""Version of texts and pictures. It is part of a run's identity. Increase it with every change of their form."""
TOLERANCE: Final = 0.1
"""Maximum difference in words between an inert aid and the true aid, as a fraction of the true aid."""
HEADINGS: Final[Mapping[Level, str]] = {
    "moment": "Frames that matter, shown again:",
    "zoom": "Parts of frames in full size:",
    "marks": "Frames with numbered objects:",
    "objects": "Objects, with boxes as {format}:",
    "states": "States of objects:",
    "relations": "Relations between objects:",
    "activities": "Activities of the person who films:",
}


OPENING: Final = "Facts of this video, as annotated. Times are seconds after the first frame shown; the "
"""First words of the aids, unless the question shows a clip of the graph's video."""


class Picture(msgspec.Struct, frozen=True, omit_defaults=True):
    """A picture to show: a frame of the video, cut to `crop`, with numbered boxes. Boxes are in pixels."""

    frame: int
    crop: Box | None = None
    marks: tuple[tuple[int, Box], ...] = ()


Part = str | Picture
Parts = tuple[Part, ...]
"""The texts and pictures before a question, in order. Empty without aids."""


OwnBoxes = dict[tuple[str, int, str], Box | None]
"""Maps (video, frame, object) to the model's own answered box, or to None if it answered no box."""


class AidBook:
    """Makes the aids for the examples of one task. Methods take only examples of these videos.

    Args:
        task: the task of the examples.
        videos: maps video ids to graphs.
    """

    def __init__(self, task: Task, videos: Mapping[str, VideoRows]) -> None:
        self.task, self._videos = task, videos
        self._views: dict[tuple[str, View], Viewed | None] = {}
        self.own_boxes: OwnBoxes = {}
        self._needed: dict[tuple[str, Level], list[Fact]] = {}
        self._inert: dict[tuple[str, Level], list[Fact]] = {}
        self._false: dict[tuple[str, Level], FalseFacts | None] = {}

    @classmethod
    def open(cls, task: Task, examples: ExampleSet, data: str, aids: Iterable[Aid] = ()) -> AidBook:
        """Open the aids for a set of examples. `data` is the built dataset with the graphs of their videos.

        Raises:
            ConfigError: the task does not admit an aid in `aids`, or its examples do not come from a graph.
            DataError: a graph table is missing, unreadable or lacks a video.
        """
        check_aids(task, aids)
        traced = [example for example in examples.examples if is_traced(example)]
        if not traced:
            raise ConfigError(
                f"{task.benchmark}/{task.name}: no example comes from a graph, so there are no aids. Fix: compare with "
                "the models first_frame:MODEL and shuffled_frames:MODEL, which need no graph"
            )
        return cls(task, read_graph_rows(data, set(map(graph_video, traced))))

    def levels(self, example: Example, wanted: Collection[Level] = ()) -> tuple[Level, ...]:
        """Return the levels for which the video has needed facts and an inert control of the same size.

        Args:
            wanted: levels to consider. Empty means the task's usual levels.
        """
        return tuple(
            level
            for level in needed_levels(self.task, example)
            if (level in wanted if wanted else level in task_levels(self.task).aids)
            and self.needed(example, level)
            and self.inert(example, level)
        )

    def needed(self, example: Example, level: Level) -> list[Fact]:
        key = example.example_id, level
        if key not in self._needed:
            find = picture_facts if level in PICTURES else facts_of
            self._needed[key] = find(level, self._scene(example)) if is_traced(example) else []
        return self._needed[key]

    def inert(self, example: Example, level: Level) -> list[Fact]:
        """Return as many unneeded facts as needed facts, of about the same length, or none if the video lacks them."""
        key = example.example_id, level
        if key not in self._inert:
            needed, scene = self.needed(example, level), self._scene(example)
            if not needed:
                self._inert[key] = []
            elif level in PICTURES:
                self._inert[key] = other_pictures(level, scene, needed)
            else:
                self._inert[key] = _choose_alike(needed, unneeded_facts(level, scene, needed))
        return self._inert[key]

    def false(self, example: Example, level: Level) -> FalseFacts | None:
        """Return the false facts of a level and the target that follows, or None if no other answer follows."""
        key = example.example_id, level
        if key not in self._false:
            needed = self.needed(example, level)
            self._false[key] = false_facts(level, self._scene(example), needed) if needed else None
        return self._false[key]

    def own(self, example: Example, level: Level) -> list[Fact]:
        """Return the needed facts with the model's own boxes. Facts on objects that the model did not see are left out.

        The result is empty if the model was not asked about an object, or saw none of the objects.
        """
        needed = [(fact, (example.video_id, fact.span[0], fact.about[0])) for fact in self.needed(example, level)]
        if any(key not in self.own_boxes for _, key in needed):
            return []
        return [fact._replace(box=box) for fact, key in needed if (box := self.own_boxes[key])]

    def other_target(self, example: Example, level: Level) -> Fields | None:
        """Return the target that follows from the false aid, or None without a false aid."""
        false = self.false(example, level)
        return None if false is None else false.target

    def text(self, example: Example, aids: Iterable[Aid], box_format: BoxFormat) -> str | None:
        """Return the text of the aids without their pictures. See `parts`."""
        parts = self.parts(example, aids, box_format)
        return None if parts is None else "".join(part for part in parts if isinstance(part, str))

    def parts(self, example: Example, aids: Iterable[Aid], box_format: BoxFormat) -> Parts | None:
        """Return the parts of the aids. Empty if the question needs no aid, None if a needed aid cannot be made."""
        parts: list[Part] = []
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
            elif aid.variant == "own":
                facts = self.own(example, aid.level)
            if not facts:
                return None
            parts += self._block(example, aid.level, facts, renamed, box_format)
        return (self._open_text(example), *parts, "\n") if parts else ()

    def all_parts(self, examples: Iterable[Example], aids: Collection[Aid], box_format: BoxFormat) -> dict[str, Parts]:
        """Map example ids to `parts`. Examples for which an aid cannot be made are left out."""
        all_parts = {example.example_id: self.parts(example, aids, box_format) for example in examples}
        return {example_id: parts for example_id, parts in all_parts.items() if parts is not None}

    def viewed(self, example: Example, view: View) -> Viewed | None:
        """Return the example in a view, or None if the view cannot be made."""
        key = example.example_id, view
        if key not in self._views:
            self._views[key] = viewed(view, self._scene(example))
        return self._views[key]

    def size(self, example: Example) -> tuple[int, int]:
        """Return (width, height) in pixels. All boxes refer to this size."""
        return self._videos[graph_video(example)].size

    def _open_text(self, example: Example) -> str:
        scene = self._scene(example)
        if graph_evidence(example):
            return "Facts of this video, as annotated. Times are seconds after the beginning of what is asked about.\n"
        shown = ", ".join(f"{(f.frame_index - scene.frames[0]) / _rate(scene.video):.2f}" for f in example.frames)
        count = "frame is" if len(example.frames) == 1 else "frames are"
        return f"{OPENING}{count} at {shown}.\n"

    def _block(
        self, example: Example, level: Level, facts: Sequence[Fact], renamed: Mapping[str, str], box_format: BoxFormat
    ) -> list[Part]:
        scene = self._scene(example)
        lines = [_line(fact, renamed, scene, None if level in PICTURES else box_format) + "\n" for fact in facts]
        block: list[Part] = [HEADINGS[level].replace("{format}", describe_format(box_format)) + "\n"]
        if level == "marks":
            for span in dict.fromkeys(fact.span for fact in facts):
                boxes = [(number_of(fact), fact.box) for fact in facts if fact.span == span and fact.box]
                block += [Picture(span[0], marks=tuple(boxes))]
                block += [line for fact, line in zip(facts, lines, strict=True) if fact.span == span]
        elif level in PICTURES:
            for fact, line in zip(facts, lines, strict=True):
                block += [line, Picture(fact.span[0], crop=fact.box)]
        else:
            block += lines
        return ["".join(block)] if level not in PICTURES else block  # type: ignore[arg-type]

    def _scene(self, example: Example) -> QuestionScene:
        return QuestionScene(example, self._videos[graph_video(example)], shown_frames(example))


def number_of(fact: Fact) -> int:
    """Return the number of a mark."""
    return int(str(fact.parts[0]).partition(":")[0])


def parts_lines(parts: Mapping[str, Parts]) -> list[bytes]:
    """Encode the aids of a run as JSON, one line per example. Boxes are in pixels, and no pictures are included."""
    return [msgspec.json.encode({"example_id": name, "parts": parts[name]}) for name in sorted(parts)]


def _line(fact: Fact, renamed: Mapping[str, str], scene: QuestionScene, box_format: BoxFormat | None) -> str:
    start, end = ((frame - scene.frames[0]) / _rate(scene.video) for frame in fact.span)
    is_moment = fact.span[1] - fact.span[0] == 1
    when = f"at {start:.2f}" if is_moment else f"from {start:.2f} to {end:.2f}"
    box = (
        ""
        if fact.box is None or box_format is None
        else f" {json.dumps(write_box(fact.box, box_format, *scene.video.size))}"
    )
    return f"- {fact.words(renamed)}{box} ({when})"


def _rate(video: VideoRows) -> float:
    """Return frames per second, or 1 if the graph does not give the rate. Times are then frame numbers."""
    return video.fps or 1.0


def _choose_alike(needed: Sequence[Fact], pool: Sequence[Fact]) -> list[Fact]:
    """Pick a fact of the pool for each needed fact, of about the same length and preferably with the same names.

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
    return sort_facts(chosen) if abs(surplus) <= TOLERANCE * sum(lengths[fact] for fact in needed) else []
