"""Computes how difficult it is to answer a question by watching the video, and the origins of the distractors."""

from __future__ import annotations

from functools import cached_property
from math import log

import msgspec
import numpy as np

from barista_bench.errors import ConfigError
from barista_bench.generate.candidates import DIFFICULTIES, Choice, Difficulty, DifficultyName, QuestionCandidate
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import noun_of
from barista_bench.generate.statements import AllOf, Statement, Touches

SAME_OBJECT, SAME_MOMENT = "same object", "same moment"
"""Origins of a distractor.

The first is another claim about the answer's object, for example at another time. The second is a claim about an object
that is visible, or an action in progress, at the moment asked about. If both apply, the first is used.
"""
LARGE, SMALL = 0.05, 0.001
"""Fractions of the frame. At or above the first an object is easy to see, below the second it is hard to see."""
LONG, SHORT = 10.0, 1.0
"""Seconds in view. At or above the first an object is easy to see, below the second it is hard to see."""
NEAR = 0.25
"""Maximum distance between the centres of two boxes that count as near, as a fraction of the frame's width."""
MOST_STEPS = 4
THRESHOLDS = (0.3, 0.5)
"""The lowest scores of a medium question and of a hard question."""


def parse_difficulties(text: str) -> tuple[DifficultyName, ...]:
    """Parse a range of levels, `easy:medium`, or a single level. Raises ConfigError for other texts."""
    first, _, last = text.partition(":")
    last = last or first
    if first not in DIFFICULTIES or last not in DIFFICULTIES or DIFFICULTIES.index(first) > DIFFICULTIES.index(last):
        remedy = "name one of easy, medium and hard, or two with a colon between, the easier one first"
        raise ConfigError(f"difficulty: {text!r} is not a range of levels. Fix: {remedy}")
    return DIFFICULTIES[DIFFICULTIES.index(first) : DIFFICULTIES.index(last) + 1]


def with_difficulty(candidate: QuestionCandidate, scene: Scene, distractors_needed: int) -> QuestionCandidate:
    """Return a decided candidate with its difficulty and the origins of its distractors.

    Distractors with an origin come first.

    Args:
        distractors_needed: number of distractors that the question needs.
    """
    topic = Topic(candidate, scene)
    origins = {choice.text: topic.origin(choice) for choice in candidate.distractors}
    ordered = tuple(sorted(candidate.distractors, key=lambda choice: not origins[choice.text]))
    are_near = [topic.is_near(choice, origins[choice.text]) for choice in ordered[:distractors_needed]]
    steps = count_steps(candidate)
    area, seconds = topic.area(), topic.seconds()
    hardnesses = [
        None if area is None else _hardness(area, LARGE, SMALL),
        None if seconds is None else _hardness(seconds, LONG, SHORT),
        float(np.mean(are_near)) if are_near else None,
        (min(steps, MOST_STEPS) - 1) / (MOST_STEPS - 1),
    ]
    score = round(float(np.mean([hardness for hardness in hardnesses if hardness is not None])), 3)
    level = DIFFICULTIES[sum(score >= threshold for threshold in THRESHOLDS)]
    difficulty = Difficulty(area, seconds, sum(are_near), steps, score, level)
    return msgspec.structs.replace(candidate, distractors=ordered, difficulty=difficulty, origins=origins)


def _hardness(value: float, easy: float, hard: float) -> float:
    """Return 0 for an easy value, 1 for a hard value, and a logarithmic interpolation between the two."""
    return min(1.0, max(0.0, log(max(value, 1e-9) / easy) / log(hard / easy)))


def count_steps(candidate: QuestionCandidate) -> int:
    """Return the number of things that must be seen and combined.

    These are the claims of the right answers and the touches that the question names ("which color is the object that
    the left hand is touching?"), or the moments if there are more of them.
    """
    claims = sum(steps_of(choice.statement) for choice in candidate.right)
    named_touches = sum(isinstance(statement, Touches) for statement in candidate.given)
    return max(claims + named_touches, len(candidate.frames))


def steps_of(statement: Statement) -> int:
    """Return the number of things that must be seen and combined to decide a statement."""
    if isinstance(statement, AllOf):
        return sum(map(steps_of, statement.parts))
    sequences = [getattr(statement, name, ()) for name in ("actions", "values")]
    return max(statement.steps, *map(len, sequences))


class Topic:
    """The objects and actions that a question is about, in its scene."""

    def __init__(self, candidate: QuestionCandidate, scene: Scene) -> None:
        self.scene = scene
        self.frames = candidate.frames or (sum(candidate.span) // 2,)
        self.span = candidate.span
        answer_objects = (item for choice in candidate.right for item in self._objects(choice.statement))
        self.objects = tuple(dict.fromkeys((*candidate.objects, *answer_objects)))
        self.nouns = {noun_of(name) for choice in candidate.right for name in actions_of(choice.statement)}

    def area(self) -> float | None:
        """Return the smallest share of the frame that the box of an object covers at the moments asked about."""
        frame_area = self.scene.video.video.width * self.scene.video.video.height
        boxes = [box for frame in self.frames for box in self._boxes(frame)]
        return round(min(width * height for *_, width, height in boxes) / frame_area, 6) if boxes else None

    def seconds(self) -> float | None:
        """Return the shortest time, in seconds, that an object is visible in the frames shown."""
        frames_of_objects = [self.scene.frames_of(item) for item in self.objects]
        counts = [int(np.diff(np.searchsorted(frames, self.span))[0]) for frames in frames_of_objects]
        return round(min(counts) / self.scene.fps, 3) if counts else None

    def hidden(self) -> float | None:
        """Return the largest share of an object's median area that is missing at the moments asked about."""
        fractions = [self.scene.hidden_fraction(item, frame) for item in self.objects for frame in self.frames]
        return round(max(known), 3) if (known := [each for each in fractions if each is not None]) else None

    def origin(self, choice: Choice) -> str:
        """Return a distractor's origin: `SAME_OBJECT`, `SAME_MOMENT`, or empty."""
        actions = actions_of(choice.statement)
        if any(noun_of(name) in self.nouns for name in actions):
            return SAME_OBJECT
        objects = self._objects(choice.statement)
        if set(objects) & set(self.objects):
            return SAME_OBJECT
        is_object_seen = objects and any(
            all(item in self.scene.boxes(frame) for item in objects) for frame in self.frames
        )
        is_noun_seen = actions and all(self._is_in_view(noun_of(name)) for name in actions)
        is_going_on = actions and all(map(self._is_going_on, actions))
        return SAME_MOMENT if is_object_seen or is_noun_seen or is_going_on else ""

    def is_near(self, choice: Choice, origin: str) -> bool:
        """Return whether a distractor is near in place, category or time, or is about an object of the answer."""
        if origin == SAME_OBJECT:
            return True
        objects, things = self._objects(choice.statement), self.scene.things
        categories = [things[item].noun for item in self.objects if item in things]
        if any(self.scene.domain.same_noun(a, things[item].noun) for a in categories for item in objects):
            return True
        return any(self._is_beside(item, frame) for item in objects for frame in self.frames)

    def _is_beside(self, item: str, frame: int) -> bool:
        if item not in (boxes := self.scene.boxes(frame)):
            return False
        x, y, width, height = boxes[item]
        offsets = [(x + width / 2 - a - w / 2, y + height / 2 - b - h / 2) for a, b, w, h in self._boxes(frame)]
        return any(np.hypot(*offset) <= NEAR * self.scene.video.video.width for offset in offsets)

    def _boxes(self, frame: int) -> list[tuple[float, float, float, float]]:
        boxes = self.scene.boxes(frame)
        return [boxes[item] for item in self.objects if item in boxes]

    def _objects(self, statement: Statement) -> list[str]:
        return [text for text in strings_in(msgspec.to_builtins(statement)) if text in self.scene.things]

    def _is_in_view(self, noun: str) -> bool:
        """Return whether the noun of an action could name an object that is visible at the moments asked about."""
        return any(self.scene.domain.same_noun(noun, other) for other in self._nouns_in_view)

    @cached_property
    def _nouns_in_view(self) -> frozenset[str]:
        things = self.scene.things
        return frozenset(
            things[item].noun for frame in self.frames for item in self.scene.boxes(frame) if item in things
        )

    def _is_going_on(self, name: str) -> bool:
        """Return whether an action takes place within a clip's length of a moment asked about."""
        reach = self.scene.frames_in(self.scene.domain.lengths.clip)
        spans = [span for span in (*self.scene.actions, *self.scene.steps) if span.name == name]
        return any(span.start - reach <= frame < span.end + reach for span in spans for frame in self.frames)


def actions_of(statement: Statement) -> list[str]:
    """Return the actions and steps of a statement and its parts."""
    own_actions = [getattr(statement, name) for name in ("action", "step") if hasattr(statement, name)]
    part_actions = (name for part in getattr(statement, "parts", ()) for name in actions_of(part))
    return [*own_actions, *getattr(statement, "actions", ()), *part_actions]


def strings_in(value: object) -> list[str]:
    """Return all strings in nested dicts and sequences, in any order."""
    strings: list[str] = []
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, str):
            strings.append(item)
        elif isinstance(item, dict):
            rest += item.values()
        elif isinstance(item, list | tuple):
            rest += item
    return strings
