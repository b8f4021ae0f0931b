"""Claims against evidence: supported, contradicted, or neither. Deterministic, and no language model takes part.

A claim is *contradicted* only where the evidence says otherwise, not where it says nothing:

* a relation: the same two things stand in one that excludes it (`on` / `under`), it holds the other way round, the
  other hand does it, the hand holds something else at that moment, the hand that is asked about is said to be on what
  only a wrong choice is, or the evidence is complete and has no such relation;
* a part of the frame: the box lies clearly elsewhere;
* an object: it is said to be what is asked about and only a wrong choice is, or the evidence is complete and has none;
* a time: after the end of the video, or what its clause says is dated otherwise.

What the evidence does not decide is *unverifiable*: never an error, and no support either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from barista_bench.benchmarks.egocot.claims import TARGET, Claim, claims_of
from barista_bench.benchmarks.egocot.evidence import EvidenceBase, Fact, Names, Place, Times, other_side
from barista_bench.benchmarks.egocot.lexicon import (
    CONTACTS,
    ENTAILS,
    HOLDING,
    ONE_WAY,
    OPPOSITES,
    SIDES,
    SYMMETRIC,
    Region,
)
from barista_bench.scene_graph.video_graph import UNNAMED

ClaimVerdict: TypeAlias = Literal["supported", "contradicted", "unverifiable"]
VERDICTS: tuple[ClaimVerdict, ...] = ("supported", "contradicted", "unverifiable")


@dataclass(frozen=True, slots=True)
class Finding:
    """What the evidence says of one claim, and why. `text` are its words."""

    claim: Claim
    text: str
    verdict: ClaimVerdict
    reason: str


@dataclass(frozen=True, slots=True)
class Checked:
    """A rationale, checked.

    Args:
        findings: one a claim, in the order of the text.
        said: how many of the things that the evidence points at a supported claim says.
        to_say: how many there are: relations, targets, moments, boxes in focus.
    """

    findings: tuple[Finding, ...]
    said: int
    to_say: int

    def count(self, verdict: ClaimVerdict) -> int:
        return sum(finding.verdict == verdict for finding in self.findings)

    @property
    def precision(self) -> float | None:
        """Share of the claims that are supported; None without claims."""
        return self.count("supported") / len(self.findings) if self.findings else None

    @property
    def recall(self) -> float | None:
        """Share of what the evidence points at that is said; None where it points at nothing."""
        return self.said / self.to_say if self.to_say else None

    @property
    def is_contradicted(self) -> bool:
        return any(finding.verdict == "contradicted" for finding in self.findings)


def check_rationale(text: str, evidence: EvidenceBase, *, answer: str | None = None) -> Checked:
    """Extract the claims of a rationale and hold them against evidence. Never raises, whatever the text.

    Args:
        text: of any origin and length; `phrases.MAX_TEXT` characters are read.
        evidence: of an item or a scene graph.
        answer: letter of the choice that the rationale argues for, if any.
    """
    claims = claims_of(text, evidence.vocabulary, answer)
    checked = _Checker(evidence).check(claims)
    findings = tuple(
        Finding(claim, text[claim.start : claim.end], verdict, reason)
        for claim, (verdict, reason) in zip(claims, checked, strict=True)
    )
    said = _said(findings, evidence)
    return Checked(findings, sum(said), len(said))


_Result: TypeAlias = "tuple[ClaimVerdict, str]"
_UNKNOWN: _Result = ("unverifiable", "the evidence does not say")


class _Checker:
    def __init__(self, evidence: EvidenceBase) -> None:
        self.evidence = evidence

    def check(self, claims: Sequence[Claim]) -> list[_Result]:
        found = {place: self._untimed(claim) for place, claim in enumerate(claims) if claim.kind != "time"}
        dated: dict[int, list[tuple[Times, ...]]] = {}
        for claim in claims:
            spans = self._spans(claim)
            if spans:
                dated.setdefault(claim.clause, []).append(spans)
        return [
            found[place] if place in found else self._time(claim, dated.get(claim.clause, []))
            for place, claim in enumerate(claims)
        ]

    def _untimed(self, claim: Claim) -> _Result:
        if claim.kind == "object":
            return self._target(claim.object) if claim.subject == TARGET else self._object(claim.object)
        return self._region(claim) if claim.kind == "region" else self._relation(claim)

    def _target(self, names: Names) -> _Result:
        evidence = self.evidence
        asked = evidence.answers | frozenset(evidence.targets)
        if names & asked or not asked:
            return self._object(names) if not asked else ("supported", "it is what is asked about")
        if names & evidence.refuted or not names & evidence.objects:
            return "contradicted", f"what is asked about is {', '.join(sorted(asked))}"
        return _UNKNOWN

    def _object(self, names: Names) -> _Result:
        evidence = self.evidence
        if names & (evidence.objects | evidence.answers):
            return "supported", "it is there"
        if evidence.complete and not evidence.has_unnamed:
            return "contradicted", "there is none"
        return _UNKNOWN

    def _relation(self, claim: Claim) -> _Result:
        evidence = self.evidence
        if fact := next(self._matching(claim), None):
            return "supported", _in_words(fact)
        there = [fact for fact in evidence.facts if fact.at(claim.times, evidence.tolerance)]
        if any(_may_be(fact, claim) for fact in there):
            return _UNKNOWN
        if fact := next((fact for fact in there if _excludes(fact, claim)), None):
            return "contradicted", _in_words(fact)
        if fact := next((fact for fact in there if self._asked_otherwise(fact, claim)), None):
            return "contradicted", _in_words(fact)
        if evidence.complete and not claim.invented and claim.predicate in evidence.scheme:
            # Verbs of contact overlap: who presses a button touches it, and may be said to push it.
            contact = claim.predicate in CONTACTS and any(
                fact.predicate in CONTACTS and _pairs(fact, claim) for fact in there
            )
            return _UNKNOWN if contact else ("contradicted", "there is no such relation")
        return _UNKNOWN

    def _asked_otherwise(self, fact: Fact, claim: Claim) -> bool:
        """The question's hand is said to be on what only a wrong choice is."""
        by = not fact.annotated and _is(claim.subject, fact.subject) and _implies(claim.predicate, fact.predicate)
        return by and bool(claim.object & self.evidence.refuted) and not _is(claim.object, fact.object)

    def _matching(self, claim: Claim) -> Iterator[Fact]:
        return (fact for fact in self.evidence.facts if _says(fact, claim))

    def _boxes(self, claim: Claim) -> list[Place]:
        """The boxes of what a region claim is about, that of a focused one where it is only called the target."""
        if claim.subject:
            return self.evidence.places_of(claim.subject)
        targets = self.evidence.places_of(frozenset(self.evidence.targets))
        return [place for place in targets if place.focused] or targets

    def _region(self, claim: Claim) -> _Result:
        boxes = self._boxes(claim)
        then = [place for place in boxes if _near(place.time, claim.times, self.evidence.tolerance)]
        assert claim.region is not None, "region claims have a region"
        found = {_lies(place, claim.region) for place in then or boxes}
        if "supported" in found:
            return "supported", "its box lies there"
        return ("contradicted", "its box lies elsewhere") if found == {"contradicted"} else _UNKNOWN

    def _spans(self, claim: Claim) -> tuple[Times, ...]:
        """When the evidence has what a claim says; nothing where it has it undated, or not at all."""
        if claim.kind in ("hand", "relation"):
            facts = list(self._matching(claim))
            return () if any(not fact.spans for fact in facts) else tuple(s for fact in facts for s in fact.spans)
        if claim.kind != "region" or claim.region is None:
            return ()
        times = [place.time for place in self._boxes(claim) if _lies(place, claim.region) == "supported"]
        # Boxes are samples of a movement: between the first and the last it may be there at any time.
        return ((min(times), max(times)),) if times else ()

    def _time(self, claim: Claim, dated: Sequence[tuple[Times, ...]]) -> _Result:
        evidence, slack = self.evidence, self.evidence.tolerance
        start, end = claim.times[0]
        if evidence.duration is not None and end > evidence.duration + slack:
            return "contradicted", "the video is over by then"
        if dated:
            if any(_overlaps(span, (start, end), slack) for spans in dated for span in spans):
                return "supported", "what is said is dated then"
            return "contradicted", "what is said is dated otherwise"
        if any(_overlaps((time, time), (start, end), slack) for time in evidence.times):
            return "supported", "the evidence points at it"
        return _UNKNOWN


def _overlaps(span: Times, times: Times, slack: float) -> bool:
    return span[0] - slack <= times[1] and times[0] <= span[1] + slack


def _near(time: float, times: tuple[Times, ...], slack: float) -> bool:
    return not times or any(_overlaps((time, time), one, slack) for one in times)


def _is(claimed: Names, name: str) -> bool:
    """Whether a thing of the evidence may be the one that is claimed: a hand of any side is any hand."""
    return name in claimed or "*" in claimed or ("hand" in claimed and name in SIDES)


def _may_be(fact: Fact, claim: Claim) -> bool:
    """Whether what the evidence has of an unnamed thing may be what is claimed."""
    if not _implies(fact.predicate, claim.predicate):
        return False
    return (fact.object == UNNAMED and _is(claim.subject, fact.subject)) or (
        fact.subject == UNNAMED and _is(claim.object, fact.object)
    )


def _pairs(fact: Fact, claim: Claim) -> bool:
    return _is(claim.subject, fact.subject) and _is(claim.object, fact.object)


def _implies(fact: str, claimed: str) -> bool:
    return fact == claimed or claimed in ENTAILS.get(fact, frozenset())


def _says(fact: Fact, claim: Claim) -> bool:
    """Whether what the evidence has is what is claimed, or more."""
    ahead = _pairs(fact, claim)
    back = _is(claim.subject, fact.object) and _is(claim.object, fact.subject)
    if ahead and _implies(fact.predicate, claim.predicate):
        return True
    if back and claim.predicate in SYMMETRIC and _implies(fact.predicate, claim.predicate):
        return True
    return back and {fact.predicate, claim.predicate} == {"on", "under"}


def _excludes(fact: Fact, claim: Claim) -> bool:
    """Whether what the evidence has cannot be true together with what is claimed."""
    ahead = _pairs(fact, claim)
    back = _is(claim.subject, fact.object) and _is(claim.object, fact.subject)
    if (ahead or (back and claim.predicate in SYMMETRIC)) and (fact.predicate, claim.predicate) in OPPOSITES:
        return True
    if back and fact.predicate == claim.predicate and claim.predicate in ONE_WAY:
        return True
    if _other_hand(fact, claim):
        return True
    holding = fact.predicate == claim.predicate == HOLDING and fact.subject in SIDES
    return holding and claim.subject == {fact.subject} and not _is(claim.object, fact.object)


def _other_hand(fact: Fact, claim: Claim) -> bool:
    """The same is done by, or to, the other hand."""
    if not _implies(fact.predicate, claim.predicate):
        return False
    subject, target = other_side(fact.subject), other_side(fact.object)
    by = subject is not None and claim.subject == {subject} and _is(claim.object, fact.object) and claim.kind == "hand"
    to = target is not None and claim.object == {target} and _is(claim.subject, fact.subject) and claim.kind == "hand"
    return by or to


_SURE, _CLEARLY = 0.0, 0.1
_MIDDLE, _OFF_MIDDLE = 0.2, 0.3


def _lies(place: Place, region: Region) -> ClaimVerdict:
    """Whether a box lies in a part of the frame, by its centre. Near the border between two parts neither is wrong."""
    x0, y0, x1, y1 = place.box
    sides = (
        _along((x0 + x1) / 2 - 0.5, {"left": -1, "right": 1, "centre": 0}.get(region.across)),
        _along((y0 + y1) / 2 - 0.5, {"upper": -1, "lower": 1, "middle": 0}.get(region.down)),
    )
    if "contradicted" in sides:
        return "contradicted"
    return "unverifiable" if "unverifiable" in sides else "supported"


def _along(offset: float, wanted: int | None) -> ClaimVerdict:
    """One axis: `offset` is the centre's distance from the frame's middle, `wanted` -1, 0 or 1 for its thirds."""
    if wanted is None:
        return "supported"
    if wanted == 0:
        inside, outside = abs(offset) <= _MIDDLE, abs(offset) >= _OFF_MIDDLE
    else:
        inside, outside = offset * wanted >= _SURE, offset * wanted <= -_CLEARLY
    return "supported" if inside else "contradicted" if outside else "unverifiable"


def _in_words(fact: Fact) -> str:
    when = ", ".join(f"{start:g}-{end:g} s" if end > start else f"{start:g} s" for start, end in fact.spans[:3])
    return f"{fact.subject} {fact.predicate} {fact.object}" + (f" ({when})" if when else "")


def _said(findings: Sequence[Finding], evidence: EvidenceBase) -> list[bool]:
    """For each thing that the evidence points at, whether a supported claim says it."""
    good = [finding.claim for finding in findings if finding.verdict == "supported"]
    names = [claim.object for claim in good if claim.kind == "object"]
    names += [ends for claim in good if claim.kind in ("hand", "relation") for ends in (claim.subject, claim.object)]
    names += [claim.subject for claim in good if claim.kind == "region"]
    moments = [claim.times[0] for claim in good if claim.kind == "time"]
    regions = [claim for claim in good if claim.kind == "region"]
    return [
        *(any(_says(fact, claim) for claim in good if claim.predicate) for fact in evidence.facts if fact.annotated),
        *(any(_is(one, target) for one in names) for target in evidence.targets),
        *(any(_overlaps((time, time), one, evidence.tolerance) for one in moments) for time in evidence.times),
        *(any(_tells(claim, place, evidence) for claim in regions) for place in evidence.places if place.focused),
    ]


def _tells(claim: Claim, place: Place, evidence: EvidenceBase) -> bool:
    about = place.name in (claim.subject or evidence.targets)
    when = _near(place.time, claim.times, evidence.tolerance)
    return about and when and claim.region is not None and _lies(place, claim.region) == "supported"
