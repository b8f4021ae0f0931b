"""ViSTa (arXiv 2411.13211): which description of a problem set fits a video? (paper, section 4.1 and appendix B)

A question is one video of one problem set. The model sees evenly spaced frames and scores every description of the set.
A dual encoder's scores are the cosines of its embeddings (`Task.choices`). A generative model scores in two
conversations. First it describes the frames. Then, in a new conversation without the frames, it compares its
description with the summaries, and in the next message it scores each from 0 to 5. The option `conversation` asks in
one conversation instead. Its value `minecraft` is the paper's prompt, which exists only for that environment (figures
10 to 12).

A single score has no meaning. Within a problem set, the scores of a video pass a softmax over the descriptions. Then
the scores of each description are standardised over the videos. The best description is the prediction. The score is
macro-F1 within a set, averaged over sets (`scoring`). The score of one sample (`top1`) uses only the sample's scores.

The sources are silent or differ on some points. docs/upstream/vista.md, "What is done here", lists these points.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import ClassVar, NamedTuple

from PIL import Image

from barista_bench.aids.task_aids import TaskAids
from barista_bench.benchmarks.release_records import GraphColumns
from barista_bench.benchmarks.vista.columns import (
    HIGHEST,
    LOWEST,
    EntryEvidence,
    LabelScores,
    MatchingInputs,
    MatchingMetadata,
    MatchingTarget,
    read_answer,
    write_answer,
)
from barista_bench.benchmarks.vista.release import MULTILABEL, VistaRelease
from barista_bench.benchmarks.vista.release_files import LabelledVideo, ProblemSet
from barista_bench.benchmarks.vista.scoring import GROUPED_BY, MatchedSets
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.deriving import Release, ReleaseTask
from barista_bench.core.display import AnswerFailure, Explanation, FailureKind
from barista_bench.core.example import (
    Example,
    Fields,
    FrameRef,
    ParseError,
    Prediction,
    Scored,
    SkippedExample,
    evidence_objects,
    read_scores,
)
from barista_bench.core.options import EvenSampling, Option, OptionValue, packaged_protocol
from barista_bench.core.prompt import Exchange, ImagePart, Prompt, PromptTexts, TextPart
from barista_bench.core.prompt_files import packaged_prompts
from barista_bench.errors import DataError
from barista_bench.media.frame_choice import evenly_spaced
from barista_bench.media.video import video_facts
from barista_bench.metrics.sequence_matching.rescaling import STANDARDISE

_PACKAGE = "barista_bench.benchmarks.vista"
_WORDING, _MINECRAFT = "matching", "minecraft"
"""The wording for all environments, which makes them comparable, and the paper's wording for Minecraft."""

_KINDS: dict[str, FailureKind] = {
    "objects": "wrong_object",
    "object_properties": "wrong_attribute",
    "actions": "wrong_verb",
    "permutation": "wrong_order",
}
"""Maps a theme to the way in which its wrong descriptions differ. Other themes mix several differences."""


# videos of the release's other levels are joined from clips, so their times are not those of the graph
_AIDS = TaskAids(default=("objects",), views=(), suits=lambda example: example.metadata.get("level") == 1)


class Matching(ReleaseTask[EvenSampling]):
    """The base class of the tasks, which differ only in the environment."""

    benchmark = "vista"
    version = 4
    primary = "macro_f1"
    primary_note = "F1 over the descriptions of a problem set, the mean over problem sets."
    sample_score = "top1"
    sampling = EvenSampling(frames=16)
    encoder_options: ClassVar[Mapping[str, OptionValue]] = {"shown_frames": 32}
    prompt_package = _PACKAGE
    row_note = "frames of one video, the descriptions of one problem set, and which of them fit"
    answer_note = "a score for each description"
    breakdown_keys = GROUPED_BY
    scores_whole_units = True
    options: ClassVar[Mapping[str, Option]] = {
        **packaged_protocol(_PACKAGE, _WORDING),
        "conversation": Option(
            "two",
            "describe and match in two conversations, in one, or in one as the paper did for Minecraft",
            "prompt",
            ("two", "single", _MINECRAFT),
        ),
        "standardise": Option(
            "label", "z-scores of a label over the videos, or another way to compare scores", "scores", STANDARDISE
        ),
        "shown_frames": Option(
            16, "most of the stored frames to show; 32 for dual encoders, as in the paper", "prompt", low=1
        ),
        "one_shot": Option(True, "show the release's example of a description, where a set has one", "prompt"),
    }
    inputs_type = MatchingInputs
    target_type = MatchingTarget
    metadata_type = MatchingMetadata
    evidence_type = EntryEvidence
    environment: ClassVar[str | None]
    """The environment in the paper's words; None stands for all environments."""

    def __init__(self, prompts: PromptTexts | None = None, *, options: Mapping[str, object] | None = None) -> None:
        wording = _MINECRAFT if (options or {}).get("conversation") == _MINECRAFT else _WORDING
        super().__init__(prompts or packaged_prompts(_PACKAGE, wording), options=options)

    def examples(self, release: Release, sampling: EvenSampling) -> Iterator[Example | SkippedExample]:
        """Yield every video of every set. Sets are sorted by id, and videos keep the order of the set's file.

        Raises DataError if the release is not ViSTa's.
        """
        if not isinstance(release, VistaRelease):
            raise DataError(f"{release.root}: is not a release of ViSTa. Fix: open it with this benchmark")
        facts_of = cache(partial(_facts, release))  # sets share videos
        for problem_set in release.sets.values():
            if self.environment not in (None, problem_set.environment):
                continue
            for video in problem_set.videos:
                if sampling.videos is not None and video.video_id not in sampling.videos:
                    continue
                facts = facts_of(video.video_id)
                if isinstance(facts, str):
                    yield SkippedExample(FrameRef(video.video_id, 0), facts)
                else:
                    _, _, path = video.video_id.partition("/")  # environments share their questions
                    yield self._example(problem_set, video, facts, sampling, release.graph_columns(path))

    def _example(
        self, problem_set: ProblemSet, video: LabelledVideo, facts: _Facts, sampling: EvenSampling, graph: GraphColumns
    ) -> Example:
        frames = evenly_spaced(facts.frame_count, sampling.frames)
        return self.new_example(
            f"{self.name}:{problem_set.set_id}:{video.video_id}",
            video.video_id,
            frames,
            label="; ".join(problem_set.descriptions[label] for label in video.labels),
            inputs=MatchingInputs(
                problem_set=problem_set.set_id,
                labels=list(problem_set.descriptions),
                descriptions=list(problem_set.descriptions.values()),
                prompt_gpt=problem_set.prompt,
                example_gpt=problem_set.example,
                frame_count=len(frames),
            ),
            target=MatchingTarget(list(video.labels)),
            metadata=MatchingMetadata(
                split="test",
                environment=problem_set.environment,
                type=problem_set.type,
                problem_set=problem_set.set_id,
                release_level=problem_set.release_level,
                release_type=problem_set.release_type,
                level=problem_set.level,
                sequence_length=problem_set.level,
                frames=sampling.frames,
                set_videos=len(problem_set.videos),
                set_labels=len(problem_set.descriptions),
                shared_prefix=problem_set.shared_prefix.get(video.labels[0]),
                frame_count=facts.frame_count,
                fps=facts.fps,
                seconds=facts.seconds,
            ),
            evidence=EntryEvidence(f"tasks/{problem_set.set_id}.yaml", video.entry, **graph),
        )

    def resampling_unit(self, example: Example) -> str:
        """Return the problem set, since the videos of a set are scored together."""
        return MatchingInputs.of(example).problem_set

    def choices(self, example: Example) -> Mapping[str, str]:
        return MatchingInputs.of(example).choices

    def answered_choices(self, prediction: Prediction) -> Sequence[str]:
        """Return the labels with the highest of the sample's scores."""
        return LabelScores.read(prediction.value).best

    def prompt(self, example: Example, box_format: BoxFormat) -> Prompt:
        """Return the first prompt: describe the frames with `conversation=two`, else describe, compare and score."""
        inputs = MatchingInputs.of(example)
        example_gpt = inputs.example_gpt if self.chosen["one_shot"] else None
        count = len(self.image_frames(example))
        values = {"frame_count": str(count), "task": inputs.prompt_gpt.strip()}
        if self.chosen["conversation"] == _MINECRAFT:
            values["truths"] = self.prompts.text("several" if inputs.problem_set in MULTILABEL else "one")
            values["summaries"] = _summaries(inputs)
        else:
            values["example"] = self.prompts.text("example", example=example_gpt.strip()) + "\n" if example_gpt else ""
        system, user = self.prompts.fill(**values)
        if self.chosen["conversation"] == "single":
            user = self.prompts.text("single", **values, summaries=_summaries(inputs))
        return Prompt(system, (*map(ImagePart, range(count)), TextPart(user)))

    def image_frames(self, example: Example) -> Sequence[int]:
        return evenly_spaced(len(example.frames), int(self.chosen["shown_frames"] or 1))

    def displayed_images(self, example: Example, images: Sequence[Image.Image]) -> tuple[Image.Image, ...]:
        """Return the images that the option `shown_frames` shows."""
        return tuple(images[index] for index in self.image_frames(example))

    def follow_up(self, example: Example, answers: tuple[str, ...], box_format: BoxFormat) -> Prompt | None:
        """Return the next prompt of the second conversation, which has no frames.

        The first compares the description with the summaries. The second follows the answer to it, and asks for the
        scores. A model that scores the summaries directly, as a dual encoder does, has already answered.
        """
        inputs = MatchingInputs.of(example)
        is_done = self.chosen["conversation"] != "two" or len(answers) > 2
        if is_done or read_scores(answers[0], inputs.labels) is not None:
            return None
        system = self.prompts.fill()[0]
        match = self.prompts.text("match", description=answers[0].strip(), summaries=_summaries(inputs))
        if len(answers) == 1:
            return Prompt(system, (TextPart(match),))
        return Prompt(system, (TextPart(self.prompts.text("score")),), (Exchange(match, answers[1]),))

    def parse(self, text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
        """Return the scores of a dual encoder, or the scores in a generative model's text (`columns.read_answer`)."""
        return read_answer(text, MatchingInputs.read(inputs).labels, self._highest)

    @property
    def _highest(self) -> int:
        """Return the highest score that the prompt allows."""
        return 1 if self.chosen["conversation"] == _MINECRAFT else HIGHEST

    def statistics(self, samples: Sequence[Scored]) -> MatchedSets:
        return MatchedSets.of(samples, str(self.chosen["standardise"]))

    def facets(self, example: Example) -> Fields:
        """Return the number of descriptions that fit the video."""
        return {"fitting_descriptions": len(_reference(example))}

    def mistakes(self, example: Example, prediction: Prediction) -> Iterable[AnswerFailure]:
        """Return failures by the sample's scores: a wrong description is best, or ties with the right one."""
        best, reference = set(LabelScores.read(prediction.value).best), set(_reference(example))
        if best <= reference:
            return ()
        if best & reference:
            return (AnswerFailure("duplicate", evidence_objects(example)),)
        kind = _KINDS.get(MatchingMetadata.of(example).type, "wrong_option")
        return (AnswerFailure(kind, evidence_objects(example)),)

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        """Explain with the right descriptions and with the best descriptions by the sample's scores.

        The other videos of the set may change the prediction. If several descriptions fit, one is enough, and the
        others do not count as missed.
        """
        texts, reference = self.choices(example), _reference(example)
        answer = LabelScores.read(prediction.value) if prediction else LabelScores({}, None, [])
        best = answer.best if prediction else []

        def label_text(label: str) -> str:
            score = f"{answer.scores[label]:.4g}" if label in answer.scores else "no score"
            return f"{label} [{score}]: {texts[label]}"

        return Explanation.of(
            (label_text(label) for label in texts if label in reference and label in best),
            (label_text(label) for label in texts if label in reference and not set(reference).intersection(best)),
            (label_text(label) for label in best if label not in reference),
        )

    def reference_answer(self, example: Example, box_format: BoxFormat) -> str:
        """Write full marks for the right description.

        If several fit, only the first gets full marks, since only one may be best.
        """
        return self.answer_text(_reference(example)[:1], example)

    def random_answer(self, example: Example, rng: random.Random, box_format: BoxFormat) -> str:
        return self.answer_text([rng.choice(MatchingInputs.of(example).labels)], example)

    def prior_answer(self, example: Example, others: Sequence[Example], box_format: BoxFormat) -> str:
        """Return the label that fits most of the set's other videos. At a tie, the first label wins.

        If every label fits exactly one video, as in permutations, the answer is always wrong. The paper's baseline also
        counts the video itself; it is the score `majority_f1`.
        """
        set_examples = [other for other in others if self.resampling_unit(other) == self.resampling_unit(example)]
        counts = Counter(label for other in set_examples for label in _reference(other))
        return self.answer_text([max(MatchingInputs.of(example).labels, key=lambda label: counts[label])], example)

    def answer_text(self, labels: Sequence[str], example: Example) -> str:
        """Write full marks for some labels."""
        others = MatchingInputs.of(example).labels
        return write_answer({label: self._highest if label in labels else LOWEST for label in others})


class VirtualHome(Matching):
    """Videos of a simulated household. Most of them are joined from clips of ALFRED."""

    name = upstream_name = environment = "virtual_home"


class RealWorld(Matching):
    """Filmed videos. Their level 1 also has object tracking, interactions and doors."""

    name = upstream_name = environment = "real_world"
    aids = _AIDS


class Minecraft(Matching):
    """Recorded games. A video of level 1 may fit several descriptions."""

    name = upstream_name = environment = "minecraft"


class All(Matching):
    """All environments together. Every problem set has the same weight."""

    name = upstream_name = "all"
    aids = _AIDS
    environment = None


def _reference(example: Example) -> list[str]:
    return MatchingTarget.of(example).labels


def _summaries(inputs: MatchingInputs) -> str:
    return "\n".join(f"- ({label}) {text}" for label, text in inputs.choices.items())


class _Facts(NamedTuple):
    """A video's facts. `seconds` is the time from the first frame to the last, or None if unknown."""

    frame_count: int
    fps: float
    seconds: float | None


def _facts(release: VistaRelease, video_id: str) -> _Facts | str:
    """Return a video's facts, or the reason why it cannot be used."""
    try:
        path = release.video_path(video_id)
        if not path.exists():
            return "the video is absent"
        facts = video_facts(path)
    except DataError as error:  # includes VideoError
        return f"the video cannot be used: {error}"
    return _Facts(facts.frame_count, facts.fps, facts.duration if facts.has_times else None)
