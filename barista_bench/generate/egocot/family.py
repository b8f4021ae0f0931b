"""Generate EgoCoT-Bench's questions from a scene graph, with evidence and reasons.

The questions are about hands, states, places and steps. The evidence of a question has the benchmark's schema. In
addition, `evidence.graph` contains the facts that decide the question: states, actions and steps, order and causes.
Each fact has a time and a sentence. If `holds` is false, the fact is a distractor's claim that the graph excludes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations
from pathlib import Path
from typing import ClassVar, NamedTuple

import msgspec

from barista_bench.benchmarks.egocot.items import BY_CODE, GROUPS, GraphPredicate, Split
from barista_bench.benchmarks.egocot.question_evidence import question_evidence
from barista_bench.benchmarks.egocot.records import RecordReader, media_file
from barista_bench.benchmarks.release_records import PlacedRecord
from barista_bench.core.boxes import xywh_to_xyxy
from barista_bench.core.example import Json
from barista_bench.files.writing import write_whole
from barista_bench.generate.candidates import Item, QuestionCandidate, by_video
from barista_bench.generate.egocot.moments import DISTRACTORS, EgocotWords, ShownScene
from barista_bench.generate.egocot.questions import QUESTIONS
from barista_bench.generate.egocot.rationales import rationale_of
from barista_bench.generate.egocot.statements import (
    AwayFrom,
    BringsAbout,
    InPart,
    InStep,
    LiesTowards,
    NextAction,
    NextState,
)
from barista_bench.generate.family import Family, family_words, place_video
from barista_bench.generate.nearby import place_words
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import ActionSpan, ValueSpan, find_overlapping
from barista_bench.generate.statements import (
    AllOf,
    AnyOf,
    Changes,
    Does,
    HasValue,
    Located,
    OnlyDuring,
    Precedes,
    Seen,
    Statement,
    Touches,
    Unique,
)
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.domain import Domain
from barista_bench.scene_graph.graph_words import third_person
from barista_bench.scene_graph.reading import ProblemLog


class StatedFact(NamedTuple):
    """A fact on which a statement is based. `text` states it in a sentence, and `atom` proves it.

    The fact is about `frame`. If true, it holds on frames [start, end], both included. For a cause, these are the
    frames shown around the change.
    """

    subject: str
    predicate: GraphPredicate
    object: str
    frame: int
    start: int
    end: int
    text: str
    atom: Statement


class EvidenceMaker:
    """Makes the evidence for the items of one scene."""

    def __init__(self, scene: Scene, words: EgocotWords) -> None:
        self.scene = scene
        self.clip = ShownScene(scene, words)
        self._number = {item.id: number for number, item in enumerate(scene.video.objects, start=1)}

    def evidence(self, item: Item) -> dict[str, Json]:
        """Return an item's evidence in the benchmark's format: targets, contacts and facts.

        Targets have boxes at the moments asked about.
        """
        candidate = item.candidate
        right = [*candidate.given, *(choice.statement for choice in candidate.right)]
        wrong = [choice.statement for index, choice in enumerate(item.choices) if index not in item.correct]
        stated_facts = [fact for statement in right for fact in self.facts(statement)]
        excluded_facts = [fact for statement in wrong for fact in self.facts(statement) if self._is_excluded(fact)]
        targets = list(dict.fromkeys(i for choice in candidate.right for i in _objects(choice.statement)))
        return {
            **self.sightings(targets, candidate.frames),
            "relations": list(self._contact_relations(stated_facts)),
            "graph": [
                *_distinct(self._graph_row(fact, holds=True) for fact in stated_facts if fact.predicate != "touches"),
                *_distinct(self._graph_row(fact, holds=False) for fact in excluded_facts),
            ],
        }

    def sightings(self, targets: Sequence[str], frames: Sequence[int]) -> dict[str, Json]:
        """Return the evidence that the tracks give: targets, and their boxes on the frames."""
        boxes = list(self._target_boxes(targets, frames))
        times: list[Json] = [self.clip.time(frame) for frame in sorted(frames)]
        return {
            "target_objects": [{"distinct_id": self._number[i], "label": self._name(i)} for i in targets],
            "timestamps": times,
            "bboxes": boxes,
            "relations": [],
            "focus_times": times,
            "focused_bboxes": boxes,
        }

    def facts(self, statement: Statement) -> Iterator[StatedFact]:
        """Return the facts on which a statement is based, whether it is true or false."""
        match statement:
            case AllOf(parts) | AnyOf(parts):
                for part in parts:
                    yield from self.facts(part)
            case Touches(side, object_id, frame) | AwayFrom(side, object_id, frame):
                name, is_on = self._name(object_id), isinstance(statement, Touches)
                text = f"the {side} hand {'touches' if is_on else 'is away from'} the {name}"
                predicate: GraphPredicate = "touches" if is_on else "apart from"
                yield StatedFact(f"{side} hand", predicate, name, frame, frame, frame, text, statement)
            case HasValue(object_id, kind, value, frame):
                yield self._state_fact(object_id, kind, value, frame)
            case Located(object_id, place, other, frame):
                where = f"{place_words(self.scene, place, other)} the {self._name(other)}"
                yield self._is_fact(object_id, where, "", frame, statement)
            case LiesTowards(object_id, frame, direction, other, _):
                than = f" than the {self._name(other)}" if other != object_id else ""
                yield self._is_fact(object_id, direction, than, frame, statement)
            case Does(action, frame):
                yield self._action_fact(action, frame, self.scene.actions, statement)
            case InStep(step, frame):
                yield self._action_fact(step, frame, self.scene.steps, statement)
            case NextAction(action, _, until):
                yield self._action_fact(action, until, self.scene.actions, statement)
            case NextState(object_id, kind, value, frame, until):
                for now in find_overlapping(self.scene.values_of(object_id, kind), frame, frame + 1):
                    yield self._state_fact(object_id, kind, now.value, frame)
                yield self._state_fact(object_id, kind, value, until)
            case Changes(object_id, kind, before, after, start, end):
                yield self._state_fact(object_id, kind, before, start)
                yield self._state_fact(object_id, kind, after, end - 1)
            case BringsAbout():
                yield from self._cause_facts(statement)
            case Precedes(objects, frame):
                for pair in combinations(objects, 2):
                    yield from self._order_facts(pair, Precedes(pair, frame))
            case Seen() | Unique() | OnlyDuring() | InPart():
                pass  # the boxes of the tracks are their evidence
            case _:
                raise TypeError(f"{type(statement).__name__}: EvidenceMaker.facts does not know its facts")

    def _state_fact(self, object_id: str, kind: str, value: str, frame: int) -> StatedFact:
        spans = [span for span in self.scene.values_of(object_id, kind) if span.value == value]
        start, end = _extent(spans, frame)
        name, state = self._name(object_id), self.clip.words.state(value, self.scene.things[object_id].category)
        atom = HasValue(object_id, kind, value, frame)
        return StatedFact(name, "is", state, frame, start, end, f"the {name} is {state}", atom)

    def _is_fact(self, object_id: str, words: str, rest: str, frame: int, atom: Statement) -> StatedFact:
        name = self._name(object_id)
        return StatedFact(name, "is", words, frame, frame, frame, f"the {name} is {words}{rest}", atom)

    def _action_fact(self, name: str, frame: int, spans: Sequence[ActionSpan], atom: Statement) -> StatedFact:
        start, end = _extent([span for span in spans if span.name == name], frame)
        phrase = self.clip.phrase(name)
        return StatedFact("operator", "does", phrase, frame, start, end, f"the person {third_person(phrase)}", atom)

    def _cause_facts(self, cause: BringsAbout) -> Iterator[StatedFact]:
        start, end = cause.start, cause.end - 1
        changes = list(self.facts(cause.change))
        yield from changes
        result = changes[1].text
        for action in find_overlapping(self.scene.actions, cause.start, cause.end):
            if action.name == cause.action:
                frame = (max(action.start, start) + min(action.end - 1, end)) // 2
                yield self._action_fact(action.name, frame, [action], Does(action.name, frame))
        phrase, outcome = self.clip.phrase(cause.action), result.removeprefix("the ")
        text = f"the person {third_person(phrase)}, so that {result}"
        yield StatedFact(phrase, "causes", outcome, start, start, end, text, cause)

    def _order_facts(self, objects: Sequence[str], atom: Statement) -> Iterator[StatedFact]:
        """Return three facts: the first contact with each of two objects, and the order of these contacts."""
        uses = [next(use for use in self.scene.uses if use.thing.id == object_id) for object_id in objects]
        touches = [f for use in uses for f in self.facts(Touches(use.side, use.thing.id, use.contacts[0][1]))]
        yield from touches
        contact_texts = [f"{fact.subject} on {fact.object}" for fact in touches]
        start, end = sorted(use.start for use in uses)
        text = f"{touches[0].text} before {touches[1].text}"
        yield StatedFact(contact_texts[0], "precedes", contact_texts[1], end, start, end, text, atom)

    def _target_boxes(self, objects: Sequence[str], frames: Sequence[int]) -> Iterator[Json]:
        for frame in sorted(frames):
            boxes = self.scene.boxes(frame)
            for object_id in (i for i in objects if i in boxes):
                corners: list[Json] = [round(side, 1) for side in xywh_to_xyxy(list(boxes[object_id]))]
                yield {"distinct_id": self._number[object_id], "time": self.clip.time(frame), "bbox": corners}

    def _contact_relations(self, facts: Sequence[StatedFact]) -> list[Json]:
        return _distinct(
            {
                "subject_name": fact.subject,
                "predicate": value,
                "object_name": fact.object,
                "time": [self.clip.time(start), self.clip.time(end - 1)],
            }
            for fact in facts
            if isinstance(fact.atom, Touches)
            for use in self.scene.uses
            if (use.side, use.thing.id) == (fact.atom.side, fact.atom.object)
            for value, start, end in use.contacts
            if start <= fact.frame < end
        )

    def _graph_row(self, fact: StatedFact, *, holds: bool) -> Json:
        start, end = (fact.start, fact.end) if holds or fact.predicate == "causes" else (fact.frame, fact.frame)
        return {
            "subject_name": fact.subject,
            "predicate": fact.predicate,
            "object_name": fact.object,
            "time": [self.clip.time(start), self.clip.time(end)],
            "holds": holds,
            "text": fact.text,
        }

    def _is_excluded(self, fact: StatedFact) -> bool:
        """Return whether a fact is false and belongs to the evidence.

        False facts about order are left out, since the true order already excludes the other orders.
        """
        return fact.predicate != "precedes" and fact.atom.truth(self.scene) is False

    def _name(self, object_id: str) -> str:
        return self.scene.things[object_id].name


def _objects(statement: Statement) -> Iterator[str]:
    match statement:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from _objects(part)
        case Precedes(objects):
            yield from objects
        case LiesTowards(item, _, _, other) | Located(item, _, other):
            yield from dict.fromkeys((item, other))
        case Touches() | AwayFrom() | HasValue() | InPart() | NextState() | Changes() | BringsAbout():
            yield statement.object


def _extent(spans: Sequence[ValueSpan] | Sequence[ActionSpan], frame: int) -> tuple[int, int]:
    """Return the first and last frame of the first span that holds on a frame. Without one, return the frame twice."""
    return next(((span.start, span.end - 1) for span in spans if span.start <= frame < span.end), (frame, frame))


def _distinct(rows: Iterator[Json]) -> list[Json]:
    distinct: list[Json] = []
    for row in rows:
        if row not in distinct:
            distinct.append(row)
    return distinct


TEST_EVERY = 3
"""Every third video with questions belongs to the split test, but never the first video."""
_LETTERS = "ABCD"
_Record = dict[str, Json]


class EgocotFamily(Family):
    """EgoCoT-Bench's questions.

    The media are the original videos. Questions are about frames that the benchmark's task shows.
    """

    name: ClassVar[str] = "egocot"
    subtasks: ClassVar[tuple[str, ...]] = tuple(QUESTIONS)
    choice_subtasks: ClassVar[tuple[str, ...]] = subtasks

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain)
        self.words = family_words(domain, self.name, EgocotWords)

    def distractors_needed(self, candidate: QuestionCandidate) -> int:
        return DISTRACTORS

    def candidates(self, scene: Scene) -> Iterator[QuestionCandidate]:
        clip = ShownScene(scene, self.words)
        for ask in chain.from_iterable(QUESTIONS.values()):
            yield from ask(clip)

    def public_items(self, items: Sequence[Item]) -> dict[str, Item]:
        return {item.id: item for split, _, rows in _splits(items) if split == "dev" for item in rows}

    def write(self, items: Sequence[Item], source: SceneGraph, out: Path) -> None:
        """Write `dev.json`, `test.json` (without answers, evidence and reasons), `media_manifest.json` and `media/`."""
        records: dict[Split, list[Json]] = {"dev": [], "test": []}
        manifest: list[Json] = []
        (out / "media").mkdir()
        for split, video_id, video_items in _splits(items):
            maker = EvidenceMaker(Scene(source[video_id], self.domain), self.words)
            records[split] += [record_of(item, None if split == "test" else maker) for item in video_items]
            manifest.append({"media_id": video_id, "dataset": self.domain.name, "uid": video_id})
            place_video(source, video_id, out / media_file(video_id))
        for name, content in (*records.items(), ("media_manifest", manifest)):
            if content:
                write_whole(out / f"{name}.json", msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")


def write_written(family: EgocotFamily, items: Sequence[Item], source: SceneGraph, out: Path) -> None:
    """Write items whose texts a model wrote: their evidence is what the tracks show. All answers are public."""
    records: list[Json] = []
    (out / "media").mkdir()
    for video_id, video_items in by_video(items):
        maker = EvidenceMaker(Scene(source[video_id], family.domain), family.words)
        for item in video_items:
            answer = _LETTERS[item.correct[0]]
            steps = [*item.candidate.extra["steps"], f"So the answer is {answer}."]
            record = record_of(item, None) | {"answer": answer}
            record["evidence"] = maker.sightings(item.candidate.objects, item.candidate.frames)
            record["reasoning"] = {f"step{number}": step for number, step in enumerate(steps, start=1)}
            records.append(record)
        place_video(source, video_id, out / media_file(video_id))
    write_whole(out / "dev.json", msgspec.json.format(msgspec.json.encode(records), indent=1) + b"\n")


def _splits(items: Sequence[Item]) -> Iterator[tuple[Split, str, list[Item]]]:
    for number, (video_id, video_items) in enumerate(by_video(sorted(items, key=lambda item: item.id))):
        yield "test" if number % TEST_EVERY == TEST_EVERY - 1 else "dev", video_id, video_items


def record_of(item: Item, maker: EvidenceMaker | None) -> _Record:
    """Return one sample in the benchmark's format. Without `maker`, it has no answer, evidence or reasons."""
    candidate, subtask = item.candidate, BY_CODE[item.candidate.subtask]
    record: _Record = {
        "qid": item.id,
        "media_id": candidate.video_id,
        "source": media_file(candidate.video_id),
        "big_category_en": GROUPS[subtask.group],
        "sub_category_en": subtask.name,
        "question": candidate.question,
        "choices": {letter: choice.text for letter, choice in zip(_LETTERS, item.choices, strict=True)},
    }
    if maker is not None:
        record |= {"answer": _LETTERS[item.correct[0]], "evidence": maker.evidence(item)}
        steps = _reasons(record, maker.scene)
        record["reasoning"] = {f"step{number}": step for number, step in enumerate(steps, start=1)}
    return record


def _reasons(record: _Record, scene: Scene) -> list[str]:
    item = RecordReader(ProblemLog("generated")).read(PlacedRecord("record", {**record, "reasoning": ["-"]}))
    assert item.answer is not None, "only answered questions get reasons"
    size = scene.video.video.width, scene.video.video.height
    duration = scene.frame_count / scene.fps
    evidence = question_evidence(item.evidence, item.question, item.choices, item.answer, size=size, duration=duration)
    return [*rationale_of(evidence), f"So the answer is {item.answer}."]
