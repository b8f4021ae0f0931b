"""One fact or box and one claim: whether it says it, may mean it, or excludes it, whatever the time."""

from __future__ import annotations

from typing import Literal, TypeAlias

from barista_bench.benchmarks.egocot import lexicon
from barista_bench.benchmarks.egocot.claims import Claim
from barista_bench.benchmarks.egocot.evidence import EvidenceBox, EvidenceFact, Names, other_side
from barista_bench.benchmarks.egocot.lexicon import Region
from barista_bench.scene_graph.video_graph import UNNAMED

EXACT = 0.05
"""Seconds that rounding to one decimal costs: as near as that is the very moment."""


def is_named(claimed: Names, name: str) -> bool:
    """Whether a thing of the evidence may be the one that is claimed: a hand of any side is any hand."""
    return name in claimed or "*" in claimed or ("hand" in claimed and name in lexicon.SIDED_HANDS)


def may_be(fact: EvidenceFact, claim: Claim) -> bool:
    """Whether what the evidence has of an unnamed thing may be what is claimed."""
    if not implies(fact.predicate, claim.predicate):
        return False
    return (fact.object == UNNAMED and is_named(claim.subject, fact.subject)) or (
        fact.subject == UNNAMED and is_named(claim.object, fact.object)
    )


def is_of_the_same(fact: EvidenceFact, claim: Claim) -> bool:
    return is_named(claim.subject, fact.subject) and is_named(claim.object, fact.object)


def implies(fact: str, claimed: str) -> bool:
    return fact == claimed or claimed in lexicon.ENTAILS.get(fact, frozenset())


def says(fact: EvidenceFact, claim: Claim) -> bool:
    """Whether what the evidence has is what is claimed, or more."""
    ahead = is_of_the_same(fact, claim)
    back = is_named(claim.subject, fact.object) and is_named(claim.object, fact.subject)
    if ahead and implies(fact.predicate, claim.predicate):
        return True
    if back and claim.predicate in lexicon.SYMMETRIC and implies(fact.predicate, claim.predicate):
        return True
    return back and {fact.predicate, claim.predicate} == {"on", "under"}


def denies(fact: EvidenceFact, claim: Claim) -> bool:
    """Whether a graph excludes a claim at the very moment that it is about: no tolerance makes up for that."""
    if fact.predicate != lexicon.EXCLUDED.get(claim.predicate) or not (
        is_of_the_same(fact, claim) and _things_of(fact) <= claim.words
    ):
        return False
    inside = (any(a - EXACT <= first and last <= b + EXACT for a, b in fact.spans) for first, last in claim.times)
    return bool(claim.times) and all(inside)


def _things_of(fact: EvidenceFact) -> Names:
    """The things that a graph's fact is about, which a claim must name in full to be contradicted by it: a graph names
    things apart (`white cup`), and `the cup` may be another one."""
    if not fact.text or fact.predicate in ("does", lexicon.EXCLUDED["does"]):
        return frozenset()
    if fact.predicate == "precedes":
        return frozenset(end.partition(" on ")[2] for end in (fact.subject, fact.object))
    about = fact.subject if fact.predicate in ("is", lexicon.EXCLUDED["is"]) else fact.object
    return frozenset({about.partition(" is ")[0]})


def opposes(fact: EvidenceFact, claim: Claim) -> bool:
    """Whether the same two things stand in an opposite relation, or the other hand does it."""
    if not _things_of(fact) <= claim.words:
        return False
    ahead = is_of_the_same(fact, claim)
    back = is_named(claim.subject, fact.object) and is_named(claim.object, fact.subject)
    is_of_both = ahead or (back and claim.predicate in lexicon.SYMMETRIC)
    if is_of_both and (fact.predicate, claim.predicate) in lexicon.OPPOSITES:
        return True
    if back and fact.predicate == claim.predicate and claim.predicate in lexicon.ONE_WAY:
        return True
    if claim.both or claim.kind != "hand" or not implies(fact.predicate, claim.predicate):
        return False
    by = claim.subject == {other_side(fact.subject)} and is_named(claim.object, fact.object)
    to = claim.object == {other_side(fact.object)} and is_named(claim.subject, fact.subject)
    return by or to


ClaimVerdict: TypeAlias = Literal["supported", "contradicted", "unverifiable"]

_SURE, _CLEARLY = 0.0, 0.1
_MIDDLE, _OFF_MIDDLE = 0.2, 0.3


def lies(item: EvidenceBox, region: Region) -> ClaimVerdict:
    """Whether a box lies in a part of the frame, by its centre. Near the border between two parts neither is wrong."""
    x0, y0, x1, y1 = item.box
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
