"""Write grounding questions that ask where a model sees the objects of an aid."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from barista_bench.aids.facts import Fact
from barista_bench.aids.levels import LevelName
from barista_bench.aids.texts import AidBook
from barista_bench.benchmarks.barista.grounding import Grounding, GroundingEvidence, GroundingInputs, GroundingTarget
from barista_bench.benchmarks.kinds.frames import FrameMetadata
from barista_bench.core.boxes import to_grid
from barista_bench.core.example import Example, field_types


def upstream_questions(book: AidBook, examples: Iterable[Example], level: LevelName) -> list[Example]:
    """Return one question per frame and name, for all objects in the aids of these examples."""
    groups: dict[tuple[str, int, str], dict[str, Fact]] = defaultdict(dict)
    owners: dict[tuple[str, int, str], Example] = {}
    for example in examples:
        for fact in book.needed(example, level):
            key = (example.video_id, fact.span[0], fact.names[0])
            groups[key][fact.about[0]] = fact
            owners.setdefault(key, example)
    return [_question(key, facts, owners[key], book) for key, facts in sorted(groups.items())]


def _question(key: tuple[str, int, str], facts: dict[str, Fact], owner: Example, book: AidBook) -> Example:
    video_id, frame, name = key
    boxes = [fact.box for fact in facts.values() if fact.box is not None]
    metadata = {field: owner.metadata[field] for field in field_types(FrameMetadata) if field in owner.metadata}
    return Grounding.new_example(
        f"{Grounding.upstream_name}:{video_id}:{frame}:{name}",
        video_id,
        [frame],
        label=name,
        inputs=GroundingInputs(name, name, *book.size(owner)),
        target=GroundingTarget(
            boxes=[list(box) for box in boxes], ground_truth_boxes=[to_grid(box, *book.size(owner)) for box in boxes]
        ),
        metadata={
            **metadata,
            **{"category": name, "colors": [], "relation": "", "related_category": "", "objects": len(boxes)},
        },
        evidence=GroundingEvidence(list(facts), "", [], [], []),
    )
