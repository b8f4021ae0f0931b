"""Referring: describe the object in a box (paper, sections 4.2.1 and A.2.3; released rules, docs/upstream/barista.md).

Given a frame and one box, the model writes one sentence that identifies the object. The reference is the graph's
structured text (`reference_text.py`). A judge scores the answer (`judged`, `rubrics/referring.yaml`). Without a judge,
`lexical_f1` compares its words with the reference: a lower bound that must not be published as the paper's Correctness
(`kinds/text.py`).

Candidates are objects that are not `unknown`, that have an attribute and a relation on the frame, and that are no
fragments at the frame's border. The object may be the source or the target of the relation. Value and related object do
not matter. If categories are capped, examples are grouped by category, as in the release. Differences between release
and paper are in `protocols.yaml`.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta
from pycocotools import mask as coco_mask

from barista_bench.benchmarks.barista.common import PROMPT_PACKAGE, frozen_sentence, load_named_domain
from barista_bench.benchmarks.barista.frame_aids import ReferringAids
from barista_bench.benchmarks.barista.reference_text import (
    FrameFacts,
    frame_facts,
    one_sentence,
    readable_clauses,
    relation_clauses,
    structured_reference,
)
from barista_bench.benchmarks.kinds.box_answers import box_fields, box_size
from barista_bench.benchmarks.kinds.frames import FrameArrays, FrameMetadata, FrameSampling, frame_metadata
from barista_bench.benchmarks.kinds.text import ComparedTexts, ReferenceFact, TextTask
from barista_bench.benchmarks.lexical import after_label, is_said, most_typical_text
from barista_bench.core.boxes import BoxFormat, as_xyxy, describe_format, write_box, xywh_to_xyxy
from barista_bench.core.deriving import Candidate, Vocabulary
from barista_bench.core.display import FailureKind, JudgedSample, Overlay
from barista_bench.core.example import (
    Evidence,
    Example,
    Fields,
    Inputs,
    Int64,
    ParseError,
    PixelBox,
    Prediction,
    SkippedExample,
    Target,
    TypedFields,
    evidence_objects,
)
from barista_bench.core.options import Count, packaged_protocol
from barista_bench.core.prompt import Prompt
from barista_bench.core.remembering import remember
from barista_bench.scene_graph import Rle, VideoGraph
from barista_bench.scene_graph.domain import Domain, domain_vocabulary
from barista_bench.scene_graph.video_graph import UNNAMED

SMALL_FRACTION = 0.05
"""A fragment covers a smaller share of the frame than this, and its box lies within `EDGE` of an edge."""
EDGE = 2
"""Largest distance in pixels between the box of a fragment and an edge of the frame."""
COLORS = ("black", "white", "silver", "red", "blue", "green", "brown", "transparent")
RELATIONS_OF_PLACE = ("under", "on", "inside", "attached to", "part of")


class ReferringInputs(Inputs):
    """Boxes and sizes are in pixels. `box` is [x0, y0, x1, y1], and `bbox_xywh` is the same box as in the file."""

    frame_width: int
    frame_height: int
    box: PixelBox
    bbox_xywh: PixelBox


class ListedFact(TypedFields):
    """One fact about the object. `kind` is `object`, `relation`, or the type of an attribute."""

    kind: str
    text: str


class StatedAttribute(TypedFields):
    attribute_type: str
    value: str


class StatedRelation(TypedFields):
    """A relation of the object. `is_source` is True if the object is the relation's source."""

    relation_type: str
    value: str
    target_category: str
    target_object_id: str
    is_source: bool


class ReferringTarget(Target):
    """`reference` is for judges, `sentence` is for `lexical_f1`."""

    category: str
    reference: str
    sentence: str
    facts: list[ListedFact]
    attributes: list[StatedAttribute]
    relations: list[StatedRelation]


class ReferringMetadata(FrameMetadata):
    """`box_share` is the box's share of the frame's area."""

    box_share: float


class ReferringEvidence(Evidence):
    """The described object, then its related objects, and rows of the annotation file."""

    object_ids: list[str]
    instance_rows: list[Int64]
    attribute_rows: list[Int64]
    relation_rows: list[Int64]


@dataclass(frozen=True, slots=True)
class ReferringSampling(FrameSampling):
    """The sampling of objects to describe.

    Args:
        in_activities: use only frames inside an activity.
        per_frame: maximum number of objects per frame; None keeps all.
        per_class: maximum number of examples per category; None keeps all.
        domain: file of a domain's words; `default` and None stand for coffee making.
    """

    in_activities: bool = False
    per_frame: Count | None = None
    per_class: Count | None = None
    domain: Annotated[str, Meta(min_length=1)] | None = None


class Referring(TextTask[ReferringSampling]):
    benchmark = "barista"
    prompt_package = PROMPT_PACKAGE
    name = "referring"
    upstream_name = "referring"
    version = 2
    answer_field = "description"
    sampling = ReferringSampling(limit=1000, seed=42, in_activities=True, frame_step=60, per_frame=10, per_class=50)
    row_note = "a frame and a box, and what a description of that object must say"
    answer_note = "one sentence"
    options = packaged_protocol(PROMPT_PACKAGE, name)

    inputs_type = ReferringInputs
    target_type = ReferringTarget
    metadata_type = ReferringMetadata
    layers = ("attributes", "relations")
    aids = ReferringAids(asked_about=("objects", "states"), default=("zoom", "relations"))
    evidence_type = ReferringEvidence

    def span(self, video: VideoGraph, candidate: Candidate, sampling: ReferringSampling) -> tuple[int, int]:
        return candidate.frame, candidate.frame + 1

    def candidates(self, video: VideoGraph, sampling: ReferringSampling) -> Iterator[Candidate]:
        """Yield the objects of each frame, at most `per_frame`.

        If a frame has more objects, the released seed determines which are kept. Under the paper's protocol, fragments
        are candidates too.
        """
        arrays, objects = FrameArrays(video), video.instances_table.object.tolist()
        frames = arrays.frames(sampling, in_activities=sampling.in_activities)
        for frame, facts in zip(frames.tolist(), frame_facts(arrays, frames), strict=True):
            places = [
                position
                for position in arrays.positions_at(frame)
                if video.objects[objects[position]].category.lower() != UNNAMED
                and objects[position] in facts.properties
                and objects[position] in facts.links
                and (self.follows_paper or not _is_fragment(arrays, frame, position))
            ]
            if sampling.per_frame is not None and len(places) > sampling.per_frame:
                random.Random(f"{video.video_id}:{frame}").shuffle(places)  # noqa: S311  (the released seed)
            for position in places[: sampling.per_frame]:
                yield Candidate(video.video_id, frame, video.objects[objects[position]].category, position)

    def select(
        self, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: ReferringSampling
    ) -> Iterator[Candidate | SkippedExample]:
        """Yield at most `per_class` candidates of each category, category by category.

        Without a cap, all candidates are yielded unchanged.
        """
        groups: dict[str, list[Candidate]] = defaultdict(list)
        for candidate in candidates:
            groups[candidate.group if sampling.per_class is not None else ""].append(candidate)
        for category, group in groups.items():
            if sampling.per_class is not None and len(group) > sampling.per_class:
                random.Random(f"{sampling.seed}:{category}").shuffle(group)  # noqa: S311  (the released seed)
            yield from group[: sampling.per_class]

    def build(
        self, video: VideoGraph, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: ReferringSampling
    ) -> Iterator[Example]:
        frames = sorted({candidate.frame for candidate in candidates})
        facts = dict(zip(frames, frame_facts(FrameArrays(video), np.array(frames, dtype=np.int64)), strict=True))
        domain = load_named_domain(sampling.domain)
        for candidate in candidates:
            yield _example(video, candidate, facts[candidate.frame], domain, every_context=self.follows_paper)

    def prompt(self, example: Example, box_format: BoxFormat) -> Prompt:
        inputs = ReferringInputs.of(example)
        box_numbers = write_box(as_xyxy(inputs.box), box_format, inputs.frame_width, inputs.frame_height)
        fields = {"format": describe_format(box_format), "box": json.dumps(box_numbers)}
        return self.prompts.prompt(1, **(box_fields(self.prompts, box_format) | fields))

    def parse(self, text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
        """Return the last line labelled `Description:`, else the complete text. An empty result is a parse failure."""
        description = after_label(text.strip(), "description")
        return Prediction({"description": description}) if description else ParseError("the answer is empty")

    def overlays(self, example: Example, prediction: Prediction | None) -> tuple[Overlay, ...]:
        """Return the box in the question. Answers have no boxes."""
        box = as_xyxy(ReferringInputs.of(example).box)
        return (Overlay(0, box, "given", self.category(example)),)

    def show_to_judge(self, example: Example, prediction: Prediction) -> JudgedSample:
        reference = ReferringTarget.of(example).reference
        return JudgedSample(self.frozen_question(example), reference, self.text_of(prediction))

    def frozen_question(self, example: Example) -> str:
        """Return the question for judges, who see no frame.

        As in the release, the question's placeholder for the box stays empty.
        """
        return str(example.metadata.get("question") or frozen_sentence(self))

    def facets(self, example: Example) -> Fields:
        return {"category": example.label, "object_size": box_size(ReferringInputs.of(example).box)}

    def comparison(self, example: Example) -> ComparedTexts:
        target = ReferringTarget.of(example)
        return ComparedTexts(target.sentence, context=target.reference)

    def as_target(self, example: Example, prediction: Prediction) -> ReferringTarget:
        text = self.text_of(prediction)
        return ReferringTarget(self.category(example), text, text, [], [], [])

    def category(self, example: Example) -> str:
        return ReferringTarget.of(example).category

    def described_objects(self, example: Example) -> tuple[str, ...]:
        return evidence_objects(example)[:1]

    def facts(self, example: Example) -> list[ReferenceFact]:
        """Return the facts that the reference sentence states. It leaves out the colour of a hand, for example.

        An answer that uses other words has the failure `wrong_object` for the object and `wrong_attribute` for a
        property.
        """
        kinds: dict[str, FailureKind] = {"object": "wrong_object", "relation": "missed"}
        objects, target = self.described_objects(example), ReferringTarget.of(example)
        return [
            ReferenceFact(fact.text, f"{fact.kind}: {fact.text}", objects, kinds.get(fact.kind, "wrong_attribute"))
            for fact in target.facts
            if is_said(fact.text, target.sentence)
        ]

    def reference_answer(self, example: Example, box_format: BoxFormat) -> str:
        return f"Description: {ReferringTarget.of(example).sentence}"

    def random_answer(self, example: Example, rng: random.Random, box_format: BoxFormat) -> str:
        names = sorted(domain_vocabulary())
        color, position = rng.choice(COLORS), rng.choice(RELATIONS_OF_PLACE)
        return f"Description: A {color} {rng.choice(names)} that is {position} the {rng.choice(names)}."

    def prior_answer(self, example: Example, others: Sequence[Example], box_format: BoxFormat) -> str:
        """Return the most typical sentence of other videos about any object.

        The category is ignored, because the question does not name it. Without other videos, return `An object.`
        """
        return f"Description: {typical_sentence(others) or 'An object.'}"


def _is_fragment(arrays: FrameArrays, frame: int, position: int) -> bool:
    """Return True if the box is within `EDGE` of the frame's edge and the object covers less than `SMALL_FRACTION`."""
    video = arrays.video
    width, height = video.video.width, video.video.height
    x, y, box_width, box_height = video.instances_table.bbox[position].tolist()
    inside = x > EDGE and y > EDGE and x + box_width < width - EDGE and y + box_height < height - EDGE
    return not inside and _area(arrays, frame, position) / (width * height) < SMALL_FRACTION


def _area(arrays: FrameArrays, frame: int, position: int) -> float:
    """Return the number of pixels of the object's mask on the frame, or of its box without a usable mask.

    If the frame has several usable masks of the object, the last one counts.
    """
    video, objects = arrays.video, arrays.video.instances_table.object
    instances = [video.instance(other) for other in arrays.positions_at(frame) if objects[other] == objects[position]]
    masks = [rle for rle in video.rles(instances) if isinstance(rle, Rle)]
    if not masks:
        width, height = video.instances_table.bbox[position, 2:].tolist()
        return float(width * height)
    return float(coco_mask.area({"size": list(masks[-1].size), "counts": masks[-1].counts.encode("ascii")}))


@remember
def typical_sentence(examples: Sequence[Example]) -> str | None:
    """Return the most typical reference sentence; None without examples."""
    sentences = [ReferringTarget.of(example).sentence for example in examples]
    return most_typical_text(sentences) if sentences else None


def listed_facts(facts: FrameFacts, index: int) -> list[ListedFact]:
    """Return the facts that an answer should state about an object: its category, attributes and direct relations."""
    entries = [ListedFact("object", facts.category(index))]
    entries += [ListedFact(entry.type, entry.value) for entry in facts.properties.get(index, ())]
    return entries + [ListedFact("relation", str(entry)) for entry in readable_clauses(facts, index)]


def _example(
    video: VideoGraph, candidate: Candidate, facts: FrameFacts, domain: Domain, *, every_context: bool
) -> Example:
    frame, width, height = candidate.frame, video.video.width, video.video.height
    instance = video.instance(candidate.item)
    target, index = instance.object, int(video.instances_table.object[candidate.item])
    box = xywh_to_xyxy(instance.bbox)
    clauses = relation_clauses(facts, index)
    properties = facts.properties[index]
    related_ids = dict.fromkeys(facts.objects[end].id for entry in clauses for end in entry.ends)
    x0, y0, x1, y1 = box
    return Referring.new_example(
        f"{Referring.upstream_name}:{video.video_id}:frame_{frame}:obj_{target.id}",
        video.video_id,
        [frame],
        label=target.category,
        inputs=ReferringInputs(width, height, list(box), list(video.stated_box(candidate.item))),
        target=ReferringTarget(
            category=target.category,
            reference=structured_reference(facts, index, every_context=every_context),
            sentence=one_sentence(facts, index, domain),
            facts=listed_facts(facts, index),
            attributes=[StatedAttribute(entry.type, entry.value) for entry in properties],
            relations=[
                StatedRelation(
                    relation_type=link.type,
                    value=link.value,
                    target_category=facts.category(link.end),
                    target_object_id=facts.objects[link.end].id,
                    is_source=link.is_source,
                )
                for link in facts.links[index]
            ],
        ),
        metadata={**frame_metadata(video, frame), "box_share": (x1 - x0) * (y1 - y0) / (width * height)},
        evidence=ReferringEvidence(
            object_ids=[target.id, *related_ids],
            instance_rows=[instance.row],
            attribute_rows=[entry.row for entry in properties],
            relation_rows=sorted({row for entry in clauses for row in entry.rows}),
        ),
    )
