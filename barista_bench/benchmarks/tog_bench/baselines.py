"""Answers that no model gives: the truth, chance, what other videos suggest, and a box in the middle."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np

from barista_bench.benchmarks.tog_bench.answers import NAMES, SPATIAL, TEMPORAL
from barista_bench.benchmarks.tog_bench.recognition import plain_name, synonym_groups
from barista_bench.benchmarks.tog_bench.scores import Box, BoxTimes, box_track, shown_times, true_objects
from barista_bench.core.boxes import write_box
from barista_bench.core.prompt import BoxFormat
from barista_bench.core.task import Example, Fields

_COMMA = re.compile(r"[\s,;]+")
CENTRE = (0.25, 0.25, 0.75, 0.75)
"""Shares of the frame."""


class Said(NamedTuple):
    """One object as an answer says it: times in seconds, boxes in pixels by time."""

    name: str
    kind: str
    intervals: Sequence[tuple[float, float]]
    boxes: Mapping[float, Box]


def written(objects: Iterable[Said], inputs: Fields, boxes: BoxFormat, *, exact: bool = False) -> str:
    """An answer in the form that the prompt asks for; objects of one kind are numbered, as it says.

    `exact` does not round boxes to the model's integers: what is read is the box that was given.
    """
    width, height = cast("int", inputs["frame_width"]), cast("int", inputs["frame_height"])
    write = _unrounded if exact else write_box
    answer: dict[str, list[object]] = {name: [] for name in (*NAMES, TEMPORAL, SPATIAL)}
    objects = list(objects)
    counts, told = Counter(plain_name(item.name) for item in objects), Counter[str]()
    for item in objects:
        plain = plain_name(item.name)
        told[plain] += 1
        # A comma parts names in an answer: one in a name is left out.
        name = f"{plain} {told[plain]}" if counts[plain] > 1 else _COMMA.sub(" ", item.name)
        answer[f"{item.kind}_object"].append(name)
        answer[TEMPORAL] += [{"object": name, "start": start, "end": end} for start, end in item.intervals]
        answer[SPATIAL] += [
            {"object": name, "time": time, "box": write(box, boxes, width, height)} for time, box in item.boxes.items()
        ]
    return json.dumps(answer)


def _unrounded(box: Box, boxes: BoxFormat, width: int, height: int) -> list[float]:
    """As `write_box`, with all decimals."""
    x0, y0, x1, y1 = box
    if boxes.scale is not None:
        wide, high = boxes.scale / width, boxes.scale / height
        x0, y0, x1, y1 = x0 * wide, y0 * high, x1 * wide, y1 * high
    return [y0, x0, y1, x1] if boxes.order == "yxyx" else [x0, y0, x1, y1]


def reference_answer(example: Example, boxes: BoxFormat, box_times: BoxTimes) -> str:
    shown = shown_times(example.inputs)
    return written(
        (
            Said(
                str(item["category"]),
                str(item["kind"]),
                [(start, end) for start, end in cast("list[list[float]]", item["intervals"])],
                box_track(item, shown, box_times),
            )
            for item in true_objects(example)
        ),
        example.inputs,
        boxes,
        exact=True,
    )


def random_answer(example: Example, rng: random.Random, boxes: BoxFormat) -> str:
    """One usual indoor object, some stretch of time, and some box on each frame shown in it."""
    name = rng.choice(synonym_groups())[0]
    start, end = sorted(rng.uniform(0, _duration(example)) for _ in range(2))
    across, down = (sorted(rng.uniform(0, 1) for _ in range(2)) for _ in range(2))
    box = _in_pixels((across[0], down[0], across[1], down[1]), example.inputs)
    return _constant(name, (round(start, 1), round(end, 1)), box, example, boxes)


def prior_answer(example: Example, others: Sequence[Example], boxes: BoxFormat) -> str:
    """The object that is needed most often, in its usual part of the video and of the frame; without others, a door."""
    needed = Counter(plain_name(str(item["category"])) for other in others for item in true_objects(other))
    name = min(needed, key=lambda word: (-needed[word], word)) if needed else "door"
    spans, corners = [], []
    for other in others:
        width, height = (cast("float", other.inputs[f"frame_{side}"]) for side in ("width", "height"))
        for item in true_objects(other):
            if plain_name(str(item["category"])) == name:
                ends = np.array(item["intervals"], dtype=float)
                spans.append((ends.min() / _duration(other), ends.max() / _duration(other)))
                corners.append(np.array(item["boxes"], dtype=float).mean(axis=0) / [width, height, width, height])
    start, end = np.mean(spans, axis=0).tolist() if spans else (0.0, 1.0)
    x0, y0, x1, y1 = np.mean(corners, axis=0).tolist() if corners else CENTRE
    span = (round(start * _duration(example), 1), round(end * _duration(example), 1))
    return _constant(name, span, _in_pixels((x0, y0, x1, y1), example.inputs), example, boxes)


def centre_answer(example: Example, boxes: BoxFormat) -> str:
    """The true objects, in the middle of every frame of the whole video: what a box that sees nothing is worth."""
    box = _in_pixels(CENTRE, example.inputs)
    track = dict.fromkeys(shown_times(example.inputs), box)
    whole = [(0.0, _duration(example))]
    objects = [Said(str(item["category"]), str(item["kind"]), whole, track) for item in true_objects(example)]
    return written(objects, example.inputs, boxes)


def _constant(
    name: str,
    span: tuple[float, float],
    box: Box,
    example: Example,
    boxes: BoxFormat,
) -> str:
    """One explicit object with one box on each frame shown in its stretch of time."""
    track = {time: box for time in shown_times(example.inputs) if span[0] <= time <= span[1]}
    return written([Said(name, "explicit", [span], track)], example.inputs, boxes)


def _duration(example: Example) -> float:
    """Seconds, above 0: a video may be one frame."""
    return max(cast("float", example.inputs["duration"]), 1e-3)


def _in_pixels(shares: Box, inputs: Fields) -> Box:
    width, height = cast("int", inputs["frame_width"]), cast("int", inputs["frame_height"])
    return shares[0] * width, shares[1] * height, shares[2] * width, shares[3] * height


def answer_schema() -> Fields:
    """JSON Schema of the answer that the prompt asks for."""
    name: Fields = {"type": "string"}
    number: Fields = {"type": "number"}
    box: Fields = {"type": "array", "items": number, "minItems": 4, "maxItems": 4}

    def entry(**properties: Fields) -> Fields:
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    def listed(items: Fields) -> Fields:
        return {"type": "array", "items": items}

    return entry(
        explicit_object=listed(name),
        implicit_object=listed(name),
        temporal_grounding=listed(entry(object=name, start=number, end=number)),
        spatial_tracking=listed(entry(object=name, time=number, box=box)),
    )
