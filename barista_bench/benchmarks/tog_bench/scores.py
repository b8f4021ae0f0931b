"""From an example and an answer to the metric: what is recognised, which time stamps count, and sums over tasks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from barista_bench.benchmarks.pooling import Floats, ratio, weighted_sums
from barista_bench.benchmarks.tog_bench.recognition import Recogniser, TrueName, assign
from barista_bench.benchmarks.tog_bench.times import snapped
from barista_bench.core.task import Example, Fields, Prediction, Scored
from barista_bench.metrics.spatio_temporal_grounding import (
    MEASURES,
    PredictedObject,
    ReferenceObject,
    ReferenceTask,
    TaskScore,
    score_object,
    score_task,
    summarise,
)

Viou: TypeAlias = Literal["gt_frames", "union"]
BoxTimes: TypeAlias = Literal["shown", "annotated"]
Box: TypeAlias = tuple[float, float, float, float]
DURATION_BIN, LONGEST_BIN = 30, 210
"""Seconds: the paper's figure 5 has bins of 30 s up to 210 s."""
T_IOU, V_IOU = MEASURES.index("m_tIoU"), MEASURES.index("m_vIoU")


@dataclass(frozen=True, slots=True)
class Rules:
    """How answers are scored: everything that the task's options change.

    Args:
        recogniser: which names mean one object.
        viou: which time stamps the overlap of boxes is averaged over: those of the truth, as in V-STaR, or those of
            truth or answer, as in HC-STVG.
        box_times: which annotated boxes are truth: those of the frames shown, or all.
    """

    recogniser: Recogniser
    viou: Viou = "gt_frames"
    box_times: BoxTimes = "shown"

    @property
    def metric_viou(self) -> str:
        return "reference" if self.viou == "gt_frames" else "union"


@dataclass(frozen=True, slots=True)
class Assessed:
    """One scored sample. `matches[i]` is the true object that answered object i is, None for none."""

    score: TaskScore
    names: tuple[str, ...]
    matches: tuple[int | None, ...]
    predicted: tuple[PredictedObject, ...]


def true_objects(example: Example) -> list[Fields]:
    return cast("list[Fields]", example.target["objects"])


def true_names(example: Example) -> list[TrueName]:
    objects = true_objects(example)
    return [TrueName(str(o["category"]), tuple(cast("Sequence[str]", o["synonyms"]))) for o in objects]


def shown_times(inputs: Fields) -> list[float]:
    """Seconds of the frames shown."""
    return cast("list[float]", inputs["times"])


def answered_objects(prediction: Prediction | None) -> list[Fields]:
    return [] if prediction is None else cast("list[Fields]", prediction.value["objects"])


def box_track(item: Fields, shown: Sequence[float], box_times: BoxTimes) -> dict[float, Box]:
    """The true boxes of an object that count, by seconds.

    `shown`: those annotated at the time of a frame shown (of several, the nearest). An object that no frame shown has a
    box of keeps all its boxes: it is to be found, and nobody can say where.
    """
    boxes: dict[float, Box] = {}
    nearest: dict[float, float] = {}
    for time, (x0, y0, x1, y1) in zip(
        cast("list[float]", item["times"]), cast("list[list[float]]", item["boxes"]), strict=True
    ):
        boxes[time] = (x0, y0, x1, y1)
        frame = snapped(time, shown)
        if abs(frame - time) < abs(frame - nearest.get(frame, float("inf"))):
            nearest[frame] = time
    counted = sorted(nearest[frame] for frame in shown if frame in nearest)
    return {time: boxes[time] for time in counted} if box_times == "shown" and counted else boxes


def reference_task(example: Example, box_times: BoxTimes) -> ReferenceTask:
    shown = shown_times(example.inputs)
    return ReferenceTask(
        str(example.metadata["kind"]),
        [
            ReferenceObject(
                str(item["category"]),
                str(item["kind"]),
                [(start, end) for start, end in cast("list[list[float]]", item["intervals"])],
                box_track(item, shown, box_times),
            )
            for item in true_objects(example)
        ],
    )


def _predicted(item: Fields, grid: Sequence[float], *, within: bool) -> PredictedObject:
    """An answered object, its boxes at times of the grid; at others too unless they must be `within` it."""
    boxes: dict[float, list[Box]] = {}
    known = set(grid)
    for entry in cast("list[Fields]", item["boxes"]):
        time = snapped(cast("float", entry["timestamp"]), grid)
        if time in known or not within:
            x0, y0, x1, y1 = cast("list[float]", entry["box"])
            boxes.setdefault(time, []).append((x0, y0, x1, y1))
    intervals = [(start, end) for start, end in cast("list[list[float]]", item["intervals"])]
    return PredictedObject(None, intervals, boxes, bool(item["malformed"]))


def time_grid(reference: ReferenceTask, shown: Sequence[float]) -> list[float]:
    """The times that a predicted time may mean, in order: those of true boxes, and of frames shown without any."""
    known = {time for item in reference.objects for time in item.boxes}
    times = sorted(known)
    return sorted({*times, *(time for time in shown if snapped(time, times) not in known)})


def assess(sample: Scored, rules: Rules) -> Assessed:
    """Recognise, then score. Raises ConfigError where the sentence encoder cannot be loaded."""
    reference = reference_task(sample.example, rules.box_times)
    answered = answered_objects(sample.prediction)
    names = tuple(str(item["name"]) for item in answered)
    grid = time_grid(reference, shown_times(sample.example.inputs))
    # Predicted times count with `union`: those between the frames shown belong to none that is scored.
    predicted = [_predicted(item, grid, within=rules.box_times == "shown") for item in answered]

    def overlap(row: int, column: int) -> float:
        measures = score_object(predicted[row], reference.objects[column], rules.metric_viou)
        return float(measures[T_IOU] + measures[V_IOU]) / 2

    similarity = rules.recogniser.similarities(names, true_names(sample.example))
    matches = assign(similarity, rules.recogniser.threshold, overlap)
    predicted = [item._replace(match=match) for item, match in zip(predicted, matches, strict=True)]
    score = score_task(None if sample.prediction is None else predicted, reference, rules.metric_viou)
    return Assessed(score, names, tuple(matches), tuple(predicted))


def assess_all(samples: Sequence[Scored], rules: Rules) -> list[Assessed]:
    """As `assess`, with all names embedded together first."""
    rules.recogniser.prepare(
        ([str(item["name"]) for item in answered_objects(s.prediction)], true_names(s.example)) for s in samples
    )
    return [assess(sample, rules) for sample in samples]


def task_figures(score: TaskScore) -> dict[str, float]:
    """Figures of one task, whose mean over tasks are the T- and ST- figures; `O-Acc` is its share of objects."""
    means = dict(zip(MEASURES, score.measures.mean(axis=0).tolist(), strict=True))
    strict = float(score.correct)
    return {
        "T-Acc": strict,
        "O-Acc": float(score.recognised.mean()),
        **{f"T-{name}": value for name, value in means.items()},
        **{f"ST-{name}": value * strict for name, value in means.items()},
    }


def figures(scores: Sequence[TaskScore]) -> dict[str, float]:
    """`summarise` without what there is nothing of."""
    return {name: value for name, value in summarise(scores).items() if value is not None}


def grouped(
    scores: Sequence[TaskScore], samples: Sequence[Scored], key: Callable[[Example], str]
) -> dict[str, dict[str, float]]:
    """Figures of the tasks of each group that occurs, by name of the group."""
    groups: dict[str, list[TaskScore]] = {}
    for score, sample in zip(scores, samples, strict=True):
        groups.setdefault(key(sample.example), []).append(score)
    return {name: figures(groups[name]) for name in sorted(groups, key=group_order)}


def group_order(name: str) -> tuple[float, str]:
    """Groups that start with a number come by it.

    >>> sorted(["120-150 s", "30-60 s", "over 210 s", "0-30 s"], key=group_order)
    ['0-30 s', '30-60 s', '120-150 s', 'over 210 s']
    """
    start = name.partition("-")[0].rstrip("+")
    return (float(start) if start.isdecimal() else float("inf"), name)


def duration_bin(seconds: float) -> str:
    """The paper's bin of a video's duration.

    >>> duration_bin(29.9), duration_bin(30), duration_bin(210), duration_bin(1000)
    ('0-30 s', '30-60 s', 'over 210 s', 'over 210 s')
    """
    if seconds >= LONGEST_BIN:
        return f"over {LONGEST_BIN} s"
    start = int(seconds // DURATION_BIN) * DURATION_BIN
    return f"{start}-{start + DURATION_BIN} s"


def count_group(objects: int) -> str:
    """1, 2 or 3+."""
    return str(objects) if objects < 3 else "3+"


def drawn_figures(scores: Sequence[TaskScore], weights: Floats) -> dict[str, NDArray[np.float64]]:
    """(D,) a figure for many draws of tasks: what `figures` would say of each, from sums alone."""
    rows = [_sums(score) for score in scores]
    sums = weighted_sums(rows, weights)
    nothing = np.zeros(len(weights))

    def share(name: str, of: str) -> Floats:
        return ratio(sums.get(name, nothing), sums.get(of, nothing))

    return {
        "O-Acc": share("found", "objects"),
        "EAcc": share("found explicit", "explicit"),
        "IAcc": share("found implicit", "implicit"),
        **{f"O-{name}": share(f"O-{name}", "objects") for name in MEASURES},
        **{name: share(name, "tasks") for name in _task_names()},
        "coverage": share("answered", "tasks"),
    }


def _task_names() -> Iterable[str]:
    return ["T-Acc", *(f"{level}-{name}" for level in ("T", "ST") for name in MEASURES)]


def _sums(score: TaskScore) -> dict[Hashable, float]:
    by_task = task_figures(score)
    sums: dict[Hashable, float] = {name: by_task[name] for name in _task_names()}
    for kind in ("explicit", "implicit"):
        of_kind = score.kinds == kind
        sums[kind], sums[f"found {kind}"] = float(of_kind.sum()), float(score.recognised[of_kind].sum())
    totals = score.measures.sum(axis=0).tolist()
    sums |= {f"O-{name}": total for name, total in zip(MEASURES, totals, strict=True)}
    found, objects = float(score.recognised.sum()), float(score.recognised.size)
    return {**sums, "found": found, "objects": objects, "tasks": 1.0, "answered": float(not score.failed)}
