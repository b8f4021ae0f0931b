"""A run folder is read from any folder, and after it or its data moved: data are known by their hash."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import datasets
import huggingface_hub
import pytest
from typer.testing import CliRunner

from barista_bench.benchmarks import get_task
from barista_bench.cli import commands as cli
from barista_bench.data.folder import build
from barista_bench.errors import ConfigError, DataError
from barista_bench.runs.diff import diff
from barista_bench.runs.run_folder import read_run
from barista_bench.runs.score.samples import read_samples, run_task
from barista_bench.runs.score.scoring import read_scored, score
from tests.hub_standin import HubStandIn
from tests.one_run import run


@pytest.fixture
def project(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dataset and a run of it, named as seen from their folder."""
    project = tmp_path / "project"
    shutil.copytree(dataset, project / "data/coffee")
    monkeypatch.chdir(project)
    run("data/coffee", "runs/one", task="relations", model="oracle", repetitions=1, limit=3)
    monkeypatch.chdir(tmp_path)
    return project


def described(folder: Path) -> dict[str, object]:
    return json.loads((folder / "run.json").read_text())["data"]


def read(folder: Path) -> int:
    return len(read_samples(folder).samples)


def test_paths_are_stored_relative_to_the_run_folder(project: Path) -> None:
    data = described(project / "runs/one")
    assert data["path"] == "../../data/coffee"
    assert data["absolute_path"] == str((project / "data/coffee").resolve())


def test_a_run_is_read_from_any_working_directory(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, name in ((project, "runs/one"), (project / "runs/one", "."), (Path("/"), project / "runs/one")):
        monkeypatch.chdir(folder)
        assert score(name).results.coverage.is_complete


def test_a_run_is_read_after_it_was_moved_together_with_its_data(project: Path) -> None:
    assert read(project.rename(project.with_name("elsewhere")) / "runs/one") == 3


def test_a_run_is_read_after_only_its_folder_was_moved(project: Path) -> None:
    folder = project.parent / "archive/deep/one"
    folder.parent.mkdir(parents=True)
    shutil.move(project / "runs/one", folder)
    assert read(folder) == 3


def test_a_run_is_read_through_a_link_to_its_folder(project: Path) -> None:
    (project.parent / "deep/er").mkdir(parents=True)
    link = project.parent / "deep/er/link"
    link.symlink_to(project / "runs/one")
    (project / "data/coffee/MOVED").write_text("")
    assert read(link) == 3


def test_data_that_moved_beside_the_run_folder_are_known_by_their_hash(project: Path) -> None:
    shutil.copytree(project / "data/coffee", project / "runs/broken")
    shutil.rmtree(project / "runs/broken/relations")
    shutil.move(project / "data/coffee", project / "runs/set")
    assert read(project / "runs/one") == 3


def test_other_examples_in_the_old_place_are_passed_over_for_the_right_ones(dataset: Path, tmp_path: Path) -> None:
    frozen = tmp_path / "data/relations.jsonl"
    frozen.parent.mkdir()
    lines = (dataset / "frozen/relations.jsonl").read_text().splitlines(keepends=True)
    frozen.write_text("".join(lines[5:]))
    (tmp_path / "runs").mkdir()
    right = Path(shutil.copy(dataset / "frozen/relations.jsonl", tmp_path / "runs/relations.jsonl"))
    run(dataset, tmp_path / "runs/one", task="relations", model="oracle", repetitions=1)
    path = tmp_path / "runs/one/run.json"
    changed = json.loads(path.read_text())
    changed["data"] |= {"path": "../../data/relations.jsonl", "absolute_path": str(frozen)}
    path.write_text(json.dumps(changed))
    assert read(tmp_path / "runs/one") == len(lines)
    right.unlink()
    with pytest.raises(DataError, match=r"was run on examples .*relations\.jsonl holds .*Fix: .*--data"):
        score(tmp_path / "runs/one")


def test_for_missing_data_the_error_names_the_flag(project: Path) -> None:
    shutil.move(project / "data", project / "gone")
    with pytest.raises(DataError, match=r"neither at \.\./\.\./data/coffee nor beside.*Fix: .*--data"):
        score(project / "runs/one")
    assert len(score(project / "runs/one", data=project / "gone/coffee").samples) == 3


def test_a_wrong_data_argument_does_not_fall_back_to_the_recorded_path(project: Path) -> None:
    with pytest.raises(DataError, match="Fix: run `barista-bench build`"):
        score(project / "runs/one", data=project / "nothing")


def test_the_locations_of_runs_and_data_are_not_a_difference(project: Path) -> None:
    run(project / "data/coffee", project / "further/down/two", task="relations", model="oracle", repetitions=1, limit=3)
    assert diff(project / "runs/one", project / "further/down/two").is_same


def test_the_videos_of_a_linked_set_are_found_from_the_run_folder_too(
    linked_dataset: Path, small_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    shutil.copytree(small_release, project / "videos")
    shutil.copy(linked_dataset / "frozen/relations.jsonl", project / "relations.jsonl")
    monkeypatch.chdir(project)
    run("relations.jsonl", "runs/one", root="videos", task="relations", model="oracle", repetitions=1, limit=2)
    monkeypatch.chdir(os.sep)
    moved = project.rename(tmp_path / "moved")
    assert described(moved / "runs/one")["root"] == "../../videos"
    examples = read_samples(moved / "runs/one").examples
    assert [item.media_digest for item in examples]


def test_an_absolute_path_is_not_resolved_against_the_run(project: Path) -> None:
    path = project / "runs/one/run.json"
    changed = json.loads(path.read_text())
    changed["data"] |= {"path": str(project / "data/coffee"), "absolute_path": None}
    path.write_text(json.dumps(changed))
    assert read(project / "runs/one") == 3


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubStandIn]:
    """Stands where the clients look for the Hub; nothing is offline."""
    with HubStandIn() as hub:
        monkeypatch.setattr(datasets.config, "HF_ENDPOINT", hub.endpoint)
        monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", hub.endpoint)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
        yield hub


@pytest.fixture
def strange(dataset: Path, tmp_path: Path) -> Path:
    """A run folder without its data, which are elsewhere."""
    shutil.copytree(dataset, tmp_path / "mine/coffee")
    run(tmp_path / "mine/coffee", tmp_path / "got/run", task="relations", model="oracle", repetitions=1, limit=2)
    return tmp_path / "got/run"


def say(folder: Path, **data: object) -> None:
    """Change the data location of a run."""
    content = json.loads((folder / "run.json").read_text())
    content["data"] |= data
    (folder / "run.json").write_text(json.dumps(content))


PLACES = [
    *("attacker/name", "attacker", "hf://datasets/attacker/name", "buckets/attacker/one/two", "json", "parquet"),
    *(
        "/etc",
        "../../../../../../etc",
        ".",
        "..",
        "~",
        "s3://attacker/name",
        "https://attacker.example/x",
        "*",
        "",
        "\0",
    ),
]


@pytest.mark.parametrize("place", PLACES)
def test_a_data_location_in_a_run_folder_is_never_fetched_or_searched(
    place: str, strange: Path, hub: HubStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(strange, path=place, absolute_path=place)
    monkeypatch.setattr(datasets, "load_dataset", lambda *args, **kwargs: pytest.fail("was searched for"))
    for command in (["score", str(strange)], ["report", str(strange), "--out", str(tmp_path / "report")]):
        done = CliRunner().invoke(cli.app, command)
        assert done.exit_code == 1, done.output
        assert "--data" in done.output
        assert "Traceback" not in done.output
    assert hub.requests == []


def test_a_dataset_that_the_user_names_is_asked_for(strange: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def load_dataset(name: str, config: str) -> None:
        asked.append(name)
        raise FileNotFoundError("nobody has it")

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(DataError, match="attacker/name: no config 'relations'"):
        score(strange, data="attacker/name")
    assert asked == ["attacker/name"]


def test_an_entry_of_the_cache_is_read_without_asking_the_hub(
    small_release: Path, tmp_path: Path, datasets_cache: Path, hub: HubStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(small_release, tmp_path / "built", configs=["relations"], sampling={"frame_step": 20})
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    run("barista", tmp_path / "run", task="relations", model="oracle", repetitions=1)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    assert read_run(tmp_path / "run").data.path == "barista"
    assert score(tmp_path / "run").results.coverage.is_complete
    # As a set of the Hub lies there once it was fetched.
    shutil.copytree(datasets_cache / "barista", datasets_cache / "org___barista", symlinks=True)
    say(tmp_path / "run", path="org/barista")
    shutil.rmtree(datasets_cache / "barista")
    assert score(tmp_path / "run").results.coverage.is_complete
    assert hub.requests == []


@pytest.mark.parametrize("encoder", ["attacker/name", "https://attacker.example/x", "attacker"])
def test_an_encoder_that_only_a_run_folder_names_is_not_fetched(encoder: str, strange: Path, hub: HubStandIn) -> None:
    task = get_task("tog_bench", "t_stvg")
    description = read_run(strange)
    identity = description.identity.model_copy(
        update={"benchmark": "tog_bench", "task": "t_stvg", "task_version": task.version, "options": {}}
    )
    options = {"encoder": encoder, "matcher": "embeddings"}
    described = description.model_copy(update={"identity": identity, "options": options})
    with pytest.raises(ConfigError, match=rf"option encoder: '{encoder}' is not on this machine.*--option encoder="):
        run_task(described, {})
    assert run_task(described, {"encoder": encoder}).chosen["encoder"] == encoder
    assert run_task(described, {"matcher": "exact"}).chosen["encoder"] == encoder
    assert hub.requests == []


def test_an_encoder_that_only_kept_metrics_name_is_not_fetched(strange: Path, hub: HubStandIn) -> None:
    score(strange)
    results = json.loads((strange / "results.json").read_text())
    identity = json.loads((strange / "run.json").read_text())
    identity["identity"] |= {"benchmark": "tog_bench", "task": "t_stvg"}
    (strange / "run.json").write_text(json.dumps(identity))
    results["options"] = {"encoder": "attacker/name", "matcher": "embeddings"}
    (strange / "results.12345678.json").write_text(json.dumps(results))
    (strange / "results.json").unlink()
    with pytest.raises(ConfigError, match="option encoder: 'attacker/name' is not on this machine"):
        read_scored(strange)
    assert hub.requests == []
