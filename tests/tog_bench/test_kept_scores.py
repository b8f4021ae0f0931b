"""A run folder keeps scores by several options side by side, and reading one set writes nothing."""

import logging
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from barista_bench.api import load_results
from barista_bench.cli import commands as cli
from barista_bench.errors import ConfigError, DataError
from barista_bench.runs.score.results import read_results
from barista_bench.runs.score.scoring import read_scored, score
from barista_bench.stats.comparison import compare_pair
from tests.one_run import run

EXACT = {"matcher": "exact"}
SETTINGS = {"benchmark": "tog_bench", "task": ("t_stvg",), "repetitions": 1, "limit": 6, "progress": False}


@pytest.fixture(scope="module")
def made(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of chance and oracle, started with the default options, whose encoder this machine does not have."""
    out = tmp_path_factory.mktemp("runs")
    for model in ("oracle", "chance"):
        run(dataset, out / model, model=model, option={"encoder": "/absent/encoder"}, **SETTINGS)
    return out


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> Path:
    """Both are scored only by equal names."""
    shutil.copytree(made, tmp_path / "runs")
    for model in ("oracle", "chance"):
        score(tmp_path / "runs" / model, options=EXACT)
    return tmp_path / "runs"


def contents(folder: Path) -> dict[str, bytes | None]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def test_metrics_by_other_options_are_kept_beside_and_replace_nothing(runs: Path) -> None:
    folder = runs / "chance"
    assert not (folder / "results.json").exists(), "which is of the run's own options"
    (exact,) = folder.glob("results.*.json")
    before = exact.read_bytes()
    score(folder, options={"matcher": "synonyms"})
    by_matcher = {read_results(path).options["matcher"]: path for path in folder.glob("results.*.json")}
    assert set(by_matcher) == {"exact", "synonyms"}
    assert by_matcher["exact"].read_bytes() == before
    for path in by_matcher.values():
        assert path.with_name(path.name.replace("results", "scores") + "l").is_file()
    first, other = (read_results(path).comparability for path in by_matcher.values())
    assert first != other


COMMANDS: list[list[str]] = [
    ["compare", "{runs}/oracle", "{runs}/chance", "--permutations", "100"],
    ["report", "{runs}/oracle", "{runs}/chance", "--out", "{out}", "--no-compare"],
    ["compare", "all", "{runs}", "--out", "{out}", "--permutations", "100"],
    ["compare", "settings", "{runs}/oracle", "{runs}/chance"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_reading_command_uses_the_kept_options_and_writes_nothing(
    runs: Path, tmp_path: Path, command: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    before = contents(runs)
    for path in (runs, *runs.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    words = [word.format(runs=runs, out=tmp_path / "out") for word in command]
    with caplog.at_level(logging.WARNING):
        done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == (1 if command[1] == "settings" else 0), done.output
    assert contents(runs) == before
    assert "matcher=exact" in caplog.text or command[1] == "settings"


def test_loading_results_in_python_writes_no_file(runs: Path) -> None:
    before = contents(runs)
    by_model = {run.results.model.name: run.results for run in load_results(runs).runs}
    assert by_model["oracle"].options["matcher"] == "exact"
    assert contents(runs) == before


@pytest.mark.full
def test_kept_metrics_determine_the_options_and_the_runs_own_come_first(
    runs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = runs / "chance"
    assert read_scored(folder).results.options["matcher"] == "exact"
    score(folder, options={"matcher": "synonyms"})
    with pytest.raises(ConfigError, match="matcher=exact"):
        read_scored(folder)  # the run's own, which this machine cannot make
    with caplog.at_level(logging.WARNING):
        assert read_scored(folder, options=EXACT).results.options["matcher"] == "exact"
    assert "results." in caplog.text
    assert "choose with --option" in caplog.text


@pytest.mark.parametrize("options", [EXACT, {**EXACT, "viou": "union"}])
def test_runs_scored_by_different_options_are_not_compared(runs: Path, options: dict[str, str]) -> None:
    other = {"matcher": "synonyms"}
    with pytest.raises(DataError, match=r"differ in their .*option matcher: 'exact' and 'synonyms'.*Fix"):
        compare_pair(read_scored(runs / "oracle", options=options), read_scored(runs / "chance", options=other))


def test_a_run_started_with_an_option_keeps_its_metrics_in_results_json(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    shutil.copytree(made / "oracle", folder)
    text = (folder / "run.json").read_text().replace('"matcher": "embeddings"', '"matcher": "exact"')
    (folder / "run.json").write_text(text)
    score(folder)
    assert read_results(folder / "results.json").options["matcher"] == "exact"
    assert not list(folder.glob("results.*.json"))
