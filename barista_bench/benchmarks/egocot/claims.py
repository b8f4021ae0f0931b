"""Finds the claims of a rationale: statements about times, objects, hands, relations and parts of the frame.

A small grammar over the pieces of a clause (`phrases.py`) finds the claims, without a language model:

    relation   NAME ... PREDICATE ... NAME ["and" NAME]    a claim about a hand if the predicate is a contact
    region     (NAME | "the target")+ ... REGION           about a thing named before REGION, else the next named thing
    object     "the target" ... NAME                       identifies the thing in question
    object     NAME                                        says that the thing is there
    time       TIME
    state      NAME ... is STATE
    action     ACTION
    cause      ACTION ... so that ... is STATE
    order      CONTACT ... before ... CONTACT              the contacts are relations of a hand, as above

The last four kinds are searched only if the evidence has such facts (`evidence.graph`). The NAME of a predicate is the
nearest name before it. A clause with a negation or a hedge makes no claim. Neither does a clause about a choice other
than the answer. Equal claims count once. Words that neither the lists nor the evidence contain make no claim, except as
the object of a hand's action.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, TypeAlias, get_args

from barista_bench.benchmarks.egocot.evidence import Names, Terms, Times, Vocabulary
from barista_bench.benchmarks.egocot.lexicon import CONTACTS, HOLDING, RELEASING, SIDED_HANDS, Region
from barista_bench.benchmarks.egocot.phrases import NO_TERMS, Clause, Piece, split_clauses

ClaimKind: TypeAlias = Literal["time", "object", "hand", "relation", "region", "state", "action", "order", "cause"]
KINDS: tuple[ClaimKind, ...] = get_args(ClaimKind)
TARGET: Names = frozenset({"target"})
MAX_CLAIMS = 500
"""Maximum number of claims that are read from one text."""

_GAP_BEFORE, _GAP_AFTER, _GAP_REGION = 8, 6, 16
_VERBS_TO_BE = (("is",), ("are",), ("wa",), ("was",), ("were",))
_CHOICE = re.compile(
    r"\b(?:[Oo]ption|[Cc]hoice|[Aa]nswer)s?\s+\(?([A-Z])\b|(?:^|[\s(])([A-Z])\s+(?:is|was|says|describes)\b"
)


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement. `subject` and `object` are sets of possible names. A hand of unknown side is `hand`.

    Args:
        kind: topic of the claim. An object claim with the subject `TARGET` identifies the thing in question.
        start, end: offsets of the claim's words in the text.
        clause: number of the claim's clause. A time is checked against the other claims of its clause.
        times: moments of the claim; empty if the sentence gives no time, or moves the claim to another time (`later`).
            A time claim has only its own time.
        is_invented: True if no source contains the object's name.
        part_of: the whole that the object is claimed to be part of (`the handle of the pot`).
        of_both_hands: True if the claim is about both hands at once.
        words: the names of things as spelled in the text.
    """

    kind: ClaimKind
    start: int
    end: int
    clause: int
    times: tuple[Times, ...] = ()
    subject: Names = frozenset()
    predicate: str = ""
    object: Names = frozenset()
    region: Region | None = None
    is_invented: bool = False
    part_of: Names = frozenset()
    of_both_hands: bool = False
    words: Names = frozenset()

    @property
    def content(self) -> tuple[Hashable, ...]:
        """Return the claim without its place in the text. Claims with equal content count once."""
        return self.kind, self.times, self.subject, self.predicate, self.object, self.region


def claims_of(
    text: str,
    vocabulary: Vocabulary,
    answer: str | None = None,
    moment: tuple[Times, ...] = (),
    terms: Terms = NO_TERMS,
) -> list[Claim]:
    """Return the claims of an untrusted text in order, each once, at most `MAX_CLAIMS`.

    `answer` is the letter of the choice that the text argues for. Statements about other choices are not claims.
    `moment` is the time of the question, which `at this moment` may refer to.
    """
    claims: dict[tuple[Hashable, ...], Claim] = {}
    for number, clause in enumerate(split_clauses(text, vocabulary, moment, terms)):
        letters = {first or second for first, second in _CHOICE.findall(text[clause.start : clause.end])}
        if clause.has("negation") or clause.has("hedge") or letters - {"I", answer}:
            continue
        for claim in _claims(clause, number):
            # A time is checked against the other claims of its clause, so equal times of different clauses are kept.
            claims.setdefault((number, *claim.content) if claim.kind == "time" else claim.content, claim)
            if len(claims) >= MAX_CLAIMS:
                return list(claims.values())
    return list(claims.values())


def _claims(clause: Clause, number: int) -> Iterator[Claim]:
    yield from (Claim("time", start, end, number, (times,)) for times, start, end in clause.own_times)
    relations = list(_relations(clause.pieces))
    claims = (*relations, *_regions(clause.pieces), *_objects(clause.pieces), *_states(clause.pieces))
    for claim in (*claims, *_orders(clause.pieces, relations)):
        is_timeless = claim.kind == "object" or claim.end > clause.order_start
        yield replace(claim, clause=number, times=() if is_timeless else clause.times)


def _objects(pieces: Sequence[Piece]) -> Iterator[Claim]:
    for index, piece in enumerate(pieces):
        if piece.kind != "name" or "*" in piece.names:
            continue
        target = _piece_before(pieces, index, ("target", "name", "predicate", "region"))
        if target is not None and target.kind == "target":
            yield Claim("object", target.start, piece.end, 0, subject=TARGET, object=piece.names)
        elif not _is_hand(piece.names):
            yield Claim("object", piece.start, piece.end, 0, object=piece.names)


def _regions(pieces: Sequence[Piece]) -> Iterator[Claim]:
    for index, piece in enumerate(pieces):
        if piece.kind != "region":
            continue
        before, after = pieces[max(0, index - _GAP_REGION) : index], pieces[index + 1 : index + 1 + _GAP_BEFORE]
        owners = [other for other in before if other.kind in ("name", "target")]
        owners = owners or [other for other in after if other.kind in ("name", "target")][:1]
        names = frozenset(name for other in owners for name in other.names if name != "*")
        if owners and (names or any(other.kind == "target" for other in owners)):
            start, end = min(owners[0].start, piece.start), max(owners[-1].end, piece.end)
            yield Claim("region", start, end, 0, subject=names, region=piece.region)


def _relations(pieces: Sequence[Piece]) -> Iterator[Claim]:
    for index, piece in enumerate(pieces):
        if piece.kind != "predicate" or piece.predicate is None:
            continue
        subject = _piece_before(pieces, index, ("name",))
        if subject is None:
            continue
        is_hand = _is_hand(subject.names)
        for target in _names_after(pieces, index, is_hand and piece.predicate.name in CONTACTS):
            yield from _relation(subject, piece, target, _wholes(pieces[index + 1 : index + 2 * _GAP_REGION], target))


def _states(pieces: Sequence[Piece]) -> Iterator[Claim]:
    """Yield claims about states of things, about actions, and about states that actions cause."""
    for index, piece in enumerate(pieces):
        if piece.kind == "action":
            yield Claim("action", piece.start, piece.end, 0, (), frozenset({"hand"}), "does", piece.names)
        owner = _piece_before(pieces, index, ("name",)) if piece.kind == "state" else None
        if owner is None or "*" in owner.names or _is_hand(owner.names):
            continue
        last = _piece_before(pieces, pieces.index(owner), ("name", "predicate", "cause", "order"))
        if last is not None and last.kind == "predicate":
            continue  # it is unclear which of the two related things has the state
        state = Claim(
            "state", owner.start, piece.end, 0, (), owner.names, "is", piece.names, words=_spelled_names(owner)
        )
        yield state
        cause = _piece_before(pieces, index, ("cause",))
        action = _piece_before(pieces, pieces.index(cause), ("action",)) if cause else None
        if action is not None:
            outcomes = frozenset(f"{name} is {state}" for name, state in product(owner.names, piece.names))
            yield replace(
                state, kind="cause", start=action.start, subject=action.names, predicate="causes", object=outcomes
            )


def _orders(pieces: Sequence[Piece], contacts: Sequence[Claim]) -> Iterator[Claim]:
    """Yield claims that one contact precedes another, from two contacts with a word of order between them."""
    for piece in pieces:
        earlier = [claim for claim in contacts if claim.end <= piece.start] if piece.kind == "order" else []
        later = [claim for claim in contacts if claim.start >= piece.end]
        if earlier and later:
            first, second = earlier[-1], later[0]
            ends = _contact_names(first), "precedes", _contact_names(second)
            yield Claim("order", first.start, second.end, 0, (), *ends, words=first.words | second.words)


def _spelled_names(*pieces: Piece) -> Names:
    return frozenset(" ".join(piece.words) for piece in pieces)


def _contact_names(claim: Claim) -> Names:
    return frozenset(f"{hand} on {name}" for hand, name in product(claim.subject, claim.object))


def _wholes(following: Sequence[Piece], target: Piece) -> Names:
    """Return the names after `of`: the whole that the target is a part of."""
    after = [piece for piece in following if piece.start >= target.end and piece.kind != "article"][:2]
    return after[1].names if len(after) == 2 and after[0].words == ("of",) else frozenset()


def _relation(subject: Piece, predicate: Piece, target: Piece, part_of: Names) -> Iterator[Claim]:
    assert predicate.predicate is not None, "only pieces that are predicates come here"
    name, is_flipped = predicate.predicate
    start, end = min(subject.start, predicate.start), max(target.end, predicate.end)
    first, second = (target, subject) if is_flipped else (subject, target)
    if _is_hand(second.names) and not _is_hand(first.names) and name in ("inside", "on"):
        name, first, second = HOLDING, second, first  # a knife in the right hand
    if _may_be_anything(first.names) and _may_be_anything(second.names):
        return
    if _is_hand(first.names) and _is_hand(second.names) and name in CONTACTS:
        return
    is_invented = target.kind == "word"
    # Both sides (`both hands`) make two claims. Several names of one thing make one claim.
    doers, targets = _each_side(first.names), _each_side(second.names)
    for doer, target_names in product(doers, targets):
        has_side = any(hand in SIDED_HANDS for hand in (*doer, *target_names))
        kind: ClaimKind = "hand" if has_side and name in CONTACTS | {"manipulates by", RELEASING} else "relation"
        of_both_hands = len(doers) > 1 or len(targets) > 1
        claim = Claim(kind, start, end, 0, subject=doer, predicate=name, object=target_names, is_invented=is_invented)
        yield replace(claim, part_of=part_of, of_both_hands=of_both_hands, words=_spelled_names(subject, target))


def _each_side(names: Names) -> list[Names]:
    return [frozenset({name}) for name in sorted(names)] if _is_hand(names) else [names]


def _may_be_anything(names: Names) -> bool:
    """Return True if the names may refer to anything, like the names of `it` and `a hand`."""
    return "*" in names or names == {"hand"}


def _is_hand(names: Names) -> bool:
    return bool(names) and names <= {*SIDED_HANDS, "hand"}


def _piece_before(pieces: Sequence[Piece], index: int, kinds: tuple[str, ...]) -> Piece | None:
    """Return the nearest piece of these kinds before an index, at most a few words away."""
    nearby = pieces[max(0, index - 1 - _GAP_BEFORE) : index]
    return next((piece for piece in reversed(nearby) if piece.kind in kinds), None)


def _names_after(pieces: Sequence[Piece], index: int, is_contact: bool) -> Iterator[Piece]:
    """Yield the names after a relation: the next name, and a second name joined by `and`.

    The search stops at the next relation. `is_contact` means that the relation is a contact of a hand. The object of a
    contact may have an unknown name.
    """
    unknown: list[Piece] = []
    for position, piece in enumerate(pieces[index + 1 : index + 2 + _GAP_AFTER], start=index + 1):
        if piece.kind == "name":
            yield piece
            yield from _name_after_and(pieces, position)
            return
        ends_name = piece.kind == "stop" and unknown
        if piece.kind in ("predicate", "region", "target") or piece.follows_break or ends_name:
            break
        if piece.kind == "word":
            unknown.append(piece)
    if is_contact and unknown and pieces[index + 1].kind == "article":
        head = unknown[-1]
        yield head._replace(names=frozenset({" ".join(head.words)}))


def _name_after_and(pieces: Sequence[Piece], position: int) -> Iterator[Piece]:
    """Yield the name that `and` joins to the name at `position`, unless it begins a new clause."""
    joined = [piece for piece in pieces[position + 1 : position + 6] if piece.kind != "article"]
    if len(joined) < 2 or joined[0].words != ("and",) or joined[1].kind != "name" or _is_hand(joined[1].names):
        return
    after = joined[2] if len(joined) > 2 else None
    is_contact = after is not None and after.predicate is not None and after.predicate.name in CONTACTS
    if after is None or not (is_contact or after.words in _VERBS_TO_BE):
        yield joined[1]
