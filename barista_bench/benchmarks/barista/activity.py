"""Activity recognition (paper, sections 4.2.2 and A.3.1; released rules, docs/upstream/barista.md).

The model sees a few evenly spaced frames of one activity segment, and chooses the segment's label from lettered
choices. The score is accuracy; an unreadable answer is wrong.

In this task a segment includes its `end` frame, as in the release; everywhere else segments are half-open. Two segments
that share only that frame do not overlap. Differences between release and paper are in `protocols.yaml`.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise, zip_longest
from typing import Any

from barista_bench.aids.views import VIEWS
from barista_bench.benchmarks.barista.activity_choices import (
    ActivityChoice,
    ActivityInputs,
    ActivitySampling,
    ActivityTarget,
    released_verb,
    sample_choices,
)
from barista_bench.benchmarks.barista.clip_aids import ActivityAids
from barista_bench.benchmarks.barista.common import PROMPT_PACKAGE, even_places, frozen_sentence
from barista_bench.benchmarks.kinds.choice import ChoiceTask, ChosenLetter, read_choice
from barista_bench.benchmarks.kinds.frames import FrameMetadata, frame_metadata
from barista_bench.benchmarks.parsing import MAX_ANSWER
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.deriving import Candidate, GraphTask, Vocabulary
from barista_bench.core.display import AnswerFailure, Explanation
from barista_bench.core.example import (
    Evidence,
    Example,
    Fields,
    FrameRef,
    Int64,
    ParseError,
    Prediction,
    Scored,
    SkippedExample,
    evidence_objects,
    read_scores,
)
from barista_bench.core.options import packaged_protocol
from barista_bench.core.prompt import Prompt
from barista_bench.core.remembering import remember
from barista_bench.core.statistics import Row, SumStatistics
from barista_bench.metrics.choice_accuracy.inputs import ChoiceQuestion, as_questions
from barista_bench.metrics.choice_accuracy.scoring import compute_metrics, question_sums, tables
from barista_bench.scene_graph import Segment, VideoGraph

FEWEST_CHOICES = 4
"""Fewest choices that a question may have."""

NO_LETTER = ParseError("no line `ANSWER: <letter>` names one of the choices")
_MARKER = re.compile(r"\b(?:final\s+)?answer\s*:\s*", re.IGNORECASE)
_BEFORE = re.compile(r"(?:answer\s*+:\s*+)?(?:<CHOICE_ID>\s*+)?<?(?:CHOICE_ID[_:\s]*+|CHOICE_)?\s*+", re.IGNORECASE)
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_TAG = re.compile(r"<CHOICE_ID[_:\s]++([A-Za-z0-9_-]++)\s*+>", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"<\s*CHOICE_ID\s*>|CHOICE_(?:ID[_: ])?", re.IGNORECASE)
"""Parts of the prompt's placeholder that a model may copy into its answer."""


class ActivityMetadata(FrameMetadata):
    """The segment's start and end are as in the file. `segment_frames` counts its frames by the release's rule."""

    verb: str
    segment_start: Int64
    segment_end: Int64
    segment_frames: int
    segment_seconds: float
    activity_index: int
    same_verb_distractors: int


class ActivityEvidence(Evidence):
    """The objects that hands act on during the segment, and rows of the annotation file."""

    object_ids: list[str]
    activity_row: Int64
    relation_rows: list[Int64]


class Activity(ChoiceTask, GraphTask[ActivitySampling]):
    benchmark = "barista"
    name = "activity"
    upstream_name = "activity_mcq"
    version = 3
    sampling = ActivitySampling(limit=500, seed=42, frames=4, choices=25, per_class=20, same_verb=4)
    prompt_package = PROMPT_PACKAGE
    row_note = "frames of one activity, its lettered choices, and the right one"
    options = packaged_protocol(PROMPT_PACKAGE, name)

    inputs_type = ActivityInputs
    target_type = ActivityTarget
    metadata_type = ActivityMetadata
    evidence_type = ActivityEvidence
    layers = ("activities",)
    aids = ActivityAids(default=("zoom", "objects"), optional=("marks",), views=VIEWS)

    def span(self, video: VideoGraph, candidate: Candidate, sampling: ActivitySampling) -> tuple[int, int]:
        segment = named_activities(video)[candidate.item]
        return segment.start, segment.end

    def vocabulary(self, video: VideoGraph, sampling: ActivitySampling) -> Vocabulary:
        """Return (class id, name) pairs. The choices are drawn from the classes of all sampled videos."""
        if not sampling.is_selected(video):
            return ()
        return tuple(dict.fromkeys((str(segment.class_id), segment.name) for segment in named_activities(video)))

    def candidates(self, video: VideoGraph, sampling: ActivitySampling) -> Iterator[Candidate | SkippedExample]:
        """Yield the segments that have a name and are long enough, in the order of the file.

        Segments that overlap another segment are skipped, unless the paper's protocol applies.
        """
        first, stop = sampling.frame_range or (0, video.frame_count)
        yield from unnamed_activities(video)
        crowded = frozenset() if self.follows_paper else _overlapping_places(named_activities(video))
        for index, segment in enumerate(named_activities(video)):
            frames = _segment_frames(video, segment)
            is_long_enough = len(frames) >= sampling.frames and first <= frames.start and frames.stop <= stop
            if is_long_enough and index not in crowded:
                yield Candidate(video.video_id, _shown_frames(frames, sampling)[0], str(segment.class_id), index)

    def select(
        self, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: ActivitySampling
    ) -> Iterator[Candidate | SkippedExample]:
        """Yield up to `per_class` candidates of each class, alternating between its videos.

        If there are too few choices, all candidates are skipped.
        """
        classes = len({class_id for class_id, _ in vocabulary})
        count = min(sampling.choices or classes, classes)
        if count < FEWEST_CHOICES:
            for candidate in candidates:
                frame = FrameRef(candidate.video_id, candidate.frame)
                yield SkippedExample(frame, f"{count} choices are fewer than {FEWEST_CHOICES}")
        else:
            yield from _cap_by_class(candidates, sampling)

    def build(
        self, video: VideoGraph, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: ActivitySampling
    ) -> Iterator[Example]:
        # If a class has several names, the first one counts.
        names = dict(reversed(vocabulary))
        segments = named_activities(video)
        for candidate in candidates:
            yield self._example(video, segments[candidate.item], candidate.item, names, sampling)

    def _example(
        self, video: VideoGraph, segment: Segment, index: int, names: Mapping[str, str], sampling: ActivitySampling
    ) -> Example:
        class_id, frames = str(segment.class_id), _segment_frames(video, segment)
        indices = _shown_frames(frames, sampling)
        seed = "" if sampling.seed is None else f"{sampling.seed}:"
        rng = random.Random(f"{seed}{video.video_id}:{segment.start}:{segment.end}")  # noqa: S311  (the released seed)
        choices = sample_choices(class_id, names, sampling, rng)
        (reference,) = (choice for choice in choices if choice.class_id == class_id)
        verb = released_verb(names[class_id])
        contacts = video.hand_contacts((frames.start, frames.stop))
        return self.new_example(
            f"{self.upstream_name}:{video.video_id}:segment_{segment.start}_{segment.end}:class_{class_id}:idx_{index}",
            video.video_id,
            indices,
            label=names[class_id],
            inputs=ActivityInputs(choices),
            target=ActivityTarget(reference.choice_id, class_id),
            metadata={
                **frame_metadata(video, indices[0]),
                "segment_start": segment.start,
                "segment_end": segment.end,
                "segment_frames": len(frames),
                "segment_seconds": len(frames) / video.video.fps if video.video.fps else 0.0,
                "activity_index": index,
                "verb": reference.verb,
                "same_verb_distractors": sum(
                    released_verb(names[choice.class_id]) == verb for choice in choices if choice is not reference
                ),
            },
            evidence={
                "object_ids": sorted({contact.object.id for contact in contacts}),
                "activity_row": segment.row,
                "relation_rows": sorted({contact.row for contact in contacts}),
            },
        )

    def prompt(self, example: Example, box_format: BoxFormat) -> Prompt:
        count = len(example.frames)
        choices = "\n".join(f"{label}. {text}" for label, text in self.choices(example).items())
        return self.prompts.prompt(count, frame_count=str(count), last=str(count), choices=choices)

    def frozen_question(self, example: Example) -> str:
        return frozen_sentence(self, frame_count=str(len(example.frames)))

    def choices(self, example: Example) -> Mapping[str, str]:
        return {choice.choice_id: choice.text for choice in ActivityInputs.of(example).choices}

    def parse(self, text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
        """Return the choice that an answer names.

        The release's protocol has its own rule. The paper's protocol uses `read_choice`.
        """
        choices = {choice.choice_id: choice.text for choice in ActivityInputs.read(inputs).choices}
        if not self.follows_paper:
            return read_released(text, list(choices))
        return read_choice(_PLACEHOLDER.sub("", text), choices)

    def statistics(self, samples: Sequence[Scored]) -> SumStatistics:
        """Return accuracy over all samples and over readable samples, by class and by verb, and the confusions."""
        letters = (s.prediction and ChosenLetter.read(s.prediction.value).choice_id for s in samples)
        rows = [
            question_sums(_question(s.example)._replace(prediction=letter))
            for s, letter in zip(samples, letters, strict=True)
        ]
        return SumStatistics(rows, compute_metrics, sample_scores={"accuracy": "accuracy"}, tables=_defined_tables)

    @property
    def counts_provider_errors(self) -> bool:
        return not self.follows_paper

    def facets(self, example: Example) -> Fields:
        return {"activity": example.label}

    def mistakes(self, example: Example, prediction: Prediction) -> Iterable[AnswerFailure]:
        """Return how the chosen activity differs from the right activity: in its verb, its object, or both."""
        reference, answer = _reference_and_answer(example, prediction)
        if answer is None:
            return (AnswerFailure("format", evidence_objects(example)),)
        if reference == answer:
            return ()
        objects = evidence_objects(example)
        verb = (AnswerFailure("wrong_verb", objects),) if reference.verb != answer.verb else ()
        noun = (
            (AnswerFailure("wrong_object", objects),) if not verb or _noun(reference.text) != _noun(answer.text) else ()
        )
        return (*verb, *noun)

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        reference, answer = _reference_and_answer(example, prediction)
        truth = f"{reference.choice_id}: {reference.text}"
        if reference == answer:
            return Explanation.of([truth])
        note = "same verb, another object" if answer and answer.verb == reference.verb else "another verb"
        return Explanation.of(misses=[truth], wrong=[f"{answer.choice_id}: {answer.text} ({note})"] if answer else [])

    def correct_choices(self, example: Example) -> Sequence[str]:
        return (ActivityTarget.of(example).choice_id,)

    def prior_answer(self, example: Example, others: Sequence[Example], box_format: BoxFormat) -> str:
        """Return the choice that is most often the reference in other videos.

        At a tie, the choice whose text sorts first wins.
        """
        counts = class_counts(others)
        ranked = sorted(ActivityInputs.of(example).choices, key=lambda choice: (-counts[choice.class_id], choice.text))
        return self.answer_text([ranked[0].choice_id], example)


def read_released(text: str, labels: Sequence[str]) -> Prediction | ParseError:
    """Return a `ChosenLetter`: the best-scored label if there are scores, else the last label that the text names.

    The release's rule takes the last `answer:` that a label directly follows. Without one, it takes the last tag
    `<CHOICE_ID_x>` with a label (docs/upstream/barista.md).
    """
    scores = read_scores(text, labels)
    if scores is not None:
        return Prediction({"choice_id": max(scores, key=lambda label: scores[label])})
    text = text[-MAX_ANSWER:]
    tokens = (_token(text, match.end()) for match in reversed(list(_MARKER.finditer(text))))
    for token in chain(tokens, reversed(_TAG.findall(text))):
        if token.upper() in labels:
            return Prediction({"choice_id": token.upper()})
    return NO_LETTER


def _token(text: str, position: int) -> str:
    """Return the word at a position, without any part of the prompt's placeholder before the word."""
    before = _BEFORE.match(text, position)
    token = _TOKEN.match(text, before.end() if before else position)
    return token[0] if token else ""


@remember
def _question(example: Example) -> ChoiceQuestion:
    """Return the question for the metric, without an answer. The result is cached per example."""
    choices = {choice.choice_id: choice.verb for choice in ActivityInputs.of(example).choices}
    (question,) = as_questions([None], [ActivityTarget.of(example).choice_id], [example.label], choices=[choices])
    return question


@remember
def class_counts(examples: Sequence[Example]) -> Counter[str]:
    """Count the examples of each activity class."""
    return Counter(str(ActivityTarget.of(example).class_id) for example in examples)


def _reference_and_answer(
    example: Example, prediction: Prediction | None
) -> tuple[ActivityChoice, ActivityChoice | None]:
    choices = {choice.choice_id: choice for choice in ActivityInputs.of(example).choices}
    reference = choices[ActivityTarget.of(example).choice_id]
    return reference, choices.get(ChosenLetter.read(prediction.value).choice_id) if prediction else None


def named_activities(video: VideoGraph) -> list[Segment]:
    """Return the video's activities that have a class and a name of the form `Verb noun`.

    Example ids use the positions of activities in this list.
    """
    return [segment for segment in video.activities() if not _problem(segment)]


def unnamed_activities(video: VideoGraph) -> Iterator[SkippedExample]:
    """Yield the activities without a class or name, each with the reason why it has no question."""
    for segment in video.activities():
        if problem := _problem(segment):
            yield SkippedExample(FrameRef(video.video_id, max(0, segment.start)), problem, f"activities[{segment.row}]")


def _problem(segment: Segment) -> str:
    if segment.class_id is None:
        return "has no class"
    return "" if " " in segment.name else f"is called {segment.name!r}, not 'Verb noun'"


def _segment_frames(video: VideoGraph, segment: Segment) -> range:
    """Return all frames of a segment, including its `end` frame as in the release."""
    return range(max(0, segment.start), min(segment.end + 1, video.frame_count))


def _shown_frames(frames: range, sampling: ActivitySampling) -> list[int]:
    return [frames[number] for number in even_places(len(frames), sampling.frames)]


def _overlapping_places(segments: Sequence[Segment]) -> frozenset[int]:
    """Return the positions of segments that share time with another segment. Touching segments do not overlap."""
    by_start = sorted(range(len(segments)), key=lambda number: segments[number].start)
    crowded: set[int] = set()
    longest = by_start[:1]  # the previous segment that ends last
    for earlier, number in pairwise(by_start):
        longest = [max(*longest, earlier, key=lambda place: segments[place].end)]
        for other in (earlier, *longest):
            if segments[number].start < segments[other].end:
                crowded |= {other, number}
    return frozenset(crowded)


def _cap_by_class(candidates: Sequence[Candidate], sampling: ActivitySampling) -> list[Candidate]:
    """Return at most `per_class` candidates of each class, alternating between videos, in the given order.

    As in the release, one generator shuffles the videos of every class in turn.
    """
    if sampling.per_class is None:
        return list(candidates)
    by_class: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, candidate in enumerate(candidates):
        by_class[candidate.group][candidate.video_id].append(number)
    rng = sampling.generator()
    numbers: list[int] = []
    for by_video in by_class.values():
        queues = list(by_video.values())
        rng.shuffle(queues)
        rounds = chain.from_iterable(zip_longest(*queues))
        numbers += [number for number in rounds if number is not None][: sampling.per_class]
    return [candidates[number] for number in sorted(numbers)]


def _noun(name: str) -> str:
    """Return a `Verb noun` label without its verb, in lower case."""
    return name.partition(" ")[2].strip().casefold()


def _defined_tables(sums: Row) -> dict[str, Any]:
    """Return the metric's tables without undefined entries, such as shares of wrong answers when no answer is wrong."""
    per_kind = tables(sums)
    for name in ("per_class", "per_verb"):
        for group in (per_kind[name] or {}).values():
            group["support"] = group.pop("n")
    if per_kind["distractors"]:
        fractions = per_kind["distractors"].items()
        per_kind["distractors"] = {name: value for name, value in fractions if value is not None}
    return {name: value for name, value in per_kind.items() if value is not None}
