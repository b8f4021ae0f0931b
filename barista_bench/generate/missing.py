"""Find the missing annotations that would decide the most questions that a graph leaves undecided."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from barista_bench.generate.candidates import DIVISIBLE, Choice, QuestionCandidate
from barista_bench.generate.nearby import contacts_at
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import ActionSpan, ValueSpan, find_overlapping
from barista_bench.generate.statements import RECORD_ACTIVITIES, RECORD_STEPS, AllOf, AnyOf, Seen, Statement, Unique
from barista_bench.scene_graph.domain import Side

Facts = frozenset[tuple[object, ...]]
MOST_NAMED = 8
"""Maximum number of annotations in the list."""


class MissingAnnotation(msgspec.Struct, frozen=True):
    """A missing annotation, and the questions that need only this annotation.

    Args:
        video_id: the video.
        work: what to annotate, in words.
        frames: the frames of these questions.
        items: upper limit of the number of additional questions. Questions about facts that are asked already do not
            count, and several questions about one fact count once.
        subtasks: number of these questions for each `family subtask`.
    """

    video_id: str
    work: str
    frames: tuple[int, ...]
    items: int
    subtasks: dict[str, int]


class UndecidedCandidates:
    """Undecided candidates that lack a single annotation, grouped by this annotation."""

    def __init__(self) -> None:
        self.facts: dict[tuple[str, str], set[tuple[str, str, Facts]]] = defaultdict(set)
        """(family, subtask, facts) of candidates, by (video id, what to annotate in the video)."""
        self.asked: dict[tuple[str, str], set[tuple[object, ...]]] = defaultdict(set)
        """The facts that are asked already, by (family, video id)."""
        self.frames: dict[tuple[str, str], set[int]] = defaultdict(set)

    def add(self, family: str, candidate: QuestionCandidate, scene: Scene, n_distractors: int, reason: str) -> None:
        """Record the annotation that an undecided candidate needs, if it needs no other annotation."""
        works = list(_lacking_works(candidate, scene, n_distractors)) if reason != DIVISIBLE else []
        if len({work.text for work in works}) != 1 or not works[0].text:
            return
        annotation = candidate.video_id, works[0].text
        first, stop = candidate.span
        frames = {frame for work in works for frame in work.frames}
        self.frames[annotation] |= frames or {*(candidate.frames or (first, stop - 1))}
        self.facts[annotation].add((family, candidate.subtask, candidate.facts))

    def mark_asked(self, family: str, candidates: Iterable[QuestionCandidate]) -> None:
        for candidate in candidates:
            self.asked[family, candidate.video_id] |= candidate.facts

    def merge(self, other: UndecidedCandidates) -> None:
        for annotation, rows in other.facts.items():
            self.facts[annotation] |= rows
            self.frames[annotation] |= other.frames[annotation]
        for asked_of, facts in other.asked.items():
            self.asked[asked_of] |= facts

    def most_useful(self) -> list[MissingAnnotation]:
        """Return the annotations that would allow the most items, the most useful first."""
        rows = []
        for annotation in self.facts:
            if subtasks := self._count_new(annotation):
                frames = tuple(sorted(self.frames[annotation]))
                rows.append(MissingAnnotation(*annotation, frames, subtasks.total(), dict(subtasks)))
        return sorted(rows, key=lambda row: (-row.items, row.video_id, row.work))[:MOST_NAMED]

    def _count_new(self, annotation: tuple[str, str]) -> Counter[str]:
        """Count, by subtask, the candidates whose facts neither a question nor an earlier candidate asks for."""
        counts: Counter[str] = Counter()
        asked = {family: {*facts} for (family, video_id), facts in self.asked.items() if video_id == annotation[0]}
        for family, subtask, facts in sorted(self.facts[annotation], key=_order):
            if asked.setdefault(family, set()).isdisjoint(facts):
                asked[family] |= facts
                counts[f"{family} {subtask}"] += 1
        return counts


def _order(row: tuple[str, str, Facts]) -> tuple[str, str, list[str]]:
    family, subtask, facts = row
    return family, subtask, sorted(map(repr, facts))


class MissingWork(NamedTuple):
    """What to annotate, in words, and the frames that lack it, by default those of the question.

    The text is empty if no single annotation helps.
    """

    text: str = ""
    frames: tuple[int, ...] = ()


def _lacking_works(candidate: QuestionCandidate, scene: Scene, n_distractors: int) -> Iterator[MissingWork]:
    true = [*candidate.given, *(choice.statement for choice in candidate.right)]
    unproved = [statement for statement in true if statement.truth(scene) is not True]
    for statement in unproved:
        is_open = statement.truth(scene) is None or isinstance(statement, Seen | Unique)
        yield _deciding_work(statement, scene) if is_open else MissingWork()
    if unproved:
        return
    statements = [choice.statement for choice in candidate.distractors]
    n_lacking = n_distractors - sum(statement.truth(scene) is False for statement in statements)
    works = [_deciding_work(statement, scene) for statement in statements if statement.truth(scene) is None]
    counts = Counter(work.text for work in works)
    enough = next((text for text, count in counts.items() if count >= n_lacking), None)
    if enough is None:
        yield MissingWork(_further_work(candidate.right, n_lacking, scene))
    else:
        yield _united(work for work in works if work.text == enough)


def _deciding_work(statement: Statement, scene: Scene) -> MissingWork:
    """Return the annotation that decides a statement."""
    if isinstance(statement, AllOf | AnyOf):
        return _united(_deciding_work(part, scene) for part in statement.parts if part.truth(scene) is None)
    moments = _moments(statement)
    if statement.is_in_words:
        said = find_overlapping(scene.actions, moments[0], moments[0] + 1) if moments else scene.actions
        return MissingWork() if said else MissingWork("say what the person does", moments[:1])
    side: Side | None = getattr(statement, "side", None)
    objects = _objects(statement)
    if attribute := getattr(statement, "type", ""):
        values = scene.values_of(objects[0], attribute)
        if not _has_gap(values, scene, min(moments), max(moments) + 1):
            return MissingWork()
    if masks := _masks_to_draw(side, objects, moments, scene):
        return masks
    if side and any(contacts_at(scene, side, item, frame) for item in objects for frame in moments):
        return MissingWork()  # the touch is recorded, but not clearly visible
    names = [scene.things[item].name for item in objects if item in scene.things]
    name = f"the {names[0]}" if names else "things"
    return MissingWork(statement.deciding_work.format(name=name, side=side or ""), moments)


def _masks_to_draw(
    side: Side | None, objects: Sequence[str], moments: Sequence[int], scene: Scene
) -> MissingWork | None:
    """Return the masks of a hand or an object that these moments lack; None if hand and objects are clearly visible."""
    hand = scene.hand_id(side) if side else None
    if side and hand is None:
        return MissingWork(f"draw masks of the {side} hand wherever it is in view", tuple(moments))
    for item in [hand, *objects] if hand else objects:
        unseen = tuple(frame for frame in moments if not scene.is_visible(item, frame))
        if unseen:
            name = f"{side} hand" if item == hand else scene.things[item].name if item in scene.things else ""
            is_drawn = any(scene.is_annotated(item, frame) for frame in unseen)
            text = f"draw masks of the {name} wherever it is in view" if name and not is_drawn else ""
            return MissingWork(text, unseen)
    return None


def _united(works: Iterable[MissingWork]) -> MissingWork:
    """Return a work of several frames; without text if the works differ."""
    listed = list(works)
    if len({work.text for work in listed}) != 1:
        return MissingWork()
    return MissingWork(listed[0].text, tuple(sorted({frame for work in listed for frame in work.frames})))


def _moments(statement: Statement) -> tuple[int, ...]:
    """Return the frames of a statement about moments, or the first and last frame of another one, in order."""
    names = [name for name in ("frame", "since", "until", "start") if hasattr(statement, name)]
    frames = {getattr(statement, name) for name in names} | {*getattr(statement, "frames", ())}
    end: int | None = getattr(statement, "end", None)
    return tuple(sorted(frames if end is None else {*frames, end - 1}))


def _objects(statement: Statement) -> list[str]:
    named_ids = [getattr(statement, name) for name in ("object", "other") if getattr(statement, name, None)]
    return [*named_ids, *getattr(statement, "objects", ())]


def _further_work(right: Sequence[Choice], n_lacking: int, scene: Scene) -> str:
    """Return, in words, the kind of annotation that would give a question enough distractors.

    It is empty if the video has no room for such an annotation: activities or steps fill the video.
    """
    statement = right[0].statement
    while isinstance(statement, AllOf | AnyOf):
        statement = statement.parts[0]
    spans = {RECORD_ACTIVITIES: scene.actions, RECORD_STEPS: scene.steps}.get(statement.further_work)
    if spans is not None and not _has_gap(spans, scene, 0, scene.frame_count):
        return ""
    return statement.further_work.format(count="more" if n_lacking > 1 else "one more")


def _has_gap(spans: Sequence[ActionSpan | ValueSpan], scene: Scene, start: int, end: int) -> bool:
    """Return whether frames [start, end) have a gap between spans that is long enough for another annotation."""
    shortest = min(scene.frames_in(scene.domain.lengths.gap), end - start)
    for first, last in [*sorted((span.start, span.end) for span in spans), (end, end)]:
        if min(first, end) - start >= shortest:
            return True
        start = max(start, last)
    return False
