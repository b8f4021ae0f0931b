"""ViSTa (arXiv 2411.13211): which of a problem set's descriptions fits a video? (paper, section 4.1 and appendix B).

A question is one video of one problem set. Evenly spaced frames are shown, and every description of the set is scored:
by a dual encoder through the cosine of its embeddings (`Task.choices`), by a generative model in two conversations (it
describes the frames; then, in a new one without the frames, it compares its description with the summaries and scores
each from 0 to 5), or in one, as the option `conversation` says.

Scores mean nothing alone. Within a problem set they pass a softmax over the descriptions and are standardised for each
description over the videos; the best one is the prediction. The figure is macro-F1 within a set, averaged over sets
(`scoring.py`). What one sample is scored by (`top1`) looks at its own scores alone.

Where the sources are silent or differ:
* the paper scores in a second message of the second conversation; here one message asks for comparison and scores;
* the released code raises an error for a video with no more frames than are asked for, and repeats the last frame where
  equal steps do not end on it; here such a video shows every frame once, and steps are rounded so that first and last
  frame are always shown;
* a video that cannot be answered for (unreadable, refused) has -0.1 for all labels, as released, and then takes part in
  the standardisation; where no video of a set is answered, all are wrong.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple, cast

import numpy as np

from barista_bench.benchmarks.pooling import Floats, mean_figures
from barista_bench.benchmarks.vista.answers import HIGHEST, LOWEST, read_answer, write_answer
from barista_bench.benchmarks.vista.problem_sets import LabelledVideo, ProblemSet
from barista_bench.benchmarks.vista.release import VistaRelease
from barista_bench.benchmarks.vista.scoring import by_set, figures, groups, labels_of, match, resampled, scores_of
from barista_bench.core.choice_scores import read_scores
from barista_bench.core.options import Option
from barista_bench.core.prompt import BoxFormat, ImagePart, Prompt, TextPart
from barista_bench.core.prompt_sets import PromptTexts, packaged_prompts
from barista_bench.core.release_task import Release, ReleaseTask
from barista_bench.core.sampling import Sampling
from barista_bench.core.task import (
    Example,
    Explanation,
    ExplanationRow,
    Failure,
    FailureKind,
    Fields,
    FrameRef,
    Json,
    ParseError,
    Prediction,
    ProtocolName,
    ProtocolRule,
    Scored,
    SkippedExample,
)
from barista_bench.errors import DataError
from barista_bench.media.frame_choice import evenly_spaced
from barista_bench.media.video import video_facts
from barista_bench.metrics.sequence_matching.rescaling import STANDARDISE

if TYPE_CHECKING:
    from datasets import Features

_PACKAGE = "barista_bench.benchmarks.vista"
_WORDING = "matching"
"""All environments are asked in the same words, so that they can be compared."""

_RULES = (
    ProtocolRule(
        "nothing",
        "general problem sets",
        "9 descriptions and 9 videos (Minecraft: 4 and 4)",
        "8 classes and 8 videos in virtual home (table 3)",
    ),
    ProtocolRule(
        "nothing",
        "permutations of level 2 in virtual home",
        "33 problem sets",
        "32 problem sets (table 3)",
    ),
    ProtocolRule(
        "nothing",
        "standardisation",
        "sample standard deviation, plus 1e-6",
        "`standard deviation`, without saying which",
    ),
    ProtocolRule(
        "nothing",
        "Minecraft",
        "an older fork: frames again when scoring, 0 to 1, over the other videos; here as the other environments",
        "prompts of its own (figures 10 to 12)",
    ),
)

_KINDS: dict[str, FailureKind] = {
    "objects": "wrong_object",
    "object_properties": "wrong_attribute",
    "actions": "wrong_verb",
    "permutation": "wrong_order",
}
"""By theme, what a wrong description differs in; other themes mix several things."""


class Matching(ReleaseTask):
    """What the tasks share: they differ in the environment alone."""

    benchmark = "vista"
    version = 2
    primary = "macro_f1"
    sample_score = "top1"
    sampling = Sampling(frames=16)
    sampling_uses = frozenset({"frames"})
    prompt_package = _PACKAGE
    row_note = "frames of one video, the descriptions of one problem set, and which of them fit"
    protocol_rules = _RULES
    breakdown_keys = ("environment", "level", "type")
    whole_clusters = True
    options: ClassVar[Mapping[str, Option]] = {
        "conversation": Option(
            "two", "describe and match in two conversations, or in one", "prompt", ("two", "single")
        ),
        "standardise": Option(
            "label", "z-scores of a label over the videos, or another way to compare scores", "scores", STANDARDISE
        ),
        "one_shot": Option(True, "show the release's example of a description, where a set has one", "prompt"),
    }
    environment: ClassVar[str | None]
    """In the paper's words; None for all."""

    def __init__(
        self,
        prompts: PromptTexts | None = None,
        *,
        protocol: ProtocolName = "release",
        options: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(prompts or packaged_prompts(_PACKAGE, _WORDING), protocol=protocol, options=options)

    def features(self) -> Features:
        from datasets import Features, List, Value

        return Features(
            {
                "inputs": {
                    "problem_set": Value("string"),
                    "labels": List(Value("string")),
                    "descriptions": List(Value("string")),
                    "prompt_gpt": Value("string"),
                    "example_gpt": Value("string"),
                    "frame_count": Value("int32"),
                },
                "target": {"labels": List(Value("string"))},
                "metadata": {
                    **dict.fromkeys(("split", "environment", "type", "problem_set"), Value("string")),
                    **dict.fromkeys(("release_level", "release_type"), Value("string")),
                    **dict.fromkeys(("level", "sequence_length", "frames", "set_videos", "set_labels"), Value("int32")),
                    "shared_prefix": Value("int32"),
                    "frame_count": Value("int64"),
                    **dict.fromkeys(("fps", "seconds"), Value("float64")),
                },
                "evidence": {"file": Value("string"), "entry": Value("int64")},
            }
        )

    def examples(self, release: Release, sampling: Sampling) -> Iterator[Example | SkippedExample]:
        """Every video of every set, by the sets' ids and then as their files list them.

        Raises:
            DataError: the release is none of ViSTa, or `sampling.videos` names a video that it lacks.
        """
        if not isinstance(release, VistaRelease):
            raise DataError(f"{release.root}: is no release of ViSTa. Remedy: open it with this benchmark")
        _refuse_unknown(release, sampling)
        facts: dict[str, _Video | str] = {}
        for problem_set in release.sets.values():
            if self.environment not in (None, problem_set.environment):
                continue
            for video in problem_set.videos:
                if sampling.videos is not None and video.video_id not in sampling.videos:
                    continue
                if video.video_id not in facts:
                    facts[video.video_id] = _facts(release, video.video_id)
                known = facts[video.video_id]
                if isinstance(known, str):
                    yield SkippedExample(FrameRef(video.video_id, 0), known)
                else:
                    yield self._example(problem_set, video, known, sampling)

    def _example(self, own: ProblemSet, video: LabelledVideo, facts: _Video, sampling: Sampling) -> Example:
        shown = evenly_spaced(facts.frame_count, sampling.frames)
        return Example(
            example_id=f"{self.name}:{own.set_id}:{video.video_id}",
            benchmark=self.benchmark,
            task=self.name,
            label="; ".join(own.descriptions[label] for label in video.labels),
            frames=tuple(FrameRef(video.video_id, frame) for frame in shown),
            inputs={
                "problem_set": own.set_id,
                "labels": list(own.descriptions),
                "descriptions": list(own.descriptions.values()),
                "prompt_gpt": own.prompt,
                "example_gpt": own.example,
                "frame_count": len(shown),
            },
            target={"labels": list(video.labels)},
            metadata={
                "split": "test",
                "environment": own.environment,
                "level": own.level,
                "type": own.type,
                "problem_set": own.set_id,
                "sequence_length": own.level,
                "frames": sampling.frames,
                "set_videos": len(own.videos),
                "set_labels": len(own.descriptions),
                "release_level": own.release_level,
                "release_type": own.release_type,
                "shared_prefix": own.shared_prefix.get(video.labels[0]),
                "frame_count": facts.frame_count,
                "fps": facts.fps,
                "seconds": facts.seconds,
            },
            evidence={"file": f"tasks/{own.set_id}.yaml", "entry": video.entry},
        )

    def cluster(self, example: Example) -> str:
        """The problem set: its videos are scored together."""
        return str(example.inputs["problem_set"])

    def choices(self, example: Example) -> Mapping[str, str]:
        return dict(zip(labels_of(example.inputs), _descriptions(example.inputs), strict=True))

    def prompt(self, example: Example, boxes: BoxFormat) -> Prompt:
        """Describe the frames, or (`conversation=single`) describe, compare and score."""
        inputs = example.inputs
        shown = inputs["example_gpt"] if self.option("one_shot") else None
        values = {
            "frame_count": str(inputs["frame_count"]),
            "task": str(inputs["prompt_gpt"]).strip(),
            "example": self.prompts.text("example", example=str(shown).strip()) + "\n" if shown else "",
        }
        system, user = self.prompts.fill(**values)
        if self.option("conversation") == "single":
            user = self.prompts.text("single", **values, summaries=self._summaries(example))
        return Prompt(system, (*map(ImagePart, range(len(example.frames))), TextPart(user)))

    def follow_up(self, example: Example, answers: tuple[str, ...], boxes: BoxFormat) -> Prompt | None:
        """After the description: compare it with the summaries and score them, without the frames.

        A model that scores the descriptions at once, as dual encoders do, has answered already.
        """
        if self.option("conversation") == "single" or len(answers) > 1:
            return None
        if read_scores(answers[0], labels_of(example.inputs)) is not None:
            return None
        text = self.prompts.text("match", description=answers[0].strip(), summaries=self._summaries(example))
        return Prompt(self.prompts.fill()[0], (TextPart(text),))

    def _summaries(self, example: Example) -> str:
        return "\n".join(f"- ({label}) {text}" for label, text in self.choices(example).items())

    def parse(self, text: str, inputs: Fields, boxes: BoxFormat) -> Prediction | ParseError:
        """The scores of a dual encoder, or those that a generative model wrote: see `answers.read_answer`."""
        return read_answer(text, labels_of(inputs))

    def score(self, example: Example, prediction: Prediction | None) -> dict[str, float]:
        """By the sample's own scores: `top1` is 1 where a true description has the highest one, shared by those that
        tie with it; `strict_format` whether the answer can be read strictly. Both are 0 without a readable answer.
        """
        if prediction is None:
            return {"top1": 0.0, "strict_format": 0.0}
        best, truth = _best(prediction), _truth(example)
        return {
            "top1": len(truth & set(best)) / len(best),
            "strict_format": float(prediction.value["strict"] is not None),
        }

    def aggregate(self, samples: Sequence[Scored]) -> dict[str, Json]:
        """`macro_f1` over problem sets by the released reading, with the paper's interval over sets, by the strict
        reading, and of the majority baseline; the same by environment, level and type; means of the samples' scores.
        """
        if not samples:
            return {}
        sets = [match(own, str(self.option("standardise"))) for own in by_set(samples).values()]
        by = {
            f"per_{key}": {name: figures(own) for name, own in groups(sets, key).items()} for key in self.breakdown_keys
        }
        ones = np.ones((1, len(samples)))
        return {**figures(sets), **{name: float(value[0]) for name, value in self._means(samples, ones).items()}, **by}

    def resampled(self, samples: Sequence[Scored], weights: Floats) -> dict[str, Floats]:
        drawn = resampled(samples, weights, str(self.option("standardise")))
        return {**drawn, **self._means(samples, weights)}

    def _means(self, samples: Sequence[Scored], weights: Floats) -> dict[str, Floats]:
        scores = [self.score(sample.example, sample.prediction) for sample in samples]
        return mean_figures(scores, [sample.prediction is None for sample in samples], weights)

    def facets(self, example: Example) -> Fields:
        """Beside metadata: whether several descriptions fit."""
        return {"fitting_descriptions": len(_truth(example))}

    def failures(self, example: Example, prediction: Prediction | None) -> tuple[Failure, ...]:
        """By the sample's own scores: another description is best, or others are as good as the true one."""
        if prediction is None:
            return self.unreadable(example)
        best, truth = set(_best(prediction)), _truth(example)
        if best <= truth:
            return ()
        if best & truth:
            return (Failure("duplicate"),)
        return (Failure(_KINDS.get(str(example.metadata["type"]), "wrong_option")),)

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        """By the sample's own scores, which the other videos of its set may turn."""
        texts, truth = self.choices(example), _truth(example)
        scores = (scores_of(prediction, "scores") if prediction else None) or {}
        best = _best(prediction) if prediction else []

        def row(verdict: str, label: str) -> ExplanationRow:
            given = f"{scores[label]:.4g}" if label in scores else "no score"
            return ExplanationRow(verdict, f"{label} [{given}]: {texts[label]}")  # type: ignore[arg-type]

        hits = [row("hit", label) for label in texts if label in truth and label in best]
        misses = [row("miss", label) for label in texts if label in truth and label not in best]
        return Explanation((*hits, *misses, *(row("wrong", label) for label in best if label not in truth)))

    def reference_answer(self, example: Example, boxes: BoxFormat) -> str:
        """All to the true description: to the first of several, since only one may be best."""
        first = cast("Sequence[str]", example.target["labels"])[0]
        return self._all_to(example, first)

    def random_answer(self, example: Example, rng: random.Random, boxes: BoxFormat) -> str:
        return self._all_to(example, rng.choice(labels_of(example.inputs)))

    def prior_answer(self, example: Example, others: Sequence[Example], boxes: BoxFormat) -> str:
        """The label that fits most of the set's other videos; of several, the first.

        Where every label fits one video, as in permutations, it is never this one's: the baseline of the paper, which
        also counts the video itself, is the figure `majority_f1`.
        """
        own = example.inputs["problem_set"]
        fitting = (label for other in others if other.inputs["problem_set"] == own for label in _truth(other))
        counts = Counter(fitting)
        return self._all_to(example, max(labels_of(example.inputs), key=lambda label: counts[label]))

    @staticmethod
    def _all_to(example: Example, chosen: str) -> str:
        return write_answer({label: HIGHEST if label == chosen else LOWEST for label in labels_of(example.inputs)})


def _descriptions(inputs: Fields) -> list[str]:
    return list(cast("Sequence[str]", inputs["descriptions"]))


def _truth(example: Example) -> set[str]:
    return set(cast("Sequence[str]", example.target["labels"]))


def _best(prediction: Prediction) -> list[str]:
    """The labels with the highest score that was given, in the order of the question."""
    scores = scores_of(prediction, "scores") or {}
    top = max(scores.values())
    return [label for label, score in scores.items() if score == top]


def _refuse_unknown(release: VistaRelease, sampling: Sampling) -> None:
    known = {video.video_id for problem_set in release.sets.values() for video in problem_set.videos}
    absent = sorted(set(sampling.videos or ()) - known)
    if absent:
        raise DataError(f"{release.root}: no video {absent[0]!r}. Remedy: choose one of its {len(known)} videos")


class _Video(NamedTuple):
    """What is kept of a video while all sets are gone through: `seconds` from its first frame to its last, if known."""

    frame_count: int
    fps: float
    seconds: float | None


def _facts(release: VistaRelease, video_id: str) -> _Video | str:
    """A video's facts, or why it cannot be used."""
    try:
        path = release.video_path(video_id)
        if not path.exists():
            return "the video is absent"
        found = video_facts(path)
    except DataError as error:  # a VideoError too
        return f"the video cannot be used: {error}"
    return _Video(found.frame_count, found.fps, found.duration if found.timed else None)
