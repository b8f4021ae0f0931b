"""A rationale that says what the evidence points at, and nothing else: one short sentence a fact, times first."""

from __future__ import annotations

from collections.abc import Iterator

from barista_bench.benchmarks.egocot.evidence import TOLERANCE, EvidenceBase, EvidenceBox, EvidenceFact, Times
from barista_bench.benchmarks.egocot.items import clock
from barista_bench.benchmarks.egocot.lexicon import CONTACTS
from barista_bench.core.boxes import Xyxy

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
        *_targets(evidence),
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


def _targets(evidence: EvidenceBase) -> Iterator[str]:
    for name in evidence.targets:
        yield f"The target object is the {_person(name)}."


def _person(name: str) -> str:
    return "operator" if name == "hand" else name


def _dated(sentence: str, span: Times | None) -> str:
    if span is None:
        return sentence[0].upper() + sentence[1:]
    start, end = map(clock, span)
    return f"At {start}, {sentence}" if start == end else f"From {start} to {end}, {sentence}"
