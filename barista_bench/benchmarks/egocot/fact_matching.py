"""Compares one fact or box with one claim, ignoring times: the fact states, may mean, or excludes the claim."""

from __future__ import annotations

from typing import Literal, TypeAlias

from barista_bench.benchmarks.egocot import lexicon
from barista_bench.benchmarks.egocot.claims import Claim
from barista_bench.benchmarks.egocot.evidence import EvidenceBox, EvidenceFact, Names, other_side
from barista_bench.benchmarks.egocot.lexicon import Region
from barista_bench.scene_graph.video_graph import UNNAMED

ROUNDING = 0.05
"""Rounding error, in seconds, of times with one decimal. Times that differ by less are the same moment."""


def is_named(claimed: Names, name: str) -> bool:
    """Return True if `name` may be one of the claimed names. A hand of unknown side may be either hand."""
    return name in claimed or "*" in claimed or ("hand" in claimed and name in lexicon.SIDED_HANDS)


def is_possible_meaning(fact: EvidenceFact, claim: Claim) -> bool:
    """Return True if a fact about an unnamed thing may have the claim's meaning."""
    if not is_implied_by(fact.predicate, claim.predicate):
        return False
    return (fact.object == UNNAMED and is_named(claim.subject, fact.subject)) or (
        fact.subject == UNNAMED and is_named(claim.object, fact.object)
    )


def has_same_ends(fact: EvidenceFact, claim: Claim) -> bool:
    return is_named(claim.subject, fact.subject) and is_named(claim.object, fact.object)


def is_implied_by(fact: str, claimed: str) -> bool:
    return fact == claimed or claimed in lexicon.ENTAILS.get(fact, frozenset())


def is_stated_by(fact: EvidenceFact, claim: Claim) -> bool:
    """Return True if a fact states the claim, or implies it."""
    is_forward = has_same_ends(fact, claim)
    is_reversed = is_named(claim.subject, fact.object) and is_named(claim.object, fact.subject)
    if is_forward and is_implied_by(fact.predicate, claim.predicate):
        return True
    if is_reversed and claim.predicate in lexicon.SYMMETRIC and is_implied_by(fact.predicate, claim.predicate):
        return True
    return is_reversed and {fact.predicate, claim.predicate} == {"on", "under"}


def is_denied_by(fact: EvidenceFact, claim: Claim) -> bool:
    """Return True if a graph's fact excludes a claim at the claim's exact moment, without tolerance."""
    if fact.predicate != lexicon.EXCLUDED.get(claim.predicate) or not (
        has_same_ends(fact, claim) and _named_things(fact) <= claim.words
    ):
        return False
    inside = (any(a - ROUNDING <= first and last <= b + ROUNDING for a, b in fact.spans) for first, last in claim.times)
    return bool(claim.times) and all(inside)


def _named_things(fact: EvidenceFact) -> Names:
    """Return the things in a graph's fact that a claim must name in full to be contradicted.

    A graph distinguishes things by name (`white cup`), so `the cup` may mean another thing.
    """
    if not fact.text or fact.predicate in ("does", lexicon.EXCLUDED["does"]):
        return frozenset()
    if fact.predicate == "precedes":
        return frozenset(end.partition(" on ")[2] for end in (fact.subject, fact.object))
    named_end = fact.subject if fact.predicate in ("is", lexicon.EXCLUDED["is"]) else fact.object
    return frozenset({named_end.partition(" is ")[0]})


def is_opposed_by(fact: EvidenceFact, claim: Claim) -> bool:
    """Return True if the same two things have an opposite relation, or if the other hand has the claimed relation."""
    if not _named_things(fact) <= claim.words:
        return False
    is_forward = has_same_ends(fact, claim)
    is_reversed = is_named(claim.subject, fact.object) and is_named(claim.object, fact.subject)
    is_of_both = is_forward or (is_reversed and claim.predicate in lexicon.SYMMETRIC)
    if is_of_both and (fact.predicate, claim.predicate) in lexicon.OPPOSITES:
        return True
    if is_reversed and fact.predicate == claim.predicate and claim.predicate in lexicon.ONE_WAY:
        return True
    if claim.of_both_hands or claim.kind != "hand" or not is_implied_by(fact.predicate, claim.predicate):
        return False
    by_other_hand = claim.subject == {other_side(fact.subject)} and is_named(claim.object, fact.object)
    to_other_hand = claim.object == {other_side(fact.object)} and is_named(claim.subject, fact.subject)
    return by_other_hand or to_other_hand


ClaimVerdict: TypeAlias = Literal["supported", "contradicted", "unverifiable"]

_SURE, _CLEARLY = 0.0, 0.1
_MIDDLE, _OFF_MIDDLE = 0.2, 0.3


def region_verdict(item: EvidenceBox, region: Region) -> ClaimVerdict:
    """Return the verdict on a claim that a box lies in a part of the frame. The box's centre counts.

    Near a border between two parts, neither part is contradicted.
    """
    x0, y0, x1, y1 = item.box
    sides = (
        _axis_verdict((x0 + x1) / 2 - 0.5, {"left": -1, "right": 1, "centre": 0}.get(region.across)),
        _axis_verdict((y0 + y1) / 2 - 0.5, {"upper": -1, "lower": 1, "middle": 0}.get(region.down)),
    )
    if "contradicted" in sides:
        return "contradicted"
    return "unverifiable" if "unverifiable" in sides else "supported"


def _axis_verdict(offset: float, third: int | None) -> ClaimVerdict:
    """Return the verdict on one axis.

    `offset` is the distance from the middle of the frame to the centre of the box. `third` is -1, 0 or 1.
    """
    if third is None:
        return "supported"
    if third == 0:
        inside, outside = abs(offset) <= _MIDDLE, abs(offset) >= _OFF_MIDDLE
    else:
        inside, outside = offset * third >= _SURE, offset * third <= -_CLEARLY
    return "supported" if inside else "contradicted" if outside else "unverifiable"
