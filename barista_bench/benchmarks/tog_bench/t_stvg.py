"""Define T-STVG: which objects does a task need, and when and where do they matter (ToG-Bench, arXiv 2512.03666)?

The model sees 0.25 frames per second with their times, and one instruction. It gives one answer with all objects, time
ranges and boxes. The paper decodes greedily and only once: `--temperature 0 --repetitions 1`.

The paper leaves these points open. Our choices are:
* The format of several objects: answers have flat lists, and each entry has its object's name (`prompts/t_stvg.yaml`).
* The annotated boxes that count: there is one per second, but frames are shown every four seconds. The published scores
  imply the choice. An answer with a box on every shown frame has boxes for a quarter of the seconds. If all annotated
  boxes counted, vIoU would stay below about 0.25, but models reach 0.38. So the boxes of the shown frames count
  (`box_times=annotated` counts all).
* The similarity from which two names mean one object: it is the option `threshold`.
* The size of boxes: annotated boxes are scaled to the video on disk if the video's size differs from the annotated
  size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby
from typing import ClassVar, cast

from barista_bench.benchmarks.kinds.spans import snap_to_grid, timed_frames
from barista_bench.benchmarks.name_matching import matching_options, plain_name
from barista_bench.benchmarks.release_records import GraphColumns
from barista_bench.benchmarks.tog_bench.answers import ShownFrames, read_answer
from barista_bench.benchmarks.tog_bench.baselines import BaselineAnswers
from barista_bench.benchmarks.tog_bench.columns import (
    InstructionEvidence,
    InstructionInputs,
    InstructionMetadata,
    RequiredObject,
    RequiredObjects,
    TogSampling,
)
from barista_bench.benchmarks.tog_bench.release import BEYOND, FiledTask, ObjectRecord, TogRelease, VideoRecord
from barista_bench.benchmarks.tog_bench.scores import (
    T_IOU,
    V_IOU,
    BoxTimes,
    GroundingStatistics,
    Recogniser,
    ScoringRules,
    Viou,
    answered_objects,
    assess,
    count_group,
    duration_bin,
    shown_times,
    statistics_of,
    true_objects,
)
from barista_bench.core.boxes import BoxFormat, Xyxy, as_xyxy, box_names, describe_format
from barista_bench.core.deriving import Release
from barista_bench.core.display import AnswerFailure, Explanation, Overlay
from barista_bench.core.example import (
    Example,
    Fields,
    FrameRef,
    ParseError,
    Prediction,
    Scored,
    SkippedExample,
    evidence_objects,
)
from barista_bench.core.options import Option
from barista_bench.core.prompt import Prompt, TextPart
from barista_bench.errors import DataError
from barista_bench.media.frame_choice import at_rate, evenly_spaced
from barista_bench.media.video.readers import VideoFacts, video_facts

RATE = 0.25
"""Frames per second (paper, sections 4.1 and 7.1)."""


ENOUGH = 0.5
"""The tIoU and vIoU from which explanations call the time and place of a recognised object right."""


class TSTVG(BaselineAnswers):
    benchmark = "tog_bench"
    name = upstream_name = "t_stvg"
    version = 3
    primary = "T-m_vIoU"
    primary_note = "Mean over tasks of the IoU of boxes over time, of objects named and found."
    sample_score = "T-m_vIoU"
    decided_by = "mean"
    sampling = TogSampling()
    prompt_package = "barista_bench.benchmarks.tog_bench"
    row_note = "frames of a video and an instruction, and the objects that it takes, with times and boxes"
    answer_note = "JSON: names, times and boxes"
    breakdown_keys: ClassVar[tuple[str, ...]] = ("split", "kind", "objects", "duration_bin")
    options: ClassVar[dict[str, Option]] = {
        **matching_options(
            "embeddings", "how names of objects are compared: by sentence embeddings (paper), by synonyms, or exactly"
        ),
        "viou": Option(
            "gt_frames",
            "time stamps that the overlap of boxes is averaged over: annotated ones (V-STaR), or also predicted ones",
            changes="scores",
            choices=("gt_frames", "union"),
        ),
        "box_times": Option(
            "shown",
            "annotated boxes that count: those of the frames shown, or all (one a second)",
            changes="scores",
            choices=("shown", "annotated"),
        ),
    }

    inputs_type = InstructionInputs
    target_type = RequiredObjects
    metadata_type = InstructionMetadata
    evidence_type = InstructionEvidence

    @cached_property
    def rules(self) -> ScoringRules:
        """Return the rules for scoring answers, which follow from the options."""
        return ScoringRules(
            Recogniser.of(self.chosen), cast("Viou", self.chosen["viou"]), cast("BoxTimes", self.chosen["box_times"])
        )

    def examples(self, release: Release, sampling: TogSampling) -> Iterator[Example | SkippedExample]:
        """Yield one example per instruction, ordered by video and then by place in the files."""
        assert isinstance(release, TogRelease)
        for video_id, tasks in groupby(release.tasks, key=lambda filed: filed.task.video):
            if sampling.videos is not None and video_id not in sampling.videos:
                continue
            record = release.video_records[video_id]
            try:
                facts = _facts(release, record)
                frames = at_rate(facts, sampling.rate)
            except DataError as error:
                yield from (SkippedExample(FrameRef(video_id, 0), str(error), filed.task.id) for filed in tasks)
                continue
            if sampling.max_frames is not None:
                frames = tuple(frames[index] for index in evenly_spaced(len(frames), sampling.max_frames))
            for filed in tasks:
                graph = release.graph_columns(filed.task.id)
                yield _example(filed, record, facts, frames, sampling, graph)

    def prompt(self, example: Example, box_format: BoxFormat) -> Prompt:
        inputs = InstructionInputs.of(example)
        system, user = self.prompts.fill(
            box_format=describe_format(box_format),
            box_order=box_names(box_format),
            count=str(len(inputs.times)),
            duration=f"{inputs.duration:.1f}",
            instruction=inputs.instruction,
        )
        frames = timed_frames(str(round(time, 2)) for time in inputs.times)
        return Prompt(system, (*frames, TextPart(f"\n{user}")))

    def image_captions(self, example: Example) -> tuple[str, ...]:
        return tuple(f"frame {number}, {time:.1f} s" for number, time in enumerate(shown_times(example), start=1))

    def parse(self, text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
        """Return the answered objects, with intervals in seconds and boxes in pixels, as `answers.read_answer` reads
        them.

        Under both protocols, a truncated answer counts up to its last complete entry, since no code is released.
        """
        question = InstructionInputs.read(inputs)
        answer = read_answer(text, ShownFrames(question.times, question.frame_width, question.frame_height, box_format))
        if answer is None:
            return ParseError("the answer holds no JSON object with explicit_object or implicit_object")
        return answer

    def statistics(self, samples: Sequence[Scored]) -> GroundingStatistics:
        """Return scores of objects (O-) and tasks (T-), and strict scores (ST-).

        `O-Acc` of one sample is the fraction of its objects that are recognised.
        """
        return statistics_of(samples, self.rules)

    def as_target(self, example: Example, prediction: Prediction) -> RequiredObjects | None:
        """Return the answered objects as a target. Objects without boxes are left out, since no answer can find
        them.
        """
        objects = [
            RequiredObject(
                category=item.name,
                kind=item.kind,
                synonyms=[],
                intervals=item.intervals,
                times=[box.timestamp for box in item.boxes],
                boxes=[box.box for box in item.boxes],
            )
            for item in answered_objects(prediction)
            if item.boxes
        ]
        return RequiredObjects(objects) if objects else None

    def mistakes(self, example: Example, prediction: Prediction) -> Iterable[AnswerFailure]:
        """Yield failures in names, and in time (tIoU) and place (vIoU) of recognised objects.

        Objects are matched as in the score.

        Answered objects without a true object are repeated or hallucinated.
        """
        ids, assessment = evidence_objects(example), assess(Scored(example, prediction), self.rules)
        for index, recognised in enumerate(assessment.score.recognised.tolist()):
            object_ids = ids[index : index + 1]
            measures = assessment.score.measures[index]
            if not recognised:
                yield AnswerFailure("missed", object_ids)
                continue
            if measures[T_IOU] < ENOUGH:
                yield AnswerFailure("wrong_time", object_ids)
            if measures[V_IOU] < ENOUGH:
                yield AnswerFailure("loose_box", object_ids)
        answers = [(plain_name(name), match) for name, match in zip(assessment.names, assessment.matches, strict=True)]
        recognised_names = {name for name, match in answers if match is not None}
        for name, match in answers:
            if match is None:
                yield AnswerFailure("duplicate" if name in recognised_names else "hallucinated")

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        """Explain an answer by recognised objects with overlaps, missed objects, and answered objects without a
        match.
        """
        hits, misses = [], []
        assessment = assess(Scored(example, prediction), self.rules)
        answer_of = {match: index for index, match in enumerate(assessment.matches) if match is not None}
        for index, item in enumerate(true_objects(example)):
            text = f"{item.category} ({item.kind}), {_times_text(item)}"
            if index not in answer_of:
                misses.append(text)
                continue
            measures = assessment.score.measures[index]
            overlap = f"tIoU {measures[T_IOU]:.2f}, vIoU {measures[V_IOU]:.2f}"
            hits.append(f"{text}: answered as {assessment.names[answer_of[index]]!r}, {overlap}")
        answers = zip(assessment.names, assessment.matches, strict=True)
        return Explanation.of(
            hits, misses, (f"{name!r} is not one of the objects" for name, match in answers if match is None)
        )

    def overlays(self, example: Example, prediction: Prediction | None) -> tuple[Overlay, ...]:
        """Return true and answered boxes on the shown frames."""
        times = shown_times(example)
        reference = [
            Overlay(frame, box, "reference", item.category)
            for item in true_objects(example)
            for frame, box in _boxes_on_frames(zip(item.times, item.boxes, strict=True), times)
        ]
        answered = [
            Overlay(frame, box, "predicted", item.name)
            for item in answered_objects(prediction)
            for frame, box in _boxes_on_frames(((entry.timestamp, entry.box) for entry in item.boxes), times)
        ]
        return (*reference, *answered)


SHAPE_TOLERANCE = 0.01
"""The largest relative difference of aspect ratios at which boxes are scaled to a video of another size."""


def _facts(release: TogRelease, record: VideoRecord) -> VideoFacts:
    """Return facts of the video on disk. Raises DataError if the video is missing, damaged, or has another aspect
    ratio.
    """
    path = release.video_path(record.id)
    facts = video_facts(path, fps=record.fps if path.is_dir() else None)
    shape_ratio = facts.width * record.height / (facts.height * record.width)
    if abs(shape_ratio - 1) > SHAPE_TOLERANCE:
        sizes = f"{facts.width}x{facts.height}, and its boxes are drawn on {record.width}x{record.height}"
        raise DataError(f"{path}: is {sizes}. Fix: use the video that was annotated, uncropped and unturned")
    return facts


def _example(
    filed: FiledTask,
    record: VideoRecord,
    facts: VideoFacts,
    frames: tuple[int, ...],
    sampling: TogSampling,
    graph: GraphColumns,
) -> Example | SkippedExample:
    task = filed.task
    last = max(max(box.time for box in item.boxes) for item in task.objects)
    if last > facts.duration + BEYOND:
        reason = f"has boxes up to {last:g} s, and the video ends at {facts.duration:.1f} s"
        return SkippedExample(FrameRef(task.video, 0), reason, task.id)
    times = [round(float(facts.seconds[frame]), 3) for frame in frames]
    sx, sy = facts.width / record.width, facts.height / record.height
    objects = [_required_object(item, task.kind, sx, sy) for item in task.objects]
    is_seen = [any(snap_to_grid(box.time, times) in times for box in item.boxes) for item in task.objects]
    return TSTVG.new_example(
        f"{TSTVG.name}:{task.id}",
        task.video,
        frames,
        label=task.kind,
        inputs=InstructionInputs(
            instruction=task.instruction.strip(),
            times=times,
            frame_width=facts.width,
            frame_height=facts.height,
            duration=round(facts.duration, 3),
        ),
        target=RequiredObjects(objects),
        metadata=InstructionMetadata(
            split="test",
            kind=task.kind,
            objects=count_group(len(objects)),
            object_count=len(objects),
            unseen_objects=is_seen.count(False),
            categories=sorted({item.category for item in task.objects}),
            scene=record.scene or "unknown",
            duration_bin=duration_bin(facts.duration),
            rate=sampling.rate,
            max_frames=sampling.max_frames,
        ),
        evidence=InstructionEvidence(
            object_ids=[item.id or f"{task.id}#{number}" for number, item in enumerate(task.objects)],
            file=filed.file,
            row=filed.row,
            annotated_width=record.width,
            annotated_height=record.height,
            **graph,
        ),
    )


def _required_object(item: ObjectRecord, task_kind: str, sx: float, sy: float) -> RequiredObject:
    """Return an object of the target. Its boxes are scaled to the video's size, by `sx` across and `sy` down."""
    return RequiredObject(
        category=item.category,
        kind=item.kind or task_kind,
        synonyms=list(item.synonyms),
        intervals=[[start, end] for start, end in item.intervals],
        times=[box.time for box in item.boxes],
        boxes=[[x0 * sx, y0 * sy, x1 * sx, y1 * sy] for x0, y0, x1, y1 in (box.box for box in item.boxes)],
    )


def _times_text(item: RequiredObject) -> str:
    text = ", ".join(f"{start:g}-{end:g} s" for start, end in item.intervals[:3])
    return text + (", ..." if len(item.intervals) > 3 else "")


def _boxes_on_frames(boxes: Iterable[tuple[float, list[float]]], times: list[float]) -> Iterator[tuple[int, Xyxy]]:
    """Yield each box on a shown frame, with the number of the frame from 0."""
    frames = {time: frame for frame, time in enumerate(times)}
    for time, box in boxes:
        frame = frames.get(snap_to_grid(time, times))
        if frame is not None:
            yield frame, as_xyxy(box)
