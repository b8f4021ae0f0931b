"""Tasks about clips. The clips of a video are consecutive, and an example shows evenly spaced frames of one clip."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TypeVar

from barista_bench.benchmarks.barista.clips import ClipSampling, Keyframes, clip_span, clips
from barista_bench.benchmarks.kinds.frames import FrameArrays, FrameMetadata, frame_metadata
from barista_bench.core.deriving import Candidate, GraphTask, Vocabulary
from barista_bench.core.example import Evidence, Example, FrameRef, Inputs, SkippedExample, Target
from barista_bench.errors import DataError
from barista_bench.scene_graph import VideoGraph

ClipSamplingT = TypeVar("ClipSamplingT", bound=ClipSampling)


ClipColumns = tuple[str, Inputs, Target, Evidence]
"""The label of an example, and all its columns except the metadata."""


class ClipTask(GraphTask[ClipSamplingT]):
    """A task with at most one example per clip."""

    benchmark = "extended"
    prompt_package = "barista_bench.benchmarks.extended"
    metadata_type = FrameMetadata

    @abstractmethod
    def columns(
        self, index: FrameArrays, keyframes: Keyframes, vocabulary: Vocabulary, sampling: ClipSamplingT
    ) -> ClipColumns:
        """Return the columns of a clip's example. Raises DataError with the reason if the clip has no example."""

    def span(self, video: VideoGraph, candidate: Candidate, sampling: ClipSamplingT) -> tuple[int, int]:
        return clip_span(video, candidate.frame, sampling)

    def candidates(self, video: VideoGraph, sampling: ClipSamplingT) -> Iterator[Candidate | SkippedExample]:
        """Yield the clips in order, and a skipped example for each clip without an example."""
        index = FrameArrays(video)
        for keyframes in clips(video, sampling):
            try:
                self.columns(index, keyframes, (), sampling)
            except DataError as error:
                yield SkippedExample(FrameRef(video.video_id, keyframes[0]), str(error))
            else:
                yield Candidate(video.video_id, keyframes[0])

    def build(
        self, video: VideoGraph, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: ClipSamplingT
    ) -> Iterator[Example]:
        index, clips_by_start = FrameArrays(video), {keyframes[0]: keyframes for keyframes in clips(video, sampling)}
        for candidate in candidates:
            keyframes = clips_by_start[candidate.frame]
            label, inputs, target, evidence = self.columns(index, keyframes, vocabulary, sampling)
            yield self.new_example(
                f"{self.name}:{video.video_id}:{keyframes[0]}_{keyframes[-1]}",
                video.video_id,
                keyframes,
                label=label,
                inputs=inputs,
                target=target,
                metadata=frame_metadata(video, keyframes[0]),
                evidence=evidence,
            )
