"""Boxes that are written in another format than they are read in are noticed; right formats are left in peace."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from barista_bench.benchmarks.barista.grounding import Grounding
from barista_bench.benchmarks.barista.hand_object import HandObject
from barista_bench.benchmarks.handyvqa import Action
from barista_bench.benchmarks.tog_bench.t_stvg import TSTVG
from barista_bench.cli import commands as cli
from barista_bench.core.boxes import BoxFormat, Xyxy, to_grid, write_box
from barista_bench.core.example import Example, FrameRef, Prediction
from barista_bench.core.status import Status
from barista_bench.core.task import Task
from barista_bench.data.folder import build
from barista_bench.data.frozen import read_frozen
from barista_bench.reporting.tables import coverage_table
from barista_bench.runs.log.sample_log import SampleRecord
from barista_bench.runs.score.box_fit import KNOWN_FORMATS, box_fit
from barista_bench.runs.score.results import FEWEST_BOXES, BoxFit, read_results
from barista_bench.runs.score.samples import ScoredSample
from barista_bench.tables import to_markdown
from tests.one_run import run

GRID, PIXELS = BoxFormat("xyxy", 1000), BoxFormat("xyxy", None)
SIZES = ((1000, 1000), (640, 480), (1280, 720), (1920, 1080), (480, 640))
Answer = Callable[[random.Random, Sequence[Xyxy], int, int], Sequence[Xyxy]]


def random_box(rng: random.Random, width: int, height: int) -> Xyxy:
    """A box of any size from a twentieth of a side to all of it."""
    w, h = (rng.uniform(0.05, 1.0) ** rng.choice((1, 2)) * side for side in (width, height))
    w, h = max(w, width / 20), max(h, height / 20)
    x0, y0 = rng.uniform(0, width - w), rng.uniform(0, height - h)
    return x0, y0, x0 + w, y0 + h


def example_of(rng: random.Random, number: int, size: tuple[int, int]) -> tuple[Example, list[Xyxy]]:
    boxes = [random_box(rng, *size) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    grid = [to_grid(box, *size) for box in boxes]
    inputs = {"phrase": "cup", "category": "cup", "frame_width": size[0], "frame_height": size[1]}
    target = {
        "boxes": [list(box) for box in boxes],
        "ground_truth_boxes": grid,
        "bbox_format": "xyxy",
        "bbox_scale": 1000,
    }
    frames = (FrameRef(f"v{number % 3}", number),)
    return Example(f"e{number}", "barista", "grounding", "cup", frames, inputs, target), boxes


def record_of(example: Example, text: str) -> SampleRecord:
    return SampleRecord("k", "f", example.example_id, 0, Status.OK, text)


def sample_of(task: Task, example: Example, text: str, read_as: BoxFormat) -> ScoredSample:
    parsed = task.parse(text, example.inputs, read_as)
    return ScoredSample(example, record_of(example, text), parsed if isinstance(parsed, Prediction) else None)


def fit_of(
    seed: int,
    written: BoxFormat,
    read_as: BoxFormat,
    answer: Answer,
    *,
    count: int = 12,
    sizes: Sequence[tuple[int, int]] = SIZES,
    is_cut: bool = True,
) -> BoxFit | None:
    """The findings for a run of phrase grounding with answers made from the true boxes."""
    rng = random.Random(seed)
    size = rng.choice(sizes)
    task = Grounding(options={"protocol": rng.choice(("release", "paper"))})
    samples = []
    for number in range(count):
        example, true = example_of(rng, number, size)
        boxes = [write_box(box, written, *size, exact=not is_cut) for box in answer(rng, true, *size)]
        samples.append(sample_of(task, example, json.dumps({"bboxes": boxes}), read_as))
    return box_fit(task, read_as, samples)


def exact(rng: random.Random, true: Sequence[Xyxy], width: int, height: int) -> Sequence[Xyxy]:
    return true


def noisy(rng: random.Random, true: Sequence[Xyxy], width: int, height: int) -> Sequence[Xyxy]:
    """Some boxes are missed, others made up, and all are off by up to a fifth of their sides."""
    boxes = []
    for box in true:
        x_shift, y_shift = (box[2] - box[0]) * 0.2, (box[3] - box[1]) * 0.2
        shifts = [rng.uniform(-limit, limit) for limit in (x_shift, y_shift) * 2]
        if rng.random() < 0.8:
            boxes.append(tuple(value + shift for value, shift in zip(box, shifts, strict=True)))
    made_up = [random_box(rng, width, height)] if rng.random() < 0.3 else []
    return [*boxes, *made_up]  # type: ignore[list-item]


def anywhere(rng: random.Random, true: Sequence[Xyxy], width: int, height: int) -> Sequence[Xyxy]:
    """Boxes of a model that sees nothing."""
    return [random_box(rng, width, height) for _ in range(rng.choice((1, 1, 2, 3)))]


def in_the_middle(rng: random.Random, true: Sequence[Xyxy], width: int, height: int) -> Sequence[Xyxy]:
    return [(width / 4, height / 4, width * 3 / 4, height * 3 / 4)]


WRONG = [
    (BoxFormat("xyxy", 1), GRID),
    (PIXELS, GRID),
    (GRID, PIXELS),
    (BoxFormat("yxyx", 1000), GRID),
    (BoxFormat("xywh", 1000), GRID),
    (BoxFormat("xyxy", 1), PIXELS),
    (BoxFormat("xyxy", 100), GRID),
    (GRID, BoxFormat("yxyx", 1000)),
    (BoxFormat("xywh", None), PIXELS),
]


@pytest.mark.parametrize(("written", "read_as"), WRONG, ids=str)
@pytest.mark.parametrize("answer", [exact, noisy])
def test_a_wrong_format_is_named_and_no_other(written: BoxFormat, read_as: BoxFormat, answer: Answer) -> None:
    fits = [fit_of(seed, written, read_as, answer, sizes=SIZES[1:]) for seed in range(8)]
    named = {fit.better_format for fit in fits if fit is not None}
    assert named - {None} == {str(written)}
    if answer is exact:
        assert None not in named


def test_pixels_of_a_picture_of_1000_by_1000_are_the_grid() -> None:
    fit = fit_of(0, PIXELS, GRID, exact, sizes=[(1000, 1000)])
    assert fit is not None
    assert (fit.better_format, fit.without_area, fit.outside) == (None, 0, 0)
    assert fit.mean_best_iou > 0.9


@pytest.mark.full
@pytest.mark.parametrize("answer", [exact, noisy, anywhere, in_the_middle])
def test_right_formats_raise_no_warning_in_200_random_runs(answer: Answer) -> None:
    """Neither of models that see, with noise, misses and boxes that are made up, nor of models that see nothing."""
    for seed in range(200):
        box_format = KNOWN_FORMATS[seed % len(KNOWN_FORMATS)]
        fit = fit_of(seed, box_format, box_format, answer, count=random.Random(seed).choice((5, 8, 12, 20)))
        if fit is not None:
            assert fit.better_format is None, (seed, fit)
            assert max(fit.without_area, fit.outside) <= fit.boxes / 2, (seed, fit)


def test_if_no_box_format_fits_empty_and_outside_boxes_are_counted() -> None:
    def inverted(rng: random.Random, true: Sequence[Xyxy], width: int, height: int) -> Sequence[Xyxy]:
        return [(box[2], box[3], box[0], box[1]) for box in true]

    def beyond(rng: random.Random, true: Sequence[Xyxy], width: int, height: int) -> Sequence[Xyxy]:
        return [(width * 3.0, height * 3.0, width * 3.5, height * 3.5) for _ in true]

    fits = [fit_of(1, PIXELS, PIXELS, answer, is_cut=False) for answer in (inverted, beyond)]
    assert all(fit is not None and fit.better_format is None for fit in fits)
    inside_out, outside = fits
    assert inside_out is not None
    assert outside is not None
    assert inside_out.without_area == inside_out.boxes
    assert outside.outside == outside.boxes


def test_few_answers_and_tasks_without_boxes_have_no_box_fit() -> None:
    assert fit_of(0, PIXELS, GRID, exact, count=FEWEST_BOXES - 1) is None
    example, _ = example_of(random.Random(0), 0, (640, 480))
    plain = replace(example, inputs={"question": "Which?"})
    assert box_fit(Grounding(), GRID, [sample_of(Grounding(), example, "[]", GRID)] * 9) is None
    assert box_fit(Action(), GRID, [ScoredSample(plain, record_of(plain, "B"), None)] * 9) is None


def hands(rng: random.Random, number: int) -> tuple[Task, Example, Callable[[BoxFormat], str]]:
    hand, thing = random_box(rng, 1280, 720), random_box(rng, 1280, 720)
    grid = [to_grid(box, 1280, 720) for box in (hand, thing)]
    true = {"object_id": "o", "category": "cup", "hand_type": "left", "hand_boxes": [grid[0]], "object_box": grid[1]}
    true |= {"hand_pixels": [list(hand)], "object_pixels": list(thing)}
    target = {"interactions": [true], "bbox_format": "xyxy", "bbox_scale": 1000}
    inputs = {"frame_width": 1280, "frame_height": 720}
    example = Example(f"h{number}", "barista", "hand_object", "cup", (FrameRef("v", number),), inputs, target)

    def answer(written: BoxFormat) -> str:
        boxes = [write_box(box, written, 1280, 720) for box in (hand, thing)]
        return json.dumps([{"hand_boxes": boxes[:1], "object_box": boxes[1], "hand_type": "left"}])

    return HandObject(), example, answer


def tracks(rng: random.Random, number: int) -> tuple[Task, Example, Callable[[BoxFormat], str]]:
    times, boxes = [0.0, 1.0], [random_box(rng, 1280, 720) for _ in range(2)]
    inputs = {"instruction": "Tidy up.", "times": times, "frame_width": 1280, "frame_height": 720, "duration": 2.0}
    item = {"category": "cup", "kind": "explicit", "synonyms": [], "intervals": [[0.0, 1.0]], "times": times}
    target = {"objects": [{**item, "boxes": [list(box) for box in boxes]}]}
    frames = (FrameRef("v", 0), FrameRef("v", 30))
    example = Example(f"t{number}", "tog_bench", "t_stvg", "cup", frames, inputs, target)

    def answer(written: BoxFormat) -> str:
        track = [
            {"object": "cup", "time": t, "box": write_box(b, written, 1280, 720)}
            for t, b in zip(times, boxes, strict=True)
        ]
        return json.dumps({"explicit_object": "cup", "temporal_grounding": [[0, 1]], "spatial_tracking": track})

    return TSTVG(options={"matcher": "exact"}), example, answer


@pytest.mark.parametrize("made", [hands, tracks])
@pytest.mark.parametrize(
    "written", [BoxFormat("xyxy", 1), PIXELS, BoxFormat("yxyx", 1000), BoxFormat("xywh", 1000), GRID], ids=str
)
def test_every_task_with_boxes_is_looked_at(made: Any, written: BoxFormat) -> None:
    rng = random.Random(3)
    samples = []
    for number in range(12):
        task, example, answer = made(rng, number)
        samples.append(sample_of(task, example, answer(written), GRID))
    fit = box_fit(task, GRID, samples)
    assert fit is not None
    assert fit.better_format == (None if written == GRID else str(written))


@pytest.fixture(scope="module")
def wrong_run(small_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of true boxes, written as fractions and read as 0..1000; each answer has an entry that is no box."""
    root = tmp_path_factory.mktemp("wrong_format")
    sampling = {"limit": 12, "in_activities": False, "with_relations": False, "fraction": 1.0}
    build(small_release, root / "set", configs=["grounding"], sampling=sampling, cache=False)
    rows: list[object] = [{"format": "barista_bench.predictions/1", "box_format": "xyxy/1000"}]
    for example in read_frozen(root / "set/frozen/grounding.jsonl", "barista"):
        answer = json.loads(Grounding().reference_answer(example, BoxFormat("xyxy", 1)))
        rows.append({"example_id": example.example_id, "answer": json.dumps({"bboxes": [*answer["bboxes"], "?"]})})
    (root / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run(root / "set", root / "run", task="grounding", model=f"predictions:{root / 'answers.jsonl'}", repetitions=1)
    return root / "run"


@pytest.mark.full
def test_score_and_report_name_the_flag_and_count_dropped_boxes(wrong_run: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(cli.app, ["score", str(wrong_run)])
    assert done.exit_code == 0, done.output
    assert "fit far better as xyxy/1 " in done.output
    assert "--box-format xyxy/1" in done.output
    assert ", 12 entries dropped" in done.output
    results = read_results(wrong_run / "results.json")
    assert results.box_fit is not None
    assert results.box_fit.better_format == "xyxy/1"
    assert results.coverage.dropped == results.coverage.statuses["ok"] == 12
    done = CliRunner().invoke(cli.app, ["report", str(wrong_run), "--out", str(tmp_path / "report")])
    assert done.exit_code == 0, done.output
    page, text = ((tmp_path / "report" / name).read_text(encoding="utf-8") for name in ("report.html", "report.md"))
    assert "--box-format xyxy/1" in page
    assert "--box-format xyxy/1" in text
    table = to_markdown(coverage_table([("model", results)]))
    assert "entries of answers: dropped" in table[0]
    assert table[2].endswith(" **12** |")
