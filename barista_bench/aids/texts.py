"""Turn aids and their controls into text and pictures before the question, for the examples of one task."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from barista_bench.aids.facts import Fact, FalseFacts, QuestionScene, asked_frames, sort_facts
from barista_bench.aids.graph_rows import Box, GraphRows, read_graph_rows
from barista_bench.aids.levels import LEVELS, PICTURES, LevelName, Part
from barista_bench.aids.task_aids import Aid, aids_of, check_admitted
from barista_bench.aids.views import View, Viewed, viewed
from barista_bench.core.boxes import BoxFormat, describe_format, write_box
from barista_bench.core.deriving import GraphTask
from barista_bench.core.example import Example, graph_span
from barista_bench.core.task import Task
from barista_bench.errors import ConfigError

VERSION: Final = 2
"""Version of texts and pictures. It is part of a run's identity. Increase it with every change of their form."""
OPENING: Final = "Facts of this video, as annotated. Times are seconds after the first frame shown; the "
"""First words of the aids, unless the question shows a clip of the graph's video."""
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

    def __init__(self, task: Task, videos: Mapping[str, GraphRows]) -> None:
        self.task, self._aids, self._videos = task, aids_of(task), videos
        self._views: dict[tuple[str, View], Viewed | None] = {}
        self.own_boxes: OwnBoxes = {}
        self._needed: dict[tuple[str, LevelName], list[Fact]] = {}
        self._inert: dict[tuple[str, LevelName], list[Fact]] = {}
        self._false: dict[tuple[str, LevelName], FalseFacts | None] = {}

    @classmethod
    def open(cls, task: Task, examples: Iterable[Example], data: str, aids: Iterable[Aid] = ()) -> AidBook:
        """Open the aids for examples. `data` is the built dataset with the graphs of their videos.

        Raises:
            ConfigError: the task does not admit an aid in `aids`, or its examples do not come from a graph.
            DataError: a graph table is missing, unreadable or lacks a video.
        """
        check_admitted(task, aids)
        traced = [example for example in examples if _is_traced(task, example)]
        if not traced:
            raise ConfigError(
                f"{task.benchmark}/{task.name}: no example comes from a graph, so there are no aids. Fix: compare with "
                "the models first_frame:MODEL and shuffled_frames:MODEL, which need no graph"
            )
        return cls(task, read_graph_rows(data, {graph_span(example).video_id for example in traced}))

    def levels(self, example: Example, wanted: Collection[LevelName] = ()) -> tuple[LevelName, ...]:
        """Return the levels for which the video has needed facts and an inert control of the same size.

        Args:
            wanted: levels to consider. Empty means the task's usual levels.
        """
        return tuple(
            level
            for level in self._aids.needed_levels(example)
            if (level in wanted if wanted else level in self._aids.default)
            and self.needed(example, level)
            and self.inert(example, level)
        )

    def needed(self, example: Example, level: LevelName) -> list[Fact]:
        key = example.example_id, level
        if key not in self._needed:
            found = self._aids.facts(level, self._scene(example)) if _is_traced(self.task, example) else ()
            self._needed[key] = list(found) if level in PICTURES else sort_facts(found)
        return self._needed[key]

    def inert(self, example: Example, level: LevelName) -> list[Fact]:
        """Return as many unneeded facts as needed facts, of about the same length, or none if the video lacks them."""
        key = example.example_id, level
        if key not in self._inert:
            needed, find = self.needed(example, level), partial(self._aids.facts, level)
            self._inert[key] = LEVELS[level].inert(self._scene(example), needed, find) if needed else []
        return self._inert[key]

    def false(self, example: Example, level: LevelName) -> FalseFacts | None:
        """Return the false facts of a level and the target that follows, or None if no other answer follows."""
        key = example.example_id, level
        if key not in self._false:
            needed = self.needed(example, level)
            self._false[key] = self._aids.false(level, self._scene(example), needed) if needed else None
        return self._false[key]

    def own(self, example: Example, level: LevelName) -> list[Fact]:
        """Return the needed facts with the model's own boxes. Facts on objects that the model did not see are left out.

        The result is empty if the model was not asked about an object, or saw none of the objects.
        """
        needed = [(fact, (example.video_id, fact.span[0], fact.about[0])) for fact in self.needed(example, level)]
        if any(key not in self.own_boxes for _, key in needed):
            return []
        return [fact._replace(box=box) for fact, key in needed if (box := self.own_boxes[key])]

    def text(self, example: Example, aids: Iterable[Aid], box_format: BoxFormat) -> str | None:
        """Return the text of the aids without their pictures. See `parts`."""
        parts = self.parts(example, aids, box_format)
        return None if parts is None else "".join(part for part in parts if isinstance(part, str))

    def parts(self, example: Example, aids: Iterable[Aid], box_format: BoxFormat) -> Parts | None:
        """Return the parts of the aids. Empty if the question needs no aid, None if a needed aid cannot be made."""
        parts: list[Part] = []
        for aid in aids:
            if aid.level not in self._aids.needed_levels(example) or not self.needed(example, aid.level):
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
            scene, written = self._scene(example), None if aid.level in PICTURES else box_format
            lines = [_line(fact, renamed, scene, written) + "\n" for fact in facts]
            parts += LEVELS[aid.level].parts(facts, lines, describe_format(box_format))
        return (self._open_text(example), *parts, "\n") if parts else ()

    def viewed(self, example: Example, view: View) -> Viewed | None:
        """Return the example in a view, or None if the view cannot be made."""
        key = example.example_id, view
        if key not in self._views:
            self._views[key] = viewed(view, self._scene(example), self._aids.mirrored, self._aids.reversed)
        return self._views[key]

    def size(self, example: Example) -> tuple[int, int]:
        """Return (width, height) in pixels. All boxes refer to this size."""
        return self._videos[graph_span(example).video_id].size

    def _open_text(self, example: Example) -> str:
        scene = self._scene(example)
        if example.evidence.get("graph"):
            return "Facts of this video, as annotated. Times are seconds after the beginning of what is asked about.\n"
        shown = ", ".join(f"{(f.frame_index - scene.frames[0]) / _rate(scene.video):.2f}" for f in example.frames)
        count = "frame is" if len(example.frames) == 1 else "frames are"
        return f"{OPENING}{count} at {shown}.\n"

    def _scene(self, example: Example) -> QuestionScene:
        return QuestionScene(example, self._videos[graph_span(example).video_id], asked_frames(example))


def _is_traced(task: Task, example: Example) -> bool:
    """Return whether the example comes from a known graph: derived by its task, or generated with its evidence."""
    return isinstance(task, GraphTask) or bool(example.evidence.get("graph"))


def _line(fact: Fact, renamed: Mapping[str, str], scene: QuestionScene, box_format: BoxFormat | None) -> str:
    start, end = ((frame - scene.frames[0]) / _rate(scene.video) for frame in fact.span)
    is_moment = fact.span[1] - fact.span[0] == 1
    when = f"at {start:.2f}" if is_moment else f"from {start:.2f} to {end:.2f}"
    box = f" {json.dumps(write_box(fact.box, box_format, *scene.video.size))}" if fact.box and box_format else ""
    return f"- {fact.words(renamed)}{box} ({when})"


def _rate(video: GraphRows) -> float:
    """Return frames per second, or 1 if the graph does not give the rate. Times are then frame numbers."""
    return video.fps or 1.0
