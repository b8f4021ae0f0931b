"""What docs/handyvqa.md says holds."""

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from barista_bench.benchmarks.handyvqa import BENCHMARK
from barista_bench.benchmarks.handyvqa.records import ItemRecord
from barista_bench.benchmarks.handyvqa.release import open_release
from barista_bench.core.task import Task
from barista_bench.scene_graph.shown_format import record_schema

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "handyvqa.md").read_text()
SCHEMA = json.loads((DOCS / "handyvqa.schema.json").read_text())


def test_the_documented_schema_equals_the_readers() -> None:
    assert record_schema(ItemRecord) == {name: value for name, value in SCHEMA.items() if name != "$schema"}


def test_the_record_shown_fits_the_schema_and_loads(tmp_path: Path) -> None:
    (shown,) = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
    Draft202012Validator(SCHEMA).validate(json.loads(shown))
    (tmp_path / "rvos_parts").mkdir()
    (tmp_path / "rvos_parts/any.json").write_text(shown)
    release = open_release(tmp_path, None)
    assert not release.problems
    assert [question.item_id for question in release.questions["rvos_parts"]] == ["rvos_parts_0001"]


@pytest.mark.parametrize("task", BENCHMARK.tasks, ids=lambda task: task.name)
def test_configs_options_and_primary_metrics_are_named(task: type[Task]) -> None:
    assert f"`{task.name}`" in TEXT
    assert f"`{task.primary}`" in TEXT
    for name, option in task.options.items():
        assert f"| `{name}` |" in TEXT
        assert all(str(choice) in TEXT for choice in option.choices)


def test_formats_are_named() -> None:
    assert BENCHMARK.formats
    assert all(f"--format {name} " in TEXT for name in BENCHMARK.formats)
