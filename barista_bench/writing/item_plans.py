"""Which items a model is asked to write about a video, and what the tracks and texts must show of each."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

import msgspec
from PIL import Image

from barista_bench.benchmarks.egocot.items import SUBTASKS, clock_text
from barista_bench.core.example import Fields, content_seed
from barista_bench.core.prompt import object_schema
from barista_bench.errors import DataError
from barista_bench.generate.candidates import are_alike
from barista_bench.generate.family import check_placeable
from barista_bench.generate.scene import Scene
from barista_bench.generate.tog_bench.statements import Trackable, Unmistakable
from barista_bench.media.frame_choice import evenly_spaced
from barista_bench.media.video import open_reader
from barista_bench.runs.ask.replies import Unusable, read_object
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.domain import Domain
from barista_bench.writing.checks import word_roots

KINDS = {
    "tog_bench": ("explicit_1", "implicit_1", "explicit_2", "implicit_2"),
    "egocot": tuple(subtask.code for subtask in SUBTASKS),
}
"""The subtasks of each family, in the order in which items are planned."""
TOO_FEW = "too few objects that are clearly visible and have a name of their own"
Text: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=500, pattern=r"\S")]


class WrittenInstruction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    instruction: Text

    @property
    def material(self) -> dict[str, str]:
        """Return the texts that a checker reads."""
        return {"instruction": self.instruction}


class WrittenQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question of EgoCoT-Bench. `frames` are numbers of the shown frames, from 1."""

    question: Text
    answer: Text
    wrong: Annotated[tuple[Text, ...], msgspec.Meta(min_length=3, max_length=3)]
    steps: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1, max_length=10)]
    frames: Annotated[tuple[int, ...], msgspec.Meta(min_length=1, max_length=100)]

    @property
    def material(self) -> dict[str, str]:
        """Return the texts that a checker reads."""
        wrong = {f"wrong {number}": text for number, text in enumerate(self.wrong, start=1)}
        return {"question": self.question, "right": self.answer, **wrong, "reasons": " ".join(self.steps)}


Written: TypeAlias = WrittenInstruction | WrittenQuestion
_TEXT: Fields = {"type": "string"}
_TEXTS: Fields = {"type": "array", "items": _TEXT}
_QUESTION_FIELDS: Fields = {
    **{"question": _TEXT, "answer": _TEXT, "wrong": _TEXTS, "steps": _TEXTS},
    "frames": {"type": "array", "items": {"type": "integer", "minimum": 1}},
}
SCHEMAS = {"tog_bench": object_schema({"instruction": _TEXT}), "egocot": object_schema(_QUESTION_FIELDS)}
StructT = TypeVar("StructT", bound=msgspec.Struct)


def read_reply_object(text: str, kind: type[StructT]) -> StructT | Unusable:
    """Return the only object in a reply as a record.

    >>> read_reply_object('{"instruction": 3}', WrittenInstruction).why
    'not the requested object: Expected `str`, got `int` - at `$.instruction`'
    """
    reply = read_object(text)
    if isinstance(reply, Unusable):
        return reply
    try:
        return msgspec.convert(reply, kind)
    except msgspec.ValidationError as error:
        return Unusable(f"not the requested object: {error}")


READERS: dict[str, Callable[[str], Written | Unusable]] = {
    "tog_bench": partial(read_reply_object, kind=WrittenInstruction),
    "egocot": partial(read_reply_object, kind=WrittenQuestion),
}


class ItemPlan:
    """One item to be written: the objects that it is about, and the frames that the models see."""

    def __init__(
        self, name: str, family: str, subtask: str, scene: Scene, video: Path, frames: Sequence[int], ids: Sequence[str]
    ) -> None:
        self.id, self.family, self.subtask, self.scene = name, family, subtask, scene
        self.video, self.frames, self.objects = video, tuple(frames), tuple(ids)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(self.scene.things[object_id].name for object_id in self.objects)

    @property
    def others(self) -> list[str]:
        """Return the names of the other objects in the video, each once."""
        names = (thing.name for thing in self.scene.things.values() if thing.id not in self.objects)
        return [name for name in dict.fromkeys(names) if name not in self.names]

    @property
    def kind(self) -> str:
        """Return the kind of item, in words for the writer."""
        asks = {subtask.code: f"{subtask.name}: {subtask.asks}" for subtask in SUBTASKS}
        return asks.get(self.subtask, self.subtask.partition("_")[0])

    @property
    def material(self) -> dict[str, str]:
        """Return what the writer is told."""
        times = ", ".join(clock_text(frame / self.scene.fps) for frame in self.frames)
        return {"kind": self.kind, "needed": "; ".join(self.names), "others": "; ".join(self.others), "times": times}

    @cached_property
    def content(self) -> list[object]:
        """Return the content that the replies depend on: the material, and the boxes on the shown frames."""
        return [self.scene.video_id, self.material, [sorted(self.scene.boxes(frame).items()) for frame in self.frames]]

    def pictures(self) -> tuple[Image.Image, ...]:
        with open_reader(self.video) as reader:
            return tuple(map(Image.fromarray, reader.read(list(self.frames))))

    def fault(self, written: Written) -> str:
        """Return the fault that the texts or the tracks show, with its kind before a colon; empty without a fault."""
        if isinstance(written, WrittenInstruction):
            return self._instruction_fault(written.instruction)
        if not written.question.endswith("?"):
            return "no question: it does not end with a question mark"
        choices = (written.answer, *written.wrong)
        if any(are_alike(a, b) for number, a in enumerate(choices) for b in choices[number + 1 :]):
            return "choices alike: two of them say the same"
        if not _names(f"{written.question} {written.answer}", self.names[0]):
            return f"object not named: neither question nor answer says {self.names[0]!r}"
        for number in written.frames:
            if not 1 <= number <= len(self.frames):
                return f"no such frame: {number}, but {len(self.frames)} are shown"
            if self.scene.is_visible(self.objects[0], self.frames[number - 1]) is not True:
                return f"object not visible: the tracks do not clearly show {self.names[0]!r} on frame {number}"
        return ""

    def _instruction_fault(self, text: str) -> str:
        is_explicit = self.kind == "explicit"
        for name in self.names:
            if _names(text, name) != is_explicit:
                return f"object not named: {name!r}" if is_explicit else f"object named: {name!r}, but it is implicit"
        own = " ".join(self.names) if is_explicit else ""
        others = (name for name in self.others if _names(text, name) and not _names(own, name))
        return next((f"another object named: {name!r}" for name in others), "")


def _names(text: str, name: str) -> bool:
    return f" {' '.join(word_roots(name))} " in f" {' '.join(word_roots(text))} "


def plan_items(
    graph: SceneGraph, domain: Domain, families: Sequence[str], per_video: int, shown: int
) -> tuple[list[ItemPlan], Counter[str]]:
    """Return the items to be written, and the reasons why objects or videos cannot be used.

    An object can be used if its tracks show it clearly, and if its name fits no other object of the video.
    """
    plans: list[ItemPlan] = []
    refused = Counter[str]()
    for place, video_id in enumerate(graph.video_ids):
        try:
            check_placeable(graph, graph[video_id])
            scene = Scene(graph[video_id], domain)
            ids = _usable_objects(scene, refused)
        except DataError as error:
            refused[f"lost: {error}"] += 1
            continue
        frames = evenly_spaced(scene.frame_count, shown)
        for family in families:
            seed = content_seed("written", video_id, family)
            shuffled = random.Random(seed).sample(ids, len(ids))  # noqa: S311
            planned: set[tuple[str, ...]] = set()
            for number in range(per_video):
                # Each video continues the round of subtasks where the video before it stopped.
                subtask = KINDS[family][(place * per_video + number) % len(KINDS[family])]
                size = 2 if subtask.endswith("_2") else 1
                chosen = [shuffled[(number + step) % len(ids)] for step in range(size)] if len(ids) >= size else []
                key = (subtask, *sorted(chosen))
                if not chosen or key in planned:
                    refused[TOO_FEW] += 1
                    continue
                planned.add(key)
                count = sum(plan.family == family for plan in plans)
                name = f"written_{subtask.lower()}_{count:05}"
                plans.append(ItemPlan(name, family, subtask, scene, graph.video_path(video_id), frames, chosen))
    return plans, refused


def _usable_objects(scene: Scene, refused: Counter[str]) -> list[str]:
    usable = []
    for object_id in scene.things:
        conditions = (Trackable(object_id), Unmistakable(object_id))
        unmet = [condition.unmet for condition in conditions if condition.truth(scene) is not True]
        refused.update(unmet[:1])
        usable += [] if unmet else [object_id]
    return usable
