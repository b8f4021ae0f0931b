"""Show the first and the last frame again, with a number and a name on each object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from barista_bench.aids.facts import Fact, Finder, QuestionScene, other_moments
from barista_bench.aids.level import Level, Part, Picture


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


MARKS = Level(
    heading="Frames with numbered objects:",
    given="numbered objects",
    fill="#4d7c0f",
    facts=_marks,
    inert=_other_marks,
    pictures=_marked_frames,
    shows="objects",
    has_own=True,
)
