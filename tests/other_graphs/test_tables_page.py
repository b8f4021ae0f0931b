"""docs/other_graphs.md: the example of tables runs as it is written. Every key of a map, tool and format is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from typer.testing import CliRunner

from barista_bench.cli import commands as cli
from barista_bench.interchange.mask_formats import ReadFormat
from barista_bench.other_graphs import Tool
from barista_bench.other_graphs.table_map import TableMap
from barista_bench.scene_graph import SceneGraph
from tests.releases import write_video

PAGE = (Path(__file__).parents[2] / "docs" / "other_graphs.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("### Your own tables")[2].partition("## Incomplete graphs")[0]
FILES = dict(re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)```", SECTION, re.DOTALL | re.MULTILINE))
COMMANDS = re.findall(r"^    barista-bench (.*)$", SECTION, re.MULTILINE)


TABLES = {"Annotations of other tools": get_args(Tool), "Masks": get_args(ReadFormat)}


def test_the_example_of_tables_runs_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("annotations").mkdir()
    write_video(Path("annotations") / "v1.mp4")
    for name, content in FILES.items():
        Path("map.yaml" if name == "map.yaml" else f"annotations/{name}").write_text(content, encoding="utf-8")
    assert set(FILES) == {"boxes.csv", "facts.json", "map.yaml"}
    for command in COMMANDS:
        done = CliRunner().invoke(cli.app, shlex.split(command))
        assert done.exit_code == 0, done.output
    (graph,) = SceneGraph("graphs")
    assert [(row.source.category, row.value, row.start, row.end) for row in graph.relations()] == [
        ("left hand", "holds", 10, 12)
    ]
    assert [(row.name, row.start, row.end) for row in graph.activities()] == [("Take cup", 10, 30)]
    assert len(COMMANDS) == 3


def test_the_page_names_every_key_of_a_map() -> None:
    keys = {name for record in msgspec.json.schema(TableMap)["$defs"].values() for name in record["properties"]}
    assert not [key for key in keys if f"`{key}`" not in PAGE]


@pytest.mark.parametrize("name", sorted({*get_args(Tool), *get_args(ReadFormat)}))
def test_the_page_has_a_row_for_each_tool_and_format(name: str) -> None:
    rows = [part for part, names in TABLES.items() if name in names]
    found = re.findall(rf"^\| `{name}`.* \|$", PAGE, re.MULTILINE)
    assert len(found) == len(rows), f"write a row for {name} in docs/other_graphs.md: {rows}"
