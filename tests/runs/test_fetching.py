"""What only a run folder names is neither fetched nor searched for: the folder may be a stranger's."""

import json
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
from barista_bench.runs.run_folder import read_run
from barista_bench.runs.score.samples import run_task
from barista_bench.runs.score.scoring import read_scored, score
from tests.hub_standin import HubStandIn
from tests.one_run import run


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
    """A run folder that lies alone; its data are elsewhere."""
    shutil.copytree(dataset, tmp_path / "mine/coffee")
    run(tmp_path / "mine/coffee", tmp_path / "got/run", task="relations", model="oracle", repetitions=1, limit=2)
    return tmp_path / "got/run"


def say(folder: Path, **data: object) -> None:
    """Change what a run says of its data."""
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
def test_a_name_or_a_folder_that_a_run_folder_gives_is_neither_fetched_nor_searched(
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
