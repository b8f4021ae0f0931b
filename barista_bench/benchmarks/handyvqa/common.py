"""What the HanDyVQA tasks have in common: examples from records, the frames shown, options of a run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from PIL import Image

from barista_bench.benchmarks.handyvqa.clips import Clip, Shown, shown_frames
from barista_bench.benchmarks.handyvqa.masks import thinned_size
from barista_bench.benchmarks.handyvqa.release import HandyvqaRelease, Question
from barista_bench.core.options import Option
from barista_bench.core.release_task import Release, ReleaseTask
from barista_bench.core.task import Example, Fields, FrameRef, Sampling, SkippedExample
from barista_bench.errors import ConfigError, DataError

if TYPE_CHECKING:
    from datasets import Features

FRAMES = 16
"""Frames shown of a clip (paper, section 4)."""
MAX_SIDE = Option(
    default=None,
    help="pixels of a frame's longer side at the most; larger frames are scaled down",
    changes="prompt",
    low=16,
    high=8192,
    kind=int,
)
PROMPT_PACKAGE = "barista_bench.benchmarks.handyvqa"


class HandyvqaTask(ReleaseTask):
    """One category of the benchmark; `name` is the category."""

    benchmark = "handyvqa"
    sampling = Sampling(limit=None, frames=FRAMES)
    sampling_uses = frozenset({"frames"})
    prompt_package = PROMPT_PACKAGE
    options: ClassVar[Mapping[str, Option]] = {"max_side": MAX_SIDE}

    def examples(self, release: Release, sampling: Sampling) -> Iterator[Example | SkippedExample]:
        """One example a record, by id. Clips are looked at in the order of videos: each is opened once."""
        if not isinstance(release, HandyvqaRelease):
            raise ConfigError(f"{release.root}: is no HanDyVQA release. Remedy: open it as one")
        found: dict[str, Example | SkippedExample] = {}
        clips: list[tuple[Clip, Question]] = []
        wanted = [question for question in release.questions[self.name] if _is_wanted(question, sampling)]
        for question in wanted:
            try:
                clips.append((release.clip(question), question))
            except DataError as error:
                found[question.item_id] = SkippedExample(FrameRef(question.item_id, 0), f"{question.item_id}: {error}")
        for clip, question in sorted(clips, key=lambda pair: pair[0].video):
            if sampling.videos is None or clip.video in sampling.videos:
                found[question.item_id] = self._example(release, question, clip, sampling.frames)
        yield from (found[question.item_id] for question in wanted if question.item_id in found)

    def _example(
        self, release: HandyvqaRelease, question: Question, clip: Clip, frames: int
    ) -> Example | SkippedExample:
        always = [annotated.moment for annotated in question.annotated]
        try:
            shown = shown_frames(release.video_path(clip.video), clip, frames, always)
            inputs, target = self.asked(question, shown)
        except DataError as error:
            return SkippedExample(FrameRef(clip.video, 0), f"{question.item_id}: {error}")
        return self.made(question, clip, shown.indices, inputs, target)

    @classmethod
    def made(
        cls,
        question: Question,
        clip: Clip,
        indices: Sequence[int],
        inputs: Fields,
        target: Fields,
        *,
        is_shown: bool = True,
    ) -> Example:
        """The example of a question; `is_shown` says whether its frames are those that a model was shown."""
        return Example(
            example_id=question.item_id,
            benchmark=cls.benchmark,
            task=cls.name,
            label="; ".join(question.options[place] for place in question.correct),
            frames=tuple(FrameRef(clip.video, index) for index in indices),
            inputs=inputs,
            target=target,
            metadata={
                "split": question.split,
                "category": cls.name,
                "n_options": len(question.options),
                "n_correct": len(question.correct),
                "n_frames": len(indices) if is_shown else None,
                "centre_seconds": clip.centre_s,
            },
            evidence={"file": question.file, "row": question.row},
        )

    @abstractmethod
    def asked(self, question: Question, shown: Shown) -> tuple[Fields, Fields]:
        """`inputs` and `target` of a question whose clip is there. Raises DataError where the two do not fit."""

    @abstractmethod
    def columns(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """`datasets` features of `inputs` and `target`."""

    def features(self) -> Features:
        from datasets import Features, Value

        inputs, target = self.columns()
        metadata = {
            "split": Value("string"),
            "category": Value("string"),
            **dict.fromkeys(("n_options", "n_correct", "n_frames"), Value("int32")),
            "centre_seconds": Value("float64"),
        }
        evidence = {"file": Value("string"), "row": Value("int64")}
        return Features({"inputs": inputs, "target": target, "metadata": metadata, "evidence": evidence})

    def shown(self, example: Example, images: Sequence[Image.Image]) -> tuple[Image.Image, ...]:
        """The images, scaled down to the option `max_side`."""
        return tuple(map(self._thinned, images))

    @property
    def max_side(self) -> int | None:
        chosen = self.option("max_side")
        return chosen if isinstance(chosen, int) else None

    def _thinned(self, image: Image.Image) -> Image.Image:
        size = thinned_size(image.width, image.height, self.max_side)
        return image if size == image.size else image.resize(size, Image.Resampling.BICUBIC)


def _is_wanted(question: Question, sampling: Sampling) -> bool:
    return sampling.splits is None or question.split in sampling.splits
