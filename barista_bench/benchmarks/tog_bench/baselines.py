"""Give answers without a model: the reference, chance, the prior of other videos, and a centre box."""

from __future__ import annotations

import json
import random
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from barista_bench.benchmarks.kinds.box_answers import CENTRE_FRACTIONS
from barista_bench.benchmarks.name_matching import plain_name
from barista_bench.benchmarks.tog_bench.answers import NAMES, SPATIAL, TEMPORAL
from barista_bench.benchmarks.tog_bench.columns import AnsweredBox, AnsweredObject, InstructionInputs, TogSampling
from barista_bench.benchmarks.tog_bench.scores import ScoringRules, box_track, shown_times, synonym_groups, true_objects
from barista_bench.core.boxes import BoxFormat, Xyxy, as_xyxy, write_box
from barista_bench.core.deriving import ReleaseTask
from barista_bench.core.example import Example, Fields
from barista_bench.core.prompt import object_schema

_COMMA = re.compile(r"[\s,;]+")


def write_answer(
    objects: Iterable[AnsweredObject], inputs: Fields, box_format: BoxFormat, *, exact: bool = False
) -> str:
    """Write an answer in the prompt's form. Objects of one kind are numbered, as the prompt asks.

    With `exact`, boxes are not rounded to the model's integers, so that reading gives the same boxes.
    """
    question = InstructionInputs.read(inputs)
    answer: dict[str, list[object]] = {name: [] for name in (*NAMES, TEMPORAL, SPATIAL)}
    objects = list(objects)
    counts, numbers = Counter(plain_name(item.name) for item in objects), Counter[str]()
    for item in objects:
        plain = plain_name(item.name)
        numbers[plain] += 1
        # Commas separate names in an answer, so commas inside a name are left out.
        name = f"{plain} {numbers[plain]}" if counts[plain] > 1 else _COMMA.sub(" ", item.name)
        answer[f"{item.kind}_object"].append(name)
        answer[TEMPORAL] += [{"object": name, "start": start, "end": end} for start, end in item.intervals]
        for entry in item.boxes:
            box = write_box(as_xyxy(entry.box), box_format, question.frame_width, question.frame_height, exact=exact)
            answer[SPATIAL].append({"object": name, "time": entry.timestamp, "box": box})
    return json.dumps(answer)


class BaselineAnswers(ReleaseTask[TogSampling]):
    """The baseline answers of the task."""

    @property
    @abstractmethod
    def rules(self) -> ScoringRules:
        """The rules for scoring answers."""

    def reference_answer(self, example: Example, box_format: BoxFormat) -> str:
        times = shown_times(example)
        answers = (
            _answered_object(item.category, item.kind, item.intervals, box_track(item, times, self.rules.box_times))
            for item in true_objects(example)
        )
        return write_answer(answers, example.inputs, box_format, exact=True)

    def random_answer(self, example: Example, rng: random.Random, box_format: BoxFormat) -> str:
        """Return one usual indoor object, a random time range, and a random box on each shown frame in that range."""
        name = rng.choice(synonym_groups())[0]
        start, end = sorted(rng.uniform(0, _duration(example)) for _ in range(2))
        across, down = (sorted(rng.uniform(0, 1) for _ in range(2)) for _ in range(2))
        box = (across[0], down[0], across[1], down[1])
        return _constant_answer(name, (round(start, 1), round(end, 1)), box, example, box_format)

    def prior_answer(self, example: Example, others: Sequence[Example], box_format: BoxFormat) -> str:
        """Return the most frequent object in its usual part of the video and of the frame; without other videos, a
        door.
        """
        counts = Counter(plain_name(item.category) for other in others for item in true_objects(other))
        name = min(counts, key=lambda word: (-counts[word], word)) if counts else "door"
        spans, boxes_of_name = [], []
        for other in others:
            size = InstructionInputs.of(other)
            for item in true_objects(other):
                if plain_name(item.category) == name:
                    limits = np.array(item.intervals, dtype=float)
                    spans.append((limits.min() / _duration(other), limits.max() / _duration(other)))
                    sides = [size.frame_width, size.frame_height] * 2
                    boxes_of_name.append(np.array(item.boxes, dtype=float).mean(axis=0) / sides)
        start, end = np.mean(spans, axis=0).tolist() if spans else (0.0, 1.0)
        box = as_xyxy(np.mean(boxes_of_name, axis=0).tolist()) if boxes_of_name else CENTRE_FRACTIONS
        span = (round(start * _duration(example), 1), round(end * _duration(example), 1))
        return _constant_answer(name, span, box, example, box_format)

    def centre_answer(self, example: Example, box_format: BoxFormat) -> str:
        """Return the true objects in the middle of every frame of the complete video. This gives the score of a blind
        box.
        """
        track = dict.fromkeys(shown_times(example), _in_pixels(CENTRE_FRACTIONS, example))
        whole_video = [[0.0, _duration(example)]]
        objects = [_answered_object(item.category, item.kind, whole_video, track) for item in true_objects(example)]
        return write_answer(objects, example.inputs, box_format)

    def answer_schema(self, example: Example) -> Fields:
        """Return the JSON Schema of the answer that the prompt asks for."""
        name: Fields = {"type": "string"}
        number: Fields = {"type": "number"}
        box: Fields = {"type": "array", "items": number, "minItems": 4, "maxItems": 4}
        stretch = object_schema({"object": name, "start": number, "end": number})
        box_schema = object_schema({"object": name, "time": number, "box": box})
        items = (*((key, name) for key in NAMES), (TEMPORAL, stretch), (SPATIAL, box_schema))
        return object_schema({key: {"type": "array", "items": item} for key, item in items})


def _constant_answer(name: str, span: tuple[float, float], box: Xyxy, example: Example, box_format: BoxFormat) -> str:
    """Return one explicit object with the same box on each shown frame in `span`; `box` is in fractions of the
    frame.
    """
    pixel_box = _in_pixels(box, example)
    track = {time: pixel_box for time in shown_times(example) if span[0] <= time <= span[1]}
    return write_answer([_answered_object(name, "explicit", [list(span)], track)], example.inputs, box_format)


def _answered_object(name: str, kind: str, intervals: list[list[float]], track: Mapping[float, Xyxy]) -> AnsweredObject:
    boxes = [AnsweredBox(time, list(box)) for time, box in track.items()]
    return AnsweredObject(name, kind, intervals, boxes, malformed=False)


def _duration(example: Example) -> float:
    """Return the duration in seconds; it is above 0 even for a video of one frame."""
    return max(InstructionInputs.of(example).duration, 1e-3)


def _in_pixels(fractions: Xyxy, example: Example) -> Xyxy:
    inputs = InstructionInputs.of(example)
    width, height = inputs.frame_width, inputs.frame_height
    return fractions[0] * width, fractions[1] * height, fractions[2] * width, fractions[3] * height
