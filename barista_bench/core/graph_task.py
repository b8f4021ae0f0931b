"""Tasks that are derived from a scene graph: candidates for examples, and the examples built from those drawn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import ClassVar, NamedTuple, TypeAlias

from barista_bench.core.sampling import Sampling
from barista_bench.core.task import Example, SkippedExample, Task
from barista_bench.scene_graph import SceneGraph, VideoGraph

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

    def examples(self, graph: SceneGraph, sampling: Sampling) -> Iterator[Example | SkippedExample]:
        """All examples in canonical order (video id, then frame), before shuffling; what was skipped comes first.

        The plain composition of the methods above. `data.plan` reads each video once for all tasks, and builds only
        what is drawn.

        Raises:
            DataError: `sampling.videos` names a video that the graph lacks.
        """
        sampling.refuse_unknown_videos(graph)
        words: dict[tuple[str, str], None] = {}
        candidates: list[Candidate] = []
        for video in graph:
            words.update(dict.fromkeys(self.vocabulary(video, sampling)))
            for item in self.candidates(video, sampling) if sampling.selects(video) else ():
                if isinstance(item, SkippedExample):
                    yield item
                else:
                    candidates.append(item)
        vocabulary = tuple(words)
        selected = list(self.select(candidates, vocabulary, sampling))
        yield from (item for item in selected if isinstance(item, SkippedExample))
        kept = (item for item in selected if isinstance(item, Candidate))
        for video_id, group in groupby(kept, key=lambda candidate: candidate.video_id):
            yield from self.build(graph[video_id], list(group), vocabulary, sampling)
