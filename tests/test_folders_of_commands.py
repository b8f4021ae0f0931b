"""Every command that writes, pointed at a folder of another one: nothing changes, one line says why."""

import errno
import os
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from barista_bench.cli import commands as cli
from barista_bench.cli.app import exit_on_error
from barista_bench.data.folder import build
from tests.folders import content

invoke = CliRunner().invoke
QUIET = ["--no-progress"]


@pytest.fixture(scope="module")
def data(small_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of one dataset, `barista`, and a run on it, `runs/relations`."""
    folder = tmp_path_factory.mktemp("data")
    sampling = {"relations": {"limit": 4, "frame_step": 10}}
    build(small_release, folder / "barista", configs=["relations"], sampling=sampling, cache=False)
    shown = invoke(
        cli.app,
        ["run", str(folder / "barista"), "--out", str(folder / "runs"), "--model", "oracle", "--repetitions", "1"],
    )
    assert shown.exit_code == 0, shown.output
    return folder


@pytest.mark.parametrize("inside", ["barista", "barista/runs", "barista/relations/deep", "runs/relations/below"])
@pytest.mark.parametrize(
    "command",
    [
        ["run", "{data}/barista", "--model", "oracle", *QUIET],
        ["evaluate", "{data}/barista", "--model", "oracle", *QUIET],
        ["evaluate", "{data}", "--benchmark", "all", "--model", "oracle", *QUIET],
        ["report", "{data}/runs/relations"],
        ["compare", "all", "{data}/runs/relations"],
        ["compare", "judges", "{data}/runs/relations"],
        ["export", "run", "{data}/runs/relations"],
        ["run", "import", "{data}/runs/relations"],
        ["publish", "answers", "{data}/runs/relations"],
        ["show", "stats", "{release}", *QUIET],
        ["build", "--source", "{release}", "--layout", "release", *QUIET],
        ["publish", "submission", "{data}/runs/relations", "--model-repo", "a/b", "--dataset-repo", "a/c"],
    ],
    ids=lambda command: " ".join(command[:1] + command[2:4]),
)
def test_no_command_writes_in_the_folders_of_another(
    data: Path, small_release: Path, command: list[str], inside: str
) -> None:
    before = content(data)
    named = [argument.format(data=data, release=small_release) for argument in command]
    shown = invoke(cli.app, [*named, "--out", str(data / inside)])
    assert shown.exit_code == 1
    assert str(data / inside) in shown.output
    assert "which is a" in shown.output or " is a dataset" in shown.output or ", and is a dataset" in shown.output
    assert "Fix: choose another place" in shown.output
    assert len(shown.output.strip().splitlines()) == 1
    assert content(data) == before


def test_a_benchmark_folder_takes_runs_beside_its_datasets_and_none_inside(data: Path) -> None:
    """`evaluate DATA --benchmark all --out DATA` would put run folders into DATA/barista."""
    before = content(data)
    shown = invoke(
        cli.app, ["evaluate", str(data), "--benchmark", "all", "--model", "oracle", "--out", str(data), *QUIET]
    )
    assert shown.exit_code == 1
    assert f"lies inside {data / 'barista'}, which is a dataset" in shown.output
    assert content(data) == before


@pytest.mark.full
def test_mini_keeps_a_link_and_fills_its_folder(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    shape = ["--videos", "1", "--width", "128", "--height", "72", "--num-proc", "1", *QUIET]
    for _ in range(2):
        assert invoke(cli.app, ["mini", str(tmp_path / "link"), *shape]).exit_code == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "disk" / ".mini_kitchen").is_file()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.ENAMETOOLONG, errno.EACCES, errno.EIO])
def test_an_error_of_the_system_names_the_file_and_the_remedy(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit), exit_on_error():
        raise OSError(number, os.strerror(number), "some/file")
    error = capsys.readouterr().err
    assert error.startswith(f"error: some/file: {os.strerror(number)}. Fix: ")
    assert len(error.splitlines()) == 1
