"""How a frozen set comes from a release: `Sampling` says what is drawn, two kinds of tasks what there is to draw from.

A `GraphTask` finds candidates in a scene graph and builds those drawn; a `ReleaseTask` takes its questions from a
benchmark's own annotation files.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple, Protocol, TypeAlias, TypeVar, get_type_hints

import msgspec
from msgspec import Meta

from barista_bench.core.task import Example, SkippedExample, Task
from barista_bench.errors import ConfigError, DataError
from barista_bench.scene_graph import Problem, SceneGraph, VideoGraph

CandidateT = TypeVar("CandidateT")
Index = Annotated[int, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]


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
        seconds: what a clip lasts, from its first frame to its last, at any frame rate; None keeps to `spacing`,
            or takes all there is.
        domain: file of a domain's words and values (`default`: coffee making), any two of which that exclude each
            other make a change; None keeps to coffee's words and to the changes that the release names.
        choices: options of a multiple-choice question; None for all classes.
        same_verb: options that share the verb of the right one, where there are as many.
        box_scale: true boxes are integers from 0 to this, which a full side of the frame maps to.
        mask_alpha: opacity of the marks over the frame, 0 to 1.
        boundary_alpha: share of its own colour that the inside of a mark loses, 0 to 1.
        font_size: of the numbers on the marks.
        pairs: folder of questions that a model wrote (`barista-bench questions`), instead of templates.
    """

    limit: Count | None = None
    seed: int | None = 42
    draw_seed: int | None = None
    videos: tuple[str, ...] | None = None
    preparations: tuple[str, ...] | None = None
    splits: tuple[str, ...] | None = None
    frame_range: tuple[Index, Index] | None = None
    frame_step: Count = 1
    fraction: Annotated[float, Meta(gt=0, le=1)] = 1.0
    in_activities: bool = False
    with_relations: bool = False
    relation_type: Annotated[str, Meta(min_length=1)] = "human_actions"
    per_frame: Count | None = None
    per_class: Count | None = None
    min_area: float = 0.0
    frames: Count = 1
    rate: Annotated[float, Meta(gt=0, le=1000)] | None = None
    max_frames: Count | None = None
    spacing: Count = 1
    seconds: Annotated[float, Meta(gt=0, le=3600)] | None = None
    domain: Annotated[str, Meta(min_length=1)] | None = None
    choices: Count | None = None
    same_verb: Index = 0
    box_scale: Count = 1000
    mask_alpha: Share = 0.5
    boundary_alpha: Share = 0.9
    font_size: Annotated[float, Meta(ge=1, le=1000)] = 20
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
        types = get_type_hints(Sampling, include_extras=True)
        for name, value in values.items():
            try:
                msgspec.convert(value, types[name])  # a check alone: a whole number stays one
            except msgspec.ValidationError as error:
                raise ConfigError(f"{name} is {value!r}. Remedy: give a value of its kind ({error})") from error
        sampling = replace(self, **values)  # type: ignore[arg-type]
        if sampling.frame_range and sampling.frame_range[0] >= sampling.frame_range[1]:
            raise ConfigError(f"frame_range is {sampling.frame_range}. Remedy: give two frames, start before stop")
        if "rate" in values and sampling.rate is None:
            raise ConfigError("rate is null. Remedy: give frames a second, above 0")
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

    def frame_indices(self, video: VideoGraph) -> range:
        """Candidate frames of a video: in `frame_range`, index divisible by `frame_step`."""
        start, stop = self.frame_range or (0, video.frame_count)
        first = -(-start // self.frame_step) * self.frame_step
        return range(first, min(stop, video.frame_count), self.frame_step)

    def draw(self, candidates: Sequence[CandidateT]) -> list[CandidateT]:
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


Vocabulary: TypeAlias = "tuple[tuple[str, str], ...]"
"""Pairs of words, each once, in the order of videos and of their files: see `Task.vocabulary`."""


class Candidate(NamedTuple):
    """Where an example can be made. Light: a release has hundreds of thousands, of which a few thousand are drawn.

    Args:
        video_id: the video of the example's frames.
        frame: the first of them.
        group: class, category or question type, by which `Sampling.per_class` counts.
        item: what else the task needs to find the candidate again in its video.
        numbers: what else the task needs to select it among those of all videos.
    """

    video_id: str
    frame: int
    group: str = ""
    item: int = 0
    numbers: tuple[int, ...] = ()


class GraphTask(Task):
    """A task whose examples come from annotated frames.

    It derives them in two steps, so that only what is drawn is built: see docs/design.md, "Candidates".
    """

    breakdown_keys: ClassVar[tuple[str, ...]] = ("split", "preparation")

    def vocabulary(self, video: VideoGraph, sampling: Sampling) -> Vocabulary:
        """Words of one video that the examples of others need too, e.g. class ids and names. Asked of every video."""
        return ()

    @abstractmethod
    def candidates(self, video: VideoGraph, sampling: Sampling) -> Iterator[Candidate | SkippedExample]:
        """Where one video has examples, in order of frames; deterministic, from this video alone.

        An example that the data make impossible is yielded as a `SkippedExample`, so that it is counted.
        """

    def select(
        self, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: Sampling
    ) -> Iterator[Candidate | SkippedExample]:
        """The candidates that remain after caps over all videos, in their order."""
        yield from candidates

    @abstractmethod
    def build(
        self, video: VideoGraph, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: Sampling
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


class ReleaseTask(Task):
    """A task that takes its questions from a release.

    Examples name their split in `metadata["split"]`: `test` where a benchmark has only one.
    """

    breakdown_keys: ClassVar[tuple[str, ...]] = ("split",)

    @abstractmethod
    def examples(self, release: Release, sampling: Sampling) -> Iterator[Example | SkippedExample]:
        """All examples in canonical order, with the frames that the sampling chooses.

        An example whose video is missing or damaged is yielded as a `SkippedExample`, so that it is counted.
        """
