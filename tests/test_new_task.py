"""docs/new_task.md: its task runs unchanged, from the graph to figures."""

import re
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from barista_bench.api import Evaluation
from barista_bench.benchmarks import BENCHMARKS
from barista_bench.benchmarks.barista.relations import Relations
from barista_bench.core import plugins
from barista_bench.core.example import Target
from barista_bench.errors import ConfigError

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "new_task.md").read_text(encoding="utf-8")
CHOICE, PACKAGE, PROGRAM, LAWS, OTHER = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
PROMPTS = re.findall(r"`prompts/(\w+)\.yaml`:\n\n```yaml\n(.*?)```", PAGE, re.DOTALL)
(PROJECT,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


def test_a_task_of_a_kind_takes_45_lines_and_another_70() -> None:
    assert len(CHOICE.splitlines()) <= 45
    assert len(OTHER.splitlines()) <= 70


@pytest.mark.parametrize("task", ["held_object", "held_objects"])
def test_the_tasks_of_the_page_keep_the_laws_and_are_built_run_and_scored(
    task: str, small_kitchen: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_task(text: str) -> str:
        return text if task == "held_object" else text.replace("held_object", task).replace("HeldObject", "HeldObjects")

    package = tmp_path / "my_tasks"
    (package / "prompts").mkdir(parents=True)
    for name, prompt in PROMPTS:
        (package / "prompts" / f"{name}.yaml").write_text(prompt, encoding="utf-8")
    (package / "__init__.py").write_text(of_task(PACKAGE), encoding="utf-8")
    (package / f"{task}.py").write_text(CHOICE if task == "held_object" else OTHER, encoding="utf-8")
    entries = tomllib.loads(PROJECT)["project"]["entry-points"]["barista_bench.benchmarks"]
    found = {name: EntryPoint(name, value, "barista_bench.benchmarks") for name, value in entries.items()}
    monkeypatch.setattr(plugins, "plugin_entries", lambda group: found)  # as if installed before this process began
    for name in found:
        monkeypatch.setitem(BENCHMARKS.data, name, None)
    (tmp_path / "kitchen").symlink_to(small_kitchen)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("my_tasks", f"my_tasks.{task}"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    names: dict[str, object] = {}
    exec(of_task(PROGRAM + LAWS), names)
    result = names["result"]
    assert isinstance(result, Evaluation)
    (run,) = result.runs
    assert run.results.metrics["accuracy"].mean == 1.0
    assert run.results.coverage.scored == run.results.coverage.expected > 5
    assert len({str(example.target) for example in run.examples.examples}) > 1
    assert (tmp_path / "versions.json").is_file()


def test_a_column_without_a_field_is_refused_by_name() -> None:
    class Empty(Target):
        pass

    class Bare(Relations):
        target_type = Empty

    with pytest.raises(ConfigError, match=r"barista/relations: target_type has no field.*Fix: add a field"):
        Bare().features()
