"""Define the levels: the facts of each, their inert and false controls, their form, and their words in a diagnosis.

Three levels are pictures. `moment` shows the important frames again. `zoom` shows parts of frames in full size. `marks`
numbers the objects of a frame, and gives the same level as `objects`. `zoom` shows where to look. So a task that asks
for a place does not admit `zoom`, unless the question gives the place.

A new level needs these steps:

1. Add its name to `LevelName`, and its `Level` to `LEVELS`.
2. If its facts are in a table that is not read yet, read the table in `graph_rows.py`.
3. Admit it in the tasks that need it (`TaskAids` in `task_aids.py`), and add it to the task's `needed_levels` if it has
   some. If a task needs other facts than the rule in `LEVELS` finds, add the task's rule to `own_facts` of its class.
   Without such a rule, the rule in `LEVELS` is used.
4. Describe it in the table of docs/diagnosis.md.
5. Read its heading in tests/diagnosis/reasoners.py, which answers from aids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import msgspec

from barista_bench.aids.facts import (
    Fact,
    Finder,
    QuestionScene,
    alike_facts,
    common_area,
    content_digest,
    elsewhere,
    other_moments,
    sort_facts,
    widened,
)
from barista_bench.aids.graph_rows import Box, RelationRow, Span, StateRow
from barista_bench.core.example import evidence_objects
from barista_bench.scene_graph.video_graph import UNNAMED, WINDOW

LevelName: TypeAlias = Literal["moment", "zoom", "marks", "objects", "states", "relations", "activities"]
_MARGIN = 0.2
"""Margin on each side of a part, as a fraction of the width or height of the object's box."""
_LARGEST_PART = 0.25
"""Maximum size of a part, as a fraction of the frame. A larger part does not show where to look."""
_MOST_PARTS = 4


class Picture(msgspec.Struct, frozen=True, omit_defaults=True):
    """A picture to show: a frame of the video, cut to `crop`, with numbered boxes. Boxes are in pixels."""

    frame: int
    crop: Box | None = None
    marks: tuple[tuple[int, Box], ...] = ()


Part = str | Picture


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A level of the scene graph, or a kind of picture that shows one.

    Args:
        heading: the line before the facts. `{format}` stands for the box format.
        given: how a sentence of a diagnosis names the true facts.
        fill: colour of the level's share in a bar of the report.
        facts: finds the facts on which a question depends. A task may have its own rule (`TaskAids.own_facts`).
        inert: chooses as many facts that the question does not depend on, or none if the video lacks them. It receives
            the needed facts, and the task's rule for the level.
        pictures: returns the pictures of facts among their lines. None for a level that is told as text.
        shows: the level whose facts the pictures show. Empty for other levels.
        has_own: whether a model's own boxes, from a run of grounding, can replace the true boxes.
    """

    heading: str
    given: str
    fill: str
    facts: Finder
    inert: Callable[[QuestionScene, Sequence[Fact], Finder], list[Fact]] = alike_facts
    pictures: Callable[[Sequence[Fact], Sequence[str]], list[Part]] | None = None
    shows: str = ""
    has_own: bool = False

    def parts(self, facts: Sequence[Fact], lines: Sequence[str], box_format: str) -> list[Part]:
        """Return the heading and the lines of facts, with the pictures of a level that is shown."""
        heading = self.heading.replace("{format}", box_format) + "\n"
        return [heading, *self.pictures(facts, lines)] if self.pictures else ["".join((heading, *lines))]


def pictures_below_lines(facts: Sequence[Fact], lines: Sequence[str]) -> list[Part]:
    """Return each line followed by its frame, cut to the fact's box."""
    pairs = zip(facts, lines, strict=True)
    return [part for fact, line in pairs for part in (line, Picture(fact.span[0], crop=fact.box))]


def _objects(scene: QuestionScene) -> Iterator[Fact]:
    """Yield the named objects on the first and the last frame."""
    for frame in scene.ends:
        for row in scene.boxes(frame):
            if row.category != UNNAMED:
                yield Fact((row.category,), (0,), (frame, frame + 1), (row.object_id,), row.box)


def state_fact(row: StateRow, span: Span, name: str = "") -> Fact:
    """Return a state as a fact. `name` defaults to the object's category."""
    return Fact((name or row.category,), (0, f": {row.kind} {row.value}"), span, (row.object_id, row.kind, row.value))


def _states(scene: QuestionScene) -> Iterator[Fact]:
    """Yield the states that change somewhere in the video. Other states have no inert control."""
    values: dict[tuple[str, str], set[str]] = {}
    for row in scene.video.states:
        values.setdefault((row.object_id, row.kind), set()).add(row.value)
    for row in scene.video.states:
        if (span := scene.common(row.span)) and len(values[row.object_id, row.kind]) > 1:
            yield state_fact(row, span)


def relation_fact(row: RelationRow, span: Span) -> Fact:
    """Return a relation as a fact."""
    verb = row.value if row.value.split(" ")[0].endswith("s") else f"is {row.value}"
    return Fact((row.source, row.target), (0, f" {verb} ", 1), span, (row.source_id, row.value, row.target_id))


def _relations(scene: QuestionScene) -> Iterator[Fact]:
    for row in scene.video.relations:
        yield from (relation_fact(row, span) for span in scene.spans_in_view(row))


def _activities(scene: QuestionScene) -> Iterator[Fact]:
    for row in scene.video.activities:
        span = scene.common((row.span[0], row.span[1] + 1))
        if span and row.name:
            yield Fact((row.name,), (0,), span, (row.name,))


def _moment(scene: QuestionScene) -> list[Fact]:
    """Return the keyframes around the `changes` in the question's evidence, or none if these are all keyframes."""
    changes: list[dict[str, int]] = scene.example.evidence.get("changes", [])  # type: ignore[assignment]
    frames = {frame for change in changes for frame in (change["start"], change["end"])}
    return [_frame(frame) for frame in sorted(frames)] if frames < set(scene.frames) else []


def _frame(frame: int) -> Fact:
    return Fact((), ("frame",), (frame, frame + 1), ("frame", str(frame)))


def _other_frames(scene: QuestionScene, needed: Sequence[Fact], _: Finder) -> list[Fact]:
    shown = {frame for fact in needed for frame in range(fact.span[0] - WINDOW, fact.span[1] + WINDOW)}
    others = [frame for frame in range(scene.video.frame_count) if frame not in shown]
    others.sort(key=lambda frame: content_digest(scene.example.example_id, frame))
    return sort_facts(map(_frame, others[: len(needed)])) if len(others) >= len(needed) else []


def zoom_into(scene: QuestionScene, boxes: Callable[[int], Iterable[Box]]) -> list[Fact]:
    """Return the parts around the `boxes` of each end frame, or none if the parts are too many or too large."""
    width, height = scene.video.size
    parts = [_part(frame, widened(box, _MARGIN, (width, height))) for frame in scene.ends for box in boxes(frame)]
    largest = _LARGEST_PART * width * height
    is_small = all(fact.box and common_area(fact.box, fact.box) <= largest for fact in parts)
    return parts if len(parts) <= _MOST_PARTS and is_small else []


def _zoom(scene: QuestionScene) -> list[Fact]:
    ids = set(evidence_objects(scene.example))
    return zoom_into(scene, lambda frame: [row.box for row in scene.boxes(frame, ids)])


def _part(frame: int, box: Box) -> Fact:
    return Fact((), ("a part of the frame",), (frame, frame + 1), ("part", str(frame), str(box)), box)


def _other_parts(scene: QuestionScene, needed: Sequence[Fact], _: Finder) -> list[Fact]:
    others = []
    for fact in needed:
        evidence = [each.box for each in needed if each.box and each.span == fact.span]
        assert fact.box is not None
        place = elsewhere(fact.box, evidence, scene.video.size, f"{scene.example.example_id} {fact.box}")
        if place is None:
            return []
        others.append(_part(fact.span[0], place))
    return others


def _marks(scene: QuestionScene) -> list[Fact]:
    return [
        Fact((row.category,), (f"{number}: ", 0), (frame, frame + 1), (row.object_id, str(frame)), row.box)
        for frame in scene.ends
        for number, row in enumerate(scene.boxes(frame), start=1)
    ]


def _other_marks(scene: QuestionScene, needed: Sequence[Fact], _: Finder) -> list[Fact]:
    """Return as many marks as in `needed`, on frames of another moment."""
    wanted = list(Counter(fact.span for fact in needed).values())
    for frames in other_moments(scene):
        marks = _marks(scene._replace(frames=frames))
        by_frame = [[fact for fact in marks if fact.span == span] for span in dict.fromkeys(f.span for f in marks)]
        if len(by_frame) == len(wanted) and all(len(own) >= n for own, n in zip(by_frame, wanted, strict=True)):
            return [fact for own, n in zip(by_frame, wanted, strict=True) for fact in own[:n]]
    return []


def _marked_frames(facts: Sequence[Fact], lines: Sequence[str]) -> list[Part]:
    """Return each marked frame followed by the lines of its marks."""
    parts: list[Part] = []
    for span in dict.fromkeys(fact.span for fact in facts):
        boxes = [(_number(fact), fact.box) for fact in facts if fact.span == span and fact.box]
        parts.append(Picture(span[0], marks=tuple(boxes)))
        parts += [line for fact, line in zip(facts, lines, strict=True) if fact.span == span]
    return parts


def _number(fact: Fact) -> int:
    return int(str(fact.parts[0]).partition(":")[0])


LEVELS: Final[Mapping[LevelName, Level]] = {
    "moment": Level(
        heading="Frames that matter, shown again:",
        given="the frames that matter",
        fill="#1d4ed8",
        facts=_moment,
        inert=_other_frames,
        pictures=pictures_below_lines,
    ),
    "zoom": Level(
        heading="Parts of frames in full size:",
        given="the evidence in full size",
        fill="#0e7490",
        facts=_zoom,
        inert=_other_parts,
        pictures=pictures_below_lines,
    ),
    "marks": Level(
        heading="Frames with numbered objects:",
        given="numbered objects",
        fill="#4d7c0f",
        facts=_marks,
        inert=_other_marks,
        pictures=_marked_frames,
        shows="objects",
        has_own=True,
    ),
    "objects": Level(
        heading="Objects, with boxes as {format}:",
        given="true object boxes",
        fill="#0f766e",
        facts=_objects,
        has_own=True,
    ),
    "states": Level(heading="States of objects:", given="true states of objects", fill="#b45309", facts=_states),
    "relations": Level(heading="Relations between objects:", given="true relations", fill="#6d28d9", facts=_relations),
    "activities": Level(
        heading="Activities of the person who films:", given="true activities", fill="#be185d", facts=_activities
    ),
}
"""Levels by name, in the order of a prompt."""
PICTURES: Final = frozenset(name for name, level in LEVELS.items() if level.pictures)
"""Levels that are shown, and not told as text."""
