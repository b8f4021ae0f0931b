"""The evidence against which claims are checked: relations with times, boxes, and names.

The evidence comes from an item's annotations or from a scene graph. Names are canonical: words from `lexicon.stems`,
joined by blanks. A hand is `left hand`, `right hand`, or `hand` if its side is unknown. Times are in seconds. Boxes are
(x0, y0, x1, y1) as fractions of the frame, 0 to 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import NamedTuple, TypeAlias

from barista_bench.benchmarks.egocot import lexicon
from barista_bench.benchmarks.egocot.items import GraphFact, ItemEvidence, TimedBox
from barista_bench.benchmarks.egocot.lexicon import PieceKind
from barista_bench.core.boxes import Xyxy, as_xyxy, xywh_to_xyxy
from barista_bench.errors import DataError
from barista_bench.scene_graph import VideoGraph
from barista_bench.scene_graph.video_graph import UNNAMED

Names: TypeAlias = "frozenset[str]"
BARISTA_RELATIONS: Names = frozenset(
    {"under", "on", "inside", "attached to", "part of", "pulls", "pushes", "presses", "holds", "touches", "turns"}
)
"""Relations that BARISTA annotates on every frame. `contains` is the inverse of `inside`."""
Times: TypeAlias = "tuple[float, float]"
"""Start and end in seconds, both included."""
Vocabulary: TypeAlias = "Mapping[tuple[str, ...], Names]"
"""Maps stemmed words to the names that they may mean."""

Terms: TypeAlias = "Mapping[tuple[str, ...], tuple[PieceKind, str]]"
"""Maps stemmed words to a kind (a state, an action, or a word of cause or order) and a canonical name."""

TOLERANCE = 0.5
"""Number of seconds by which a claimed time may be wrong: two frames at the benchmark's 4 fps."""


_BOX_STEP = 0.25
"""Seconds between the moments whose boxes are taken from a scene graph."""


class EvidenceFact(NamedTuple):
    """A fact: `subject` does or is `predicate` to `object` during each of `spans`. Without spans the fact is undated.

    A fact with `is_annotated` comes from the evidence itself, and a rationale is expected to name it. Other facts
    follow from the question and its right answer, or are excluded. `text` states a fact that consists of more than
    names.
    """

    subject: str
    predicate: str
    object: str
    spans: tuple[Times, ...] = ()
    is_annotated: bool = True
    text: str = ""

    def holds_at(self, times: tuple[Times, ...]) -> bool:
        """Return True if the fact holds at one of the times. Undated facts and undated claims may be about any time."""
        if not times or not self.spans:
            return True
        return any(start - TOLERANCE <= b and a <= end + TOLERANCE for start, end in self.spans for a, b in times)


class EvidenceBox(NamedTuple):
    """The place of a named thing at one time. A rationale is expected to name the places with `is_focused`."""

    name: str
    time: float
    box: Xyxy
    is_focused: bool = False


@dataclass(frozen=True)
class EvidenceBase:
    """All evidence for checking a rationale.

    Args:
        facts: relations with their times.
        places: boxes.
        objects: names of all things in the video.
        targets: names of the things in question, which a rationale is expected to name.
        times: the moments that the evidence points at, which a rationale is expected to name.
        moments: further annotated moments.
        answers: names in the right choice.
        refuted_names: names that occur only in wrong choices, so that they are not the thing in question.
        other_names: further names that are recognised although they have no evidence.
        duration: length of the video in seconds; None if unknown.
        covered_span: start and end of the part of the video that the evidence covers; None for the whole video.
        is_complete: True if missing facts are false. This holds for a scene graph, but never for an item's evidence.
        has_unnamed: True if some things have no name, so that any thing may be one of them.
        scheme: for complete evidence, the relations that the annotators look for.
    """

    facts: tuple[EvidenceFact, ...] = ()
    places: tuple[EvidenceBox, ...] = ()
    objects: Names = frozenset()
    targets: tuple[str, ...] = ()
    times: tuple[float, ...] = ()
    moments: tuple[float, ...] = ()
    answers: Names = frozenset()
    refuted_names: Names = frozenset()
    other_names: Names = frozenset()
    duration: float | None = None
    covered_span: Times | None = None
    is_complete: bool = False
    has_unnamed: bool = False
    scheme: Names = frozenset()

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Return the vocabulary of all recognised names: by full name, by last word, and by synonym."""
        evidence_words = vocabulary_of(self.objects | self.answers | self.refuted_names | self.other_names)
        merged = {words: names | _GENERAL_VOCABULARY.get(words, frozenset()) for words, names in evidence_words.items()}
        return {**_GENERAL_VOCABULARY, **merged}

    @cached_property
    def terms(self) -> Terms:
        """Return the words of a graph's facts that are neither names nor relations; empty without such facts."""
        return dict(_terms(self.facts))

    def places_of(self, names: Names) -> list[EvidenceBox]:
        return [box for box in self.places if box.name in names]


def canonical_name(text: str) -> str:
    """Return a name in canonical form; empty if the text has no name.

    >>> canonical_name("The black pots (3)"), canonical_name("camera wearer (operator)")
    ('black pot', 'hand')
    """
    words = lexicon.word_stems(text)
    if words in lexicon.HAND_NAMES:
        return lexicon.HAND_NAMES[words][0] if len(lexicon.HAND_NAMES[words]) == 1 else "hand"
    while words and words[0] in lexicon.ARTICLES:
        words = words[1:]
    while len(words) > 1 and words[-1].isdigit():
        words = words[:-1]
    return lexicon.HAND_NAMES[words][0] if words in lexicon.HAND_NAMES else " ".join(words)


def vocabulary_of(names: Iterable[str]) -> Vocabulary:
    """Map words to the names that they may mean: the full name, its last word, or a synonym of these.

    >>> sorted(vocabulary_of(["coffee cup", "black pot"])[("mug",)])
    ['coffee cup']
    """
    names_of: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    groups: defaultdict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
    for group in lexicon.SYNONYMS:
        for synonym in group:
            groups[synonym].update(group)
    for name in names:
        words = tuple(name.split())
        if not words or words in lexicon.HAND_NAMES:
            continue
        for form in {words, *([words[-1:]] if words[-1] not in lexicon.NO_HEADS else [])}:
            names_of[form].add(name)
            for synonym in groups.get(form, ()):
                names_of[synonym].add(name)
    return {words: frozenset(named) for words, named in names_of.items()}


_GENERAL_VOCABULARY = vocabulary_of(" ".join(name) for group in lexicon.SYNONYMS for name in group)
"""Names that are recognised in every text."""


def annotated_evidence(
    evidence: ItemEvidence, *, size: tuple[float, float] | None = None, duration: float | None = None
) -> EvidenceBase:
    """Return the evidence of an item, without facts from its question.

    `size` is the width and height of the media in pixels; without it there are no boxes. `duration` is in seconds.
    """
    labels = {target.object_id: canonical_name(target.label) for target in evidence.objects if target.object_id}
    spans: defaultdict[tuple[str, str, str], list[Times]] = defaultdict(list)
    for row in evidence.relations:
        times = spans[_triple(row.subject, row.predicate, row.object)]
        if row.start is not None and row.end is not None:
            times.append((row.start, row.end))
    focus_keys = {_box_key(box) for box in evidence.focused_boxes}
    places = tuple(
        EvidenceBox(labels[object_id], time, _box_fractions(box, size), (object_id, time, box) in focus_keys)
        for object_id, time, box in dict.fromkeys(map(_box_key, (*evidence.boxes, *evidence.focused_boxes)))
        if size is not None and labels.get(object_id)
    )
    names = {*labels.values(), *(canonical_name(target.label) for target in evidence.objects)}
    end_names = {end for subject, _, target in spans for end in (subject, target)}
    end_names |= {canonical_name(row.subject) for row in evidence.graph_facts if row.predicate == "is"}
    end_names |= {
        canonical_name(row.object) for row in evidence.graph_facts if row.predicate in ("touches", lexicon.APART)
    }
    relations = (EvidenceFact(*triple, tuple(sorted(set(times)))) for triple, times in spans.items() if all(triple))
    return EvidenceBase(
        facts=(*relations, *(_graph_fact(row, duration) for row in evidence.graph_facts)),
        places=places,
        objects=frozenset((names | end_names) - {""}),
        targets=tuple(dict.fromkeys(name for target in evidence.objects if (name := canonical_name(target.label)))),
        times=tuple(sorted(set(evidence.focus_times or evidence.timestamps))),
        moments=tuple(sorted(set(evidence.timestamps))),
        duration=duration,
    )


def _graph_fact(row: GraphFact, duration: float | None) -> EvidenceFact:
    """Return a fact of `evidence.graph`. An order of contacts holds throughout the video."""
    subject, target = canonical_name(row.subject), canonical_name(row.object)
    if row.predicate == "is":
        target = _plain_text(row.object)
    elif row.predicate == "does":
        subject, target = "hand", _plain_text(row.object)
    elif row.predicate == "causes":
        subject, target = _plain_text(row.subject), _two_names(row.object, " is ")
    elif row.predicate == "precedes":
        subject, target = _two_names(row.subject, " on "), _two_names(row.object, " on ")
    spans = ((0.0, duration or inf),) if row.predicate == "precedes" else ((row.start, row.end),)
    predicate = row.predicate if row.holds else lexicon.EXCLUDED[row.predicate]
    return EvidenceFact(subject, predicate, target, spans, is_annotated=row.holds, text=row.text)


def _plain_text(text: str) -> str:
    """Return a state or an action in canonical form."""
    return " ".join(lexicon.word_stems(text))


def _two_names(text: str, word: str) -> str:
    """Return two canonical names joined by `word`, or a name joined with a state."""
    first, _, second = text.partition(word)
    return f"{canonical_name(first)}{word}{canonical_name(second) if word == ' on ' else _plain_text(second)}"


def _terms(facts: Iterable[EvidenceFact]) -> Iterator[tuple[tuple[str, ...], tuple[PieceKind, str]]]:
    for fact in facts:
        if fact.predicate in ("is", lexicon.EXCLUDED["is"]):
            yield tuple(fact.object.split()), ("state", fact.object)
        if fact.predicate in ("does", lexicon.EXCLUDED["does"]):
            yield from ((words, ("action", fact.object)) for words in _forms(fact.object))
        if fact.predicate in ("causes", lexicon.EXCLUDED["causes"]):
            yield from ((words, ("action", fact.subject)) for words in _forms(fact.subject))
            state = fact.object.partition(" is ")[2]
            yield tuple(state.split()), ("state", state)
    for predicate, words in lexicon.GRAPH_WORDS.items():
        if any(fact.predicate in (predicate, lexicon.EXCLUDED.get(predicate)) for fact in facts):
            yield from ((lexicon.word_stems(text), (kind, predicate)) for kind, text in words)


def _forms(action: str) -> Iterator[tuple[str, ...]]:
    """Yield the forms of an action: `open the drawer`, `opening the drawer`, and both without the article."""
    verb, *rest = action.split()
    bare = [word for word in rest if word not in lexicon.ARTICLES]
    for form in (verb, f"{verb}ing", f"{verb.removesuffix('e')}ing"):
        yield from ((form, *rest), (form, *bare))


def graph_evidence(
    video: VideoGraph, span: tuple[int, int] | None = None, *, other_categories: Iterable[str] = ()
) -> EvidenceBase:
    """Return the evidence of a scene graph. It is complete, so a missing fact is false.

    Relations hold over their annotated ranges, even on frames where one of the two objects has no box. `span` is a
    range of frames [start, stop), or None for all frames. `other_categories` come from other videos. Claims about these
    categories are known to be wrong. Raises DataError if the graph has no frame rate.
    """
    fps = video.video.fps
    if not fps:
        raise DataError(f"{video.video_id}: has no fps, so that no time can be told. Fix: give video_metadata.fps")
    start, stop = span or (0, video.frame_count)
    stride = max(1, round(_BOX_STEP * fps))
    names = {item: canonical_name(item.category) for item in video.objects_at((start, stop))}
    size = video.video.width, video.video.height
    places = tuple(
        EvidenceBox(names[instance.object], instance.frame / fps, _box_fractions(xywh_to_xyxy(instance.bbox), size))
        for frame in range(start, stop, stride)
        for instance in video.instances(frame)
        if names[instance.object] != UNNAMED
    )
    spans: defaultdict[tuple[str, str, str], list[Times]] = defaultdict(list)
    table = video.relations_table
    for position in table.positions_in((start, stop)).tolist():
        _, value, first, last, _ = table.entry(position)
        ids = int(table.source[position]), int(table.target[position])
        source, target = (video.objects[index].category for index in ids)
        spans[_triple(source, value, target)].append((max(first, start) / fps, (min(last, stop) - 1) / fps))
    present_names = frozenset(names.values()).union(*((subject, target) for subject, _, target in spans))
    return EvidenceBase(
        facts=tuple(
            EvidenceFact(*triple, tuple(sorted(set(times))), is_annotated=UNNAMED not in triple)
            for triple, times in spans.items()
        ),
        places=places,
        objects=present_names - {UNNAMED},
        has_unnamed=UNNAMED in present_names,
        other_names=frozenset(map(canonical_name, other_categories)),
        duration=video.frame_count / fps,
        covered_span=(start / fps, stop / fps),
        is_complete=True,
        scheme=BARISTA_RELATIONS | {predicate for _, predicate, _ in spans},
    )


def _triple(subject: str, predicate: str, target: str) -> tuple[str, str, str]:
    """Return a relation by canonical names. Subject and object follow the direction of the canonical predicate."""
    name, flipped = lexicon.canonical_predicate(predicate)
    first, second = (target, subject) if flipped else (subject, target)
    return canonical_name(first), name, canonical_name(second)


def _box_key(item: TimedBox) -> tuple[str, float, Xyxy]:
    return item.object_id, item.time, as_xyxy(item.box)


def _box_fractions(box: Xyxy, size: tuple[float, float]) -> Xyxy:
    width, height = size
    return box[0] / width, box[1] / height, box[2] / width, box[3] / height


def other_side(hand: str) -> str | None:
    """Return the other hand, or None for a hand of unknown side and for everything else."""
    return lexicon.SIDED_HANDS[1 - lexicon.SIDED_HANDS.index(hand)] if hand in lexicon.SIDED_HANDS else None
