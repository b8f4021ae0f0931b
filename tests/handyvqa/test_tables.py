"""The paper's tables and figures out of scored samples."""

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from barista_bench.benchmarks.handyvqa import BENCHMARK, Action, Location, Objects, Parts, Process, RvosObjects, State
from barista_bench.benchmarks.handyvqa.paper_tables import ScoredTask, paper_tables, region_move, set_tables
from barista_bench.cli import commands as cli
from barista_bench.core.example import Scored
from barista_bench.core.intervals import ResampledRepetition, repetition_intervals
from barista_bench.core.model_samples import ModelSamples
from barista_bench.core.task import Task
from barista_bench.data.folder import build
from barista_bench.scene_graph import encode_mask
from barista_bench.tables import RangedScore, Table, number
from tests.answering import answered
from tests.handyvqa.made import BOXES, CUPS, question, rectangle
from tests.handyvqa.test_segmentation import EXAMPLE, example_of, read

SINGLE: tuple[type[Task], ...] = (Action, Process, Location, State, Parts)


def run_of(task: Task, rights: Sequence[bool | None], frames: int = 16, n: int = 5) -> tuple[Scored, ...]:
    """Answers to questions of one video each; None is an unanswered one."""
    options = [f"{cup} {k}" for k in range(3) for cup in CUPS][:n]
    samples = []
    for place, is_right in enumerate(rights):
        example = question(type(task), options, [1], f"{task.name}_{place}", f"video_{place % 7}")
        example = replace(example, metadata={**example.metadata, "n_frames": frames})
        text = "no idea" if is_right is None else task.reference_answer(example, BOXES) if is_right else "(A) wrong"
        samples.append(answered(task, example, text))
    return tuple(samples)


def model(
    name: str, seed: int, frames: int = 16, tasks: Sequence[type[Task]] = (*SINGLE, Objects)
) -> list[ModelSamples]:
    rng = random.Random(seed)
    return [
        ModelSamples(
            name,
            (reader := task()),
            tuple(run_of(reader, [rng.choice([True, True, False, None]) for _ in range(30)], frames) for _ in range(2)),
        )
        for task in tasks
    ]


def table(shown: Sequence[Table], title: str) -> Table:
    (match,) = [item for item in shown if item.title.startswith(title)]
    return match


def cells_of(shown: Table, row: int = 0) -> dict[str, object]:
    return dict(zip(shown.heads, shown.values[row], strict=True))


def value(cell: object) -> float:
    return cell.value if isinstance(cell, RangedScore) else float(cell)  # type: ignore[arg-type]


def test_table_4_holds_each_category_its_coverage_and_the_average() -> None:
    entries = model("m", 1)
    paper_table = table(paper_tables(entries), "Table 4: accuracy")
    assert len(paper_table.values) == 1
    cells = cells_of(paper_table)
    means = []
    for entry in entries:
        metrics = [entry.task.aggregate(run) for run in entry.repetitions]
        title = entry.task.name.capitalize()
        name = "Objects (AP)" if entry.task.name == "objects" else title
        expected = np.mean([metric[entry.task.primary] for metric in metrics])
        assert value(cells[name]) == pytest.approx(expected)
        assert value(cells[f"{title} answered"]) == pytest.approx(np.mean([metric["coverage"] for metric in metrics]))
        means.append(expected)
    assert value(cells["Avg."]) == pytest.approx(np.mean(means[:5]))
    assert (cells["Model"], cells["Settings"]) == ("m", "16 frames")


def test_every_row_has_a_cell_for_every_column_and_missing_runs_leave_it_empty() -> None:
    items = paper_tables([*model("m", 1), *model("n", 2, tasks=[Action])])
    for item in items:
        assert {len(row) for row in item.values} == {len(item.heads)}
    cells = cells_of(table(items, "Table 4: accuracy"), 1)
    assert [cells[name] is None for name in ("Avg.", "Process", "Action")] == [True, True, False]


def test_tables_and_results_give_the_same_interval_and_one_resampling_unit_gives_none() -> None:
    (entry,) = model("m", 3, tasks=[Action])
    shown = ScoredTask.of(entry).metrics["accuracy"]
    ends = repetition_intervals([ResampledRepetition.of(entry.task, run, "m") for run in entry.repetitions])["accuracy"]
    assert isinstance(shown, RangedScore)
    assert (shown.low, shown.high) == (ends.low, ends.high)
    assert 0 <= shown.low < shown.value < shown.high <= 1
    alone = ModelSamples("m", entry.task, (run_of(entry.task, [True]),))
    assert ScoredTask.of(alone).metrics["accuracy"] == 1.0


@pytest.mark.full
def test_runs_with_other_frames_are_rows_and_points_of_one_line() -> None:
    items = paper_tables([*model("m", 1, 4), *model("m", 2, 16), *model("n", 3, 16)])
    paper_table = table(items, "Table 4: accuracy")
    assert [row[:2] for row in paper_table.values] == [("m", "4 frames"), ("m", "16 frames"), ("n", "16 frames")]
    charts = [item for item in items if item.drawn]
    assert [chart.title[:8] for chart in charts] == ["Figure 3", "Figure 4"]
    lines = {name: [*points] for name, points in charts[0].series.items()}
    assert lines == {"m": [4, 16], "n": [16]}
    assert not [item for item in paper_tables(model("m", 1)) if item.drawn]


def test_runs_at_other_resolutions_are_points_of_one_line_whether_the_task_or_the_run_scales() -> None:
    entries = []
    for option, of_run in ((None, 224), (448, None), (448, 896), (None, None)):
        for entry in model("m", 1, tasks=[Objects]):
            task = Objects(options={"max_side": option})
            settings = {"max_side": of_run} if of_run else {}
            entries.append(replace(entry, model=f"m (run {len(entries)})", name="m", task=task, settings=settings))
    (drawn,) = [item for item in paper_tables(entries) if item.drawn]
    assert drawn.title.startswith("Figure 4: average precision for Objects, by resolution")
    assert {name: [*points] for name, points in drawn.series.items()} == {"m (16 frames)": [224, 448]}


def test_the_number_of_options_distinguishes_objects() -> None:
    task = Objects()
    runs = (run_of(task, [True, False, None] * 3, n=5) + run_of(task, [True, True], n=7),)
    paper_table = table(paper_tables([ModelSamples("m", task, runs)]), "Objects by number of options")
    assert [row[2:4] for row in paper_table.values] == [(5, 9), (7, 2)]
    cells = cells_of(paper_table, 1)
    assert (value(cells["AP"]), value(cells["Chance"])) == (1.0, pytest.approx(1 / 7))
    assert value(cells_of(paper_table)["Answered"]) == pytest.approx(2 / 3)


def test_table_5_names_the_settings_of_segmentation() -> None:
    entries = []
    for options in ({}, {"mode": "frame_wise", "truth_options": True}):
        task = RvosObjects(options=options)
        samples = (Scored(EXAMPLE, read(task.reference_answer(EXAMPLE, BOXES), EXAMPLE, task)), Scored(EXAMPLE, None))
        entries.append(ModelSamples("m", task, (samples,)))
    paper_table = table(paper_tables(entries), "Table 5")
    assert [row[1] for row in paper_table.values] == ["6 frames", "6 frames, mode=frame_wise, truth_options=true"]
    cells = cells_of(paper_table)
    assert [value(cells[f"Objects {name}"]) for name in ("J", "F", "J&F", "answered")] == [0.5] * 4
    assert cells["Parts J"] is None


def test_table_2_counts_questions_options_and_words() -> None:
    options = ["a red cup", "jar", "lid", "tap", "two words"]
    actions = [question(Action, options, [0]), question(Action, options, [1])]
    several = [question(Objects, options, [0, 1]), question(Objects, [*options, "box"], [2])]
    (table,) = set_tables({"action": actions, "objects": several})
    assert table.values == (("action", 2, 5, 1, 8 / 5), ("objects", 2, 5.5, 1.5, 17 / 11))


def test_figure_2_counts_questions_by_scenario() -> None:
    actions = [question(Action, ["a", "b"], [0], f"a{n}") for n in range(3)]
    named = [
        replace(example, metadata={**example.metadata, "scenario": scenario})
        for example, scenario in zip(actions, ("garden", "kitchen", "kitchen"), strict=True)
    ]
    (_, figure) = set_tables({"action": named})
    assert figure.values == (("kitchen", 2), ("garden", 1))


def test_table_3_measures_how_regions_move_between_annotated_frames() -> None:
    masks = {0: rectangle(0, 0, 4, 4), 2: rectangle(2, 0, 6, 4), 5: rectangle(2, 3, 6, 7)}
    (table,) = set_tables({"rvos_objects": [example_of(masks), example_of({1: rectangle(0, 0, 2, 2)})]})
    # 2 px across with 8 of 24 px in common, 3 px down with 4 of 28
    assert table.values == (("rvos_objects", 4, 2, pytest.approx(2.5), pytest.approx((1 / 3 + 1 / 7) / 2)),)
    # A region that is out of view does not move.
    assert region_move(encode_mask(rectangle(0, 0, 4, 4)), encode_mask(rectangle(0, 0, 0, 0))) is None
    (table,) = set_tables({"rvos_parts": [example_of({1: rectangle(0, 0, 2, 2)})]})
    assert table.values == (("rvos_parts", 1, 1, None, None),)


def test_stats_prints_and_writes_them_of_a_built_set(generated: Callable[[str], Path], tmp_path: Path) -> None:
    data = build(
        generated("handyvqa"), tmp_path / "data", benchmark="handyvqa", configs=("action", "rvos_parts"), cache=False
    ).folder
    command = ["show", "stats", str(data), "--out", str(tmp_path / "s")]
    shown = CliRunner().invoke(cli.app, [*command, "--benchmark", "handyvqa", "--no-plots"])
    assert shown.exit_code == 0, shown.output
    text = (tmp_path / "s" / "statistics.md").read_text()
    assert text in shown.output
    assert "## Table 2: questions" in text
    assert re.search(r"\| action \| \d+ \| [45]\.000 \| 1\.000 \|", text)
    assert "| rvos_parts | " in text
    for table in json.loads(CliRunner().invoke(cli.app, [*command, "--benchmark", "handyvqa", "--json"]).stdout):
        assert f"## {table['title']}" in text
        for row in [table["columns"], *table["rows"]]:
            assert f"| {' | '.join(number(value) for value in row)} |" in text
    refused = CliRunner().invoke(cli.app, [*command, "--benchmark", "vista"])
    assert refused.exit_code == 1
    assert "no tables of a set of ViSTa. Fix" in refused.output
    assert BENCHMARK.set_tables is set_tables
