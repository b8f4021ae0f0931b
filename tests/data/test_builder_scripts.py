"""Each benchmark has a builder script; all are a few lines over one function."""

from collections.abc import Callable
from pathlib import Path

import pytest

from barista_bench.benchmarks import BENCHMARKS
from barista_bench.data.builder_script import build_from_arguments
from barista_bench.data.dataset import config_names

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if name not in ("extended", "made")])
def test_each_benchmark_has_a_script_of_its_name(name: str) -> None:
    assert f'build_from_arguments("{name}", __doc__)' in (SCRIPTS / f"{name}.py").read_text()


def test_the_function_builds_the_named_configs(
    generated: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = generated("handyvqa"), tmp_path / "out"
    arguments = ["--source", str(source), "--out", str(out), "--configs", "action", "--frames", "linked"]
    build_from_arguments("handyvqa", "Builds.", arguments)
    assert config_names(out) == ("action",)
    assert capsys.readouterr().out.startswith("action {'test': ")
