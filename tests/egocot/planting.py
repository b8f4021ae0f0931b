"""True rationales with one falsehood planted, to see which are found. As a program, prints the rate of each kind:

    python -m tests.egocot.planting KITCHEN

`said` is the sentence with the falsehood; the rest of the rationale follows the evidence.
"""

import math
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from barista_bench.benchmarks.egocot.claims import KINDS, ClaimKind
from barista_bench.benchmarks.egocot.cot import Cot, CotSampling
from barista_bench.benchmarks.egocot.evidence import (
    TOLERANCE,
    EvidenceBase,
    EvidenceBox,
    EvidenceFact,
    graph_evidence,
    other_side,
)
from barista_bench.benchmarks.egocot.evidence_check import check_rationale
from barista_bench.benchmarks.egocot.lexicon import CONTACTS, ENTAILS, ONE_WAY, OPPOSITES, PREDICATES, RELEASING
from barista_bench.benchmarks.egocot.release import open_release
from barista_bench.core.example import Example
from barista_bench.generate.egocot.rationales import fact_sentence, place_sentence, rationale_of
from barista_bench.generate.generator import generate
from barista_bench.scene_graph import SceneGraph
from tests.egocot.rewording import reworded_fact, reworded_place

FAR = 2.0
"""Seconds between a planted time and any at which the thing is true."""


PREDICATES_SAID = frozenset(predicate.name for predicate in PREDICATES.values())
MISSED = {
    "items": {
        ("object", "that is acted on otherwise"),
        ("relation", "another contact"),
        ("time", "of a relation"),
        ("time", "of a place"),
    },
    "graphs": {("relation", "another contact")},
}
"""Sorts that the evidence does not exclude, or not always: docs/egocot.md says why."""


class Planted(NamedTuple):
    """`sort` tells sorts of falsehoods of one kind apart. `about` is the reworded fact, at one moment."""

    kind: ClaimKind
    sort: str
    said: str
    about: EvidenceFact | EvidenceBox | None = None


def planted(evidence: EvidenceBase, rng: random.Random) -> Iterator[Planted]:
    """One falsehood of each sort for which the evidence gives occasion."""
    sorts: dict[tuple[str, str], list[Planted]] = {}
    for claim in _all(evidence):
        sorts.setdefault((claim.kind, claim.sort), []).append(claim)
    for claims in sorts.values():
        yield rng.choice(claims)


def _all(evidence: EvidenceBase) -> Iterator[Planted]:
    yield from _of_graph(evidence)
    facts = [fact for fact in evidence.facts if fact.is_annotated and fact.spans and not fact.text]
    if evidence.duration is not None and facts:
        late = evidence.duration + FAR
        yield _of_fact("time", "after the end", facts[0]._replace(spans=((late, late),)), evidence)
    for fact in facts:
        same = [other for other in facts if (other.subject, other.object) == (fact.subject, fact.object)]
        if (time := _wrong_time(tuple(span for other in same for span in other.spans), evidence)) is not None:
            yield _of_fact("time", "of a relation", fact._replace(spans=((time, time),)), evidence)
        yield from _wrong_hand(fact, facts, evidence)
        yield from _wrong_object(fact, evidence)
        yield from _wrong_relation(fact, evidence)
    places = [box for box in evidence.places if box.is_focused or evidence.is_complete]
    for box in places[:: max(1, len(places) // 50)]:
        times = [other.time for other in evidence.places if other.name == box.name]
        if (time := _wrong_time(((min(times), max(times)),), evidence)) is not None and not evidence.is_complete:
            yield _of_place("time", "of a place", box._replace(time=time))
        yield from _wrong_place(box, evidence)
    for name in sorted(evidence.refuted_names):
        yield Planted("object", "that is asked about", f"The target object is the {name}.")


def _of_graph(evidence: EvidenceBase) -> Iterator[Planted]:
    """Facts that a graph excludes, stated as true, and orders the other way round."""
    kinds: dict[str, ClaimKind] = {"touches": "hand", "apart from": "hand", "is": "state", "does": "action"}
    kinds |= {"causes": "cause", "precedes": "order"}
    for fact in evidence.facts:
        if fact.predicate.startswith("not "):
            yield Planted(kinds[fact.predicate.removeprefix("not ")], fact.predicate, fact_sentence(fact))
        elif fact.predicate == "precedes":
            first, _, second = fact.text.partition(" before ")
            yield Planted("order", "the other way round", f"{second.capitalize()} before {first}.")


def _of_fact(kind: ClaimKind, sort: str, fact: EvidenceFact, evidence: EvidenceBase) -> Planted:
    moment = _sure(fact, evidence)
    about = fact._replace(spans=((moment, moment),)) if moment is not None else None
    return Planted(kind, sort, fact_sentence(fact), about)


def _sure(fact: EvidenceFact, evidence: EvidenceBase) -> float | None:
    """A moment of the first span that its ends cannot mean: one that the evidence names, else far from both."""
    start, end = fact.spans[0]
    named = [time for time in evidence.times if start <= time <= end]
    far = start == end or end - start > 2 * TOLERANCE + 0.1
    return named[0] if named else (start + end) / 2 if far else None


def _of_place(kind: ClaimKind, sort: str, box: EvidenceBox) -> Planted:
    return Planted(kind, sort, place_sentence(box), box)


def _wrong_time(spans: tuple[tuple[float, float], ...], evidence: EvidenceBase) -> float | None:
    first, last = evidence.covered_span or (0.0, evidence.duration or 20.0)
    free = [t for t in range(math.ceil(first), int(last) + 1) if all(t < a - FAR or t > b + FAR for a, b in spans)]
    return float(free[len(free) // 2]) if free else None


def _wrong_hand(fact: EvidenceFact, facts: list[EvidenceFact], evidence: EvidenceBase) -> Iterator[Planted]:
    other = other_side(fact.subject)
    if other is not None and fact.predicate in CONTACTS:
        also = [entry for entry in facts if entry.subject == other and entry.object == fact.object]
        if not also:
            yield _of_fact("hand", "that acts", fact._replace(subject=other), evidence)


def _wrong_object(fact: EvidenceFact, evidence: EvidenceBase) -> Iterator[Planted]:
    if other_side(fact.subject) is None:
        return
    taken = {entry.object for entry in evidence.facts if entry.subject == fact.subject} | {fact.object}
    sort = "that is held" if fact.predicate == "holds" else "that is acted on otherwise"
    for name in sorted(evidence.objects | evidence.refuted_names):
        if name not in taken and "hand" not in name and name != "coffee":
            yield _of_fact("object", sort, fact._replace(object=name), evidence)


def _wrong_relation(fact: EvidenceFact, evidence: EvidenceBase) -> Iterator[Planted]:
    same = {entry.predicate for entry in evidence.facts if {entry.subject, entry.object} == {fact.subject, fact.object}}
    true = same | {name for predicate in same for name in ENTAILS.get(predicate, ())}
    for first, second in sorted(OPPOSITES):  # a set: in the same order in every process
        if first != fact.predicate or second in true or second not in PREDICATES_SAID:
            continue
        (start, end), false = fact.spans[0], fact._replace(predicate=second)
        if second != RELEASING and _sure(fact, evidence) is not None:
            yield _of_fact("relation", "the opposite", false, evidence)
        elif second == RELEASING and end - start > 2 * TOLERANCE + 0.1:
            # It is let go of at the end, which may be meant.
            middle = (start + end) / 2
            yield _of_fact("relation", "the opposite", false._replace(spans=((middle, middle),)), evidence)
    # Things on and under the same thing (a cup in a coffee machine) are so both ways round.
    if fact.predicate in ONE_WAY and not {"on", "under"} <= same:
        turned = fact._replace(subject=fact.object, object=fact.subject)
        yield _of_fact("relation", "the other way round", turned, evidence)
    for name in sorted(CONTACTS - true - {"manipulates", "touches", "opens", "closes"}):
        if fact.predicate in CONTACTS and (fact.predicate, name) not in OPPOSITES:
            yield _of_fact("relation", "another contact", fact._replace(predicate=name), evidence)


def _wrong_place(placed: EvidenceBox, evidence: EvidenceBase) -> Iterator[Planted]:
    x0, y0, x1, y1 = placed.box
    for sort, box in (("across", (1 - x1, y0, 1 - x0, y1)), ("down", (x0, 1 - y1, x1, 1 - y0))):
        moved = (box[0] + box[2] - x0 - x1) / 2, (box[1] + box[3] - y0 - y1) / 2
        # Things of the same name may be there; and near the middle nothing is far from its mirror image.
        then = [
            other for other in evidence.places if other.name == placed.name and abs(other.time - placed.time) <= FAR
        ]
        is_known = all(other.box == placed.box or evidence.is_complete for other in then)
        is_alone = all(abs(other.box[0] - x0) + abs(other.box[1] - y0) < 0.2 for other in then)
        if max(map(abs, moved)) > 0.4 and is_known and is_alone:
            yield _of_place("region", sort, placed._replace(box=box))


def is_found(evidence: EvidenceBase, planted: Planted) -> bool:
    """Whether the falsehood is contradicted in a rationale that is otherwise true."""
    true = rationale_of(evidence)[:20]
    checked = check_rationale("\n".join([*true, planted.said]), evidence)
    wrong = [finding for finding in checked.findings if finding.verdict == "contradicted"]
    start = sum(len(line) + 1 for line in true)
    return any(finding.claim.start >= start for finding in wrong)


def rates(bases: list[EvidenceBase], seed: int = 0) -> dict[tuple[str, str], tuple[int, int]]:
    """(kind, sort) -> how many were found, of how many."""
    rng = random.Random(seed)
    detected: Counter[tuple[str, str]] = Counter()
    there: Counter[tuple[str, str]] = Counter()
    for evidence in bases:
        for claim in planted(evidence, rng):
            there[claim.kind, claim.sort] += 1
            detected[claim.kind, claim.sort] += is_found(evidence, claim)
    order = {kind: index for index, kind in enumerate(KINDS)}
    return {key: (detected[key], there[key]) for key in sorted(there, key=lambda key: (order[key[0]], key[1]))}


def in_other_words(claim: Planted) -> Iterator[Planted]:
    """The same falsehood in wordings that are not the package's own."""
    said: Iterator[str] = iter(())
    if isinstance(claim.about, EvidenceFact):
        said = reworded_fact(claim.about, claim.about.spans[0])
    elif isinstance(claim.about, EvidenceBox):
        said = reworded_place(claim.about)
    yield from (claim._replace(said=text) for text in said)


def reworded_rates(bases: list[EvidenceBase], seed: int = 0) -> dict[str, tuple[int, int]]:
    """Kind -> how many reworded falsehoods were found, of how many; only of sorts that can be found at all."""
    rng = random.Random(seed)
    detected, there = Counter[str](), Counter[str]()
    for evidence in bases:
        for claim in planted(evidence, rng):
            if (claim.kind, claim.sort) not in MISSED["graphs" if evidence.is_complete else "items"]:
                for other in in_other_words(claim):
                    there[claim.kind] += 1
                    detected[claim.kind] += is_found(evidence, other)
    return {kind: (detected[kind], there[kind]) for kind in KINDS if there[kind]}


def reworded_truths(bases: list[EvidenceBase]) -> Counter[str]:
    """Reworded true statements, by what is made of them: contradicted, else supported, else unread.

    `supported`: a relation or a place was read and is supported. `unread`: none was.
    """
    counts: Counter[str] = Counter()
    for evidence in bases:
        facts = [fact for fact in evidence.facts if fact.is_annotated and fact.spans and not fact.text]
        places = [box for box in evidence.places if box.is_focused]
        texts = [text for fact in facts[:20] for text in reworded_fact(fact, fact.spans[0])]
        for text in (*texts, *(text for box in places[:10] for text in reworded_place(box))):
            findings = check_rationale(text, evidence).findings
            said = [finding for finding in findings if finding.claim.kind in ("hand", "relation", "region")]
            if any(finding.verdict == "contradicted" for finding in findings):
                counts["contradicted"] += 1
            else:
                counts["supported" if any(finding.verdict == "supported" for finding in said) else "unread"] += 1
    return counts


def item_bases(root: Path) -> list[EvidenceBase]:
    """The evidence of every answered item of a release."""
    examples = Cot().examples(open_release(root), CotSampling(frames=2))
    made = [example for example in examples if isinstance(example, Example)]
    return [Cot.evidence_base(example) for example in made if example.metadata["split"] == "dev"]


def graph_bases(kitchen: Path) -> list[EvidenceBase]:
    """The scene graphs of a kitchen, whole and in parts of four seconds."""
    graph = SceneGraph(kitchen)
    known = sorted({item.category for video in graph for item in video.objects})
    bases = []
    for video in graph:
        length = round(4 * (video.video.fps or 30))
        spans = [(start, min(start + length, video.frame_count)) for start in range(0, video.frame_count, length)]
        bases += [graph_evidence(video, span, other_categories=known) for span in (None, *spans)]
    return bases


def main() -> None:
    kitchen = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        generate(kitchen, Path(folder) / "set", ["egocot"], per_subtask=9)
        for title, bases in (("items", item_bases(Path(folder) / "set" / "egocot")), ("graphs", graph_bases(kitchen))):
            print(f"{title} ({len(bases)})")
            for (kind, sort), (hits, there) in rates(bases).items():
                print(f"  {kind:9} {sort:28} {hits:4} of {there:4}  {hits / there:.2f}")
            print(f"{title}, in other words")
            for kind, (hits, there) in reworded_rates(bases).items():
                print(f"  {kind:9} {'':28} {hits:4} of {there:4}  {hits / there:.2f}")
            print(f"  true statements in other words: {dict(reworded_truths(bases))}")


if __name__ == "__main__":
    main()
