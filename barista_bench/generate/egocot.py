"""EgoCoT-Bench's questions out of a scene graph: hands, states, places and steps, with evidence and reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec

from barista_bench.benchmarks.egocot.evidence import TOLERANCE, EvidenceBase, EvidenceBox, EvidenceFact, Times
from barista_bench.benchmarks.egocot.items import BY_CODE, GROUPS, Split, clock
from barista_bench.benchmarks.egocot.lexicon import CONTACTS
from barista_bench.benchmarks.egocot.question_evidence import question_evidence
from barista_bench.benchmarks.egocot.records import RecordReader, media_file
from barista_bench.benchmarks.release_records import PlacedRecord
from barista_bench.core.boxes import Xyxy
from barista_bench.core.task import Json
from barista_bench.files.writing import place_file, write_whole
from barista_bench.generate.candidates import QuestionCandidate
from barista_bench.generate.egocot_evidence import EvidenceMaker
from barista_bench.generate.egocot_moments import DISTRACTORS, EgoCoTWords, Moments
from barista_bench.generate.egocot_questions import QUESTIONS
from barista_bench.generate.family import Family, section
from barista_bench.generate.sampling import Item, by_video
from barista_bench.generate.scene import Scene
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.domain import Domain
from barista_bench.scene_graph.problems import ProblemLog

TEST_EVERY = 3
"""Every third video that is asked about is in the split test; the first one never is."""
_LETTERS = "ABCD"
_Record = dict[str, Json]


class EgoCoTFamily(Family):
    """Media are the videos as they are; questions are about frames that the benchmark's task shows of them."""

    name: ClassVar[str] = "egocot"
    subtasks: ClassVar[tuple[str, ...]] = tuple(QUESTIONS)
    choice_subtasks: ClassVar[tuple[str, ...]] = subtasks

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain)
        self.words = section(domain, self.name, EgoCoTWords)

    def distractors_needed(self, candidate: QuestionCandidate) -> int:
        return DISTRACTORS

    def candidates(self, scene: Scene) -> Iterator[QuestionCandidate]:
        moments = Moments(scene, self.words)
        for ask in QUESTIONS.values():
            yield from ask(moments)

    def write(self, items: Sequence[Item], source: SceneGraph, out: Path) -> None:
        """`dev.json`, `test.json` without answers, evidence and reasons, `media_manifest.json` and `media/`."""
        records: dict[Split, list[Json]] = {"dev": [], "test": []}
        manifest: list[Json] = []
        (out / "media").mkdir()
        for number, (video_id, asked) in enumerate(by_video(sorted(items, key=lambda item: item.id))):
            maker = EvidenceMaker(Scene(source[video_id], self.domain), self.words)
            split: Split = "test" if number % TEST_EVERY == TEST_EVERY - 1 else "dev"
            records[split] += [record_of(item, None if split == "test" else maker) for item in asked]
            manifest.append({"media_id": video_id, "dataset": self.domain.name, "uid": video_id})
            place_file(source.video_path(video_id), out / media_file(video_id))
        for name, content in (*records.items(), ("media_manifest", manifest)):
            if content:
                write_whole(out / f"{name}.json", msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")


def record_of(item: Item, maker: EvidenceMaker | None) -> _Record:
    """One sample as the benchmark's files have it; without answer, evidence and reasons where there is no `maker`."""
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
        record["answer"] = _LETTERS[item.correct[0]]
        record["evidence"] = maker.evidence(item)
        steps = _reasons(record, maker.scene)
        record["reasoning"] = {f"step{number}": step for number, step in enumerate(steps, start=1)}
    return record


def _reasons(record: _Record, scene: Scene) -> list[str]:
    """The facts of the evidence, and then the answer."""
    item = RecordReader(ProblemLog("generated")).read(PlacedRecord("record", {**record, "reasoning": ["-"]}))
    assert item.answer is not None, "only answered questions get reasons"
    size = scene.video.video.width, scene.video.video.height
    duration = scene.frame_count / scene.fps
    evidence = question_evidence(item.evidence, item.question, item.choices, item.answer, size=size, duration=duration)
    return [*rationale_of(evidence), f"So the answer is {item.answer}."]


_VERBS = {
    **{name: name for name in (*CONTACTS, "releases", "cuts")},
    "manipulates by": "manipulates objects using",
    "switches": "turns on",
}


def rationale_of(evidence: EvidenceBase) -> list[str]:
    """Sentences for all relations, places in focus, targets and moments that the evidence points at.

    >>> rationale_of(EvidenceBase(facts=(EvidenceFact("left hand", "holds", "pot", ((1.0, 1.0),)),)))
    ['At 00:01.00, the left hand holds the pot.']
    """
    facts = [fact for fact in evidence.facts if fact.annotated]
    focused = [box for box in evidence.places if box.focused]
    mentioned = {time for fact in facts for span in fact.spans[:1] for time in span} | {box.time for box in focused}
    rest = [time for time in evidence.times if not any(abs(time - other) <= TOLERANCE for other in mentioned)]
    return [
        *(f"The target object is the {_person(name)}." for name in evidence.targets),
        *(fact_sentence(fact) for fact in facts),
        *(place_sentence(box) for box in focused),
        *([_moments(rest)] if rest else []),
    ]


def _moments(times: list[float]) -> str:
    which = "moments that matter are" if len(times) > 1 else "moment that matters is"
    return f"The {which} {', '.join(map(clock, times))}."


def fact_sentence(fact: EvidenceFact, span: Times | None = None) -> str:
    """One relation, dated by `span` or by its first span."""
    span = span or (fact.spans[0] if fact.spans else None)
    if fact.text:
        return _dated(f"{fact.text}.", None if fact.predicate == "precedes" else span)
    verb = _VERBS.get(fact.predicate, f"is {fact.predicate}")
    sentence = f"the {_person(fact.subject)} {verb} the {_person(fact.object)}."
    return _dated(sentence, span)


def place_sentence(item: EvidenceBox) -> str:
    """Where one thing is in the frame, at one time."""
    return _dated(f"the {_person(item.name)} is in the {region_words(item.box)} of the frame.", (item.time, item.time))


def region_words(box: Xyxy) -> str:
    """The part of the frame that a box lies in, by its centre; `box` in fractions of the frame.

    >>> region_words((0.0, 0.8, 0.2, 1.0)), region_words((0.4, 0.4, 0.6, 0.6))
    ('lower left', 'middle')
    """
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    across = "left" if x < 0.4 else "right" if x > 0.6 else "center"
    down = "upper" if y < 0.4 else "lower" if y > 0.6 else "middle"
    return "middle" if (across, down) == ("center", "middle") else f"{down} {across}"


def _person(name: str) -> str:
    return "operator" if name == "hand" else name


def _dated(sentence: str, span: Times | None) -> str:
    if span is None:
        return sentence[0].upper() + sentence[1:]
    start, end = map(clock, span)
    return f"At {start}, {sentence}" if start == end else f"From {start} to {end}, {sentence}"
