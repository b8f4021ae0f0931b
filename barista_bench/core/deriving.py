"""Make frozen sets from releases: tasks over a scene graph, and tasks over a benchmark's own annotations.

A `GraphTask` finds candidates in a scene graph and builds examples of the sampled candidates. A `ReleaseTask` takes its
questions from a benchmark's own annotation files.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeAlias

from barista_bench.core.example import Example, SkippedExample
from barista_bench.core.options import SamplingT
from barista_bench.core.task import Task
from barista_bench.scene_graph import LAYERS, Layer, Problem, VideoGraph

Vocabulary: TypeAlias = "tuple[tuple[str, str], ...]"
"""Pairs of words without repeats. They are ordered by video, then by place in the video's file: see
`GraphTask.vocabulary`.
"""


class Candidate(NamedTuple):
    """A place where an example can be made.

    Candidates are small, since a release has hundreds of thousands of them, and only thousands are sampled.

    Attributes:
        video_id: video of the example's frames.
        frame: first frame of the example.
        group: class, category or question type, for which a task limits the number of examples.
        item: other data that the task needs to find the candidate again in its video.
        numbers: other data that the task needs to choose between the candidates of all videos.
    """

    video_id: str
    frame: int
    group: str = ""
    item: int = 0
    numbers: tuple[int, ...] = ()


class GraphTask(Task, Generic[SamplingT]):
    """A task whose examples come from annotated frames.

    The task first finds candidates and then builds examples, so that only sampled examples are built (`Candidate`).
    """

    breakdown_keys: ClassVar[tuple[str, ...]] = ("split", "preparation")
    layers: ClassVar[tuple[Layer, ...]] = LAYERS
    """Sections of the graph whose missing records make an answer wrong."""
    switch_layers: ClassVar[Mapping[str, Layer]] = {"in_activities": "activities", "with_relations": "relations"}
    """The section of each sampling switch: the switch takes only frames with a record in that section."""

    def span(self, video: VideoGraph, candidate: Candidate, sampling: SamplingT) -> tuple[int, int]:
        """Return the frames [start, stop) in which `layers` must be complete.

        By default, these are all frames of the video.
        """
        return 0, video.frame_count

    def incompleteness(self, video: VideoGraph, candidate: Candidate, sampling: SamplingT) -> str | None:
        """Return why incomplete annotation makes right and wrong answers indistinguishable. Return None if the answer
        is clear.
        """
        span = self.span(video, candidate, sampling)
        gaps = [layer for layer in self.layers if not video.coverage.covers_layer(layer, *span)]
        return f"its source does not state all {' and '.join(gaps).replace('_', ' ')} there" if gaps else None

    def vocabulary(self, video: VideoGraph, sampling: SamplingT) -> Vocabulary:
        """Return words of one video that examples of other videos need too, e.g. class ids and names.

        The method is called for every video.
        """
        return ()

    @abstractmethod
    def candidates(self, video: VideoGraph, sampling: SamplingT) -> Iterator[Candidate | SkippedExample]:
        """Yield the places where one video has examples, in order of frames.

        The result is deterministic and depends only on this video. An example that the data do not allow is yielded as
        a `SkippedExample`, so that it is counted.
        """

    def select(
        self, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: SamplingT
    ) -> Iterator[Candidate | SkippedExample]:
        """Yield, in the given order, the candidates that remain after limits over all videos."""
        yield from candidates

    @abstractmethod
    def build(
        self, video: VideoGraph, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: SamplingT
    ) -> Iterator[Example]:
        """Yield one example per candidate of a video, in the given order. `vocabulary` covers all videos."""


class Release(Protocol):
    """The annotation files of a benchmark, read and checked.

    `root` holds the annotations and `videos` the media, some of which may be missing. `problems` lists the problems of
    the files.
    """

    root: Path
    videos: Path
    problems: Sequence[Problem]

    def video_path(self, video_id: str) -> Path:
        """Return the path of a video (a file, or a folder of frames), even if it does not exist.

        Raises:
            DataError: the name leads out of `videos`.
        """
        ...


class ReleaseTask(Task, Generic[SamplingT]):
    """A task that takes its questions from a release.

    Examples name their split in `metadata["split"]`. The split is `test` if a benchmark has only one.
    """

    breakdown_keys: ClassVar[tuple[str, ...]] = ("split",)

    @abstractmethod
    def examples(self, release: Release, sampling: SamplingT) -> Iterator[Example | SkippedExample]:
        """Yield all examples in canonical order, with the frames that the sampling chooses.

        If a video is missing or damaged, its example is yielded as a `SkippedExample`, so that it is counted.
        """
