"""Temporal scene graphs: which relations hold in a clip, and on which of its frames?

Frames are evenly spaced over consecutive clips. An answer lists triplets (subject, relation, object), each with a run
of consecutive shown frames on which the relation holds. Subject and object are category names, and
the relation is a value such as `holds`. It holds on a frame if a range of the annotations covers the frame and both
objects have a box there. Objects of one category count as one object, and their relations are united. Relations of
unnamed objects are left out. `metrics/temporal_relations` computes the scores.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement, product
from typing import Annotated

import msgspec
import numpy as np
from msgspec.structs import astuple

from barista_bench.benchmarks.barista.clips import ClipSampling, Keyframes
from barista_bench.benchmarks.extended.clip_task import ClipColumns, ClipTask
from barista_bench.benchmarks.kinds.frames import Bools, FrameArrays
from barista_bench.benchmarks.parsing import MAX_ENTRIES, integer, is_text, last_array, rows_schema
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.deriving import Vocabulary
from barista_bench.core.display import AnswerFailure, Explanation
from barista_bench.core.example import (
    Evidence,
    Example,
    Fields,
    Inputs,
    Int64,
    Json,
    ParseError,
    Prediction,
    Scored,
    Target,
    TypedFields,
)
from barista_bench.core.frozen_lines import MAX_FRAMES
from barista_bench.core.prompt import Prompt
from barista_bench.core.remembering import remember
from barista_bench.core.statistics import SumStatistics
from barista_bench.errors import DataError
from barista_bench.metrics.temporal_relations.scoring import (
    TimedRelation,
    as_relations,
    compute_metrics,
    counts,
    example_sums,
    matches,
    normalise,
)
from barista_bench.scene_graph import VideoGraph
from barista_bench.scene_graph.video_graph import UNNAMED

BASELINE_ENTRIES = 50
"""Number of relations that the baselines name. The primary metric counts the same number."""

Triplet = tuple[str, str, str]
"""Names of subject, relation and object."""


class ClipInputs(Inputs):
    """The sorted categories in relations of the clip, and the sorted values of relations in the complete set."""

    n_frames: Annotated[int, msgspec.Meta(ge=1, le=MAX_FRAMES)]
    objects: Annotated[list[str], msgspec.Meta(min_length=1)]
    relations: Annotated[list[str], msgspec.Meta(min_length=1)]


class RelationSegment(TypedFields):
    """A relation from the shown frame `start` to the shown frame `end`, both included. Frames count from 1."""

    subject: str
    relation: str
    object: str
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.subject} → {self.relation} → {self.object}, frames {self.start} to {self.end}"


class ClipGraph(Target):
    relations: list[RelationSegment]


class ClipEvidence(Evidence):
    """Rows of the annotation file."""

    object_ids: list[str]
    relation_rows: list[Int64]


class TemporalSceneGraph(ClipTask[ClipSampling]):
    name = upstream_name = "temporal_scene_graph"
    version = 1
    primary = sample_score = "recall_at_50"
    primary_note = "Fraction of relations that the first 50 entries hit: the triplet, and half of the time in common."
    sampling = ClipSampling(limit=300, seed=42, frames=8, spacing=24)
    row_note = "frames of a clip, and the relations in it, each with the frames on which it holds"
    answer_note = "JSON: relations with their first and last frame"
    inputs_type, target_type, evidence_type = ClipInputs, ClipGraph, ClipEvidence
    layers = ("relations",)

    def vocabulary(self, video: VideoGraph, sampling: ClipSampling) -> Vocabulary:
        """Return (relation type, value) pairs that hold on some frame. A question lists the values of all videos."""
        return video.relation_labels()

    def columns(
        self, index: FrameArrays, keyframes: Keyframes, vocabulary: Vocabulary, sampling: ClipSampling
    ) -> ClipColumns:
        positions, graph = _clip_graph(index, keyframes)
        if not graph.relations:
            raise DataError("no relation between things with a name on the frames shown. Fix: annotate one")
        video, table = index.video, index.video.relations_table
        objects_at_ends = sorted({int(end[position]) for position in positions for end in (table.source, table.target)})
        rows = sorted({int(table.row[position]) for position in positions})
        objects = sorted({name for item in graph.relations for name in (item.subject, item.object)})
        values = sorted({normalise(value) for _, value in vocabulary})
        return (
            f"{len(graph.relations)} relations",
            ClipInputs(len(keyframes), objects, values),
            graph,
            ClipEvidence([video.objects[end].id for end in objects_at_ends], rows),
        )

    def prompt(self, example: Example, box_format: BoxFormat) -> Prompt:
        inputs = ClipInputs.of(example)
        objects, relations = (
            "\n".join(f"  - {name}" for name in names) for names in (inputs.objects, inputs.relations)
        )
        return self.prompts.prompt(inputs.n_frames, count=str(inputs.n_frames), objects=objects, relations=relations)

    def parse(self, text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
        """Return the last list that is empty or has a valid entry. The list's invalid entries are dropped."""
        n_frames = ClipInputs.read(inputs).n_frames

        def read_segments(entries: list[object]) -> list[RelationSegment]:
            return [item for entry in entries[:MAX_ENTRIES] if (item := _read_segment(entry, n_frames)) is not None]

        entries = last_array(text, lambda array: not array or bool(read_segments(array)))
        if entries is None:
            return ParseError("the answer holds no JSON array of [subject, relation, object, first frame, last frame]")
        segments = read_segments(entries)
        return Prediction(ClipGraph(segments).write(), dropped=len(entries) - len(segments))

    def answer_schema(self, example: Example) -> Fields:
        inputs = ClipInputs.of(example)
        thing: Fields = {"type": "string", "enum": inputs.objects}
        frame: Fields = {"type": "integer", "minimum": 1, "maximum": inputs.n_frames}
        entry: list[Json] = [thing, {"type": "string", "enum": inputs.relations}, thing, frame, frame]
        return rows_schema(entry)

    def reference_answer(self, example: Example, box_format: BoxFormat) -> str:
        return _segments_json(_true_segments(example))

    def random_answer(self, example: Example, rng: random.Random, box_format: BoxFormat) -> str:
        """Return as many random entries as the primary metric counts. All triplets and ranges are equally likely."""
        inputs = ClipInputs.of(example)
        stretches = list(combinations_with_replacement(range(1, inputs.n_frames + 1), 2))
        names = list(product(inputs.objects, inputs.relations, inputs.objects))
        return _segments_json(
            RelationSegment(*rng.choice(names), *rng.choice(stretches)) for _ in range(BASELINE_ENTRIES)
        )

    def prior_answer(self, example: Example, others: Sequence[Example], box_format: BoxFormat) -> str:
        """Return, on all frames, the most frequent triplets of other videos whose subject and object the clip shows."""
        inputs, fractions = ClipInputs.of(example), usual_triplets(others)
        possible_triplets = (triplet for triplet in fractions if {triplet[0], triplet[2]} <= set(inputs.objects))
        ranked = sorted((-fractions[triplet], triplet) for triplet in possible_triplets)
        return _segments_json(RelationSegment(*triplet, 1, inputs.n_frames) for _, triplet in ranked[:BASELINE_ENTRIES])

    def statistics(self, samples: Sequence[Scored]) -> SumStatistics:
        rows = [
            example_sums(
                None if s.prediction is None else _timed_relations(_answered_segments(s.prediction)),
                _timed_relations(_true_segments(s.example)),
            )
            for s in samples
        ]
        return SumStatistics([dict(row) for row in rows], compute_metrics, tables=counts)

    def as_target(self, example: Example, prediction: Prediction) -> ClipGraph | None:
        graph = ClipGraph.read(prediction.value)
        return graph if graph.relations else None

    def facets(self, example: Example) -> Fields:
        return {"relation_value": sorted({item.relation for item in _true_segments(example)})}

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        hits, misses, wrong = _compare(example, prediction)
        return Explanation.of(*(map(str, group) for group in (hits, misses, wrong)))

    def mistakes(self, example: Example, prediction: Prediction) -> Iterable[AnswerFailure]:
        """Pair wrong entries with missed relations of the same triplet at another time, then add all other failures."""
        hits, misses, wrong = _compare(example, prediction)
        missed, hit = (Counter(item.triplet for item in _timed_relations(group)) for group in (misses, hits))
        for item in _timed_relations(wrong):
            if missed[item.triplet]:
                missed[item.triplet] -= 1
                yield AnswerFailure("wrong_time")
            else:
                yield AnswerFailure("duplicate" if item.triplet in hit else "hallucinated")
        yield from (AnswerFailure("missed") for _ in missed.elements())


@remember
def usual_triplets(examples: Sequence[Example]) -> dict[Triplet, float]:
    """Return, for each triplet, its frequency among the clips that show subject and object."""
    clips_with: Counter[tuple[str, str]] = Counter()
    clips_holding: Counter[Triplet] = Counter()
    for example in examples:
        objects = ClipInputs.of(example).objects
        clips_with.update(product(objects, objects))
        clips_holding.update({item.triplet for item in _timed_relations(_true_segments(example))})
    return {triplet: count / clips_with[triplet[0], triplet[2]] for triplet, count in clips_holding.items()}


def _clip_graph(index: FrameArrays, keyframes: Keyframes) -> tuple[list[int], ClipGraph]:
    """Return the positions of relation ranges that hold on some keyframe between named objects, and the clip's graph.

    The relations of the graph are sorted by first frame, last frame and names.
    """
    table, frames = index.video.relations_table, np.array(keyframes)
    is_active = index.active_relations(range(len(table.start)), frames)
    names = [normalise(item.category) for item in index.video.objects]
    is_named = np.array([name != UNNAMED for name in names], dtype=bool)
    is_active &= (is_named[table.source] & is_named[table.target])[:, None]
    positions = np.flatnonzero(is_active.any(axis=1)).tolist()
    frames_of_triplet: dict[Triplet, Bools] = {}
    for position in positions:
        triplet = names[table.source[position]], normalise(table.entry(position)[1]), names[table.target[position]]
        frames_of_triplet[triplet] = is_active[position] | frames_of_triplet.get(triplet, False)
    segments = []
    for triplet, on_frames in frames_of_triplet.items():
        borders = np.flatnonzero(np.diff(on_frames, prepend=False, append=False)).tolist()
        stretches = zip(borders[::2], borders[1::2], strict=True)
        segments += [RelationSegment(*triplet, start + 1, end) for start, end in stretches]
    segments.sort(key=lambda segment: (segment.start, segment.end, astuple(segment)))
    return positions, ClipGraph(segments)


def _read_segment(entry: object, n_frames: int) -> RelationSegment | None:
    """Return an entry in the prompt's form with frames within the clip, or None for any other entry."""
    if not isinstance(entry, list) or len(entry) != len(RelationSegment.__struct_fields__):
        return None
    names, (start, end) = list(filter(is_text, entry[:3])), map(integer, entry[3:])
    if len(names) < len(entry[:3]) or start is None or end is None or not 1 <= start <= end <= n_frames:
        return None
    return RelationSegment(names[0], names[1], names[2], start, end)


def _true_segments(example: Example) -> list[RelationSegment]:
    """Return the true segments.

    Raises DataError for frames outside the clip, since a dataset may come from anywhere.
    """
    n_frames, relations = ClipInputs.of(example).n_frames, ClipGraph.of(example).relations
    for item in relations:
        if not 1 <= item.start <= item.end <= n_frames:
            raise DataError(f"{example.example_id}: {item}, of {n_frames}. Fix: build the dataset again")
    return relations


def _answered_segments(prediction: Prediction) -> list[RelationSegment]:
    return ClipGraph.read(prediction.value).relations


def _timed_relations(segments: Iterable[RelationSegment]) -> list[TimedRelation]:
    """Return relations in the form of the metric: frame i covers the time from i - 1 to i."""
    return as_relations([(item.subject, item.relation, item.object, item.start - 1, item.end) for item in segments])


def _compare(example: Example, prediction: Prediction | None) -> tuple[list[RelationSegment], ...]:
    """Return the relations that are hit, the missed relations, and the entries that hit no relation."""
    reference, answer = _true_segments(example), [] if prediction is None else _answered_segments(prediction)
    matched_references = matches(_timed_relations(answer), _timed_relations(reference))
    hit_references = set(matched_references)
    return (
        [item for index, item in enumerate(reference) if index in hit_references],
        [item for index, item in enumerate(reference) if index not in hit_references],
        [item for index, item in zip(matched_references, answer, strict=True) if index is None],
    )


def _segments_json(segments: Iterable[RelationSegment]) -> str:
    return json.dumps(list(map(astuple, segments)), ensure_ascii=False)
