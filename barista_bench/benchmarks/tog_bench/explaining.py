"""Why an answer to T-STVG scores as it does, what is wrong with it, and its boxes to draw."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from barista_bench.benchmarks.tog_bench.recognition import plain_name
from barista_bench.benchmarks.tog_bench.scores import (
    T_IOU,
    V_IOU,
    Assessed,
    answered_objects,
    shown_times,
    true_objects,
)
from barista_bench.benchmarks.tog_bench.times import snapped
from barista_bench.core.task import (
    Example,
    Explanation,
    ExplanationRow,
    Failure,
    Fields,
    Overlay,
    Prediction,
    evidence_objects,
)

ENOUGH = 0.5
"""tIoU and vIoU from which time and place of a recognised object count as right, for people."""


def explain(example: Example, assessed: Assessed) -> Explanation:
    """Objects that were recognised, with their overlaps; those that were not; and answered ones that are none."""
    hits, misses = [], []
    found = {match: place for place, match in enumerate(assessed.matches) if match is not None}
    for place, item in enumerate(true_objects(example)):
        text = f"{item['category']} ({item['kind']}), {_when(item)}"
        if place not in found:
            misses.append(ExplanationRow("miss", text))
            continue
        measures = assessed.score.measures[place]
        overlap = f"tIoU {measures[T_IOU]:.2f}, vIoU {measures[V_IOU]:.2f}"
        hits.append(ExplanationRow("hit", f"{text}: answered as {assessed.names[found[place]]!r}, {overlap}"))
    wrong = [
        ExplanationRow("wrong", f"{name!r} is none of the objects")
        for name, match in zip(assessed.names, assessed.matches, strict=True)
        if match is None
    ]
    return Explanation((*hits, *misses, *wrong))


def _when(item: Fields) -> str:
    spans = cast("list[list[float]]", item["intervals"])
    shown = ", ".join(f"{start:g}-{end:g} s" for start, end in spans[:3])
    return shown + (", ..." if len(spans) > 3 else "")


def failures(example: Example, assessed: Assessed) -> tuple[Failure, ...]:
    """Missed objects, loose times and boxes of recognised ones, and answered objects that are none or told twice."""
    ids = evidence_objects(example)
    found = []
    for place, recognised in enumerate(assessed.score.recognised.tolist()):
        about = ids[place : place + 1]
        measures = assessed.score.measures[place]
        if not recognised:
            found.append(Failure("missed", about))
            continue
        if measures[T_IOU] < ENOUGH:
            found.append(Failure("wrong_time", about))
        if measures[V_IOU] < ENOUGH:
            found.append(Failure("loose_box", about))
    told = {plain_name(name) for name, match in zip(assessed.names, assessed.matches, strict=True) if match is not None}
    for name, match in zip(assessed.names, assessed.matches, strict=True):
        if match is None:
            found.append(Failure("duplicate" if plain_name(name) in told else "hallucinated"))
    return tuple(found)


def overlays(example: Example, prediction: Prediction | None) -> tuple[Overlay, ...]:
    """True and answered boxes on the frames shown."""
    shown = shown_times(example.inputs)
    places = {time: place for place, time in enumerate(shown)}
    truth = [
        Overlay(place, box, "truth", str(item["category"]))
        for item in true_objects(example)
        for place, box in _placed(
            zip(cast("list[float]", item["times"]), cast("list[list[float]]", item["boxes"]), strict=True), places
        )
    ]
    answered = [
        Overlay(place, box, "predicted", str(item["name"]))
        for item in answered_objects(prediction)
        for place, box in _placed(
            (
                (cast("float", entry["timestamp"]), cast("list[float]", entry["box"]))
                for entry in cast("list[Fields]", item["boxes"])
            ),
            places,
        )
    ]
    return (*truth, *answered)


def _placed(
    boxes: Iterator[tuple[float, list[float]]], places: dict[float, int]
) -> Iterator[tuple[int, tuple[float, float, float, float]]]:
    """Boxes that lie on a frame shown, with its number from 0."""
    times = list(places)
    for time, (x0, y0, x1, y1) in boxes:
        place = places.get(snapped(time, times))
        if place is not None:
            yield place, (x0, y0, x1, y1)
