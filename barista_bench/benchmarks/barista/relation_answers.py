"""Read and score answers about relations, under either protocol. The columns of a question and priors are here too.

The text of an answer gets to a metric of `results.json` through four files:

1. `read_released`, or `read_by_paper` with `protocol="paper"`, here, reads the relations. `benchmarks/parsing.py` finds
   the JSON lists in the text.
2. `relation_statistics`, here, matches them with the reference: exact multisets of (source, target, relation type,
   value), without regard to case and outer white space. With `protocol="paper"`, any run of white space within a text
   equals one space.
3. `metrics/tuple_f1/scoring.py` counts the matches of each sample (`example_sums`), and computes `micro_f1` and other
   metrics (`compute_metrics`) from the sums over samples, which `SumStatistics` adds up.
4. `runs/score/samples.py` calls step 1 for each record of the log (`read_sample`, by `Relations.parse`), and step 2 for
   the samples of each repetition (`counted_samples`, by `Relations.statistics`). `run_metrics` gives the mean over
   repetitions and its interval, which `score` writes as `metrics.micro_f1`.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Annotated, cast

import msgspec
from msgspec.structs import astuple

from barista_bench.benchmarks.parsing import (
    NOTHING_READ,
    cut_array,
    integer,
    is_text,
    json_arrays,
    refuse_unbounded,
    released_array,
    strip_fence,
    whole_array,
)
from barista_bench.core.display import FailureKind
from barista_bench.core.example import (
    Example,
    Fields,
    Inputs,
    Json,
    ParseError,
    PixelBox,
    Prediction,
    Scored,
    Target,
    TypedFields,
)
from barista_bench.core.remembering import remember
from barista_bench.core.statistics import SumStatistics
from barista_bench.metrics.tuple_f1.scoring import (
    GroupsOf,
    RelationTuple,
    compute_metrics,
    example_sums,
    normalise,
    tables,
)
from barista_bench.scene_graph import Instance, Rle, VideoGraph

Cell = tuple[str, str, str, str]
"""Categories of source and target, relation type, value."""


class MarkSegmentation(TypedFields):
    """A mask in COCO's encoding; empty if the annotated mask is unusable."""

    size: Annotated[list[int], msgspec.Meta(min_length=2, max_length=2)]
    counts: str


class MarkedObject(TypedFields):
    """`mark` is the number drawn on the object. `bbox` is [x, y, width, height] in pixels."""

    mark: int
    object_id: str
    category: str
    bbox: PixelBox
    segmentation: MarkSegmentation


class VocabularyEntry(TypedFields):
    """A relation type and its values in the data."""

    relation_type: str
    values: list[str]


class MarkLook(TypedFields):
    """The look of the marks. `RelationsSampling` describes its fields."""

    mask_alpha: float
    boundary_alpha: float
    font_size: float


class RelationInputs(Inputs):
    """Sizes are in pixels of the annotations."""

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


class RelationSet(Target):
    """The relations of a target or a prediction."""

    relations: list[MarkedRelation]


def _prediction(entries: Sequence[object], read: Callable[[Mapping[str, object]], MarkedRelation | None]) -> Prediction:
    """Return the prediction of a list of entries. Entries that `read` rejects are dropped."""
    relations = [item for entry in entries if isinstance(entry, dict) and (item := read(entry)) is not None]
    fields: list[Json] = [_relation_fields(*astuple(item)) for item in relations]
    return Prediction({"relations": fields}, dropped=len(entries) - len(relations))


@lru_cache(2**16)
def _relation_fields(source_id: int, target_id: int, relation_type: str, value: str) -> Fields:
    """Return a relation for a prediction. The same object is shared by all equal relations and must stay unchanged."""
    return MarkedRelation(source_id, target_id, relation_type, value).write()


def mark_order(video: VideoGraph, frame: int) -> list[Instance]:
    """Return the annotations of a frame in the order of their marks, which count from 1.

    An object that is annotated twice has two marks.
    """
    return sorted(video.instances(frame), key=lambda i: (i.object.category.lower(), i.object.id))


def marked_objects(video: VideoGraph, instances: Sequence[Instance]) -> list[MarkedObject]:
    """Return the marked objects. An unusable mask is empty here, and the code that draws the marks reports it."""
    objects = []
    for mark, (instance, rle) in enumerate(zip(instances, video.rles(instances), strict=True), start=1):
        segmentation = (
            MarkSegmentation(list(rle.size), rle.counts) if isinstance(rle, Rle) else MarkSegmentation([0, 0], "")
        )
        item = instance.object
        objects.append(MarkedObject(mark, item.id, item.category, list(instance.bbox), segmentation))
    return objects


def vocabulary_entries(pairs: Iterable[tuple[str, str]]) -> list[VocabularyEntry]:
    """Return (relation type, value) pairs as a question lists them. Types and values are sorted.

    >>> vocabulary_entries([("position", "on"), ("human_actions", "holds"), ("position", "inside")])[1]
    VocabularyEntry(relation_type='position', values=['inside', 'on'])
    """
    values: dict[str, set[str]] = defaultdict(set)
    for kind, value in pairs:
        values[kind].add(value)
    return [VocabularyEntry(kind, sorted(values[kind])) for kind in sorted(values)]


@remember
def likely_relations(examples: Sequence[Example]) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Return, for each pair of categories, the (type, value) pairs whose answer raises the pooled F1.

    A rule answers one relation from every object of the first category to every object of the second. Rules are ranked
    by the share of pairs for which they are true. They are added in this order until the pooled F1 over `examples` is
    highest. F1 grows with each rule that is right for more than half of the F1 so far, so no other choice of rules has
    a higher F1.
    """
    frame_counts: Counter[tuple[tuple[str, int], ...]] = Counter()
    true_counts: Counter[Cell] = Counter()
    total = 0
    for example in examples:
        names = marked_categories(example)
        frame_counts[tuple(sorted(Counter(names.values()).items()))] += 1
        relations = RelationSet.of(example).relations
        total += len(relations)
        true_counts.update(
            (names[item.source_id], names[item.target_id], item.relation_type, item.value)
            for item in relations
            if item.source_id != item.target_id and {item.source_id, item.target_id} <= names.keys()
        )
    # Many frames show the same categories, so pairs are counted once for all such frames.
    pairs: Counter[tuple[str, str]] = Counter()
    for categories, frames in frame_counts.items():
        for (first, first_count), (second, second_count) in product(categories, repeat=2):
            pairs[first, second] += frames * first_count * (second_count - (first == second))
    rules: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for first, second, kind, value in _best_rules(true_counts, pairs, total):
        rules[first, second].append((kind, value))
    return dict(rules)


def marked_categories(example: Example) -> dict[int, str]:
    """Map each mark of an example to the category of its object."""
    return {item.mark: item.category for item in RelationInputs.of(example).objects}


def _best_rules(true: Counter[Cell], pairs: Mapping[tuple[str, str], int], total: int) -> list[Cell]:
    ranked = sorted(true, key=lambda cell: (-true[cell] / pairs[cell[:2]], cell))
    hits = answer_count = best_count = 0
    highest = 0.0
    for count, cell in enumerate(ranked, start=1):
        hits, answer_count = hits + true[cell], answer_count + pairs[cell[:2]]
        f1 = 2 * hits / (answer_count + total)
        if f1 > highest:
            highest, best_count = f1, count
    return ranked[:best_count]


_NEAR_MISSES: dict[FailureKind, Callable[[RelationTuple], tuple[object, ...]]] = {
    "wrong_direction": lambda relation: relation[2:],
    "wrong_relation": lambda relation: relation[:2],
    "wrong_hand": lambda relation: relation[1:],
    "wrong_object": lambda relation: relation[2:],
}
"""Kinds of failure for a missed relation and a wrong answer, by the fields that both share, the closest first."""


def relation_failures(
    reference: Counter[RelationTuple], predicted: Counter[RelationTuple], hands: set[int]
) -> list[tuple[FailureKind, tuple[int, ...]]]:
    """Return the failures of relations, each with its marks. Marks in `hands` can be confused with each other."""
    missed, wrong = sorted((reference - predicted).elements()), sorted((predicted - reference).elements())
    failures: list[tuple[FailureKind, tuple[int, ...]]] = []
    for kind, common_part in _NEAR_MISSES.items():
        wrong_by_part: dict[tuple[object, ...], list[RelationTuple]] = {}
        for item in wrong if missed else ():
            wrong_by_part.setdefault(common_part(item), []).append(item)
        for true in list(missed):
            candidates = wrong_by_part.get(common_part(true))
            if not candidates:
                continue
            answer = next((item for item in candidates if _is_near_miss(kind, true, item, hands)), None)
            if answer is not None:
                missed.remove(true)
                wrong.remove(answer)
                candidates.remove(answer)
                failures.append((kind, tuple(dict.fromkeys((*true[:2], *answer[:2])))))
    failures += [("missed", item[:2]) for item in missed]
    failures += [("duplicate" if item in reference else "hallucinated", item[:2]) for item in wrong]
    return failures


def _is_near_miss(kind: FailureKind, true: RelationTuple, answer: RelationTuple, hands: set[int]) -> bool:
    same_label = true[2:] == answer[2:]
    match kind:
        case "wrong_direction":
            return same_label and true[:2] == answer[:2][::-1]
        case "wrong_relation":
            return true[:2] == answer[:2]
        case "wrong_hand":
            return {true.source_id, answer.source_id} <= hands and true[1:] == answer[1:]
        case _:
            return same_label and (true.source_id == answer.source_id) != (true.target_id == answer.target_id)


@refuse_unbounded
def read_released(text: str) -> Prediction | ParseError:
    """Read an answer by the released rule, which is:

    1. `text` is the answer without the model's reasoning. Answers that reach the token limit are read too.
    2. If there is a fenced block whose first line has only the fence and a tag, its body is read, else all the text.
    3. If the body is one JSON list, this list is the answer, even if it has no valid entry.
    4. Otherwise the JSON lists in the body are examined by their opening brackets, from left to right, so inner lists
       follow their outer list. The first list that is empty or has a valid entry is the answer. If there is none, the
       answer cannot be read (`ParseError`).
    5. An entry is valid if it is an object whose four fields are not null, and if `int` takes both ids (so "3", 2.7 and
       true count, as 3, 2 and 1). Type and value of any kind become text. The object's other fields are ignored.
       Invalid entries are dropped and counted (`Prediction.dropped`).
    6. An infinite number or too deep nesting makes the answer unreadable.

    Steps 2 to 4 are in `benchmarks/parsing.py`, which also limits the work.
    """
    body = strip_fence(text, plain_tag=True)
    return _first_answer(released_array(body), json_arrays(body, nested=True), _released_relation) or _NO_LIST


def read_by_paper(text: str) -> Prediction | ParseError:
    """Read like `read_released`, but ids must be integers, types and values texts. Nested arrays are ignored.

    A truncated list is read up to its last complete entry.
    """
    body = strip_fence(text)
    answer = _first_answer(whole_array(body), json_arrays(body), _strict_relation)
    if answer is None and (cut := cut_array(text)):
        parsed = _prediction(cut.entries, _strict_relation)
        answer = replace(parsed, dropped=parsed.dropped + cut.unfinished) if parsed.value["relations"] else None
    if answer is not None and answer.dropped and not answer.value["relations"]:
        return NOTHING_READ
    return answer or _NO_LIST


_NO_LIST = ParseError("the answer holds no JSON array of relations")


def _first_answer(
    whole_list: Sequence[object] | None,
    arrays: Iterable[Sequence[object]],
    read: Callable[[Mapping[str, object]], MarkedRelation | None],
) -> Prediction | None:
    if whole_list is not None:
        return _prediction(whole_list, read)
    predictions = ((entries, _prediction(entries, read)) for entries in arrays)
    return next((answer for entries, answer in predictions if answer.value["relations"] or not entries), None)


def _strict_relation(entry: Mapping[str, object]) -> MarkedRelation | None:
    source, target = integer(entry.get("source_id")), integer(entry.get("target_id"))
    kind, value = entry.get("relation_type"), entry.get("value")
    if source is None or target is None or not is_text(kind) or not is_text(value):
        return None
    return MarkedRelation(source, target, kind, value)


def _released_relation(entry: Mapping[str, object]) -> MarkedRelation | None:
    source, target, kind, value = (entry.get(name) for name in MarkedRelation.__struct_fields__)
    if source is None or target is None or kind is None or value is None:
        return None
    try:
        ends = [int(cast("int", end)) for end in (source, target)]
    except (TypeError, ValueError):
        return None
    return MarkedRelation(ends[0], ends[1], _as_text(kind), _as_text(value))


def _as_text(value: object) -> str:
    """Return the text that `str` writes. Surrogate halves are escaped, because no file can hold them."""
    return sys.intern(str(value).encode("utf-8", "backslashreplace").decode())  # many answers share a few texts


def relation_statistics(samples: Sequence[Scored], follows_paper: bool) -> SumStatistics:
    """Return the statistics. Precision, recall and F1 of a sample cover only its frame."""
    # The release's scores by relation type leave out the true relations of unanswered examples.
    groups_of: GroupsOf = "all" if follows_paper else "answered"
    rows = [
        example_sums(
            answered_relations(s.prediction, follows_paper) if s.prediction else None,
            true_relations(s.example, follows_paper),
            groups_of=groups_of,
        )
        for s in samples
    ]
    names = {f"micro_{name}": name for name in ("precision", "recall", "f1")}
    return SumStatistics(rows, compute_metrics, sample_scores=names, tables=tables)


def answered_relations(prediction: Prediction, follows_paper: bool) -> Counter[RelationTuple]:
    """Return the relations of an answer in the form in which they are matched."""
    return _multiset(RelationSet.read(prediction.value), follows_paper)


@remember
def true_relations(example: Example, follows_paper: bool) -> Counter[RelationTuple]:
    """Return the relations of the reference in the form in which they are matched."""
    return _multiset(RelationSet.of(example), follows_paper)


def _multiset(relations: RelationSet, follows_paper: bool) -> Counter[RelationTuple]:
    return Counter(
        RelationTuple(
            item.source_id,
            item.target_id,
            _normalised_text(item.relation_type, follows_paper),
            _normalised_text(item.value, follows_paper),
        )
        for item in relations.relations
    )


@lru_cache(4096)  # answers repeat a few words
def _normalised_text(text: str, follows_paper: bool) -> str:
    return normalise(" ".join(text.split()) if follows_paper else text)
