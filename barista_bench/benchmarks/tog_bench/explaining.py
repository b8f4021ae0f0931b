"""Why an answer to T-STVG scores as it does, what is wrong with it, and its boxes to draw."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barista_bench.benchmarks.tog_bench.columns import Corners, RequiredObject, corners, snapped
from barista_bench.benchmarks.tog_bench.recognition import plain_name
from barista_bench.benchmarks.tog_bench.scores import (
    T_IOU,
    V_IOU,
    AssessedAnswer,
    answered_objects,
    shown_times,
    true_objects,
)
from barista_bench.core.task import (
    AnswerFailure,
    Example,
    Explanation,
    ExplanationRow,
    Overlay,
    Prediction,
    evidence_objects,
)

ENOUGH = 0.5
"""tIoU and vIoU from which time and place of a recognised object count as right, for people."""


def explain(example: Example, assessed: AssessedAnswer) -> Explanation:
    """Objects that were recognised, with their overlaps; those that were not; and answered ones that are none."""
    hits, misses = [], []
    answer_of = {match: index for index, match in enumerate(assessed.matches) if match is not None}
    for index, item in enumerate(true_objects(example)):
        text = f"{item.category} ({item.kind}), {_when(item)}"
        if index not in answer_of:
            misses.append(ExplanationRow("miss", text))
            continue
        measures = assessed.score.measures[index]
        overlap = f"tIoU {measures[T_IOU]:.2f}, vIoU {measures[V_IOU]:.2f}"
        hits.append(ExplanationRow("hit", f"{text}: answered as {assessed.names[answer_of[index]]!r}, {overlap}"))
    wrong = [
        ExplanationRow("wrong", f"{name!r} is none of the objects")
        for name, match in zip(assessed.names, assessed.matches, strict=True)
        if match is None
    ]
    return Explanation((*hits, *misses, *wrong))


def _when(item: RequiredObject) -> str:
    shown = ", ".join(f"{start:g}-{end:g} s" for start, end in item.intervals[:3])
    return shown + (", ..." if len(item.intervals) > 3 else "")


def failures(example: Example, assessed: AssessedAnswer) -> tuple[AnswerFailure, ...]:
    """Missed objects, loose times and boxes of recognised ones, and answered objects that are none or repeated."""
    ids = evidence_objects(example)
    mistakes = []
    for index, recognised in enumerate(assessed.score.recognised.tolist()):
        about = ids[index : index + 1]
        measures = assessed.score.measures[index]
        if not recognised:
            mistakes.append(AnswerFailure("missed", about))
            continue
        if measures[T_IOU] < ENOUGH:
            mistakes.append(AnswerFailure("wrong_time", about))
        if measures[V_IOU] < ENOUGH:
            mistakes.append(AnswerFailure("loose_box", about))
    answers = [(plain_name(name), match) for name, match in zip(assessed.names, assessed.matches, strict=True)]
    recognised_names = {name for name, match in answers if match is not None}
    for name, match in answers:
        if match is None:
            mistakes.append(AnswerFailure("duplicate" if name in recognised_names else "hallucinated"))
    return tuple(mistakes)


def overlays(example: Example, prediction: Prediction | None) -> tuple[Overlay, ...]:
    """True and answered boxes on the frames shown."""
    shown = shown_times(example)
    truth = [
        Overlay(frame, box, "truth", item.category)
        for item in true_objects(example)
        for frame, box in _on_frames(zip(item.times, item.boxes, strict=True), shown)
    ]
    answered = [
        Overlay(frame, box, "predicted", item.name)
        for item in answered_objects(prediction)
        for frame, box in _on_frames(((entry.timestamp, entry.box) for entry in item.boxes), shown)
    ]
    return (*truth, *answered)


def _on_frames(boxes: Iterable[tuple[float, list[float]]], shown: list[float]) -> Iterator[tuple[int, Corners]]:
    """Boxes that lie on a frame shown, with its number from 0."""
    frames = {time: frame for frame, time in enumerate(shown)}
    for time, box in boxes:
        frame = frames.get(snapped(time, shown))
        if frame is not None:
            yield frame, corners(box)
