"""What a set of questions holds, as the paper counts it, and the command that prints it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from barista_bench import cli
from barista_bench.benchmarks.handyvqa import BENCHMARK, Action, Objects
from barista_bench.benchmarks.handyvqa.paper_tables import region_move, set_tables
from barista_bench.data.folder import build
from barista_bench.scene_graph import encode_mask
from barista_bench.tables import number
from tests.handyvqa.made import question, rectangle
from tests.handyvqa.test_segmentation import example_of


def test_table_2_counts_questions_options_and_words() -> None:
    options = ["a red cup", "jar", "lid", "tap", "two words"]
    actions = [question(Action, options, [0]), question(Action, options, [1])]
    several = [question(Objects, options, [0, 1]), question(Objects, [*options, "box"], [2])]
    (table,) = set_tables({"action": actions, "objects": several})
    assert table.values == (("action", 2, 5, 1, 8 / 5), ("objects", 2, 5.5, 1.5, 17 / 11))


def test_table_3_measures_how_regions_move_between_annotated_frames() -> None:
    masks = {0: rectangle(0, 0, 4, 4), 2: rectangle(2, 0, 6, 4), 5: rectangle(2, 3, 6, 7)}
    (table,) = set_tables({"rvos_objects": [example_of(masks), example_of({1: rectangle(0, 0, 2, 2)})]})
    # 2 px across with 8 of 24 px in common, 3 px down with 4 of 28
    assert table.values == (("rvos_objects", 4, 2, pytest.approx(2.5), pytest.approx((1 / 3 + 1 / 7) / 2)),)


def test_a_region_that_is_out_of_view_does_not_move() -> None:
    assert region_move(encode_mask(rectangle(0, 0, 4, 4)), encode_mask(rectangle(0, 0, 0, 0))) is None
    (table,) = set_tables({"rvos_parts": [example_of({1: rectangle(0, 0, 2, 2)})]})
    assert table.values == (("rvos_parts", 1, 1, None, None),)


def test_stats_prints_and_writes_them_of_a_built_set(generated: Callable[[str], Path], tmp_path: Path) -> None:
    data = build(
        generated("handyvqa"), tmp_path / "data", benchmark="handyvqa", configs=("action", "rvos_parts"), cache=False
    ).folder
    command = ["stats", str(data), "--out", str(tmp_path / "s")]
    shown = CliRunner().invoke(cli.app, [*command, "--benchmark", "handyvqa", "--no-plots"])
    assert shown.exit_code == 0, shown.output
    text = (tmp_path / "s" / "statistics.md").read_text()
    assert text in shown.output
    assert "## Table 2: questions" in text
    assert re.search(r"\| action \| \d+ \| 5\.000 \| 1\.000 \|", text)
    assert "| rvos_parts | " in text
    for table in json.loads(CliRunner().invoke(cli.app, [*command, "--benchmark", "handyvqa", "--json"]).stdout):
        assert f"## {table['title']}" in text
        for row in [table["columns"], *table["rows"]]:
            assert f"| {' | '.join(number(value) for value in row)} |" in text
    refused = CliRunner().invoke(cli.app, [*command, "--benchmark", "vista"])
    assert refused.exit_code == 1
    assert "no tables of a set of ViSTa. Remedy" in refused.output
    assert BENCHMARK.set_tables is set_tables
