"""How a frozen set is drawn from a release: values, checked, and the draw itself."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from barista_bench.errors import ConfigError, DataError
from barista_bench.scene_graph import SceneGraph, VideoGraph

ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a frozen set is drawn. Every value changes the set, so all of them are part of its identity.

    A task reads those that it lists in `Task.sampling_uses`; the common ones (`COMMON`) hold for every task.

    Args:
        limit: examples at the most, after shuffling; None for all of them.
        seed: of the shuffle, and of the draws whose seed names it; None to keep the order of videos and frames.
        draw_seed: of the draws that a task makes with one generator over all videos (which relation a phrase of
            grounding uses, which clips temporal VQA asks about); None takes `seed`.
        videos: only these videos; None for all.
        preparations: only videos of these preparation types; None for all.
        splits: only videos of these splits; None for all.
        frame_range: only frames in [start, stop) of each video; None for all.
        frame_step: candidate frames are those with an index divisible by it.
        fraction: share of each video's candidate frames that is kept, evenly.
        in_activities: only frames inside an activity.
        with_relations: only frames on which some relation holds.
        relation_type: the relations of this type are a hand's interactions.
        per_frame: objects of one frame at the most.
        per_class: examples of one class, category or question type at the most.
        min_area: objects with a smaller box, in square pixels, are passed over.
        frames: frames of one example.
        rate: frames a second of one example, evenly.
        max_frames: frames of one example at the most, evenly thinned; None for as many as `rate` gives.
        spacing: frames between two frames of one example.
        choices: options of a multiple-choice question; None for all classes.
        same_verb: options that share the verb of the right one, where there are as many.
        box_scale: true boxes are integers from 0 to this, which a full side of the frame maps to.
        mask_alpha: opacity of the marks over the frame, 0 to 1.
        boundary_alpha: share of its own colour that the inside of a mark loses, 0 to 1.
        font_size: of the numbers on the marks.
        pairs: folder of questions that a model wrote (`barista-bench questions`), instead of templates.
    """

    limit: int | None = None
    seed: int | None = 42
    draw_seed: int | None = None
    videos: tuple[str, ...] | None = None
    preparations: tuple[str, ...] | None = None
    splits: tuple[str, ...] | None = None
    frame_range: tuple[int, int] | None = None
    frame_step: int = 1
    fraction: float = 1.0
    in_activities: bool = False
    with_relations: bool = False
    relation_type: str = "human_actions"
    per_frame: int | None = None
    per_class: int | None = None
    min_area: float = 0.0
    frames: int = 1
    rate: float | None = None
    max_frames: int | None = None
    spacing: int = 1
    choices: int | None = None
    same_verb: int = 0
    box_scale: int = 1000
    mask_alpha: float = 0.5
    boundary_alpha: float = 0.9
    font_size: float = 20
    pairs: str | None = None

    COMMON: ClassVar[frozenset[str]] = frozenset({"limit", "seed", "videos", "preparations", "splits", "frame_range"})

    def with_overrides(self, overrides: Mapping[str, object], uses: frozenset[str]) -> Sampling:
        """A copy with other values; `uses` are the names that the task reads beside the common ones.

        Raises:
            ConfigError: a name is unknown to the task, or a value is out of range.
        """
        known = self.COMMON | uses
        unknown = sorted(set(overrides) - known)
        if unknown:
            raise ConfigError(f"sampling has no {unknown[0]!r} here. Remedy: use one of {', '.join(sorted(known))}")
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in overrides.items()}
        for name, value in values.items():
            if not _fits(name, value):
                raise ConfigError(f"{name} is {value!r}. Remedy: give {_WANTED.get(name, 'a number')}")
        sampling = replace(self, **values)  # type: ignore[arg-type]
        for name in _COUNTS:
            value = getattr(sampling, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise ConfigError(f"{name} is {value!r}. Remedy: give a whole number of 1 or more")
        if type(sampling.same_verb) is not int or sampling.same_verb < 0:
            raise ConfigError(f"same_verb is {sampling.same_verb!r}. Remedy: give a whole number of 0 or more")
        for name in ("mask_alpha", "boundary_alpha"):
            if not 0 <= getattr(sampling, name) <= 1:
                raise ConfigError(f"{name} is {getattr(sampling, name)}. Remedy: give a share from 0 to 1")
        if not 1 <= sampling.font_size <= 1000:
            raise ConfigError(f"font_size is {sampling.font_size}. Remedy: give 1 to 1000")
        if sampling.rate is not None and not 0 < sampling.rate <= 1000:
            raise ConfigError(f"rate is {sampling.rate}. Remedy: give frames a second, above 0")
        if not 0 < sampling.fraction <= 1:
            raise ConfigError(f"fraction is {sampling.fraction}. Remedy: give a share above 0 and up to 1")
        return sampling

    def selects(self, video: VideoGraph) -> bool:
        """Whether a video is sampled. `splits` is applied where the split is known."""
        named = self.videos is None or video.video_id in self.videos
        return named and (not self.preparations or video.preparation in self.preparations)

    def refuse_unknown_videos(self, graph: SceneGraph) -> None:
        """Raise DataError where `videos` names one that the graph lacks."""
        absent = sorted(set(self.videos or ()) - set(graph.video_ids))
        if absent:
            raise DataError(f"{graph.root}: no video {absent[0]!r}. Remedy: choose one of its {len(graph)} videos")

    def frame_indices(self, video: VideoGraph) -> range:
        """Candidate frames of a video: in `frame_range`, index divisible by `frame_step`."""
        start, stop = self.frame_range or (0, video.frame_count)
        first = -(-start // self.frame_step) * self.frame_step
        return range(first, min(stop, video.frame_count), self.frame_step)

    def draw(self, candidates: Sequence[ItemT]) -> list[ItemT]:
        """Shuffle and cut, as the released freezer does: `Random(seed).shuffle`, then the first `limit`.

        The order drawn depends on their number alone: candidates are drawn as their examples would be. Without a seed
        they keep their order.
        """
        drawn = list(candidates)
        if self.seed is not None:
            random.Random(self.seed).shuffle(drawn)  # noqa: S311  (reproducible sampling, not secrets)
        return drawn[: self.limit]

    def generator(self) -> random.Random:
        """The generator of a task's own draws: of `draw_seed`, else of `seed`, else of 0."""
        seeds = (seed for seed in (self.draw_seed, self.seed, 0) if seed is not None)
        return random.Random(next(seeds))  # noqa: S311  (reproducible sampling, not secrets)


_COUNTS = (
    "limit",
    "frame_step",
    "per_frame",
    "per_class",
    "frames",
    "max_frames",
    "spacing",
    "choices",
    "box_scale",
)
_WANTED = {
    "videos": "a list of video ids",
    "preparations": "a list of preparation types",
    "splits": "a list of splits",
    "frame_range": "two frame indices, start before stop",
    "seed": "a whole number, or null for none",
    "draw_seed": "a whole number",
    "in_activities": "true or false",
    "with_relations": "true or false",
    "relation_type": "the name of a relation type",
    "pairs": "a folder of questions",
}


def _fits(name: str, value: object) -> bool:
    """Whether an override is of its field's kind; what is too small or too large is judged elsewhere."""
    if name in ("videos", "preparations", "splits"):
        return value is None or (isinstance(value, tuple) and all(isinstance(item, str) for item in value))
    if name == "frame_range":
        whole = isinstance(value, tuple) and len(value) == 2 and all(type(item) is int for item in value)
        return value is None or (whole and 0 <= value[0] < value[1])  # type: ignore[index]
    if name in ("seed", "draw_seed"):
        return value is None or type(value) is int
    if name in ("in_activities", "with_relations"):
        return isinstance(value, bool)
    if name == "relation_type":
        return isinstance(value, str) and bool(value)
    if name == "pairs":
        return value is None or isinstance(value, str)
    if value is None:
        return name in ("limit", "per_frame", "per_class", "choices", "max_frames")
    return isinstance(value, int | float) and not isinstance(value, bool)
