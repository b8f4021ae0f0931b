"""Define the base of all HanDyVQA tasks: examples from questions, the shown frames, and the option `max_side`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from PIL import Image

from barista_bench.benchmarks.handyvqa.release import (
    HALF_WINDOW_S,
    AnnotatedMoment,
    HandyvqaQuestion,
    HandyvqaRelease,
    QuestionClip,
)
from barista_bench.benchmarks.kinds.masks import reduced_size
from barista_bench.benchmarks.release_records import NO_GRAPH, GraphColumns
from barista_bench.core.deriving import Release, ReleaseTask
from barista_bench.core.example import (
    Example,
    FrameRef,
    Inputs,
    Int64,
    Metadata,
    SkippedExample,
    Target,
    TracedEvidence,
)
from barista_bench.core.options import EvenSampling, Option
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.paths import confine
from barista_bench.media.frame_choice import evenly_spaced_with, in_window, nearest_frame
from barista_bench.media.video.readers import VideoFacts, video_facts

MAX_SIDE = Option(
    default=None,
    help=("maximum length of a frame's longer side in pixels; larger frames are scaled down"),
    changes="prompt",
    low=16,
    high=8192,
    kind=int,
)


class QuestionMetadata(Metadata):
    """The keys that analysis groups by. `n_frames` is None if the shown frames are unknown, and `scenario` if the
    record has none.
    """

    split: str
    scenario: str | None
    category: str
    n_options: int
    n_correct: int
    n_frames: int | None
    centre_seconds: float | None


class RecordEvidence(TracedEvidence):
    """The record's file, and the record's row in that file, from 0."""

    file: str
    row: Int64


@dataclass(frozen=True, slots=True)
class ClipFrames:
    """The frames chosen from one clip: `indices` are in order, and `annotated` are the required frames in the given
    order.
    """

    indices: tuple[int, ...]
    annotated: tuple[int, ...]
    facts: VideoFacts


def find_clip(videos: Path, category: str, item_id: str) -> QuestionClip:
    """Return the clip of a record without a clip name.

    The clip is the folder `<id>_frames`, or else the file `<id>.mp4`, below `videos` or its subfolder named after the
    category. If neither exists, the first name is returned and is later reported as missing.
    """
    for name, is_folder in ((f"{item_id}_frames", True), (f"{item_id}.mp4", False)):
        for parts in ((name,), (category, name)):
            path = confine(videos, *parts)
            if path.is_dir() if is_folder else path.is_file():
                return QuestionClip("/".join(parts), is_folder)
    return QuestionClip.default_of(item_id)


def choose_frames(path: Path, clip: QuestionClip, count: int, annotated: Sequence[AnnotatedMoment] = ()) -> ClipFrames:
    """Choose `count` evenly spaced frames of a clip, including the first, the last and the annotated frames.

    Raises DataError if the clip is missing or damaged, or lacks an annotated frame. The error names the clip.
    """
    if not (path.is_dir() if clip.is_folder else path.is_file()):
        kind = "folder of frames" if clip.is_folder else "video"
        raise DataError(f"{path}: no such {kind}. Fix: fetch it, or name the folder that holds it with --videos")
    facts = video_facts(path, fps=clip.fps)
    window = range(facts.frame_count) if clip.centre_s is None else in_window(facts, clip.centre_s, HALF_WINDOW_S)
    frames = [_frame_at(facts, moment) for moment in annotated]
    for frame in frames:
        if frame not in window:
            raise DataError(
                f"{path}: the annotated frame {frame} is outside of the clip, {window.start} to {window.stop - 1}. "
                "Fix: check that annotations and video match"
            )
    offsets = evenly_spaced_with(len(window), count, [frame - window.start for frame in frames])
    return ClipFrames(tuple(window[offset] for offset in offsets), tuple(frames), facts)


def _frame_at(facts: VideoFacts, moment: AnnotatedMoment) -> int:
    if moment.frame is not None:
        return moment.frame
    assert moment.second is not None  # reading the release has checked that a number or a second is given
    return nearest_frame(facts, moment.second)


class HandyvqaTask(ReleaseTask[EvenSampling]):
    """One category of the benchmark; `name` is the category."""

    benchmark = "handyvqa"
    sampling = EvenSampling()
    prompt_package = "barista_bench.benchmarks.handyvqa"
    options: ClassVar[Mapping[str, Option]] = {"max_side": MAX_SIDE}
    metadata_type = QuestionMetadata
    evidence_type = RecordEvidence

    def examples(self, release: Release, sampling: EvenSampling) -> Iterator[Example | SkippedExample]:
        """Yield one example per record, sorted by id.

        Clips are examined in the order of videos, so that each clip is opened once.
        """
        if not isinstance(release, HandyvqaRelease):
            raise ConfigError(f"{release.root}: is not a HanDyVQA release. Fix: open it as one")
        by_id: dict[str, Example | SkippedExample] = {}
        clips: list[tuple[QuestionClip, HandyvqaQuestion]] = []
        splits = sampling.splits
        questions = [each for each in release.questions[self.name] if splits is None or each.split in splits]
        for question in questions:
            try:
                clip = question.clip or find_clip(release.videos, question.category, question.item_id)
                clips.append((clip, question))
            except DataError as error:
                by_id[question.item_id] = SkippedExample(FrameRef(question.item_id, 0), str(error), question.item_id)
        for clip, question in sorted(clips, key=lambda pair: pair[0].video):
            if sampling.videos is None or clip.video in sampling.videos:
                by_id[question.item_id] = self._example(release, question, clip, sampling.frames)
        yield from (by_id[question.item_id] for question in questions if question.item_id in by_id)

    def _example(
        self, release: HandyvqaRelease, question: HandyvqaQuestion, clip: QuestionClip, count: int
    ) -> Example | SkippedExample:
        annotated = [frame.moment for frame in question.annotated]
        try:
            frames = choose_frames(release.video_path(clip.video), clip, count, annotated)
            inputs, target = self.columns(question, frames)
        except DataError as error:
            return SkippedExample(FrameRef(clip.video, 0), str(error), question.item_id)
        graph = release.graph_columns(question.item_id)
        return self.example(question, clip, frames.indices, inputs, target, graph=graph)

    @classmethod
    def example(
        cls,
        question: HandyvqaQuestion,
        clip: QuestionClip,
        indices: Sequence[int],
        inputs: Inputs,
        target: Target,
        *,
        is_shown: bool = True,
        graph: GraphColumns = NO_GRAPH,
    ) -> Example:
        """Return the example of a question. `is_shown` means that a model saw the frames of the example."""
        return cls.new_example(
            question.item_id,
            clip.video,
            indices,
            label="; ".join(question.options[index] for index in question.correct),
            inputs=inputs,
            target=target,
            metadata=QuestionMetadata(
                split=question.split,
                scenario=question.scenario,
                category=cls.name,
                n_options=len(question.options),
                n_correct=len(question.correct),
                n_frames=len(indices) if is_shown else None,
                centre_seconds=clip.centre_s,
            ),
            evidence=RecordEvidence(question.file, question.row, **graph),
        )

    @abstractmethod
    def columns(self, question: HandyvqaQuestion, frames: ClipFrames) -> tuple[Inputs, Target]:
        """Return `inputs` and `target` of a question with an existing clip.

        Raises DataError if question and clip do not match.
        """

    def displayed_images(self, example: Example, images: Sequence[Image.Image]) -> tuple[Image.Image, ...]:
        """Return the images, scaled down to the option `max_side`."""
        sizes = [reduced_size(image.width, image.height, self.max_side) for image in images]
        return tuple(
            image if size == image.size else image.resize(size, Image.Resampling.BICUBIC)
            for image, size in zip(images, sizes, strict=True)
        )

    @property
    def max_side(self) -> int | None:
        value = self.chosen["max_side"]
        return value if isinstance(value, int) else None
