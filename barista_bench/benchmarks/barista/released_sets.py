"""Writes question sets in the release's frozen format: parameters, and the record of a line (docs/upstream/barista.md).

`label`, `metadata` and `task_data` are rebuilt from an example. For referring and activity, the release also freezes a
sentence (`question`), which is wording. If the example was read from a file, the sentence comes from this file,
otherwise from the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from barista_bench.benchmarks.barista import TASKS
from barista_bench.benchmarks.barista.activity import ActivityMetadata
from barista_bench.benchmarks.barista.activity_choices import ActivityInputs, ActivityTarget
from barista_bench.benchmarks.barista.grounding import GroundingInputs, GroundingTarget
from barista_bench.benchmarks.barista.interactions import InteractionTarget
from barista_bench.benchmarks.barista.referring import ReferringEvidence, ReferringTarget
from barista_bench.benchmarks.barista.relation_answers import RelationInputs, RelationSet
from barista_bench.benchmarks.barista.temporal_vqa import TemporalInputs, TemporalMetadata, TemporalTarget
from barista_bench.benchmarks.kinds.box_answers import FrameSize
from barista_bench.core.example import Example, Fields, Json
from barista_bench.core.options import Sampling
from barista_bench.errors import ConfigError
from barista_bench.scene_graph.release import VIDEO_FILE

_RecordParts = tuple[str, Fields, Fields]
"""Label, metadata and task_data."""


def released_record(example: Example, question: str | None = None) -> Fields:
    """Return the record of one released line. `mp4_path` is relative to the data root.

    Args:
        question: the frozen sentence of referring and activity, for examples that lack it; None leaves it out.
    """
    label, metadata, data = _WRITERS[example.task](example)
    sentence = example.metadata.get("question", question)
    if sentence is not None and example.task in ("referring", "activity"):
        data["question"] = sentence
    return {
        "example_id": example.example_id,
        "task_name": TASKS.load(example.task).upstream_name,
        "label": label,
        "frames": [
            {"frame_index": frame.frame_index, "mp4_path": f"{frame.video_id}/{VIDEO_FILE}", "video_id": frame.video_id}
            for frame in example.frames
        ],
        "metadata": {"video_id": example.video_id, **metadata},
        "task_data": data,
    }


def question_identity(example: Example) -> Json:
    """Return the identity of a question: the released record without its wording, plus the protocol.

    Return None for tasks that the release does not have.
    """
    if example.task not in _WRITERS:
        return None
    record = dict(released_record(example))
    record["task_data"] = {k: v for k, v in cast("Fields", record["task_data"]).items() if k != "question"}
    return {**record, "protocol": example.metadata.get("protocol", "release")}


def _frame_name(example: Example) -> str:
    return f"{example.video_id}_{example.frames[0].frame_index}"


def _box_fields(inputs: FrameSize | GroundingInputs, target: GroundingTarget | InteractionTarget) -> Fields:
    return {
        "frame_width": inputs.frame_width,
        "frame_height": inputs.frame_height,
        "bbox_format": target.bbox_format,
        "bbox_scale": target.bbox_scale,
    }


def _grounding_parts(example: Example) -> _RecordParts:
    inputs, target = GroundingInputs.of(example), GroundingTarget.of(example)
    metadata: Fields = {
        "frame_index": example.frames[0].frame_index,
        "phrase": inputs.phrase,
        "category": inputs.category,
        "num_gt_boxes": len(target.ground_truth_boxes),
    }
    phrase: Fields = {"phrase": inputs.phrase, "category": inputs.category}
    boxes: Fields = {"ground_truth_boxes": target.ground_truth_boxes, **_box_fields(inputs, target)}
    return f"{_frame_name(example)}_{inputs.category}", metadata, {**phrase, **boxes}


def _hand_object_parts(example: Example) -> _RecordParts:
    target = InteractionTarget.of(example)
    interactions = [item.write() for item in target.interactions]
    names = ("object_id", "hand_boxes", "object_box", "hand_type")
    metadata: Fields = {
        "frame_index": example.frames[0].frame_index,
        "num_interactions": len(interactions),
        "hand_types": [item["hand_type"] for item in interactions],
    }
    data: Fields = {"ground_truth": [{name: item[name] for name in names} for item in interactions]}
    return _frame_name(example), metadata, {**data, **_box_fields(FrameSize.of(example), target)}


def _referring_parts(example: Example) -> _RecordParts:
    target = ReferringTarget.of(example)
    box = example.inputs["bbox_xywh"]  # not converted, so that whole numbers stay whole
    object_id = ReferringEvidence.of(example).object_ids[0]
    metadata: Fields = {
        "frame_index": example.frames[0].frame_index,
        "object_id": object_id,
        "category_name": target.category,
        "bbox_xywh": box,
    }
    subject: Fields = {
        "category": target.category,
        "bbox_xywh": box,
        "object_id": object_id,
        "attributes": [stated.write() for stated in target.attributes],
        "relations": [stated.write() for stated in target.relations],
    }
    return target.category, metadata, {"metadata": subject, "structured": target.reference}


def _activity_parts(example: Example) -> _RecordParts:
    segment, target = ActivityMetadata.of(example), ActivityTarget.of(example)
    metadata: Fields = {
        "segment_frame_start": segment.segment_start,
        "segment_frame_end": segment.segment_end,
        "activity_index": segment.activity_index,
        "segment_num_frames": segment.segment_frames,
        "selected_frame_indices": [frame.frame_index for frame in example.frames],
        "activity_class_id": target.class_id,
    }
    choices = ActivityInputs.of(example).choices
    data: Fields = {
        "choices": [{"choice_id": choice.choice_id, "text": choice.text} for choice in choices],
        "correct_choice_id": target.choice_id,
    }
    return example.label, metadata, data


def _relations_parts(example: Example) -> _RecordParts:
    relations = [relation.write() for relation in RelationSet.of(example).relations]
    metadata: Fields = {"frame_index": example.frames[0].frame_index, "num_gt_relations": len(relations)}
    data: Fields = {
        "object_id_category_lines": [f"  {item.mark}: {item.category}" for item in RelationInputs.of(example).objects],
        "ground_truth_relations": relations,
    }
    return _frame_name(example), metadata, data


def _temporal_vqa_parts(example: Example) -> _RecordParts:
    target, clip = TemporalTarget.of(example), TemporalMetadata.of(example)
    metadata: Fields = {
        "clip_index": clip.clip_index,
        "qa_index": clip.qa_index,
        "original_frame_indices": clip.original_frame_indices,
        "selected_frame_indices": [frame.frame_index for frame in example.frames],
        "category": target.category,
    }
    data: Fields = {
        "question": TemporalInputs.of(example).question,
        "reference_answer": target.answer,
        "num_frames": len(example.frames),
        "category": target.category,
    }
    return target.answer, metadata, data


_WRITERS: dict[str, Callable[[Example], _RecordParts]] = {
    "grounding": _grounding_parts,
    "hand_object": _hand_object_parts,
    "referring": _referring_parts,
    "activity": _activity_parts,
    "relations": _relations_parts,
    "temporal_vqa": _temporal_vqa_parts,
}


PARAMETERS: dict[str, dict[str, str]] = {
    "grounding": {
        "min_bbox_area": "min_area",
        "sample_fraction": "fraction",
        "activity_filter": "in_activities",
        "require_relations": "with_relations",
        "bbox_scale": "box_scale",
        "seed": "sampling_seed",
    },
    "hand_object": {
        "interaction_relation_type": "relation_type",
        "sample_fraction": "fraction",
        "bbox_scale": "box_scale",
    },
    "referring": {
        "frame_step": "frame_step",
        "activity_filter": "in_activities",
        "max_objects_per_frame": "per_frame",
        "max_objects_per_category": "per_class",
    },
    "activity": {
        "frames_per_example": "frames",
        "num_choices": "choices",
        "max_per_class": "per_class",
        "min_same_verb_distractors": "same_verb",
    },
    "relations": {
        "frame_step": "frame_step",
        "mask_alpha": "mask_alpha",
        "alpha_segmentation_boundary": "boundary_alpha",
        "font_size": "font_size",
    },
    "temporal_vqa": {
        "clip_length_in_frames": "frames",
        "frame_spacing": "spacing",
        "max_examples_per_category": "per_class",
        "max_frames_per_example": "max_frames",
        "shuffle_seed": "sampling_seed",
    },
}
"""The release's parameters by task, each with the field of `Sampling` that it sets."""
_CODE_DEFAULTS: dict[str, dict[str, object]] = {
    "grounding": {"in_activities": False, "with_relations": False, "fraction": 1.0, "min_area": 0.0},
    "hand_object": {"fraction": 1.0},
    "referring": {"in_activities": False, "frame_step": 10, "per_frame": None, "per_class": None},
    "activity": {"frames": 4, "choices": 4, "per_class": None, "same_verb": 0},
    "relations": {"frame_step": 1, "font_size": 12},
    "temporal_vqa": {"frames": 4, "spacing": 30, "per_class": None, "max_frames": None},
}
"""Values of parameters that a configuration leaves out: defaults of the release's code, not published values."""
_NULL_VALUES: dict[str, object] = {"fraction": 1.0, "min_area": 0.0, "sampling_seed": None}
"""The value that the release's null stands for, by field."""


def released_sampling(
    task: str, params: Mapping[str, object], *, shuffle_seed: int | None, limit: int | None
) -> Sampling:
    """Return the sampling that a configuration of the release describes.

    Args:
        task: our name of the task.
        params: `task_params`. Parameters that only concern the run or its files (`bbox_format`, `qa_pairs_dir`,
            `geval_*`, `judge_model`) are ignored.

    Raises:
        ConfigError: a parameter is unknown, or its value is invalid.
    """
    names = PARAMETERS[task]
    unknown = sorted(set(params) - set(names) - _RUN_PARAMETERS)
    if unknown:
        raise ConfigError(f"{task}: no parameter {unknown[0]!r}. Fix: use some of {', '.join(sorted(names))}")
    overrides = {**_CODE_DEFAULTS[task], "seed": shuffle_seed, "limit": limit}
    for parameter, field in names.items():
        if parameter in params:
            value = params[parameter]
            overrides[field] = _NULL_VALUES[field] if value is None and field in _NULL_VALUES else value
    if params.get("video_id") is not None:
        overrides["videos"] = (str(params["video_id"]),)
    return TASKS.load(task).sampling.with_overrides(overrides)


_RUN_PARAMETERS = frozenset(
    {"video_id", "bbox_format", "shuffle_seed", "qa_pairs_dir", "geval_criteria", "judge_model", "bbox_scale"}
)


def released_parameters(task: str, sampling: Sampling) -> Fields:
    """Return the release's `task_params` of a set; the inverse of `released_sampling`.

    Raises ConfigError if the sampling sets something that the release has no parameter for.
    """
    own_fields = {"frame_range", "preparations", "splits", "domain", "seconds"}
    unmapped = own_fields | ({"frame_step"} - set(PARAMETERS[task].values()))
    default = type(sampling)()
    used = sorted(name for name in unmapped & {*sampling.names()} if getattr(sampling, name) != getattr(default, name))
    if used or len(sampling.videos or ()) > 1:
        name = used[0] if used else "videos"
        raise ConfigError(f"{task}: the release has no parameter for {name}. Fix: build the set without it")
    params: Fields = {parameter: getattr(sampling, name) for parameter, name in PARAMETERS[task].items()}
    if sampling.videos:
        params["video_id"] = sampling.videos[0]
    if params.get("shuffle_seed") is None:
        params["shuffle_seed"] = sampling.seed
    return params
