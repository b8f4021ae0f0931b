"""What a question about relations is made of: marked objects, the vocabulary, and the relations that are usual."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Annotated

import msgspec

from barista_bench.benchmarks.barista.priors import remembered
from barista_bench.core.deriving import Sampling
from barista_bench.core.example import PixelBox, TypedFields
from barista_bench.core.task import Example, Prediction
from barista_bench.scene_graph import Instance, Rle, VideoGraph

Cell = tuple[str, str, str, str]
"""Categories of source and target, relation type, value."""


class MarkSegmentation(TypedFields):
    """A COCO encoding; empty where the annotated mask cannot be used."""

    size: Annotated[list[int], msgspec.Meta(min_length=2, max_length=2)]
    counts: str


class MarkedObject(TypedFields):
    """`mark` is the number shown; `bbox` is [x, y, width, height] in pixels."""

    mark: int
    object_id: str
    category: str
    bbox: PixelBox
    segmentation: MarkSegmentation


class VocabularyEntry(TypedFields):
    """A relation type and the values that it takes in the data."""

    relation_type: str
    values: list[str]


class MarkLook(TypedFields):
    """What the marks look like: fields of `Sampling`."""

    mask_alpha: float
    boundary_alpha: float
    font_size: float


class RelationInputs(TypedFields):
    """Sizes in pixels, those of the annotations."""

    frame_width: int
    frame_height: int
    objects: list[MarkedObject]
    vocabulary: list[VocabularyEntry]
    marks: MarkLook


class MarkedRelation(TypedFields):
    """A relation between two marks."""

    source_id: int
    target_id: int
    relation_type: str
    value: str


class RelationSet(TypedFields):
    """The target, and a prediction."""

    relations: list[MarkedRelation]


def relations_answer(
    entries: Sequence[object], read: Callable[[Mapping[str, object]], MarkedRelation | None]
) -> Prediction:
    """The prediction of a list of entries; those that `read` makes nothing of are dropped."""
    relations = [item for entry in entries if isinstance(entry, dict) and (item := read(entry)) is not None]
    return Prediction(RelationSet(relations).write(), dropped=len(entries) - len(relations))


def mark_order(video: VideoGraph, frame: int) -> list[Instance]:
    """The annotations of a frame in the order of their marks, from 1; an object annotated twice has two."""
    return sorted(video.instances(frame), key=lambda i: (i.object.category.lower(), i.object.id))


def marked_objects(video: VideoGraph, instances: Sequence[Instance]) -> list[MarkedObject]:
    """What the marks stand for. A mask that cannot be used is empty: whoever draws the marks says so."""
    marked = []
    for mark, (instance, rle) in enumerate(zip(instances, video.rles(instances), strict=True), start=1):
        segmentation = (
            MarkSegmentation(list(rle.size), rle.counts) if isinstance(rle, Rle) else MarkSegmentation([0, 0], "")
        )
        item = instance.object
        marked.append(MarkedObject(mark, item.id, item.category, list(instance.bbox), segmentation))
    return marked


def mark_look(sampling: Sampling) -> MarkLook:
    return MarkLook(*(float(getattr(sampling, name)) for name in MarkLook.__struct_fields__))


def vocabulary_entries(pairs: Iterable[tuple[str, str]]) -> list[VocabularyEntry]:
    """(relation type, value) pairs as a question lists them: types and values sorted.

    >>> vocabulary_entries([("position", "on"), ("human_actions", "holds"), ("position", "inside")])[1]
    VocabularyEntry(relation_type='position', values=['inside', 'on'])
    """
    values: dict[str, set[str]] = defaultdict(set)
    for kind, value in pairs:
        values[kind].add(value)
    return [VocabularyEntry(kind, sorted(values[kind])) for kind in sorted(values)]


@remembered
def likely_relations(examples: Sequence[Example]) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """By the categories of a pair of objects, the (type, value) worth answering for every such pair.

    A rule says: between each two objects of these categories, in this direction, answer this relation. Rules are taken
    by the share of pairs for which they are true, down to where the pooled F1 over `examples` is highest: as F1 grows
    with each rule that is right for more than half of the F1 so far, no other choice of rules has a higher one.
    """
    seen: Counter[tuple[tuple[str, int], ...]] = Counter()
    true: Counter[Cell] = Counter()
    total = 0
    for example in examples:
        names = marked_categories(example)
        seen[tuple(sorted(Counter(names.values()).items()))] += 1
        relations = RelationSet.read(example.target).relations
        total += len(relations)
        true.update(cell for relation in relations if (cell := _cell(relation, names)) is not None)
    # Many frames show the same categories: pairs are counted once for all of them.
    pairs: Counter[tuple[str, str]] = Counter()
    for categories, frames in seen.items():
        for (first, here), (second, there) in product(categories, repeat=2):
            pairs[first, second] += frames * here * (there - (first == second))
    chosen: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for first, second, kind, value in _best_rules(true, pairs, total):
        chosen[first, second].append((kind, value))
    return dict(chosen)


def marked_categories(example: Example) -> dict[int, str]:
    """Mark to category of the objects of an example."""
    return {item.mark: item.category for item in RelationInputs.read(example.inputs).objects}


def _cell(relation: MarkedRelation, names: Mapping[int, str]) -> Cell | None:
    """None for a relation that no pair of different marks has."""
    source, target = relation.source_id, relation.target_id
    if source == target or source not in names or target not in names:
        return None
    return names[source], names[target], relation.relation_type, relation.value


def _best_rules(true: Counter[Cell], pairs: Mapping[tuple[str, str], int], total: int) -> list[Cell]:
    ranked = sorted(true, key=lambda cell: (-true[cell] / pairs[cell[:2]], cell))
    hits = answered = best = 0
    highest = 0.0
    for count, cell in enumerate(ranked, start=1):
        hits, answered = hits + true[cell], answered + pairs[cell[:2]]
        f1 = 2 * hits / (answered + total)
        if f1 > highest:
            highest, best = f1, count
    return ranked[:best]
