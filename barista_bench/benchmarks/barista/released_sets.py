"""Our sets as the release freezes them: its parameters, and the record of a line (docs/upstream/barista.md).

`label`, `metadata` and `task_data` are rebuilt from what an example holds. The sentence that the release freezes with
referring and activity (`question`) is wording: it is that of the file where an example was read from one, else given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from barista_bench.benchmarks.barista import TASKS
from barista_bench.core.sampling import Sampling
from barista_bench.core.task import Example, Fields, Json
from barista_bench.errors import ConfigError
from barista_bench.scene_graph.release import VIDEO_FILE

_Parts = tuple[str, Fields, Fields]
"""Label, metadata and task_data."""


def released_record(example: Example, question: str | None = None) -> Fields:
    """The record of one released line; `mp4_path` is relative to the data root.

    Args:
        question: the frozen sentence of referring and activity, for examples that hold none; None leaves it out.
    """
    upstream_name, write = _WRITERS[example.task]
    label, metadata, data = write(example)
    asked = example.metadata.get("question", question)
    if asked is not None and example.task in ("referring", "activity"):
        data["question"] = asked
    return {
        "example_id": example.example_id,
        "task_name": upstream_name,
        "label": label,
        "frames": [
            {
                "frame_index": frame.frame_index,
                "mp4_path": f"{frame.video_id}/{VIDEO_FILE}",
                "video_id": frame.video_id,
            }
            for frame in example.frames
        ],
        "metadata": {"video_id": example.video_id, **metadata},
        "task_data": data,
    }


def identity(example: Example) -> Json:
    """The identity of a question: the released record without its wording, and a protocol of ours.

    None for tasks that the release does not have.
    """
    if example.task not in _WRITERS:
        return None
    record = dict(released_record(example))
    record["task_data"] = {k: v for k, v in cast("Fields", record["task_data"]).items() if k != "question"}
    return {**record, "protocol": example.metadata.get("protocol", "release")}


def _at(example: Example) -> str:
    return f"{example.video_id}_{example.frames[0].frame_index}"


def _boxes(example: Example) -> Fields:
    """The fields that examples with true boxes have in common."""
    return {
        "frame_width": example.inputs["frame_width"],
        "frame_height": example.inputs["frame_height"],
        "bbox_format": example.target["bbox_format"],
        "bbox_scale": example.target["bbox_scale"],
    }


def _grounding(example: Example) -> _Parts:
    phrase, category = example.inputs["phrase"], example.inputs["category"]
    boxes = cast("Sequence[Json]", example.target["ground_truth_boxes"])
    metadata: Fields = {
        "frame_index": example.frames[0].frame_index,
        "phrase": phrase,
        "category": category,
        "num_gt_boxes": len(boxes),
    }
    data: Fields = {"phrase": phrase, "category": category, "ground_truth_boxes": boxes, **_boxes(example)}
    return f"{_at(example)}_{category}", metadata, data


def _hand_object(example: Example) -> _Parts:
    interactions = cast("Sequence[Fields]", example.target["interactions"])
    names = ("object_id", "hand_boxes", "object_box", "hand_type")
    metadata: Fields = {
        "frame_index": example.frames[0].frame_index,
        "num_interactions": len(interactions),
        "hand_types": [item["hand_type"] for item in interactions],
    }
    data: Fields = {
        "ground_truth": [{name: item[name] for name in names} for item in interactions],
        **_boxes(example),
    }
    return _at(example), metadata, data


def _referring(example: Example) -> _Parts:
    target, box = example.target, example.inputs["bbox_xywh"]
    object_id = cast("Sequence[Json]", example.evidence["object_ids"])[0]
    metadata: Fields = {
        "frame_index": example.frames[0].frame_index,
        "object_id": object_id,
        "category_name": target["category"],
        "bbox_xywh": box,
    }
    described: Fields = {
        "category": target["category"],
        "bbox_xywh": box,
        "object_id": object_id,
        "attributes": target["attributes"],
        "relations": target["relations"],
    }
    return str(target["category"]), metadata, {"metadata": described, "structured": target["reference"]}


def _activity(example: Example) -> _Parts:
    metadata: Fields = {
        "segment_frame_start": example.metadata["segment_start"],
        "segment_frame_end": example.metadata["segment_end"],
        "activity_index": example.metadata["activity_index"],
        "segment_num_frames": example.metadata["segment_frames"],
        "selected_frame_indices": [frame.frame_index for frame in example.frames],
        "activity_class_id": example.target["class_id"],
    }
    choices = cast("Sequence[Mapping[str, Json]]", example.inputs["choices"])
    data: Fields = {
        "choices": [{"choice_id": choice["choice_id"], "text": choice["text"]} for choice in choices],
        "correct_choice_id": example.target["choice_id"],
    }
    return example.label, metadata, data


def _relations(example: Example) -> _Parts:
    rows = cast("Sequence[Fields]", example.target["relations"])
    objects = cast("Sequence[Fields]", example.inputs["objects"])
    metadata: Fields = {"frame_index": example.frames[0].frame_index, "num_gt_relations": len(rows)}
    data: Fields = {
        "object_id_category_lines": [f"  {item['mark']}: {item['category']}" for item in objects],
        "ground_truth_relations": rows,
    }
    return _at(example), metadata, data


def _temporal_vqa(example: Example) -> _Parts:
    category = example.target["category"]
    metadata: Fields = {
        "clip_index": example.metadata["clip_index"],
        "qa_index": example.metadata["qa_index"],
        "original_frame_indices": example.metadata["original_frame_indices"],
        "selected_frame_indices": [frame.frame_index for frame in example.frames],
        "category": category,
    }
    data: Fields = {
        "question": example.inputs["question"],
        "reference_answer": example.target["answer"],
        "num_frames": len(example.frames),
        "category": category,
    }
    return str(example.target["answer"]), metadata, data


_WRITERS: dict[str, tuple[str, Callable[[Example], _Parts]]] = {
    "grounding": ("grounding", _grounding),
    "hand_object": ("hand_object", _hand_object),
    "referring": ("referring", _referring),
    "activity": ("activity_mcq", _activity),
    "relations": ("relation_extraction", _relations),
    "temporal_vqa": ("visual_qa", _temporal_vqa),
}
"""By our name of a task: the release's, and what makes its lines."""


PARAMETERS: dict[str, dict[str, str]] = {
    "grounding": {
        "min_bbox_area": "min_area",
        "sample_fraction": "fraction",
        "activity_filter": "in_activities",
        "require_relations": "with_relations",
        "bbox_scale": "box_scale",
        "seed": "draw_seed",
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
        "shuffle_seed": "draw_seed",
    },
}
"""By task: what the release calls a parameter, and the field of `Sampling` that it is."""
_UNSET: dict[str, dict[str, object]] = {
    "grounding": {"in_activities": False, "with_relations": False, "fraction": 1.0, "min_area": 0.0},
    "hand_object": {"fraction": 1.0},
    "referring": {"in_activities": False, "frame_step": 10, "per_frame": None, "per_class": None},
    "activity": {"frames": 4, "choices": 4, "per_class": None, "same_verb": 0},
    "relations": {"frame_step": 1, "font_size": 12},
    "temporal_vqa": {"frames": 4, "spacing": 30, "per_class": None, "max_frames": None},
}
"""What a parameter is that the release's configuration leaves out: its code's defaults, not the published values."""
_NULL: dict[str, object] = {"fraction": 1.0, "min_area": 0.0, "draw_seed": None}
"""What null means where our field says it otherwise."""


def released_sampling(
    task: str, params: Mapping[str, object], *, shuffle_seed: int | None, limit: int | None
) -> Sampling:
    """The sampling that a configuration of the release describes.

    Args:
        task: our name of it.
        params: `task_params`; those that concern the run or files alone (`bbox_format`, `qa_pairs_dir`, `geval_*`,
            `judge_model`) are passed over.

    Raises:
        ConfigError: a parameter is unknown, or its value cannot be used.
    """
    names = PARAMETERS[task]
    unknown = sorted(set(params) - set(names) - _OF_RUNS)
    if unknown:
        raise ConfigError(f"{task}: no parameter {unknown[0]!r}. Remedy: use some of {', '.join(sorted(names))}")
    overrides = {**_UNSET[task], "seed": shuffle_seed, "limit": limit}
    for theirs, ours in names.items():
        if theirs in params:
            value = params[theirs]
            overrides[ours] = _NULL[ours] if value is None and ours in _NULL else value
    if params.get("video_id") is not None:
        overrides["videos"] = (str(params["video_id"]),)
    sampled = TASKS.named(task)
    return sampled.sampling.with_overrides(overrides)


_OF_RUNS = frozenset(
    {"video_id", "bbox_format", "shuffle_seed", "qa_pairs_dir", "geval_criteria", "judge_model", "bbox_scale"}
)


def released_parameters(task: str, sampling: Sampling) -> Fields:
    """The release's `task_params` of a set; the inverse of `released_sampling`.

    Raises:
        ConfigError: the sampling uses what the release has no parameter for.
    """
    of_ours = {"frame_range", "preparations", "splits", "domain", "seconds"}
    ours = of_ours | ({"frame_step"} - set(PARAMETERS[task].values()))
    default = type(sampling)()
    used = sorted(name for name in ours & {*sampling.names()} if getattr(sampling, name) != getattr(default, name))
    if used or len(sampling.videos or ()) > 1:
        name = used[0] if used else "videos"
        raise ConfigError(f"{task}: the release has no parameter for {name}. Remedy: build the set without it")
    params: Fields = {theirs: getattr(sampling, name) for theirs, name in PARAMETERS[task].items()}
    if sampling.videos:
        params["video_id"] = sampling.videos[0]
    if params.get("shuffle_seed") is None:
        params["shuffle_seed"] = sampling.seed
    return params
