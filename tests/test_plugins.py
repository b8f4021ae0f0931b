"""docs/plugins.md: what other packages register is found by every command, as ours is."""

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from barista_bench import load_metric
from barista_bench.benchmarks import BENCHMARKS
from barista_bench.core import plugins
from barista_bench.core.plugins import load_plugin, plugin_entries
from barista_bench.errors import ConfigError
from tests.conformance.loading import FOLDERS, own_modules

PACKAGE = Path(__file__).parent / "plugin_package"


def test_ours_are_registered_by_the_means_of_others() -> None:
    assert list(BENCHMARKS) == ["barista", "vista", "handyvqa", "tog_bench", "egocot", "extended"]
    assert set(plugin_entries("models")) >= {"served", "dual", "sam3", "predictions"}
    assert set(plugin_entries("propagators")) >= {"flow", "copy_nearest", "lucas_kanade", "sam"}
    assert sorted(plugin_entries("metrics")) == FOLDERS
    for group in ("benchmarks", "models", "propagators", "segmenters", "metrics"):
        for name in plugin_entries(group):  # type: ignore[arg-type]
            assert load_plugin(group, name) is not None  # type: ignore[arg-type]


def test_a_metric_loads_by_its_name(tmp_path: Path) -> None:
    with own_modules(tmp_path):
        assert load_metric("choice_accuracy").name == "choice_accuracy"


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([("flow", "a:x"), ("flow", "b:x")], "'flow' is registered twice, as a:x and b:x. Fix: uninstall"),
        ([("gone", "nowhere:x")], "'gone' cannot be loaded from nowhere:x .*Fix: correct or uninstall"),
        ([("flow", "a:x")], "no 'gone'. Fix: use one of flow"),
    ],
)
def test_an_unusable_entry_point_is_named(
    entries: list[tuple[str, str]], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = "barista_bench.propagators"
    found = [EntryPoint(name, value, group) for name, value in entries]
    monkeypatch.setattr(plugins, "entry_points", lambda group: found)
    monkeypatch.setattr(plugins, "plugin_entries", plugins.plugin_entries.__wrapped__)
    with pytest.raises(ConfigError, match=message):
        load_plugin("propagators", "gone")


@pytest.mark.full
def test_a_foreign_package_works_with_every_command(small_kitchen: Path, tmp_path: Path) -> None:
    source, site = tmp_path / "source", tmp_path / "site"
    shutil.copytree(PACKAGE, source)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(site), str(source)], check=True, capture_output=True)
    path = os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH"))))

    def command(*arguments: str) -> str:
        done = subprocess.run(
            [str(Path(sys.executable).with_name("barista-bench")), *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path, "HF_HOME": str(tmp_path / "hf")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "kettle" in command("show", "tasks")
    command("build", "--benchmark", "kettle", "--source", str(small_kitchen), "--out", "data")
    for model in ("oracle", "parrot:yes"):
        command("run", "data", "--task", "all", "--model", model, "--repetitions", "1", "--out", f"runs/{model[:6]}")
    command("score", "runs/oracle/open", "runs/parrot/open")
    results = [json.loads((tmp_path / f"runs/{name}/open/results.json").read_text()) for name in ("oracle", "parrot")]
    oracle, parrot = (result["metrics"]["accuracy"]["mean"] for result in results)
    assert oracle == 1.0 > parrot
    command("report", "runs/oracle/open", "runs/parrot/open", "--out", "report")
    assert "Kettle" in (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "parrot:yes" in (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
