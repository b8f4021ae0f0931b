"""Checks claims against evidence. A claim is supported, contradicted, or neither.

The check is deterministic and uses no language model. A claim is *contradicted* only if the evidence excludes it at the
claim's times:

* A relation is contradicted if the same two things have a relation that excludes it (`on` / `under`), if it holds in
  the other direction, if the other hand does it, or if the hand holds something else. It is also contradicted if the
  hand in question is claimed to be on a thing from a wrong choice, or if the evidence is complete and has no such
  relation then.
* A part of the frame is contradicted if the box clearly lies elsewhere then.
* An object is contradicted if it is claimed to be the thing in question but occurs only in a wrong choice, or if the
  evidence is complete and has no such object.
* A state, an action, a cause or an order is contradicted if `evidence.graph` excludes it then.
* A time is contradicted if it is after the end of the video, or if the other claims of its clause are excluded then.

The tolerance is half a second, always in the claim's favour: it widens supporting times and narrows contradicting
times. It does not apply to the moments that the evidence itself names. A claim without a time may be about any time.
Only a fact that holds throughout contradicts it, or complete evidence in which it never holds.

A claim that the evidence does not decide is *unverifiable*. It counts neither as an error nor as support.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, get_args

from barista_bench.benchmarks.egocot.claims import TARGET, Claim, claims_of
from barista_bench.benchmarks.egocot.evidence import TOLERANCE, EvidenceBase, EvidenceBox, EvidenceFact, Names, Times
from barista_bench.benchmarks.egocot.fact_matching import (
    ROUNDING,
    ClaimVerdict,
    has_same_ends,
    is_denied_by,
    is_implied_by,
    is_named,
    is_opposed_by,
    is_possible_meaning,
    is_stated_by,
    region_verdict,
)
from barista_bench.benchmarks.egocot.lexicon import CONTACTS, HOLDING, PARTS, RELEASING, SIDED_HANDS

VERDICTS: tuple[ClaimVerdict, ...] = get_args(ClaimVerdict)


@dataclass(frozen=True, slots=True)
class ClaimFinding:
    """The verdict on one claim, and the reason. `text` holds the claim's words in the rationale."""

    claim: Claim
    text: str
    verdict: ClaimVerdict
    reason: str


@dataclass(frozen=True, slots=True)
class RationaleCheck:
    """The outcome of checking a rationale.

    Args:
        findings: one per claim, in the order of the text.
        said_count: number of expected facts that supported claims name.
        expected_count: number of expected facts in the evidence: relations, targets, moments, focused boxes.
    """

    findings: tuple[ClaimFinding, ...]
    said_count: int
    expected_count: int

    def count(self, verdict: ClaimVerdict) -> int:
        return sum(finding.verdict == verdict for finding in self.findings)

    @property
    def precision(self) -> float | None:
        """Return the fraction of claims that are supported, or None without claims."""
        return self.count("supported") / len(self.findings) if self.findings else None

    @property
    def recall(self) -> float | None:
        """Return the fraction of expected facts that supported claims name, or None without expected facts."""
        return self.said_count / self.expected_count if self.expected_count else None

    @property
    def is_contradicted(self) -> bool:
        return any(finding.verdict == "contradicted" for finding in self.findings)


def check_rationale(text: str, evidence: EvidenceBase, *, answer: str | None = None) -> RationaleCheck:
    """Extract the claims of a rationale and check them against evidence. This never raises, whatever the text.

    At most `phrases.MAX_TEXT` characters are read. `answer` is the letter of the choice that the rationale argues for,
    if there is one.
    """
    moment = ((evidence.times[0], evidence.times[0]),) if len(evidence.times) == 1 else ()
    claims = claims_of(text, evidence.vocabulary, answer, moment, evidence.terms)
    results = _Checker(evidence).check(claims)
    findings = tuple(
        ClaimFinding(claim, text[claim.start : claim.end], verdict, reason)
        for claim, (verdict, reason) in zip(claims, results, strict=True)
    )
    said_flags = _said_flags(findings, evidence)
    return RationaleCheck(findings, sum(said_flags), len(said_flags))


_Result: TypeAlias = "tuple[ClaimVerdict, str]"
_UNKNOWN: _Result = ("unverifiable", "the evidence does not say")


class _Checker:
    """Gives verdicts on the claims of a rationale, from the evidence of its question."""

    def __init__(self, evidence: EvidenceBase) -> None:
        self.evidence = evidence

    def check(self, claims: Sequence[Claim]) -> list[_Result]:
        dated_claims: defaultdict[int, list[Claim]] = defaultdict(list)
        for claim in claims:
            if claim.kind not in ("time", "object") and claim.times:
                dated_claims[claim.clause].append(claim)
        return [self._result(claim, dated_claims[claim.clause]) for claim in claims]

    def _result(self, claim: Claim, dated_claims: Sequence[Claim]) -> _Result:
        """Return the verdict on one claim. The verdict on a time depends on the dated claims of its clause."""
        if claim.kind == "time":
            return self._time_result(claim, dated_claims)
        if claim.kind == "object":
            return self._target_result(claim.object) if claim.subject == TARGET else self._object_result(claim.object)
        return self._region_result(claim) if claim.kind == "region" else self._relation_result(claim)

    def _target_result(self, names: Names) -> _Result:
        evidence = self.evidence
        right_names = evidence.answers | frozenset(evidence.targets)
        if names & right_names or not right_names:
            return self._object_result(names) if not right_names else ("supported", "it is what is asked about")
        if names & evidence.refuted_names or not names & evidence.objects:
            return "contradicted", f"what is asked about is {', '.join(sorted(right_names))}"
        return _UNKNOWN

    def _object_result(self, names: Names) -> _Result:
        evidence = self.evidence
        if names & (evidence.objects | evidence.answers):
            return "supported", "it is there"
        if evidence.is_complete and not evidence.has_unnamed:
            return "contradicted", "there is none"
        return _UNKNOWN

    def _relation_result(self, claim: Claim) -> _Result:
        if fact := next((fact for fact in self.evidence.facts if is_denied_by(fact, claim)), None):
            return "contradicted", _fact_text(fact)
        if fact := next(self._matching_facts(claim), None):
            return "supported", _fact_text(fact)
        if any(is_possible_meaning(fact, claim) for fact in self._facts_then(claim)):
            return _UNKNOWN
        if fact := self._clashing_fact(claim):
            return "contradicted", _fact_text(fact)
        return ("contradicted", "there is no such relation") if self._is_absent(claim) else _UNKNOWN

    def _facts_then(self, claim: Claim) -> list[EvidenceFact]:
        """Return the facts that may hold at the claim's times."""
        return [fact for fact in self.evidence.facts if fact.holds_at(claim.times)]

    def _clashing_fact(self, claim: Claim) -> EvidenceFact | None:
        """Return a fact that excludes the claim and certainly holds at the claim's times."""
        facts = (
            fact for fact in self.evidence.facts if self._is_ruled_out(fact, claim) and self._holds_then(fact, claim)
        )
        return next(facts, None)

    def _holds_then(self, fact: EvidenceFact, claim: Claim) -> bool:
        """Return True if a fact holds at each of the claim's times, or throughout the video for an undated claim."""
        if claim.times:
            return all(any(self._is_within(span, times, claim) for span in fact.spans) for times in claim.times)
        covered = self.evidence.covered_span or (0.0, self.evidence.duration or float("inf"))
        if claim.predicate == RELEASING:
            return False
        return any(start <= covered[0] + ROUNDING and covered[1] - ROUNDING <= end for start, end in fact.spans)

    def _is_within(self, span: Times, times: Times, claim: Claim) -> bool:
        """Return True if times lie within a span.

        At a moment that the evidence names, the match is exact. Elsewhere the span is narrowed by the tolerance.
        """
        (start, end), (first, last), slack = span, times, TOLERANCE
        if first < start - ROUNDING or end + ROUNDING < last:
            return False
        if claim.predicate == RELEASING:  # releasing is a moment, which may be the last of the span
            return start < first - slack and last + slack < end
        named_moments = (*self.evidence.times, *self.evidence.moments, *((start,) if start == end else ()))
        is_exact = any(start <= time <= end and first - ROUNDING <= time <= last + ROUNDING for time in named_moments)
        return is_exact or (first + slack < end and start < last - slack)

    def _is_absent(self, claim: Claim) -> bool:
        """Return True if the evidence is complete and no fact may mean the claim at its times."""
        evidence = self.evidence
        if not evidence.is_complete or claim.is_invented or claim.predicate not in evidence.scheme:
            return False
        facts = self._facts_then(claim)
        # Verbs of contact overlap. A hand that presses a button touches it and, in other words, pushes it.
        is_contact = claim.predicate in CONTACTS and any(
            f.predicate in CONTACTS and has_same_ends(f, claim) for f in facts
        )
        is_meant = is_contact or any(is_stated_by(fact, claim) or is_possible_meaning(fact, claim) for fact in facts)
        covered = evidence.covered_span
        is_covered = covered is None or all(covered[0] <= first and last <= covered[1] for first, last in claim.times)
        return is_covered and not is_meant

    def _is_ruled_out(self, fact: EvidenceFact, claim: Claim) -> bool:
        """Return True if fact and claim exclude each other, or the claim puts the question's hand on a wrong choice."""
        if is_opposed_by(fact, claim):
            return True
        is_asked = not fact.is_annotated and is_named(claim.subject, fact.subject)
        is_refuted = bool(claim.object & self.evidence.refuted_names) and not is_named(claim.object, fact.object)
        if is_asked and is_refuted and is_implied_by(claim.predicate, fact.predicate):
            return True
        both_hold = fact.predicate == claim.predicate == HOLDING and fact.subject in SIDED_HANDS
        holds_other = both_hold and claim.subject == {fact.subject} and not is_named(claim.object, fact.object)
        return holds_other and not self._may_be_part_of(claim, fact.object)

    def _may_be_part_of(self, claim: Claim, held_name: str) -> bool:
        """Return True if claimed object and held thing may be part and whole, attached, or one inside the other."""
        is_a_part = claim.is_invented and any(name.split()[-1] in PARTS for name in claim.object)
        if is_a_part or is_named(claim.part_of, held_name):
            return True
        joins = (fact for fact in self.evidence.facts if fact.predicate in ("part of", "attached to", "inside"))
        ends = (pair for fact in joins for pair in ((fact.subject, fact.object), (fact.object, fact.subject)))
        return any(end == held_name and is_named(claim.object, other_end) for end, other_end in ends)

    def _matching_facts(self, claim: Claim) -> Iterator[EvidenceFact]:
        return (fact for fact in self.evidence.facts if is_stated_by(fact, claim))

    def _boxes(self, claim: Claim) -> list[EvidenceBox]:
        """Return the boxes of the things in a region claim. If the claim only says `target`, prefer focused boxes."""
        if claim.subject:
            return self.evidence.places_of(claim.subject)
        targets = self.evidence.places_of(frozenset(self.evidence.targets))
        return [box for box in targets if box.is_focused] or targets

    def _region_result(self, claim: Claim) -> _Result:
        assert claim.region is not None, "region claims have a region"
        boxes = self._boxes(claim)
        near = [box for box in boxes if _is_near(box.time, claim.times, TOLERANCE)]
        if any(region_verdict(box, claim.region) == "supported" for box in near or boxes):
            return "supported", "its box lies there"
        return ("contradicted", "its box lies elsewhere") if self._lies_elsewhere(claim) else _UNKNOWN

    def _lies_elsewhere(self, claim: Claim) -> bool:
        """Return True if all boxes at the claim's times lie elsewhere.

        If the evidence is incomplete, only boxes at the exact moment count, since other boxes may exist.
        """
        is_complete, boxes = self.evidence.is_complete, self._boxes(claim)
        slack = TOLERANCE if is_complete else ROUNDING
        if not claim.times:
            moments = {box.time for box in self.evidence.places}
            is_seen = is_complete and {box.time for box in boxes} == moments  # while unseen, the thing may be anywhere
        else:
            is_seen = all(any(_overlaps((box.time, box.time), times, slack) for box in boxes) for times in claim.times)
            is_seen = is_seen and (is_complete or all(last - first <= 2 * slack for first, last in claim.times))
        near = [box for box in boxes if _is_near(box.time, claim.times, slack)]
        verdicts = (claim.region and region_verdict(box, claim.region) for box in near)
        return is_seen and all(verdict == "contradicted" for verdict in verdicts)

    def _supporting_spans(self, claim: Claim) -> tuple[Times, ...]:
        """Return the times at which the evidence supports the claim. Undated or missing support gives no times."""
        if claim.kind != "region":
            facts = list(self._matching_facts(claim))
            return () if any(not fact.spans for fact in facts) else tuple(s for fact in facts for s in fact.spans)
        assert claim.region is not None, "region claims have a region"
        times = [box.time for box in self._boxes(claim) if region_verdict(box, claim.region) == "supported"]
        # Boxes are samples of a movement. Between the first and the last box, the thing may be there at any time.
        return ((min(times), max(times)),) if times else ()

    def _time_result(self, claim: Claim, dated_claims: Sequence[Claim]) -> _Result:
        evidence, slack = self.evidence, TOLERANCE
        if evidence.duration is not None and claim.times[0][1] > evidence.duration + slack:
            return "contradicted", "the video is over by then"
        dated_spans = {other: spans for other in dated_claims if (spans := self._supporting_spans(other))}
        if any(_overlaps(span, claim.times[0], slack) for spans in dated_spans.values() for span in spans):
            return "supported", "what is said is dated then"
        if any(self._is_excluded(other) for other in dated_spans):
            return "contradicted", "what is said is dated otherwise"
        if not dated_spans and any(_is_near(time, claim.times, slack) for time in (*evidence.times, *evidence.moments)):
            return "supported", "the evidence points at it"
        return _UNKNOWN

    def _is_excluded(self, claim: Claim) -> bool:
        """Return True if the evidence excludes a claim at its times, even if the claim is true at other times."""
        if claim.kind == "region":
            return self._lies_elsewhere(claim)
        return self._is_absent(claim) or self._clashing_fact(claim) is not None


def _overlaps(span: Times, times: Times, slack: float) -> bool:
    return span[0] - slack <= times[1] and times[0] <= span[1] + slack


def _is_near(time: float, times: tuple[Times, ...], slack: float) -> bool:
    return not times or any(_overlaps((time, time), span, slack) for span in times)


def _fact_text(fact: EvidenceFact) -> str:
    when = ", ".join(f"{start:g}-{end:g} s" if end > start else f"{start:g} s" for start, end in fact.spans[:3])
    return f"{fact.subject} {fact.predicate} {fact.object}" + (f" ({when})" if when else "")


def _said_flags(findings: Sequence[ClaimFinding], evidence: EvidenceBase) -> list[bool]:
    """Return, for each expected fact of the evidence, whether a supported claim names it."""
    supported = [finding.claim for finding in findings if finding.verdict == "supported"]
    names = [claim.object for claim in supported if claim.kind == "object"]
    contacts = (claim for claim in supported if claim.kind in ("hand", "relation"))
    names += [end_names for claim in contacts for end_names in (claim.subject, claim.object)]
    names += [claim.subject for claim in supported if claim.kind == "region"]
    moments = [claim.times[0] for claim in supported if claim.kind == "time"]
    regions = [claim for claim in supported if claim.kind == "region"]
    facts = (fact for fact in evidence.facts if fact.is_annotated)
    return [
        *(any(is_stated_by(fact, claim) for claim in supported if claim.predicate) for fact in facts),
        *(any(is_named(claimed, target) for claimed in names) for target in evidence.targets),
        *(any(_overlaps((time, time), claimed, TOLERANCE) for claimed in moments) for time in evidence.times),
        *(any(_is_placed(claim, box, evidence) for claim in regions) for box in evidence.places if box.is_focused),
    ]


def _is_placed(claim: Claim, box: EvidenceBox, evidence: EvidenceBase) -> bool:
    is_about = box.name in (claim.subject or evidence.targets)
    is_then = _is_near(box.time, claim.times, TOLERANCE)
    return is_about and is_then and claim.region is not None and region_verdict(box, claim.region) == "supported"
