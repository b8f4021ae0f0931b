"""The release's parameters of a set (`task_params`, `shuffle_seed`, `limit`) as a `Sampling`, and back."""

from __future__ import annotations

from collections.abc import Mapping

from barista_bench.benchmarks.barista import TASKS
from barista_bench.core.sampling import Sampling
from barista_bench.core.task import Fields
from barista_bench.errors import ConfigError

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
    return sampled.sampling.with_overrides(overrides, sampled.sampling_uses)


_OF_RUNS = frozenset(
    {"video_id", "bbox_format", "shuffle_seed", "qa_pairs_dir", "geval_criteria", "judge_model", "bbox_scale"}
)


def released_parameters(task: str, sampling: Sampling) -> Fields:
    """The release's `task_params` of a set; the inverse of `released_sampling`.

    Raises:
        ConfigError: the sampling uses what the release has no parameter for.
    """
    ours = {"frame_range", "preparations", "splits"} | ({"frame_step"} - set(PARAMETERS[task].values()))
    default = Sampling()
    used = sorted(name for name in ours if getattr(sampling, name) != getattr(default, name))
    if used or len(sampling.videos or ()) > 1:
        name = used[0] if used else "videos"
        raise ConfigError(f"{task}: the release has no parameter for {name}. Remedy: build the set without it")
    params: Fields = {theirs: getattr(sampling, name) for theirs, name in PARAMETERS[task].items()}
    if sampling.videos:
        params["video_id"] = sampling.videos[0]
    if params.get("shuffle_seed") is None:
        params["shuffle_seed"] = sampling.seed
    return params
