"""Converts frozen lines of the release to examples of this package, task by task; the inverse of `released_sets.py`.

Frozen boxes lie on an integer grid, and boxes in pixels are missing. The paper's protocol scores boxes in pixels and
therefore refuses such examples. Some fields come only from annotations, and no line needs them (activities, device,
evidence, ...). They stay empty, so that the same file gives the same example everywhere. Frame sizes, masks and the
vocabulary of relations come from the release, which is needed in addition to the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Literal

import msgspec

from barista_bench.benchmarks.barista.activity import Activity
from barista_bench.benchmarks.barista.activity_choices import ActivityChoice, ActivityInputs, ActivityTarget, group_verb
from barista_bench.benchmarks.barista.grounding import Grounding, GroundingInputs
from barista_bench.benchmarks.barista.hand_object import HandObject
from barista_bench.benchmarks.barista.reference_text import FrameFacts, Link, Property, one_sentence
from barista_bench.benchmarks.barista.referring import (
    Referring,
    ReferringInputs,
    ReferringTarget,
    StatedAttribute,
    StatedRelation,
    listed_facts,
)
from barista_bench.benchmarks.barista.relation_answers import (
    MarkedRelation,
    RelationInputs,
    RelationSet,
    mark_order,
    marked_objects,
    vocabulary_entries,
)
from barista_bench.benchmarks.barista.relations import Relations
from barista_bench.benchmarks.barista.temporal_vqa import TemporalInputs, TemporalTarget, TemporalVQA
from barista_bench.benchmarks.kinds.box_answers import FrameSize
from barista_bench.benchmarks.kinds.frames import FrameMetadata
from barista_bench.core.boxes import xywh_to_xyxy
from barista_bench.core.example import Example, Fields, GridBox, Int64, Json, field_types
from barista_bench.core.frozen_lines import FrozenLine, NonEmptyText, ReleaseRoot, convert_record
from barista_bench.core.task import Task
from barista_bench.errors import DataError
from barista_bench.scene_graph import SceneObject
from barista_bench.scene_graph.domain import load_domain

UNSTATED = "unknown"
"""Value of fields that analysis groups by and that a released line omits."""
_COMMON = FrameMetadata(UNSTATED, UNSTATED, [], [], UNSTATED, 0, 0.0)
_MARK_LINE = re.compile(r"\s*(\d{1,6}): (.*)", re.DOTALL)

Side = Annotated[int, msgspec.Meta(ge=1, le=16384)]
Scale = Annotated[int, msgspec.Meta(ge=1, lt=2**31)]
StatedBox = Annotated[list[int | float], msgspec.Meta(min_length=4, max_length=4)]


class _GridBoxes(msgspec.Struct, kw_only=True):
    """Fields of lines with true boxes, which are [x0, y0, x1, y1] from 0 to `bbox_scale`."""

    frame_width: Side
    frame_height: Side
    bbox_format: Literal["xyxy"]
    bbox_scale: Scale

    @property
    def size(self) -> tuple[int, int]:
        return self.frame_width, self.frame_height

    def target(self, name: str, value: Json) -> Fields:
        """Return the target of an example. The target has no boxes in pixels."""
        return {name: value, "bbox_format": self.bbox_format, "bbox_scale": self.bbox_scale}

    def check_boxes(self, boxes: Sequence[list[int]]) -> None:
        for box in boxes:
            if not all(0 <= value <= self.bbox_scale for value in box):
                raise DataError(f"task_data: box {box} is not within 0 to {self.bbox_scale}. Fix: correct it")


class _Grounding(_GridBoxes, kw_only=True):
    phrase: NonEmptyText
    category: str
    ground_truth_boxes: Annotated[list[GridBox], msgspec.Meta(min_length=1)]


class _Interaction(msgspec.Struct):
    object_id: str
    hand_boxes: Annotated[list[GridBox], msgspec.Meta(min_length=1)]
    object_box: GridBox
    hand_type: Literal["left", "right", "both"]


class _HandObject(_GridBoxes, kw_only=True):
    ground_truth: Annotated[list[_Interaction], msgspec.Meta(min_length=1)]


class _DescribedObject(msgspec.Struct):
    category: str
    bbox_xywh: StatedBox
    object_id: str
    attributes: list[StatedAttribute]
    relations: list[StatedRelation]


class _Referring(msgspec.Struct):
    metadata: _DescribedObject
    structured: NonEmptyText
    question: str | None = None


class _Relations(msgspec.Struct):
    object_id_category_lines: list[str]
    ground_truth_relations: Annotated[list[MarkedRelation], msgspec.Meta(min_length=1)]


class _Choice(msgspec.Struct):
    choice_id: NonEmptyText
    text: NonEmptyText


class _Activity(msgspec.Struct):
    choices: Annotated[list[_Choice], msgspec.Meta(min_length=2)]
    correct_choice_id: str
    question: str | None = None


class _Segment(msgspec.Struct):
    """Metadata of an activity line. Frames count from 0, and the end frame is the file's."""

    segment_frame_start: int
    segment_frame_end: int
    segment_num_frames: int
    activity_index: int
    activity_class_id: str


class _VisualQA(msgspec.Struct):
    question: NonEmptyText
    reference_answer: NonEmptyText
    category: str


class _Clip(msgspec.Struct):
    """Metadata of a line of temporal VQA."""

    clip_index: int
    qa_index: int
    original_frame_indices: list[int]


def import_example(task: type[Task], line: FrozenLine, root: ReleaseRoot) -> Example:
    """Read one released line as our example.

    Raises:
        DataError: a field is missing or invalid, or the release at `root` lacks data that the line omits. The message
            names the field.
    """
    return _READERS[task](line, root)


def _example(
    task: type[Task],
    line: FrozenLine,
    *,
    label: str,
    inputs: Fields,
    target: Fields,
    metadata: Fields,
    object_ids: Sequence[str] = (),
    question: str | None = None,
) -> Example:
    """Return an example of a line.

    All evidence except object ids is unknown: lists stay empty, and rows of the file are -1.
    """
    unknown: dict[object, Json] = {str: "", Int64: -1}
    kinds = field_types(task.evidence_type)
    question_field: Fields = {} if question is None else {"question": question}
    return Example(
        example_id=line.example_id,
        benchmark=task.benchmark,
        task=task.name,
        label=label,
        frames=line.frame_refs,
        inputs=inputs,
        target=target,
        metadata={**_COMMON.write(), **metadata, **question_field},
        evidence={name: unknown.get(kind, []) for name, kind in kinds.items()} | {"object_ids": list(object_ids)},
    )


def _read_grounding(line: FrozenLine, _: ReleaseRoot) -> Example:
    data = convert_record(line.task_data, _Grounding, "task_data")
    data.check_boxes(data.ground_truth_boxes)
    return _example(
        Grounding,
        line,
        label=data.category,
        inputs=GroundingInputs(data.phrase, data.category, *data.size).write(),
        target=data.target("ground_truth_boxes", data.ground_truth_boxes),
        metadata={"category": data.category, "objects": len(data.ground_truth_boxes)},
    )


def _read_hand_object(line: FrozenLine, _: ReleaseRoot) -> Example:
    data = convert_record(line.task_data, _HandObject, "task_data")
    for item in data.ground_truth:
        data.check_boxes([*item.hand_boxes, item.object_box])
    interactions: list[Json] = [{**msgspec.to_builtins(item), "category": ""} for item in data.ground_truth]
    hand_types = sorted({item.hand_type for item in data.ground_truth})
    return _example(
        HandObject,
        line,
        label=" + ".join(hand_types),
        inputs=FrameSize(*data.size).write(),
        target=data.target("interactions", interactions),
        metadata={"interactions": len(interactions), "hand_types": hand_types},
        object_ids=[item.object_id for item in data.ground_truth],
    )


def _read_referring(line: FrozenLine, root: ReleaseRoot) -> Example:
    data = convert_record(line.task_data, _Referring, "task_data")
    subject = data.metadata
    width, height = root.frame_size(line.video_id)
    x, y, box_width, box_height = subject.bbox_xywh
    facts = _facts(subject)
    return _example(
        Referring,
        line,
        label=subject.category,
        inputs=ReferringInputs(
            width, height, list(xywh_to_xyxy((x, y, box_width, box_height))), list(subject.bbox_xywh)
        ).write(),
        target=ReferringTarget(
            category=subject.category,
            reference=data.structured,
            sentence=one_sentence(facts, 0, load_domain()),
            facts=listed_facts(facts, 0),
            attributes=subject.attributes,
            relations=subject.relations,
        ).write(),
        metadata={"box_share": box_width * box_height / (width * height)},
        object_ids=[subject.object_id],
        question=data.question,
    )


def _facts(subject: _DescribedObject) -> FrameFacts:
    """Return the line's facts about its object, which has index 0. Rows of the file are unknown and therefore -1."""
    others = {item.target_object_id: item.target_category for item in subject.relations}
    objects = (SceneObject(subject.object_id, subject.category), *(SceneObject(*other) for other in others.items()))
    numbers = {object_id: number for number, object_id in enumerate(others, start=1)}
    links = [
        Link(numbers[item.target_object_id], item.is_source, item.relation_type, item.value, -1)
        for item in subject.relations
    ]
    properties = [Property(item.attribute_type, item.value, -1) for item in subject.attributes]
    return FrameFacts(objects, {0: properties}, {0: links})


def _read_activity(line: FrozenLine, _: ReleaseRoot) -> Example:
    data, segment = (
        convert_record(line.task_data, _Activity, "task_data"),
        convert_record(line.metadata, _Segment, "metadata"),
    )
    choices = [ActivityChoice(item.choice_id, "", item.text, group_verb(item.text)) for item in data.choices]
    by_id = {choice.choice_id: choice for choice in choices}
    if len(by_id) < len(choices) or data.correct_choice_id not in by_id:
        raise DataError(
            f"task_data: correct_choice_id {data.correct_choice_id!r:.80} is not one of the choices' ids, or two "
            "choices have one id. Fix: correct it"
        )
    reference = by_id[data.correct_choice_id]
    reference.class_id = segment.activity_class_id
    return _example(
        Activity,
        line,
        label=line.label,
        inputs=ActivityInputs(choices).write(),
        target=ActivityTarget(reference.choice_id, reference.class_id).write(),
        metadata={
            "verb": reference.verb,
            "segment_start": segment.segment_frame_start,
            "segment_end": segment.segment_frame_end,
            "segment_frames": segment.segment_num_frames,
            "segment_seconds": 0.0,
            "activity_index": segment.activity_index,
            "same_verb_distractors": sum(choice.verb == reference.verb for choice in choices) - 1,
        },
        question=data.question,
    )


def _read_relations(line: FrozenLine, root: ReleaseRoot) -> Example:
    data = convert_record(line.task_data, _Relations, "task_data")
    video, frame = root.video(line.video_id, "masks"), line.frames[0].frame_index
    objects = marked_objects(video, mark_order(video, frame))
    matches = [_MARK_LINE.fullmatch(text) for text in data.object_id_category_lines]
    stated_marks = [(int(match[1]), match[2]) for match in matches if match]
    if stated_marks != [(item.mark, item.category) for item in objects]:
        raise DataError(
            f"task_data.object_id_category_lines are not the objects that the annotations of {line.video_id!r} have on "
            f"frame {frame}. Fix: give the release that the file was frozen from with --root"
        )
    marks = {item.mark for item in objects}
    for row in data.ground_truth_relations:
        if row.source_id not in marks or row.target_id not in marks:
            raise DataError(
                f"task_data.ground_truth_relations: {row.source_id} or {row.target_id} is not the number of an object. "
                "Fix: correct it"
            )
    return _example(
        Relations,
        line,
        label=f"{len(data.ground_truth_relations)} relations",
        inputs=RelationInputs(
            video.video.width,
            video.video.height,
            objects,
            vocabulary_entries(root.relation_labels),
            Relations.sampling.look,
        ).write(),
        target=RelationSet(data.ground_truth_relations).write(),
        metadata={},
        object_ids=[item.object_id for item in objects],
    )


def _read_temporal_vqa(line: FrozenLine, _: ReleaseRoot) -> Example:
    data, clip = (
        convert_record(line.task_data, _VisualQA, "task_data"),
        convert_record(line.metadata, _Clip, "metadata"),
    )
    return _example(
        TemporalVQA,
        line,
        label=data.category,
        inputs=TemporalInputs(data.question, len(line.frames)).write(),
        target=TemporalTarget(data.reference_answer, data.category).write(),
        metadata={
            "clip_index": clip.clip_index,
            "qa_index": clip.qa_index,
            "original_frame_indices": clip.original_frame_indices,
            "writer": "released",
        },
    )


_READERS: dict[type[Task], Callable[[FrozenLine, ReleaseRoot], Example]] = {
    Grounding: _read_grounding,
    HandObject: _read_hand_object,
    Referring: _read_referring,
    Activity: _read_activity,
    Relations: _read_relations,
    TemporalVQA: _read_temporal_vqa,
}
