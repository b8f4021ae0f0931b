"""`evaluate` of a release: from nothing to a report in one command, and the dataset is built once."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from barista_bench import evaluate
from barista_bench.cli.commands import app
from barista_bench.data import cached_build
from barista_bench.data.cached_build import dataset_of
from tests.folders import content
from tests.hub_standin import HubStandIn
from tests.releases import document, write_release


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "barista_bench" / "built"


Built = list[tuple[str, dict[str, object]]]


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Built:
    """Records the builds and builds nothing."""
    calls: Built = []

    def build(source: str, out: Path, **settings: object) -> None:
        calls.append((source, settings))
        out.mkdir(parents=True)
        (out / "barista_bench.json").write_text(json.dumps({"problems": {"lost_videos": 0}}))

    monkeypatch.setattr("barista_bench.data.folder.build", build)
    return calls


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return write_release(tmp_path / "release", "v0", document("capsule"))


def test_a_release_is_built_once_while_its_content_version_and_settings_stay(
    release: Path, built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = dataset_of(str(release), "barista")
    copy = shutil.copytree(release, tmp_path / "copy")
    assert dataset_of(str(copy), "barista", num_proc=2) == first
    assert len(built) == 1
    folders = {first, dataset_of(str(release), "extended"), dataset_of(str(release), "barista", protocol="paper")}
    (copy / "v0" / "video.mp4").write_bytes(b"other frames")
    folders.add(dataset_of(str(copy), "barista"))
    monkeypatch.setattr(cached_build, "__version__", "another")
    folders.add(dataset_of(str(release), "barista"))
    assert len(folders) == len(built) == 5


def test_a_folder_without_a_release_stays_as_it_is(built: Built, release: Path, tmp_path: Path) -> None:
    (tmp_path / "data" / "relations").mkdir(parents=True)
    (tmp_path / "data" / "relations" / "all-0.parquet").touch()
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "barista_bench.json").touch()
    for name, benchmark in (("data", "vista"), ("made", "vista"), ("made", "barista"), ("release", "all")):
        assert dataset_of(str(tmp_path / name), benchmark) == str(tmp_path / name)
    assert dataset_of("barista", "barista") == "barista"
    assert built == []


def test_a_release_on_the_hub_is_built_at_its_newest_commit_and_a_dataset_there_is_not(
    hub: HubStandIn, built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.endpoint)
    hub.commit("org/kitchen", {"v0/coco_annotation.json": b"{}"})
    hub.commit("org/made", {"relations/all-0.parquet": b""})
    first = dataset_of("org/kitchen", "barista")
    assert dataset_of("org/kitchen", "barista") == first
    (call,) = built
    hub.commit("org/kitchen", {"v1/coco_annotation.json": b"{}"})
    assert dataset_of("org/kitchen", "barista") != first
    assert call[0] == "org/kitchen"
    assert len(str(call[1]["revision"])) == 40
    for name in ("org/made", "org/nothing"):
        assert dataset_of(name, "barista") == name


def evaluated(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["evaluate", *map(str, arguments), "--model", "oracle", "--repetitions", "1"])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.full
def test_one_command_leads_from_a_release_to_a_report_and_a_second_model_finds_the_dataset(
    small_kitchen: Path, tmp_path: Path, cache: Path
) -> None:
    first = evaluated(small_kitchen, "--task", "grounding,relations", "--out", tmp_path / "runs")
    (folder,) = cache.iterdir()
    assert f"published settings: {folder}" in first
    assert (tmp_path / "runs" / "report" / "report.html").is_file()
    before = content(folder)
    assert str(folder) in evaluated(small_kitchen, "--task", "activity", "--out", tmp_path / "more")
    assert content(folder) == before
    assert [path.name for path in cache.iterdir()] == [folder.name]
    assert evaluate(small_kitchen, "chance", task="relations", repetitions=1, out=tmp_path / "other").runs


@pytest.mark.full
def test_a_release_of_another_benchmark_is_built_too(
    generated: Callable[[str], Path], tmp_path: Path, cache: Path
) -> None:
    evaluated(generated("handyvqa"), "--benchmark", "handyvqa", "--out", tmp_path / "runs", "--limit", 2)
    assert [path.name.partition("-")[0] for path in cache.iterdir()] == ["handyvqa"]
    assert (tmp_path / "runs" / "report" / "report.html").is_file()
