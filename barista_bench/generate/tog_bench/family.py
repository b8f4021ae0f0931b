"""ToG-Bench's tasks: explicit and implicit instructions, each with the only set of objects in a video that fits it.

An object's intervals are the times when it is visible. The benchmark's videos show rooms without people. So
instructions are requests that are valid throughout the video, as in the benchmark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import ClassVar, TypeAlias

import msgspec

from barista_bench.benchmarks.tog_bench.release import (
    AnnotationFile,
    BoxAt,
    Kind,
    ObjectRecord,
    TaskRecord,
    VideoRecord,
    video_file,
)
from barista_bench.core.boxes import xywh_to_xyxy
from barista_bench.generate.candidates import FACTS, Choice, Item, QuestionCandidate, by_video
from barista_bench.generate.descriptions import BY_TOUCH, name_object
from barista_bench.generate.family import Family, family_words, place_video
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import NamedObject
from barista_bench.generate.statements import Statement, TouchedDuring
from barista_bench.generate.tog_bench.statements import (
    BroughtAbout,
    Fillable,
    Fills,
    Handled,
    NoneInView,
    NotParts,
    Trackable,
    Unmistakable,
    is_of_kind,
    named_frames,
    visible_spans,
    whole_seconds,
)
from barista_bench.generate.wordings import plain_text
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.domain import Domain, DomainRecord

ANNOTATIONS = "annotations.json"
LETTERS = ("{a}", "{b}", "{c}", "{d}")
WISHES = ("I", "My", "The")
"""First words of an instruction that is a wish and not a command."""
Slots: TypeAlias = tuple[tuple[str, ...], ...]


class Instruction(DomainRecord, frozen=True):
    """An instruction. Letters in braces are slots for the names of objects.

    Args:
        takes: names or categories that can fill each slot, or `held` for all that hands hold. A slot is implicit if its
            letter is not in `say`.
        unless: names or categories of objects that would permit another answer if they were in view.
        step: process step during which hands must use all of the objects; empty if no step is needed.
        requests: what several instructions ask for, with the letter of the object, such as `stir {a}` or
            `stir with {b}`. Of the instructions with a common request about the same object, only one is used.
    """

    say: str
    takes: Slots
    unless: tuple[str, ...] = ()
    step: str = ""
    requests: tuple[str, ...] = ()


class TogWords(DomainRecord, frozen=True):
    """ToG-Bench's section of a domain file.

    Args:
        scene: kind of room.
        handled: a sentence that restricts the answer to objects that hands touch. It is used if several objects fit.
        places: maps a predicate, or category and predicate, to the instruction that brings {a} into this relation to
            {b}.
        fixed: names or categories of objects that are not moved, although hands hold them.
        states: maps a value of the attribute `state`, or category and value, to the instruction that brings {a} into
            it.
        synonyms: maps a name or category to other names that are also right.
    """

    scene: str
    handled: str
    explicit: tuple[Instruction, ...]
    implicit: tuple[Instruction, ...]
    places: dict[str, str]
    states: dict[str, str]
    synonyms: dict[str, tuple[str, ...]]
    fixed: tuple[str, ...] = ()


class ToGBenchFamily(Family):
    """The instructions of `families.tog_bench`, and actions of hands on named objects.

    Subtasks are kinds of instructions with numbers of objects.
    """

    name: ClassVar[str] = "tog_bench"
    subtasks: ClassVar[tuple[str, ...]] = tuple(
        f"{kind}_{count}" for kind in ("explicit", "implicit") for count in (1, 2, 3)
    )

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain)
        self.words = family_words(domain, self.name, TogWords)

    def distractors_needed(self, candidate: QuestionCandidate) -> int:
        return 0

    def candidates(self, scene: Scene) -> Iterator[QuestionCandidate]:
        yielded_keys: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()
        for candidate in (*self._brought_about_candidates(scene), *self._instruction_candidates(scene)):
            # "Bring me the cup and the jar" asks the same as "the jar and the cup".
            key = tuple(sorted(re.findall(r"\w+", candidate.question.lower()))), tuple(sorted(candidate.objects))
            if key not in yielded_keys:
                yielded_keys.add(key)
                yield candidate

    def _instruction_candidates(self, scene: Scene) -> Iterator[QuestionCandidate]:
        for instruction in (*self.words.explicit, *self.words.implicit):
            template, takes = instruction.say, instruction.takes
            evidence: list[Statement] = [
                Fillable(kinds) for letter, kinds in zip(LETTERS, takes, strict=False) if letter not in template
            ]
            evidence += [NoneInView(instruction.unless)] if instruction.unless else []
            spans = [(step.start, step.end) for step in scene.steps if step.name == instruction.step][:1]
            for things in _fillings(scene, takes) if spans or not instruction.step else ():
                touched = [TouchedDuring(thing.id, *span) for span in spans for thing in things]
                candidate = self._candidate(scene, template, things, takes, [*evidence, *touched])
                if instruction.requests:
                    candidate = msgspec.structs.replace(
                        candidate, event=_requests_about(instruction.requests, things), topic="request"
                    )
                yield candidate

    def _brought_about_candidates(self, scene: Scene) -> Iterator[QuestionCandidate]:
        for span in scene.places:
            named_place = f"{span.thing.category.lower()} {span.predicate}"
            template = self.words.places.get(named_place, self.words.places.get(span.predicate))
            if template is not None and span.start > 0:
                things = (span.thing, span.other)
                takes = ((span.thing.name,), (span.other.name,))
                proof = BroughtAbout(span.thing.id, span.predicate, span.start, span.other.id)
                candidate = self._candidate(scene, template, things, takes, [proof])
                # A lid that is attached to a jar is also put on it.
                yield msgspec.structs.replace(candidate, event=f"{span.thing.id} at {span.other.id}")
        for _, after in scene.changes:
            named_value = f"{after.thing.category.lower()} {after.value}"
            template = self.words.states.get(named_value, self.words.states.get(after.value))
            if template is not None:
                proof = BroughtAbout(after.thing.id, after.value, after.start)
                yield self._candidate(scene, template, (after.thing,), ((after.thing.name,),), [proof])

    def _candidate(
        self, scene: Scene, template: str, things: Sequence[NamedObject], takes: Slots, evidence: Sequence[Statement]
    ) -> QuestionCandidate:
        explicit = {
            letter: name_object(scene, thing, named_frames(scene))
            for letter, thing in zip(LETTERS, things, strict=False)
            if letter in template
        }
        singular = self.domain.singular
        handled_things = [thing for thing in things if not {thing.noun, thing.category.lower()} & {*singular}]
        # "That the person touches" in a name already restricts the objects, so the sentence is not needed, and vice
        # versa.
        unsaid = [t for t in handled_things if not any(e == t and BY_TOUCH in e.description for e in explicit.values())]
        alike = [thing for thing in unsaid if self._is_like_another(thing, scene)]
        touched = [t for t in explicit.values() if t in alike or t.name.endswith(BY_TOUCH)]
        # The sentence also replaces a second "that the person touches".
        is_said = len(touched) > 1 or any(thing not in touched for thing in alike)
        text = template
        for letter, thing in explicit.items():
            name = thing.name.removesuffix(f" {BY_TOUCH}")
            text = text.replace(letter, f"{name} {BY_TOUCH}" if thing in touched and not is_said else name)
        wording, slots = self._wording(text)
        if is_said:
            slots["end"], handled_things = f" {self.words.handled}", list(things)
        kinds: list[Kind] = ["explicit" if letter in explicit else "implicit" for letter in LETTERS[: len(things)]]
        ids = tuple(thing.id for thing in things)
        return QuestionCandidate(
            subtask=f"{'implicit' if 'implicit' in kinds else 'explicit'}_{min(len(things), 3)}",
            video_id=scene.video_id,
            question=plain_text(wording, slots),
            wording=wording,
            slots=slots,
            right=tuple(Choice(thing.name, Fills(thing.id, slot)) for thing, slot in zip(things, takes, strict=True)),
            given=(
                *evidence,
                NotParts(ids),
                *(Unmistakable(thing.id, thing.description) for thing in explicit.values()),
                *(Handled(thing.id) for thing in handled_things),
                *(Trackable(object_id) for object_id in ids),
            ),
            span=(0, scene.frame_count),
            frames=(),
            objects=ids,
            answer=template,
            event=f"{text}{slots['end']}",
            extra={"kinds": kinds},
        )

    @staticmethod
    def _wording(text: str) -> tuple[str, dict[str, str]]:
        """Return an instruction's wording and slots. A command begins with its verb, a wish with one of `WISHES`."""
        kind = "wish" if text.partition(" ")[0] in WISHES else "command"
        slot_text = text.removesuffix(".") if kind == "wish" else text[:1].lower() + text[1:].removesuffix(".")
        return f"tog_bench/{kind}", {kind: slot_text, "end": ""}

    def _is_like_another(self, thing: NamedObject, scene: Scene) -> bool:
        """Return whether an object of another kind in the video could have the object's name: a jug beside a kettle.

        Objects of the same kind are distinguished by their names.
        """
        kind, others = self._kind(thing), scene.things.values()
        kinds = {self._kind(other) for other in others if not scene.is_part_of_other(thing.id, other.id)} - {kind}
        return any(self.domain.same_noun(kind, other) for other in kinds)

    def _kind(self, thing: NamedObject) -> str:
        category = thing.category.lower()
        return thing.noun if category in self.domain.vague else category

    def write(self, items: Sequence[Item], source: SceneGraph, out: Path) -> None:
        videos, tasks = [], []
        for video_id, video_items in by_video(items):
            scene = Scene(source[video_id], self.domain)
            size = scene.video.video.width, scene.video.video.height
            videos.append(VideoRecord(video_id, *size, scene.fps, scene.frame_count, self.words.scene))
            tasks += [self._task_record(item, scene) for item in video_items]
            place_video(source, video_id, out / video_file(video_id))
        (out / ANNOTATIONS).write_bytes(msgspec.json.encode(AnnotationFile("tog_bench", 1, videos, tasks)))

    def _task_record(self, item: Item, scene: Scene) -> TaskRecord:
        candidate = item.candidate
        kind: Kind = "implicit" if candidate.subtask.startswith("implicit") else "explicit"
        objects = [
            self._object_record(scene, scene.things[object_id], kind_of_object)
            for object_id, kind_of_object in zip(candidate.objects, candidate.extra["kinds"], strict=True)
        ]
        return TaskRecord(item.id, candidate.video_id, candidate.question, kind, objects)

    def _object_record(self, scene: Scene, thing: NamedObject, kind: Kind) -> ObjectRecord:
        category = thing.category.lower()
        names = [thing.noun, *([] if category in self.domain.vague else [category])]
        words = [word for kind in names for word in (kind, *self.words.synonyms.get(kind, ()))]
        synonyms = [word for word in dict.fromkeys(words) if word != thing.name]
        spans = visible_spans(scene, thing.id)
        intervals = [(round(start / scene.fps, 3), round(end / scene.fps, 3)) for start, end in spans]
        boxes = [
            BoxAt(float(second), xywh_to_xyxy(list(scene.boxes(frame)[thing.id])))
            for second, frame in whole_seconds(scene)
            if any(start <= frame < end for start, end in spans) and scene.is_visible(thing.id, frame)
        ]
        return ObjectRecord(thing.name, intervals, boxes, kind, synonyms, thing.id)


def _requests_about(requests: Sequence[str], things: Sequence[NamedObject]) -> str:
    """Return the requests with the ids of the objects, joined as the facts of an event."""
    text = FACTS.join(requests)
    for letter, thing in zip(LETTERS, things, strict=False):
        text = text.replace(letter, thing.id)
    return text


def _fillings(scene: Scene, takes: Slots) -> Iterator[tuple[NamedObject, ...]]:
    """Yield different objects for the slots, in the order of the graph. Equal slots are filled in one order only.

    If there are several slots, only categories with complete annotation are used, since the answer must contain every
    object asked for. In a source without identities a video has hundreds of objects.
    """
    things = list(scene.things.values())
    if len(takes) > 1:
        things = [thing for thing in things if scene.coverage.covers_category(thing.category)]
    pools = [[thing for thing in things if is_of_kind(scene, thing, kinds)] for kinds in takes]
    if len(set(takes)) == 1:
        return combinations(pools[0], len(takes))
    return (filling for filling in product(*pools) if len({thing.id for thing in filling}) == len(filling))
