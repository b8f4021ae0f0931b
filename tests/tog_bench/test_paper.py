"""The counterparts of the paper's tables and figures."""

import random
from typing import Any

import pytest

from barista_bench.benchmarks.tog_bench import BENCHMARK, TSTVG
from barista_bench.benchmarks.tog_bench.paper_tables import SWEEP, paper_tables, set_tables
from barista_bench.core.example import Scored
from barista_bench.core.model_samples import ModelSamples
from barista_bench.tables import Table
from tests.answering import answered
from tests.tog_bench import made

EXACT = TSTVG(options={"matcher": "exact"})


def samples_of(seed: int, task: TSTVG = EXACT, count: int = 60) -> tuple[Scored, ...]:
    rng, answers = random.Random(seed), random.Random(seed + 1)
    rng = random.Random(7)  # the tasks are the same for all models
    samples = []
    for number in range(count):
        reference = made.random_truth(rng)
        kind = rng.choice(("explicit", "implicit"))
        example = made.made_example(reference, kind=kind, number=number, video=f"room_{number % 4}")
        example.metadata["duration_bin"] = ("30-60 s", "90-120 s", "120-150 s", "over 210 s")[number % 4]
        samples.append(answered(task, example, made.written(made.random_answer(answers, reference), answers)))
    return tuple(samples)


def made_models() -> list[ModelSamples]:
    return [ModelSamples("one", EXACT, (samples_of(1), samples_of(2))), ModelSamples("two", EXACT, (samples_of(3),))]


def tables(models: list[ModelSamples] | None = None) -> dict[str, Table]:
    return {item.title.partition(":")[0]: item for item in paper_tables(models or made_models())}


def test_every_table_and_metric_of_results_has_its_counterpart() -> None:
    assert BENCHMARK.paper_tables is paper_tables
    by_title = tables()
    charts = [title for title, table in by_title.items() if table.drawn]
    assert charts == ["Figure 5", "Figure 4", "Figure 6"]
    others = {title: table for title, table in by_title.items() if not table.drawn}
    assert list(others) == ["Table 1", "Table 2", "Table 4", "Table 5", "Table 8", "Figure 3"]
    assert all(len(row) == len(table.heads) for table in others.values() for row in table.values)
    assert paper_tables([]) == paper_tables([ModelSamples("one", EXACT, ((),))]) == []


@pytest.mark.full
def test_the_levels_are_the_mean_of_the_aggregate_over_runs() -> None:
    first, two = made_models()
    for name, prefix in (("Table 1", "T-"), ("Table 2", "O-"), ("Table 8", "ST-")):
        table = tables()[name]
        assert {c[: len(prefix)] for c in table.heads[1:]} <= {prefix, "EA", "IA"}
        for model, row in zip((first, two), table.values, strict=True):
            results = [EXACT.aggregate(run) for run in model.repetitions]
            assert row[0] == model.model
            for column, cell in zip(table.heads[1:], row[1:], strict=True):
                assert cell == pytest.approx(sum(r[column] for r in results) / len(results))  # type: ignore[arg-type, misc]


def test_groups_equal_the_groups_of_the_aggregate() -> None:
    result: Any = EXACT.aggregate(samples_of(3))
    kinds, counts, durations = (result[f"by_{name}"] for name in ("kind", "number_of_objects", "duration"))
    by_title = tables()
    table = by_title["Table 4"]
    assert table.heads[1:3] == ("T-EAcc", "T-m_EtIoU")
    assert table.heads[-1] == "T-IAP@0.5"
    names = ("T-Acc", "T-m_tIoU", "T-R1@0.5", "T-m_vIoU", "T-AP@0.5")
    wanted = [kinds[kind][name] for kind in ("explicit", "implicit") for name in names]
    assert table.values[1][1:] == pytest.approx(wanted)
    names = ("T-Acc", "T-m_tIoU", "T-m_vIoU")
    wanted = [counts[count][name] for count in ("1", "2", "3+") for name in names] + [result[n] for n in names]
    assert by_title["Table 5"].values[1][1:] == pytest.approx(wanted)
    points = by_title["Figure 5"].series["two: T-Acc"]
    assert list(points) == ["30-60 s", "90-120 s", "120-150 s", "over 210 s"]
    assert points == pytest.approx({group: durations[group]["T-Acc"] for group in points})


def test_the_set_is_counted_once_for_any_number_of_models_and_runs() -> None:
    by_title = tables()
    assert sum(int(str(row[-1])) for row in by_title["Figure 3"].values) == 60
    assert sum(by_title["Figure 4"].series["videos"].values()) == 4
    objects = sum(len(s.example.target["objects"]) for s in samples_of(1))  # type: ignore[arg-type]
    assert sum(sum(points.values()) for points in by_title["Figure 6"].series.values()) == objects


def test_a_group_that_does_not_occur_has_empty_cells() -> None:
    explicit = tuple(s for s in samples_of(1) if s.example.metadata["kind"] == "explicit")
    table = tables([ModelSamples("one", EXACT, (explicit,))])["Table 4"]
    assert table.values[0][6:] == (None,) * 5
    assert all(cell is not None for cell in table.values[0][:6])


def test_the_sweep_shows_what_other_thresholds_recognise(encoder: str) -> None:
    task = TSTVG(options={"encoder": encoder, "threshold": 0.7})
    run = samples_of(1, task, 30)
    chart = tables([ModelSamples("one", task, (run,))])["Recognition by the threshold of similarity"]
    assert list(chart.series) == ["one: O-Acc", "one: T-Acc", "one: T-m_vIoU"]
    assert list(chart.series["one: O-Acc"]) == list(SWEEP)
    for name in ("O-Acc", "T-Acc", "T-m_vIoU"):
        values = list(chart.series[f"one: {name}"].values())
        assert values[SWEEP.index(0.7)] == pytest.approx(task.aggregate(run)[name])
        strict = TSTVG(options={"encoder": encoder, "threshold": 1.0})
        assert values[-1] == pytest.approx(strict.aggregate(run)[name])
    assert "Recognition by the threshold of similarity" not in tables(), "exact names have no threshold"


def test_a_set_without_runs_is_counted_and_each_scene_has_its_key_objects() -> None:
    rng = random.Random(0)
    examples = [made.made_example(made.random_truth(rng), number=number) for number in range(6)]
    for number, example in enumerate(examples):
        takes = ["lamp", *(f"object {index}" for index in range(12))] if number % 2 else ["cup"]
        example.metadata.update(scene="Office" if number % 2 else "Kitchen", categories=[*takes, takes[0]])
    *_, key_objects = set_tables({"t_stvg": examples})
    assert [row[0] for row in key_objects.values] == ["Kitchen", "Office"]
    assert key_objects.values[0][1] == "cup (3)", "a task counts once"
    assert str(key_objects.values[1][1]).startswith("lamp (3), object 0 (3), object 1 (3), object 10 (3)")
    assert str(key_objects.values[1][1]).count(",") == 11
    titles = [item.title.partition(":")[0] for item in set_tables({"t_stvg": examples})]
    assert titles == ["Figure 3", "Figure 4", "Figure 6", "Table 7"]
    assert set_tables({}) == []
