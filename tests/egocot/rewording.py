"""Statements in wordings that the package does not use itself: a fact or a place as models put them.

Not written to suit the grammar: some of them it misses. `planting.py` counts how many.
"""

from collections.abc import Iterator

from barista_bench.benchmarks.egocot.evidence import EvidenceBox, EvidenceFact, Times
from barista_bench.generate.egocot.rationales import region_words

FORMS = {
    "holds": ("hold", "holding", "held"),
    "touches": ("touch", "touching", "touched"),
    "presses": ("press", "pressing", "pressed"),
    "pushes": ("push", "pushing", "pushed"),
    "pulls": ("pull", "pulling", "pulled"),
    "turns": ("turn", "turning", "turned"),
    "releases": ("release", "releasing", "released"),
}
HELD = (
    "In the frame at {seconds:g} seconds I can clearly see the {hand} grasping what looks like a {thing}.",
    "Around {mm}:{ss:05.2f}, a {thing} is in the wearer's {hand}.",
    "At {mm}:{ss:05.2f}, the {thing} has been lifted by the {hand}, which supports the answer.",
)
ACTED = (
    "At about {seconds:g} s, the camera wearer's {hand} is {ing} the {thing}, as the hand is right there.",
    "**Step 2**: the {thing} is being {past} by the {hand} (t={seconds:g}).",
    "By {mm}:{ss:05.2f} the person uses their {hand} to {base} the {thing}.",
    "We observe the {hand} {ing} some {thing} at {seconds:g}s.",
    "{hand} -> {ing} the {thing} ({mm}:{ss:05.2f})",
    "Looking at {mm}:{ss:05.2f}, it is the {hand} that {base}s the {thing}.",
)
PLACED = (
    "At {seconds:g} s there is a {first} {where} the {second}.",
    "The frame at {mm}:{ss:05.2f} shows the {first} resting {where} the {second}.",
    "{first} {where} {second} at {seconds:g} seconds",
    "At {mm}:{ss:05.2f}, the {first} can be seen {where} a {second}, next to other things.",
    "At {mm}:{ss:05.2f}, one finds the {second} with a {first} {where} it.",
)
LOCATED = (
    "At {seconds:g} s the {name} can be found in the {region} area.",
    "In the {region} of the image we see the {name} ({mm}:{ss:05.2f}).",
    "At {mm}:{ss:05.2f}, the {name} sits at the {region} of the camera view.",
    "The {name} appears at {mm}:{ss:05.2f} in the {hyphened} region.",
)


def reworded_fact(fact: EvidenceFact, span: Times) -> Iterator[str]:
    """A dated relation in other words; nothing for relations that have no other words here."""
    when = _when((span[0] + span[1]) / 2)
    if fact.predicate in FORMS and fact.subject.endswith("hand"):
        base, ing, past = FORMS[fact.predicate]
        for template in (*ACTED, *(HELD if fact.predicate == "holds" else ())):
            yield template.format(hand=fact.subject, thing=fact.object, base=base, ing=ing, past=past, **when)
    elif fact.predicate in ("on", "under", "inside", "outside", "attached to", "far from"):
        for template in PLACED:
            yield template.format(first=fact.subject, second=fact.object, where=fact.predicate, **when)


def reworded_place(box: EvidenceBox) -> Iterator[str]:
    region = region_words(box.box)
    for template in LOCATED:
        yield template.format(name=box.name, region=region, hyphened=region.replace(" ", "-"), **_when(box.time))


def _when(seconds: float) -> dict[str, float]:
    seconds = round(seconds, 2)
    return {"seconds": seconds, "mm": f"{int(seconds // 60):02d}", "ss": seconds % 60}  # type: ignore[dict-item]
