"""Step segmentation: which steps of the procedure does a clip show, and when?

The model sees evenly spaced frames with their times, and the names of all steps of the set. It lists [step, start, end]
with times in seconds. The score covers every frame of the clip (`metrics/temporal_segmentation`), although the model
sees only a few frames. Clips are complete videos, or consecutive pieces of `StepSampling.seconds`.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import msgspec

from barista_bench.benchmarks.kinds.frames import FrameMetadata, frame_metadata
from barista_bench.benchmarks.kinds.spans import read_seconds, timed_frames
from barista_bench.benchmarks.parsing import MAX_ENTRIES, NOTHING_READ, last_array, rows_schema
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.deriving import Candidate, GraphTask, Vocabulary
from barista_bench.core.display import Explanation
from barista_bench.core.example import (
    Evidence,
    Example,
    Fields,
    FrameRef,
    Inputs,
    Int64,
    Json,
    ParseError,
    Prediction,
    Scored,
    SkippedExample,
    Target,
    TypedFields,
)
from barista_bench.core.options import Count, Sampling, Seconds
from barista_bench.core.prompt import Prompt, TextPart
from barista_bench.core.remembering import remember
from barista_bench.core.statistics import SumStatistics
from barista_bench.errors import DataError
from barista_bench.media.frame_choice import evenly_spaced
from barista_bench.metrics.temporal_segmentation.scoring import (
    OVERLAPS,
    LabelledRun,
    clip_sums,
    compute_metrics,
    matched_segments,
    segments_of,
)
from barista_bench.scene_graph import Segment, VideoGraph

MOST_STRETCHES = 8
"""Maximum number of ranges in a random answer."""
MAX_CLIP = 10**7
"""Maximum number of frames of a clip: four days at 30 frames per second."""
PLACES = 100
"""Number of positions along a clip at which the usual step is determined."""


class StepInputs(Inputs):
    """`steps` are the names of all steps of the set. `times` are the shown frames' times in seconds of the clip."""

    steps: Annotated[list[str], msgspec.Meta(min_length=1)]
    times: list[float]
    frame_count: Annotated[int, msgspec.Meta(ge=1, le=MAX_CLIP, extra={"dtype": "int64"})]
    fps: Annotated[float, msgspec.Meta(gt=0, le=1000)]


class TimedStep(TypedFields):
    """A step on the clip's frames [start, end)."""

    step: str
    start: Int64
    end: Int64


class TimedSteps(Target):
    """The steps of a target or a prediction.

    If answered steps overlap, the step later in the list counts. True steps never overlap.
    """

    segments: list[TimedStep]


class StepMetadata(FrameMetadata):
    """The clip covers the frames [clip_start, clip_end) of the video."""

    clip_start: Int64
    clip_end: Int64


class StepEvidence(Evidence):
    """Rows of the annotation file."""

    step_rows: list[Int64]


@dataclass(frozen=True, slots=True)
class StepSampling(Sampling):
    """The sampling of clips with process steps.

    Args:
        frames: number of frames of an example.
        seconds: duration of a clip; None uses complete videos.
    """

    frames: Count = 1
    seconds: Seconds | None = None


class StepSegmentation(GraphTask[StepSampling]):
    benchmark = "extended"
    name = upstream_name = "step_segmentation"
    version = 2
    primary = sample_score = "f1_50"
    primary_note = "F1 of steps over all clips; right when name and time agree, with an overlap of half or more."
    sampling = StepSampling(limit=300, seed=42, frames=32)
    prompt_package = "barista_bench.benchmarks.extended"
    row_note = "frames of a clip, and the steps of the procedure with their times"
    answer_note = "JSON: steps with their start and end"

    inputs_type = StepInputs
    target_type = TimedSteps
    metadata_type = StepMetadata
    evidence_type = StepEvidence
    layers = ("process_steps",)

    def vocabulary(self, video: VideoGraph, sampling: StepSampling) -> Vocabulary:
        """Return ("step", name) pairs of the sampled videos."""
        steps = video.steps() if sampling.is_selected(video) else []
        return tuple(dict.fromkeys(("step", name) for step in steps if (name := _clean_name(step.name))))

    def candidates(self, video: VideoGraph, sampling: StepSampling) -> Iterator[Candidate | SkippedExample]:
        """Yield, in order, the clips that have process steps, all with names and without overlap."""
        low, high = sampling.frame_range or (0, video.frame_count)
        for clip in _clips(video, sampling):
            if low <= clip.start and clip.stop <= high:
                reason = _clip_problem(video, clip, sampling)
                if reason:
                    yield SkippedExample(FrameRef(video.video_id, clip.start), reason)
                else:
                    yield Candidate(video.video_id, clip.start)

    def build(
        self, video: VideoGraph, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: StepSampling
    ) -> Iterator[Example]:
        names = sorted(name for _, name in vocabulary)
        clips = {clip.start: clip for clip in _clips(video, sampling)}
        for candidate in candidates:
            clip, fps = clips[candidate.frame], video.video.fps or 0.0
            offsets = evenly_spaced(len(clip), sampling.frames)
            steps = _steps_in(video, clip)
            segments = [
                TimedStep(
                    _clean_name(step.name), max(step.start - clip.start, 0), min(step.end - clip.start, len(clip))
                )
                for step in steps
            ]
            yield self.new_example(
                f"{self.name}:{video.video_id}:frames_{clip.start}_{clip.stop}",
                video.video_id,
                (clip[index] for index in offsets),
                label=f"{len(segments)} steps",
                inputs=StepInputs(names, [round(index / fps, 3) for index in offsets], len(clip), fps),
                target=TimedSteps(segments),
                metadata={**frame_metadata(video, clip.start), "clip_start": clip.start, "clip_end": clip.stop},
                evidence=StepEvidence([step.row for step in steps]),
            )

    def prompt(self, example: Example, box_format: BoxFormat) -> Prompt:
        inputs = StepInputs.of(example)
        system, user = self.prompts.fill(
            steps="\n".join(f"  {name}" for name in inputs.steps),
            frame_count=str(len(inputs.times)),
            duration=f"{inputs.frame_count / inputs.fps:.1f}",
        )
        frames = timed_frames(f"{time:.2f}" for time in inputs.times)
        return Prompt(system, (*frames, TextPart(f"\n{user}")))

    def parse(self, text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
        """Return the steps in the last JSON list that is empty or contains only lists.

        An entry counts if it has a step's name and a time range in the clip. Names are compared without case and extra
        white space. Times are rounded to frames and cut to the clip.
        """
        question = StepInputs.read(inputs)
        entries = last_array(text, lambda array: all(isinstance(entry, list) for entry in array))
        if entries is None:
            return ParseError("the answer holds no JSON list of [step, start, end] entries")
        steps = [
            step for entry in entries[:MAX_ENTRIES] if isinstance(entry, list) and (step := _read_step(entry, question))
        ]
        if entries and not steps:
            return NOTHING_READ
        return Prediction(TimedSteps(steps).write(), dropped=len(entries) - len(steps))

    def answer_schema(self, example: Example) -> Fields:
        entry: list[Json] = [{"enum": StepInputs.of(example).steps}, {"type": "number"}, {"type": "number"}]
        return rows_schema(entry)

    def statistics(self, samples: Sequence[Scored]) -> SumStatistics:
        """Return frame accuracy, edit score, F1 at overlaps of 10, 25 and 50 percent, and coverage."""
        rows = [
            clip_sums(
                _frame_labels(sample.prediction.value, sample.example) if sample.prediction else None,
                _frame_labels(sample.example.target, sample.example),
            )
            for sample in samples
        ]
        scores = ("frame_accuracy", "edit", *(f"f1_{percent}" for percent in OVERLAPS))
        return SumStatistics(rows, compute_metrics, sample_scores={name: name for name in scores})

    def as_target(self, example: Example, prediction: Prediction) -> TimedSteps | None:
        answered_steps = TimedSteps.read(prediction.value)
        return answered_steps if answered_steps.segments else None

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        """Explain with the true steps matched at an overlap of half or more, the missed steps, and other answers."""
        fps = StepInputs.of(example).fps
        reference = segments_of(_frame_labels(example.target, example))
        answered_steps = segments_of(_frame_labels(prediction.value, example)) if prediction else []
        matches = matched_segments(answered_steps, reference, max(OVERLAPS))
        matched_references = set(matches.values())
        return Explanation.of(
            (_segment_text(segment, fps) for index, segment in enumerate(reference) if index in matched_references),
            (_segment_text(segment, fps) for index, segment in enumerate(reference) if index not in matched_references),
            (_segment_text(segment, fps) for index, segment in enumerate(answered_steps) if index not in matches),
        )

    def reference_answer(self, example: Example, box_format: BoxFormat) -> str:
        return _steps_json(TimedSteps.of(example).segments, StepInputs.of(example).fps)

    def random_answer(self, example: Example, rng: random.Random, box_format: BoxFormat) -> str:
        """Return up to eight equally long ranges of random steps.

        A frame is right with probability 1 / number of steps.
        """
        inputs = StepInputs.of(example)
        count = rng.randint(1, MOST_STRETCHES)
        ends = [inputs.frame_count * number // count for number in range(count + 1)]
        stretches = [TimedStep(rng.choice(inputs.steps), start, end) for start, end in pairwise(ends)]
        return _steps_json(stretches, inputs.fps)

    def prior_answer(self, example: Example, others: Sequence[Example], box_format: BoxFormat) -> str:
        """Return, for each hundredth of the clip, the most frequent step of other videos, or no step."""
        inputs = StepInputs.of(example)
        segments = segments_of(usual_steps(others))
        count = inputs.frame_count
        return _steps_json(
            [TimedStep(item.label, item.start * count // PLACES, item.stop * count // PLACES) for item in segments],
            inputs.fps,
        )


@remember
def usual_steps(examples: Sequence[Example]) -> list[str | None]:
    """Return the most frequent step at each hundredth of a clip; None means no step. Ties are decided by name."""
    clips = [_frame_labels(example.target, example) for example in examples]
    usual_labels = []
    for hundredth in range(PLACES if clips else 0):
        counts = Counter(labels[(2 * hundredth + 1) * len(labels) // (2 * PLACES)] for labels in clips)
        usual_labels.append(min(counts, key=lambda label: (-counts[label], label or "")))
    return usual_labels


def _clips(video: VideoGraph, sampling: StepSampling) -> list[range]:
    """Return the frames of consecutive clips. The last clip may be shorter. A video without fps is a single clip."""
    seconds, fps, count = sampling.seconds, video.video.fps, video.frame_count
    length = max(1, round(seconds * fps)) if seconds and fps else count
    return [range(start, min(start + length, count)) for start in range(0, count, length)]


def _steps_in(video: VideoGraph, clip: range) -> list[Segment]:
    return sorted(video.steps((clip.start, clip.stop)), key=lambda step: step.start)


def _clip_problem(video: VideoGraph, clip: range, sampling: StepSampling) -> str | None:
    """Return the reason why a clip cannot become an example, or None."""
    steps = _steps_in(video, clip)
    if not video.video.fps or not steps:
        return "no process step in the clip" if video.video.fps else "the video has no fps"
    if len(clip) < sampling.frames:
        return f"the clip has {len(clip)} frames, and {sampling.frames} are shown"
    for step in steps:
        if not _clean_name(step.name):
            return f"process_steps[{step.row}] has no name"
    for step, following in pairwise(steps):
        if following.start < step.end:
            return f"process_steps[{step.row}] and process_steps[{following.row}] overlap"
    return None


def _clean_name(text: str) -> str:
    return " ".join(text.split())


def _read_step(entry: list[object], inputs: StepInputs) -> TimedStep | None:
    """Return an entry [step, start, end] in frames, or None if the entry is invalid or lies outside the clip."""
    if len(entry) != 3 or not isinstance(entry[0], str):
        return None
    names = {name.casefold(): name for name in inputs.steps} | {name: name for name in inputs.steps}
    text, start, end = _clean_name(entry[0]), read_seconds(entry[1]), read_seconds(entry[2])
    name = names.get(text, names.get(text.casefold()))
    if name is None or start is None or end is None:
        return None
    first, stop = round(start * inputs.fps), min(round(end * inputs.fps), inputs.frame_count)
    return TimedStep(name, first, stop) if first < stop else None


def _frame_labels(fields: Fields, example: Example) -> list[str | None]:
    """Return the step of each frame of the clip; None means no step. Raises DataError for a step outside the clip."""
    labels: list[str | None] = [None] * StepInputs.of(example).frame_count
    for segment in TimedSteps.read(fields).segments:
        if not 0 <= segment.start < segment.end <= len(labels):
            what = f"a step from frame {segment.start} to {segment.end} of {len(labels)}"
            raise DataError(f"{example.example_id}: {what}. Fix: build the dataset again")
        labels[segment.start : segment.end] = [segment.step] * (segment.end - segment.start)
    return labels


def _steps_json(steps: Sequence[TimedStep], fps: float) -> str:
    return json.dumps([[step.step, round(step.start / fps, 3), round(step.end / fps, 3)] for step in steps])


def _segment_text(segment: LabelledRun, fps: float) -> str:
    return f"{segment.label}, {segment.start / fps:.1f}-{segment.stop / fps:.1f} s"
