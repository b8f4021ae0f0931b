"""The evidence of one question: its annotations, and facts that follow from the question and its right answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from barista_bench.benchmarks.egocot.claims import claims_of
from barista_bench.benchmarks.egocot.evidence import (
    EvidenceBase,
    EvidenceFact,
    Names,
    annotated_evidence,
    canonical_name,
    vocabulary_of,
)
from barista_bench.benchmarks.egocot.items import ItemEvidence
from barista_bench.benchmarks.egocot.lexicon import CONTACTS, SIDED_HANDS
from barista_bench.benchmarks.egocot.phrases import split_clauses

_NAME_WORDS = 3
"""Maximum number of words of a choice that is only a name."""


def question_evidence(
    evidence: ItemEvidence,
    question: str,
    choices: Mapping[str, str],
    answer: str,
    *,
    size: tuple[float, float] | None = None,
    duration: float | None = None,
) -> EvidenceBase:
    """Return the evidence for checking rationales of this question.

    It adds three kinds of facts to the annotations. Things named in the question and in the right choice exist. Things
    named in wrong choices are not the thing in question. Question and right answer may form a relation: which hand acts
    on a thing, or which thing a hand acts on. `choices` maps letters to texts, and `answer` is the right letter. `size`
    and `duration` are as in `annotated_evidence`.
    """
    base = annotated_evidence(evidence, size=size, duration=duration)
    short_names = {}
    for label, text in choices.items():
        pieces = [piece for clause in split_clauses(text, base.vocabulary, terms=base.terms) for piece in clause.pieces]
        is_name = all(piece.kind not in ("state", "action") for piece in pieces)
        if is_name and len(canonical_name(text).split()) <= _NAME_WORDS:
            short_names[label] = canonical_name(text)
    choice_names = frozenset(short_names.values()) - {*SIDED_HANDS, "hand", ""}
    base = replace(base, other_names=base.other_names | choice_names)
    present_names = base.objects | _names(question, base) | _names(choices[answer], base)
    right_names = frozenset({short_names[answer]} if answer in short_names else ()) - {""}
    # A name that may mean the right thing is not refuted, such as `pot` if the right thing is a `black pot`.
    right_words = vocabulary_of(right_names | frozenset(base.targets))
    wrong_names = frozenset(short_names.values()) - right_names - {""}
    refuted = frozenset(name for name in wrong_names if tuple(name.split()) not in right_words)
    facts = (*base.facts, *_answer_facts(question, choices[answer], base))
    return replace(base, objects=present_names, answers=right_names, refuted_names=refuted, facts=facts)


def _names(text: str, base: EvidenceBase) -> Names:
    """Return the things that a text names, each by its most specific certain name."""
    names = set()
    for clause in split_clauses(text, base.vocabulary):
        for piece in clause.pieces:
            if piece.kind == "name" and not piece.names & {*SIDED_HANDS, "hand", "*"}:
                exact = " ".join(piece.words)
                names.add(exact if exact in piece.names else _plainest_name(piece.names))
    return frozenset(names)


def _plainest_name(names: Names) -> str:
    """Return the shortest of several names for the same thing."""
    return min(names, key=lambda name: (len(name), name))


def _answer_facts(question: str, choice: str, base: EvidenceBase) -> tuple[EvidenceFact, ...]:
    """Return the relation that the question and its right answer form, dated by the question or by the evidence."""
    question_clauses = list(split_clauses(question, base.vocabulary))
    contacts = (
        (piece.predicate.name, piece.start)
        for clause in question_clauses
        for piece in clause.pieces
        if piece.predicate and piece.predicate.name in CONTACTS
    )
    verb, start = next(contacts, (None, 0))
    dates = tuple(dict.fromkeys(times for clause in question_clauses for times, _, _ in clause.own_times))
    spans = dates or tuple((time, time) for time in base.times)
    name = canonical_name(choice)
    if verb is None:
        return ()
    if name in SIDED_HANDS:
        # Read the question, from its first contact on, as a statement about this hand.
        claims = claims_of(f"the {name} {question[start:]}", base.vocabulary)
        return tuple(
            EvidenceFact(name, claim.predicate, _plainest_name(claim.object), spans, is_annotated=False)
            for claim in claims
            if claim.kind == "hand" and claim.subject == {name} and "*" not in claim.object
        )
    sides = {
        hand for clause in question_clauses for piece in clause.pieces for hand in piece.names if hand in SIDED_HANDS
    }
    if len(sides) == 1 and name and len(name.split()) <= _NAME_WORDS:
        return (EvidenceFact(sides.pop(), verb, name, spans, is_annotated=False),)
    return ()
