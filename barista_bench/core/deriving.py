"""How a frozen set comes from a release: `Sampling` says how, two kinds of tasks from what.

A `GraphTask` finds candidates in a scene graph and builds those sampled; a `ReleaseTask` takes its questions from a
benchmark's own annotation files.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, ClassVar, Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar, get_type_hints

import msgspec
from msgspec import Meta

from barista_bench.core.task import Example, SkippedExample, Task
from barista_bench.errors import ConfigError, DataError
from barista_bench.scene_graph import Problem, SceneGraph, VideoGraph

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


Vocabulary: TypeAlias = "tuple[tuple[str, str], ...]"
"""Pairs of words, each once, in the order of videos and of their files: see `Task.vocabulary`."""


@dataclass(frozen=True, slots=True)
class EvenSampling(Sampling):
    """Of tasks that show a fixed number of frames, evenly spread.

    Args:
        frames: of one example.
    """

    frames: Count = 16


class Candidate(NamedTuple):
    """Where an example can be made. Light: a release has hundreds of thousands, of which a few thousand are sampled.

    Args:
        video_id: the video of the example's frames.
        frame: the first of them.
        group: class, category or question type, by which a task caps.
        item: what else the task needs to find the candidate again in its video.
        numbers: what else the task needs to select it among those of all videos.
    """

    video_id: str
    frame: int
    group: str = ""
    item: int = 0
    numbers: tuple[int, ...] = ()


class GraphTask(Task, Generic[SamplingT]):
    """A task whose examples come from annotated frames.

    It derives them in two steps, so that only what is sampled is built: see docs/design.md, "Candidates".
    """

    breakdown_keys: ClassVar[tuple[str, ...]] = ("split", "preparation")

    def vocabulary(self, video: VideoGraph, sampling: SamplingT) -> Vocabulary:
        """Words of one video that the examples of others need too, e.g. class ids and names. Asked of every video."""
        return ()

    @abstractmethod
    def candidates(self, video: VideoGraph, sampling: SamplingT) -> Iterator[Candidate | SkippedExample]:
        """Where one video has examples, in order of frames; deterministic, from this video alone.

        An example that the data make impossible is yielded as a `SkippedExample`, so that it is counted.
        """

    def select(
        self, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: SamplingT
    ) -> Iterator[Candidate | SkippedExample]:
        """The candidates that remain after caps over all videos, in their order."""
        yield from candidates

    @abstractmethod
    def build(
        self, video: VideoGraph, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: SamplingT
    ) -> Iterator[Example]:
        """One example for each of a video's candidates, in the order given. `vocabulary` is that of all videos."""


class Release(Protocol):
    """The annotation files of a benchmark, read and checked.

    `root` holds the annotations and `videos` the media, which need not all be there. `problems` lists what is wrong
    with the files.
    """

    root: Path
    videos: Path
    problems: Sequence[Problem]

    def video_path(self, video_id: str) -> Path:
        """The path of a video (a file, or a folder of frames), whether or not it exists.

        Raises:
            DataError: the name leads out of `videos`.
        """
        ...


class ReleaseTask(Task, Generic[SamplingT]):
    """A task that takes its questions from a release.

    Examples name their split in `metadata["split"]`: `test` where a benchmark has only one.
    """

    breakdown_keys: ClassVar[tuple[str, ...]] = ("split",)

    @abstractmethod
    def examples(self, release: Release, sampling: SamplingT) -> Iterator[Example | SkippedExample]:
        """All examples in canonical order, with the frames that the sampling chooses.

        An example whose video is missing or damaged is yielded as a `SkippedExample`, so that it is counted.
        """
