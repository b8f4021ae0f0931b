"""docs/new_task.md: its task runs as it stands there, from the graph to figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from barista_bench.api import Evaluation
from barista_bench.benchmarks import BENCHMARKS
from barista_bench.benchmarks.barista.relations import Relations
from barista_bench.core.example import Target
from barista_bench.errors import ConfigError

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "new_task.md").read_text(encoding="utf-8")
TASK, PROGRAM, LAWS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(PROMPT,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_a_new_task_takes_less_than_100_lines() -> None:
    assert len(TASK.splitlines()) < 100


def test_the_task_of_the_page_is_built_run_and_scored(
    small_kitchen: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "my_tasks"
    (package / "prompts").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "prompts" / "held_objects.yaml").write_text(PROMPT, encoding="utf-8")
    (tmp_path / "kitchen").symlink_to(small_kitchen)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(BENCHMARKS, "barista", BENCHMARKS["barista"])  # as it was, afterwards
    names: dict[str, object] = {"__name__": "my_tasks.held_objects"}
    exec(TASK + PROGRAM + LAWS, names)
    result = names["result"]
    assert isinstance(result, Evaluation)
    (run,) = result.runs
    assert run.results.figures["accuracy"].mean == 1.0
    assert run.results.coverage.scored == run.results.coverage.expected > 5
    assert len({example.label for example in run.examples.examples}) > 1
    assert (tmp_path / "versions.json").is_file()


def test_a_column_without_a_field_is_refused_by_name() -> None:
    class Empty(Target):
        pass

    class Bare(Relations):
        target_type = Empty

    with pytest.raises(ConfigError, match=r"barista/relations: target_type has no field.*Remedy: give it one"):
        Bare().features()
