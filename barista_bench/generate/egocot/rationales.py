"""Write the reasons of a question from its evidence: one sentence for each fact, place, target and moment."""

from __future__ import annotations

from barista_bench.benchmarks.egocot.evidence import TOLERANCE, EvidenceBase, EvidenceBox, EvidenceFact, Times
from barista_bench.benchmarks.egocot.items import clock_text
from barista_bench.benchmarks.egocot.lexicon import CONTACTS
from barista_bench.core.boxes import Xyxy

_VERBS = {
    **{name: name for name in (*CONTACTS, "releases", "cuts")},
    "manipulates by": "manipulates objects using",
    "switches": "turns on",
}


def rationale_of(evidence: EvidenceBase) -> list[str]:
    """Return sentences for all relations, focused places, targets and moments in the evidence.

    >>> rationale_of(EvidenceBase(facts=(EvidenceFact("left hand", "holds", "pot", ((1.0, 1.0),)),)))
    ['At 00:01.00, the left hand holds the pot.']
    """
    facts = [fact for fact in evidence.facts if fact.is_annotated]
    focused = [box for box in evidence.places if box.is_focused]
    mentioned = {time for fact in facts for span in fact.spans[:1] for time in span} | {box.time for box in focused}
    unmentioned = [time for time in evidence.times if not any(abs(time - other) <= TOLERANCE for other in mentioned)]
    targets = (f"The target object is the {_noun(name)}." for name in evidence.targets)
    sentences = [*targets, *map(fact_sentence, facts), *map(place_sentence, focused)]
    subject = "moments that matter are" if len(unmentioned) > 1 else "moment that matters is"
    return [*sentences, f"The {subject} {', '.join(map(clock_text, unmentioned))}."] if unmentioned else sentences


def fact_sentence(fact: EvidenceFact, span: Times | None = None) -> str:
    """Return a sentence about one relation. Its time is `span`, or the first span of the fact."""
    span = span or (fact.spans[0] if fact.spans else None)
    if fact.text:
        return _with_time(f"{fact.text}.", None if fact.predicate == "precedes" else span)
    verb = _VERBS.get(fact.predicate, f"is {fact.predicate}")
    return _with_time(f"the {_noun(fact.subject)} {verb} the {_noun(fact.object)}.", span)


def place_sentence(box: EvidenceBox) -> str:
    """Return a sentence about the part of the frame that contains an object at one time."""
    return _with_time(f"the {_noun(box.name)} is in the {region_words(box.box)} of the frame.", (box.time, box.time))


def region_words(box: Xyxy) -> str:
    """Return the part of the frame that contains a box's centre. `box` is in fractions of the frame.

    >>> region_words((0.0, 0.8, 0.2, 1.0)), region_words((0.4, 0.4, 0.6, 0.6))
    ('lower left', 'middle')
    """
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    across = "left" if x < 0.4 else "right" if x > 0.6 else "center"
    down = "upper" if y < 0.4 else "lower" if y > 0.6 else "middle"
    return "middle" if (across, down) == ("center", "middle") else f"{down} {across}"


def _noun(name: str) -> str:
    return "operator" if name == "hand" else name


def _with_time(sentence: str, span: Times | None) -> str:
    if span is None:
        return sentence[0].upper() + sentence[1:]
    start, end = map(clock_text, span)
    return f"At {start}, {sentence}" if start == end else f"From {start} to {end}, {sentence}"
