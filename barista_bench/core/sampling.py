"""How frozen sets are sampled: the parameters that all tasks have."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Self, TypeVar, get_type_hints

import msgspec
from msgspec import Meta

from barista_bench.errors import ConfigError, DataError
from barista_bench.scene_graph import SceneGraph, VideoGraph

CandidateT = TypeVar("CandidateT")
SamplingT = TypeVar("SamplingT", bound="Sampling")
Index = Annotated[int, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
Rate = Annotated[float, Meta(gt=0, le=1000)]
"""Frames a second."""
Seconds = Annotated[float, Meta(gt=0, le=3600)]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a frozen set is sampled. Every value changes the set, so all of them are part of its identity.

    These hold for every task; what a task reads beside them are fields of a subclass.

    Args:
        limit: examples at the most, after shuffling; None for all of them.
        seed: of the shuffle and, where it names no other, of a task's own choices; None keeps the order of the videos.
        videos: only these videos; None for all.
        preparations: only videos of these preparation types; None for all.
        splits: only videos of these splits; None for all.
        frame_range: only frames in [start, stop) of each video; None for all.
    """

    limit: Count | None = None
    seed: int | None = 42
    videos: tuple[str, ...] | None = None
    preparations: tuple[str, ...] | None = None
    splits: tuple[str, ...] | None = None
    frame_range: tuple[Index, Index] | None = None

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Of all parameters, the common ones first."""
        return tuple(parameter.name for parameter in fields(cls))

    def with_overrides(self, overrides: Mapping[str, object]) -> Self:
        """A copy with other values.

        Raises:
            ConfigError: there is no such parameter, or a value is out of range.
        """
        unknown = sorted(set(overrides) - set(self.names()))
        if unknown:
            raise ConfigError(
                f"sampling has no {unknown[0]!r} here. Remedy: use one of {', '.join(sorted(self.names()))}"
            )
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in overrides.items()}
        types = get_type_hints(type(self), include_extras=True)
        for name, value in values.items():
            try:
                msgspec.convert(value, types[name])  # a check alone: a whole number stays one
            except msgspec.ValidationError as error:
                raise ConfigError(f"{name} is {value!r}. Remedy: give a value of its kind ({error})") from error
        sampling = replace(self, **values)  # type: ignore[arg-type]
        if sampling.frame_range and sampling.frame_range[0] >= sampling.frame_range[1]:
            raise ConfigError(f"frame_range is {sampling.frame_range}. Remedy: give two frames, start before stop")
        return sampling

    def differences(self, default: Sampling) -> dict[str, object]:
        """The values that are not those of `default`, by name."""
        return {name: value for name, value in asdict(self).items() if value != getattr(default, name)}

    def selects(self, video: VideoGraph) -> bool:
        """Whether a video is sampled. `splits` is applied where the split is known."""
        named = self.videos is None or video.video_id in self.videos
        return named and (not self.preparations or video.preparation in self.preparations)

    def refuse_unknown_videos(self, graph: SceneGraph) -> None:
        """Raise DataError where `videos` names one that the graph lacks."""
        absent = sorted(set(self.videos or ()) - set(graph.video_ids))
        if absent:
            raise DataError(f"{graph.root}: no video {absent[0]!r}. Remedy: choose one of its {len(graph)} videos")

    def sample(self, candidates: Sequence[CandidateT]) -> list[CandidateT]:
        """Shuffle and cut, as the released freezer does: `Random(seed).shuffle`, then the first `limit`.

        The order sampled depends on their number alone: candidates are sampled as their examples would be. Without a
        seed they keep their order.
        """
        sampled = list(candidates)
        if self.seed is not None:
            random.Random(self.seed).shuffle(sampled)  # noqa: S311  (reproducible sampling, not secrets)
        return sampled[: self.limit]

    def generator(self, draw_seed: int | None = None) -> random.Random:
        """The generator of a task's own choices over all videos: of `draw_seed`, else of `seed`, else of 0."""
        seeds = (seed for seed in (draw_seed, self.seed, 0) if seed is not None)
        return random.Random(next(seeds))  # noqa: S311  (reproducible sampling, not secrets)


@dataclass(frozen=True, slots=True)
class EvenSampling(Sampling):
    """Of tasks that show a fixed number of frames, evenly spread.

    Args:
        frames: of one example.
    """

    frames: Count = 16
