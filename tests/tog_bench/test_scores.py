"""T-STVG from the answer's text to its figures: against the metric of all assignments, by hand, and by properties."""

import itertools
import json
import random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from barista_bench.benchmarks.tog_bench import TSTVG
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example, Prediction, Scored
from barista_bench.metrics.spatio_temporal_grounding import MEASURES, spatio_temporal_grounding
from barista_bench.metrics.spatio_temporal_grounding.scoring import box_iou
from tests.answering import answered
from tests.tog_bench import made
from tests.tog_bench.made import SaidObject, TrueObject, made_example

SHOWN = set(range(0, 41, 4))
EXACT = TSTVG(options={"matcher": "exact"})
UNION = TSTVG(options={"matcher": "exact", "viou": "union"})


def parsed(task: TSTVG, text: str, example: Example) -> Prediction | None:
    return answered(task, example, text).prediction


def cup(kind: str = "explicit", **boxes: Any) -> TrueObject:
    return TrueObject("cup", kind, [(4, 12)], {4: (0, 0, 10, 10), 8: (0, 0, 10, 10), 12: (0, 0, 10, 10)})


def sink(kind: str = "implicit") -> TrueObject:
    return TrueObject("sink", kind, [(0, 8)], {0: (50, 50, 60, 60), 4: (50, 50, 60, 60)})


def said_as(item: TrueObject, name: str | None = None) -> SaidObject:
    return SaidObject(name or item.category, item.kind, item.intervals, {t: [b] for t, b in item.boxes.items()})


def metrics_of(
    task: TSTVG, reference: list[TrueObject], said: list[SaidObject] | None, **about: Any
) -> dict[str, float]:
    example = made_example(reference, **about)
    return task.score(example, parsed(task, made.written(said, random.Random(0), made.flat), example))


@pytest.mark.full
@pytest.mark.parametrize(("task", "viou"), [(EXACT, "reference"), (UNION, "union")])
def test_every_figure_equals_the_metric_of_a_best_assignment(task: TSTVG, viou: str) -> None:
    rng = random.Random(5)
    samples, answers, references = [], [], []
    for number in range(500):
        reference, kind = made.random_truth(rng), rng.choice(("explicit", "implicit"))
        said = made.random_answer(rng, reference)
        example = made_example(reference, kind=kind, number=number)
        samples.append(answered(task, example, made.written(said, rng)))
        if said == [] and samples[-1].prediction is None:
            said = None  # it holds entries, and none of them can be read
        assert (samples[-1].prediction is None) == (said is None)
        references.append(made.task_of(reference, kind, SHOWN))
        metrics = {**task.aggregate(samples[-1:]), **task.score(example, samples[-1].prediction)}
        # Assignments may be equally good; the figures must belong to one of them.
        fitting = [
            answer
            for answer in made.best_answers(said, reference, SHOWN, viou)
            if is_close(metrics, spatio_temporal_grounding([answer], references[-1:], viou=viou))
        ]
        assert fitting, (number, reference, said)
        answers.append(fitting[0])
    result, wanted = task.aggregate(samples), spatio_temporal_grounding(answers, references, viou=viou)
    assert is_close(result, wanted)
    assert (result["n"], result["n_failed"]) == (500, answers.count(None))
    assert 10 < answers.count(None) < 50
    assert 0 < result["n_malformed"] < 400
    for part in ("by_kind", "by_number_of_objects"):
        assert result[part].keys() == wanted[part].keys()
        assert all(is_close(result[part][name], wanted[part][name]) for name in wanted[part])


def is_close(metrics: dict[str, Any], wanted: dict[str, Any]) -> bool:
    names = [name for name, value in wanted.items() if isinstance(value, float) and name in metrics]
    assert len(names) >= 10
    return all(abs(metrics[name] - wanted[name]) < 1e-9 for name in names)


@pytest.mark.parametrize(
    "names",
    [
        ["bin, recycling", "bin; paper"],
        ["chair 1", "the chair", "Chair"],
        [f"thing {'abcdefghij'[n // 10]}{n}" for n in range(100)],
    ],
    ids=["commas", "alike", "as many as a task may have"],
)
def test_the_oracle_can_answer_all_valid_annotations(names: list[str]) -> None:
    reference = [
        TrueObject(name, "explicit", [(4 * (n % 9), 40)], {4 * (n % 9): (n, n, n + 9, n + 9)})
        for n, name in enumerate(names)
    ]
    example = made_example(reference)
    metrics = EXACT.score(example, parsed(EXACT, EXACT.reference_answer(example, BoxFormat()), example))
    assert metrics == pytest.approx(dict.fromkeys(metrics, 1.0), abs=1e-9)


def test_one_misidentified_object_makes_a_task_zero_under_strict() -> None:
    reference = [cup(), sink()]
    metrics = metrics_of(EXACT, reference, [said_as(reference[0]), said_as(reference[1], "bathtub")])
    assert (metrics["T-Acc"], metrics["O-Acc"]) == (0, 0.5)
    assert (metrics["T-m_tIoU"], metrics["T-m_vIoU"], metrics["T-AP@0.7"]) == (0.5, 0.5, 0.5)
    assert {value for name, value in metrics.items() if name.startswith("ST-")} == {0.0}
    whole = metrics_of(EXACT, reference, [said_as(item) for item in reference])
    assert {value for name, value in whole.items() if name.startswith("ST-")} == {1.0}


def test_an_object_counts_under_either_of_the_two_fields_for_its_name() -> None:
    reference = [cup("explicit"), sink("implicit")]
    said = [said_as(item) for item in reference]
    said[0].kind, said[1].kind = "implicit", "explicit"
    assert metrics_of(EXACT, reference, said)["T-Acc"] == 1


def test_no_answer_and_an_answer_without_objects_score_zero_and_only_the_first_failed() -> None:
    example = made_example([cup()])
    empty = parsed(EXACT, '{"explicit_object": [], "implicit_object": []}', example)
    assert empty is not None
    result = EXACT.aggregate([Scored(example, empty), Scored(example, None)])
    assert (result["T-Acc"], result["O-m_vIoU"], result["coverage"], result["n_failed"]) == (0, 0, 0.5, 1)


def test_of_two_equal_names_the_pairs_that_overlap_more_are_taken() -> None:
    chairs = [
        TrueObject("chair", "implicit", [(0, 8)], {0: (0, 0, 10, 10), 4: (0, 0, 10, 10)}),
        TrueObject("chair", "implicit", [(20, 30)], {20: (50, 0, 60, 10), 24: (50, 0, 60, 10)}),
    ]
    for order in itertools.permutations((0, 1)):
        said = [said_as(chairs[i], f"chair {index + 1}") for index, i in enumerate(order)]
        assert metrics_of(EXACT, chairs, said)["ST-m_vIoU"] == 1


def test_boxes_of_seconds_between_the_frames_shown_count_only_where_the_option_says_so() -> None:
    every = dict.fromkeys(range(4, 13), (0, 0, 10, 10))
    reference = [TrueObject("cup", "explicit", [(4, 12)], every)]
    said = [SaidObject("cup", "explicit", [(4, 12)], {t: [(0, 0, 10, 10)] for t in (4, 8, 12)})]
    assert metrics_of(EXACT, reference, said)["T-m_vIoU"] == 1
    annotated = TSTVG(options={"matcher": "exact", "box_times": "annotated"})
    assert metrics_of(annotated, reference, said)["T-m_vIoU"] == pytest.approx(3 / 9)


def test_boxes_between_the_frames_shown_cost_nothing_even_with_the_union_of_times() -> None:
    said = said_as(cup())
    said.boxes |= {6: [(0, 0, 1, 1)], 10: [(0, 0, 1, 1)]}
    assert metrics_of(UNION, [cup()], [said])["T-m_vIoU"] == 1
    said.boxes |= {20: [(0, 0, 1, 1)]}
    assert metrics_of(UNION, [cup()], [said])["T-m_vIoU"] == 0.75
    assert metrics_of(EXACT, [cup()], [said])["T-m_vIoU"] == 1


def test_an_object_that_no_frame_shown_has_a_box_of_is_scored_at_its_own_seconds() -> None:
    reference = [TrueObject("cup", "explicit", [(5, 7)], {5: (0, 0, 10, 10), 6: (0, 0, 10, 10)})]
    assert metrics_of(EXACT, reference, [said_as(reference[0])])["T-m_vIoU"] == 1
    late = SaidObject("cup", "explicit", [(5, 7)], {4: [(0, 0, 10, 10)], 8: [(0, 0, 10, 10)]})
    assert metrics_of(EXACT, reference, [late])["T-m_vIoU"] == 0


def test_the_nearest_of_several_annotated_boxes_counts_for_a_frame() -> None:
    example = made_example([cup()])
    reference: Any = example.target["objects"]
    reference[0]["times"] = [3.8, 4.1, 4.2, 8.2]
    reference[0]["boxes"] = [[0, 0, 5, 10], [0, 0, 10, 10], [0, 0, 5, 10], [0, 0, 10, 10]]
    track = [{"object": "cup", "time": t, "box": [0, 0, 10, 10]} for t in (4, 8)]
    answer = json.dumps({"explicit_object": "cup", "spatial_tracking": track})
    for task in (EXACT, UNION):
        assert task.score(example, parsed(task, answer, example))["T-m_vIoU"] == 1
    annotated = TSTVG(options={"matcher": "exact", "box_times": "annotated"})
    assert annotated.score(example, parsed(annotated, answer, example))["T-m_vIoU"] == pytest.approx(2 / 4)


def test_a_time_a_quarter_second_off_still_means_the_frame() -> None:
    example = made_example([cup()])
    track = [{"object": "cup", "time": t, "box": [0, 0, 10, 10]} for t in (3.75, 8.25, "0:12.2")]
    answer = {"explicit_object": "cup", "spatial_tracking": track}
    assert EXACT.score(example, parsed(EXACT, json.dumps(answer), example))["T-m_vIoU"] == 1
    track[0]["time"] = 3.74
    assert EXACT.score(example, parsed(EXACT, json.dumps(answer), example))["T-m_vIoU"] == pytest.approx(2 / 3)


@st.composite
def samples_of(draw: st.DrawFn) -> tuple[list[TrueObject], list[SaidObject]]:
    rng = random.Random(draw(st.integers(0, 2**32)))
    reference = made.random_truth(rng)
    said = None
    while said is None:
        said = made.random_answer(rng, reference)
    return reference, said


@given(samples_of(), st.sampled_from([EXACT, UNION]))
def test_metrics_are_between_0_and_1_and_stricter_ones_are_never_higher(
    case: tuple[list[TrueObject], list[SaidObject]], task: TSTVG
) -> None:
    metrics = metrics_of(task, *case)
    assert all(0 <= value <= 1 for value in metrics.values())
    for level in ("T", "ST"):
        for name in ("R1", "AP", "vIoU"):
            steps = [metrics[f"{level}-{name}@{t}"] for t in (0.3, 0.5, 0.7)]
            assert steps == sorted(steps, reverse=True)
    assert all(metrics[f"ST-{m}"] <= metrics[f"T-{m}"] for m in MEASURES)
    assert metrics["T-Acc"] <= metrics["O-Acc"]


def test_boxes_that_differ_only_by_rounding_are_equal() -> None:
    rng = random.Random(0)
    for _ in range(1000):
        x, y = rng.uniform(0, 600), rng.uniform(0, 300)
        box = (x, y, x + rng.uniform(1, 40), y + rng.uniform(1, 40))
        assert box_iou(tuple(side / 3 * 3 for side in box), box) == 1.0
    assert box_iou((0, 0, 1, 1), (0, 0, 1, 1 + 1e-9)) < 1


@given(samples_of())
def test_a_missed_object_that_is_added_as_it_is_never_lowers_a_metric(
    case: tuple[list[TrueObject], list[SaidObject]],
) -> None:
    reference, said = case
    before = metrics_of(EXACT, reference, said)
    names = {item.name.split()[0] for item in said}
    missed = [item for item in reference if item.category not in names]
    after = metrics_of(EXACT, reference, [*said, *(said_as(item) for item in missed[:1])])
    assert all(after[name] >= before[name] - 1e-9 for name in before)
