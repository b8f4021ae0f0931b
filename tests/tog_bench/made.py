"""Random tasks and answers, and the input of the metric, found by trying all assignments.

Nothing here is shared with the package but the metric, which has a slow transcription in its own tests.
"""

import itertools
import json
import random
from dataclasses import dataclass, field
from typing import Any

from barista_bench.core.example import Example, FrameRef
from barista_bench.metrics.spatio_temporal_grounding import spatio_temporal_grounding

SIDE = 1000
"""Frames are as large as the grid that models write on, so that boxes are whole numbers on both."""
NAMES = ("cup", "sink", "faucet", "lamp", "chair")
BROKEN_INTERVALS = ("soon", ["later", 4], {"start": 3}, [9, 2], [[1, 2], "x"], 7, {"end": 2, "start": "never"})
BROKEN_BOXES = ([1, 2, 3], [5, 5, 5, 9], [9, 9, 1, 1], "left", [1, 2, 3, "4"], [1, 2, 3, None], {"x": 1}, 7)

Box = tuple[int, int, int, int]


@dataclass
class TrueObject:
    """`boxes` by whole second."""

    category: str
    kind: str
    intervals: list[tuple[int, int]]
    boxes: dict[int, Box]


@dataclass
class SaidObject:
    """A model's answer about one object; `broken` is among its intervals, `broken_boxes` beside its boxes."""

    name: str
    kind: str
    intervals: list[tuple[int, int]]
    boxes: dict[int, list[Box]]
    broken: Any = None
    broken_boxes: list[tuple[int, Any]] = field(default_factory=list)


def made_example(
    objects: list[TrueObject],
    *,
    kind: str = "explicit",
    number: int = 0,
    duration: float = 40.0,
    step: int = 4,
    video: str = "room",
    synonyms: tuple[str, ...] = (),
    size: tuple[int, int] = (SIDE, SIDE),
) -> Example:
    """An example that shows a frame every `step` seconds."""
    times = [float(t) for t in range(0, int(duration) + 1, step)]
    count = str(len(objects)) if len(objects) < 3 else "3+"
    return Example(
        example_id=f"t_stvg:{video}/{number:04d}",
        benchmark="tog_bench",
        task="t_stvg",
        label=kind,
        frames=tuple(FrameRef(video, int(t) * 10) for t in times),
        inputs={
            "instruction": "Turn on the water at the sink.",
            "times": times,
            "frame_width": size[0],
            "frame_height": size[1],
            "duration": duration,
        },
        target={
            "objects": [
                {
                    "category": o.category,
                    "kind": o.kind,
                    "synonyms": list(synonyms),
                    "intervals": [[float(s), float(e)] for s, e in o.intervals],
                    "times": [float(t) for t in o.boxes],
                    "boxes": [[float(x) for x in box] for box in o.boxes.values()],
                }
                for o in objects
            ]
        },
        metadata={
            "split": "test",
            "kind": kind,
            "objects": count,
            "object_count": len(objects),
            "unseen_objects": 0,
            "categories": sorted({o.category for o in objects}),
            "scene": "Kitchen",
            "duration_bin": "30-60 s",
            "rate": 1 / step,
            "max_frames": None,
        },
        evidence={
            "object_ids": [f"{number}#{i}" for i in range(len(objects))],
            "file": "made.json",
            "row": number,
            "annotated_width": size[0],
            "annotated_height": size[1],
        },
    )


def random_box(rng: random.Random, near: Box | None = None) -> Box:
    if near is not None:
        x0, y0, x1, y1 = (v + rng.randint(-3, 3) for v in near)
        return max(0, x0), max(0, y0), max(x0 + 1, 1, x1), max(y0 + 1, 1, y1)
    x0, y0 = rng.randint(0, 20), rng.randint(0, 20)
    return x0, y0, x0 + rng.randint(1, 15), y0 + rng.randint(1, 15)


def random_span(rng: random.Random, near: tuple[int, int] | None = None) -> tuple[int, int]:
    start = max(0, near[0] + rng.randint(-3, 3)) if near else rng.randint(0, 30)
    end = near[1] + rng.randint(-3, 3) if near else start + rng.randint(1, 12)
    return start, max(start, end)


def random_truth(rng: random.Random) -> list[TrueObject]:
    objects = []
    for _ in range(rng.choice((1, 1, 2, 2, 3, 4))):
        spans = [random_span(rng) for _ in range(rng.choice((1, 1, 1, 2)))]
        seconds = sorted({t for s, e in spans for t in range(s, e + 1)})
        thinned = [t for t in seconds if rng.random() < 0.8] or seconds[:1]
        boxes = {t: random_box(rng) for t in thinned}
        objects.append(TrueObject(rng.choice(NAMES), rng.choice(("explicit", "implicit")), spans, boxes))
    return objects


def random_answer(rng: random.Random, reference: list[TrueObject]) -> list[SaidObject] | None:
    """About the reference, with misses, inventions, other times, several boxes at once, and broken parts."""
    if rng.random() < 0.05:
        return None
    objects: list[SaidObject] = []
    for item in reference:
        if rng.random() < 0.15:
            continue
        spans = [random_span(rng, span) for span in item.intervals] if rng.random() < 0.9 else []
        boxes: dict[int, list[Box]] = {}
        for time, box in item.boxes.items():
            for _ in range(rng.choice((0, 1, 1, 1, 2))):
                boxes.setdefault(time, []).append(random_box(rng, box))
        for _ in range(rng.choice((0, 0, 1, 3))):
            boxes.setdefault(rng.randint(0, 40), []).append(random_box(rng))
        category = item.category if rng.random() < 0.85 else rng.choice(NAMES)
        objects.append(SaidObject(category, rng.choice(("explicit", "implicit")), spans, boxes))
    if rng.random() < 0.2:
        objects.append(
            SaidObject(rng.choice((*NAMES, "piano")), "implicit", [random_span(rng)], {8: [random_box(rng)]})
        )
    for item in objects:
        if rng.random() < 0.1:
            item.broken = rng.choice(BROKEN_INTERVALS)
        if rng.random() < 0.2:
            item.broken_boxes = [(rng.randint(0, 40), rng.choice(BROKEN_BOXES)) for _ in range(rng.randint(1, 3))]
    rng.shuffle(objects)
    counts: dict[str, int] = {}
    for item in objects:  # objects of one kind are told apart by numbers, as the prompt asks
        counts[item.name] = counts.get(item.name, 0) + 1
        if counts[item.name] > 1:
            item.name = f"{item.name} {counts[item.name]}"
    return objects


def clock(second: float) -> str:
    return f"{int(second) // 60:02d}:{int(second) % 60:02d}"


def flat(said: list[SaidObject], rng: random.Random) -> dict[str, Any]:
    temporal: list[Any] = []
    spatial: list[Any] = []
    for item in said:
        temporal += [{"object": item.name, "start": s, "end": e} for s, e in item.intervals]
        if item.broken is not None:
            temporal.append({"object": item.name, "interval": item.broken})
        for time, boxes in [*item.boxes.items()]:
            spatial += [{"object": item.name, "time": time, "box": list(box)} for box in boxes]
        spatial += [{"object": item.name, "time": time, "box": broken} for time, broken in item.broken_boxes]
    return {"temporal_grounding": temporal, "spatial_tracking": spatial}


def nested(said: list[SaidObject], rng: random.Random) -> dict[str, Any]:
    """Everything of an object in one entry; times as clock times or text."""
    temporal: list[Any] = []
    spatial: list[Any] = []
    for item in said:
        spans: list[Any] = [
            f"{clock(s)} - {clock(e)}" if rng.random() < 0.5 else [f"{s} s", e] for s, e in item.intervals
        ]
        spans += [] if item.broken is None else [item.broken]
        temporal.append({"name": item.name, "intervals": spans})
        track: list[Any] = [
            {"timestamp": f"{time}.0", "bbox": list(box)} for time, bs in item.boxes.items() for box in bs
        ]
        track += [{"timestamp": clock(time), "bbox": broken} for time, broken in item.broken_boxes]
        spatial.append({"object": item.name, "boxes": track})
    return {"temporal_grounding": temporal, "spatial_tracking": spatial}


def by_name(said: list[SaidObject], rng: random.Random) -> dict[str, Any]:
    """Mappings from names; frames shown by their number where there is one."""
    temporal: dict[str, Any] = {}
    spatial: dict[str, Any] = {}
    for item in said:
        spans: list[Any] = [{"start_time": clock(s), "end_time": f"{e}s"} for s, e in item.intervals]
        temporal[item.name] = spans + ([] if item.broken is None else [item.broken])
        places: list[Any] = []
        for time, boxes in item.boxes.items():
            key = {"frame": time // 4 + 1} if time % 4 == 0 and rng.random() < 0.5 else {"time": time}
            places.append({**key, "boxes": [list(box) for box in boxes]})
        places += [{"time": time, "box": broken} for time, broken in item.broken_boxes]
        spatial[item.name.upper()] = places
    return {"temporal_grounding": temporal, "spatial_tracking": spatial}


def written(said: list[SaidObject] | None, rng: random.Random, shape: Any = None) -> str:
    """An answer as text; without one, something that is none."""
    if said is None:
        return rng.choice(
            ("I cannot help with that.", "", "{", '{"objects": []}', "[1, 2]", '{"temporal_grounding": []}')
        )
    shape = shape or rng.choice((flat, nested, by_name))
    answer = {
        "explicit_object": [item.name for item in said if item.kind == "explicit"],
        "implicit_object": [item.name for item in said if item.kind == "implicit"],
        **shape(said, rng),
    }
    text = json.dumps(answer, indent=rng.choice((None, 1)))
    return rng.choice(("{}", "```json\n{}\n```", "Here is the answer.\n{}\nI hope it helps.")).replace("{}", text)


def counted_boxes(item: TrueObject, shown: set[int]) -> dict[int, Box]:
    """By the option `box_times=shown`."""
    return {time: box for time, box in item.boxes.items() if time in shown} or item.boxes


def task_of(reference: list[TrueObject], kind: str, shown: set[int]) -> dict[str, Any]:
    """The task as the metric takes it."""
    objects = [
        {"category": o.category, "kind": o.kind, "intervals": o.intervals, "boxes": counted_boxes(o, shown)}
        for o in reference
    ]
    return {"kind": kind, "objects": objects}


def best_answers(
    said: list[SaidObject] | None, reference: list[TrueObject], shown: set[int], viou: str
) -> list[list[dict[str, Any]] | None]:
    """The metric's input for each best assignment: most objects recognised, then most overlap."""
    if said is None:
        return [None]
    grid = shown.union(*(counted_boxes(item, shown) for item in reference))
    best, answers = (-1, -1.0), []
    for choice in set(itertools.permutations([*range(len(said)), *[None] * len(reference)], len(reference))):
        pairs = [(said[i], j) for j, i in enumerate(choice) if i is not None]
        if any(item.name.split()[0] != reference[j].category for item, j in pairs):
            continue
        answer = [
            {
                "match": j,
                "intervals": [] if item.broken is not None else item.intervals,
                "boxes": {time: boxes for time, boxes in item.boxes.items() if time in grid},
            }
            for item, j in pairs
        ]
        metrics = spatio_temporal_grounding([answer], [task_of(reference, "explicit", shown)], viou=viou)
        rank = len(pairs), round(metrics["O-m_tIoU"] + metrics["O-m_vIoU"], 9)
        answers = [*(answers if rank == best else ()), answer] if rank >= best else answers
        best = max(best, rank)
    return answers
