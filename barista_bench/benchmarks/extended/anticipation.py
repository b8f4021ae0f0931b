"""Anticipation: which activity begins 1, 2 or 5 seconds after the shown frames?

The model sees frames from the seconds before a moment, but no frame at the moment or later. It ranks up to five names
of its choice. The moment lies a whole number of seconds, the horizon, before an activity begins. Each activity gives at
most one question per horizon. Events between the moment and the activity do not matter. `activity_names.py` describes
the scores.
"""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from barista_bench.benchmarks.barista.activity import named_activities, unnamed_activities
from barista_bench.benchmarks.extended.activity_names import (
    MAX_NAME,
    Guesses,
    NamedActivity,
    NamedActivityTask,
    made_up_names,
    usual_activities,
)
from barista_bench.benchmarks.kinds.frames import FrameMetadata, frame_metadata
from barista_bench.benchmarks.parsing import is_text, last_array
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.deriving import Candidate, Vocabulary
from barista_bench.core.example import (
    Evidence,
    Example,
    Fields,
    FrameRef,
    Inputs,
    Int64,
    ParseError,
    Prediction,
    SkippedExample,
)
from barista_bench.core.options import Count, Sampling, Seconds
from barista_bench.core.prompt import Prompt
from barista_bench.media.frame_choice import evenly_spaced
from barista_bench.scene_graph import VideoGraph

HORIZONS = (1, 2, 5)
"""Seconds from the moment to the beginning of the activity."""
GUESSES = 5


class AnticipationInputs(Inputs):
    """Durations are in seconds.

    `ahead` is the time from the moment to the activity, and `span` is the time that the frames cover.
    """

    ahead: int
    span: float
    n_frames: int


class AnticipationMetadata(FrameMetadata):
    """`moment` is the first frame that is not shown. The segment's frames are as in the file."""

    horizon: int
    moment: Int64
    segment_start: Int64
    segment_end: Int64


class AnticipationEvidence(Evidence):
    """The activity's row in the annotation file."""

    activity_row: Int64


@dataclass(frozen=True, slots=True)
class AnticipationSampling(Sampling):
    """The sampling of moments before activities.

    Args:
        frames: number of frames of an example.
        seconds: length of the part that is shown before the moment; None shows all of the video before the moment.
    """

    frames: Count = 1
    seconds: Seconds | None = None


class Anticipation(NamedActivityTask[AnticipationSampling]):
    name = upstream_name = "anticipation"
    version = 2
    primary = "top_1"
    primary_note = "Fraction of moments whose next activity is the first guess."
    sample_score = "top_1"
    decided_by = "mean"
    guesses: ClassVar[dict[str, int]] = {"top_1": 1, "top_5": GUESSES}
    sampling = AnticipationSampling(limit=500, seed=42, frames=8, seconds=4.0)
    row_note = "frames before a moment, and the activity that begins 1, 2 or 5 seconds after it"
    answer_note = "JSON: up to five activities in own words, the likeliest first"
    breakdown_keys: ClassVar[tuple[str, ...]] = ("split", "preparation", "horizon")

    inputs_type = AnticipationInputs
    metadata_type = AnticipationMetadata
    evidence_type = AnticipationEvidence

    def candidates(self, video: VideoGraph, sampling: AnticipationSampling) -> Iterator[Candidate | SkippedExample]:
        """Yield the activities in the order of the file, each once per horizon."""
        yield from unnamed_activities(video)
        first, stop = sampling.frame_range or (0, video.frame_count)
        segments = named_activities(video)
        starting_classes = defaultdict(set)
        for segment in segments:
            starting_classes[segment.start].add(segment.class_id)
        for number, segment in enumerate(segments):
            if not first <= segment.start < stop:
                continue
            for horizon in HORIZONS:
                window = _frames_before(video, segment.start, horizon, sampling)
                if window is None or len(starting_classes[segment.start]) > 1:
                    what = "another one begins with it" if window else "too little is filmed before that"
                    about = f"activities[{segment.row}], {horizon} s ahead"
                    yield SkippedExample(FrameRef(video.video_id, segment.start), what, about)
                elif first <= window[0]:
                    yield Candidate(video.video_id, window[0], str(horizon), number, (horizon,))

    def build(
        self, video: VideoGraph, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: AnticipationSampling
    ) -> Iterator[Example]:
        segments = named_activities(video)
        for candidate in candidates:
            segment, (horizon,) = segments[candidate.item], candidate.numbers
            window = _frames_before(video, segment.start, horizon, sampling) or range(0)
            frames = [window[index] for index in evenly_spaced(len(window), sampling.frames)]
            reference = self.reference(str(segment.class_id), vocabulary)
            yield self.new_example(
                f"{self.name}:{video.video_id}:segment_{segment.start}_{segment.end}"
                f":class_{reference.class_id}:idx_{candidate.item}:in_{horizon}_s",
                video.video_id,
                frames,
                label=reference.activity,
                inputs=AnticipationInputs(horizon, round(len(window) / _fps(video), 3), len(frames)),
                target=reference,
                metadata={
                    **frame_metadata(video, frames[0]),
                    "horizon": horizon,
                    "moment": window.stop,
                    "segment_start": segment.start,
                    "segment_end": segment.end,
                },
                evidence=AnticipationEvidence(segment.row),
            )

    def prompt(self, example: Example, box_format: BoxFormat) -> Prompt:
        inputs = AnticipationInputs.of(example)
        count = str(inputs.n_frames)
        return self.prompts.prompt(
            inputs.n_frames, frame_count=count, last=count, span=f"{inputs.span:g}", ahead=str(inputs.ahead)
        )

    def parse(self, text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
        """Return the first five different names in the last JSON list that contains a name. Drop all other entries."""
        entries = last_array(text, lambda array: bool(_read_guesses(array)))
        if entries is None:
            return ParseError("the answer holds no JSON list with the name of an activity")
        guesses = _read_guesses(entries)
        return Prediction(Guesses(guesses).write(), dropped=len(entries) - len(guesses))

    def answer_schema(self, example: Example) -> Fields:
        return {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": GUESSES}

    def reference_answer(self, example: Example, box_format: BoxFormat) -> str:
        return json.dumps([NamedActivity.of(example).activity])

    def random_answer(self, example: Example, rng: random.Random, box_format: BoxFormat) -> str:
        return json.dumps(rng.sample(made_up_names(), GUESSES))

    def prior_answer(self, example: Example, others: Sequence[Example], box_format: BoxFormat) -> str:
        """Return the five activities that begin most often in other videos."""
        return json.dumps(usual_activities(others)[:GUESSES])


def _read_guesses(entries: list[object]) -> list[str]:
    ranked: dict[str, str] = {}
    for name in (" ".join(entry.split()) for entry in entries if is_text(entry)):
        if 0 < len(name) <= MAX_NAME:
            ranked.setdefault(name.casefold(), name)
    return list(ranked.values())[:GUESSES]


def _fps(video: VideoGraph) -> float:
    return video.video.fps or 0.0


def _frames_before(video: VideoGraph, start: int, horizon: int, sampling: AnticipationSampling) -> range | None:
    """Return the frames of the part before the moment: the last `sampling.seconds`, or all; None for too few frames.

    The moment is the last frame that lies at least `horizon` seconds before the frame `start`. It is not shown.
    """
    moment = math.floor(start - horizon * _fps(video))
    first = 0 if sampling.seconds is None else moment - round(sampling.seconds * _fps(video))
    is_filmed = _fps(video) > 0 and first >= 0 and moment - first >= sampling.frames
    return range(first, moment) if is_filmed else None
