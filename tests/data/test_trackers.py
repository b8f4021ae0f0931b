"""What goes to experiment trackers. `tests/integrations/test_trackers.py` reads it back from them."""

import json
import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from typer.testing import CliRunner

from barista_bench.cli import commands as cli
from barista_bench.errors import ConfigError
from barista_bench.files.text_out import shared_name
from barista_bench.interchange import trackers
from barista_bench.interchange.trackers import log_results, logged_metrics, logged_settings
from barista_bench.runs.score.scoring import ScoredRun, score
from tests.one_run import run


@pytest.fixture
def scored(six_frozen: Path, tmp_path: Path) -> ScoredRun:
    run(six_frozen, tmp_path / "run", task="grounding", model="chance", repetitions=2, limit=3)
    return score(tmp_path / "run")


def test_metrics_settings_and_coverage_are_logged_and_no_texts(scored: ScoredRun) -> None:
    metrics, settings = logged_metrics(scored.results), logged_settings(scored.results)
    of_table = scored.results.metrics["map"]
    assert (metrics["map"], metrics["map/low"], metrics["map/std"]) == (of_table.mean, of_table.low, of_table.std)
    assert (metrics["samples/expected"], metrics["samples/answered"]) == (6, 6)
    assert {"task": "grounding", "model": "chance", "temperature": 0.7, "repetitions": 2}.items() <= settings.items()
    written = json.dumps([metrics, settings])
    assert scored.results.dataset.content_hash in written
    for sample in scored.samples:
        assert sample.record.text not in written
        assert sample.example.example_id not in written


def test_a_local_model_is_named_by_the_last_part_of_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("checkpoints/qwen").mkdir(parents=True)
    paths = ("/home/me/checkpoints/qwen", "checkpoints/qwen", "first_frame:~/qwen", "served:/models/qwen")
    assert [shared_name(path) for path in paths] == ["qwen", "qwen", "first_frame:qwen", "served:qwen"]
    for name in ("org/qwen", "text_only:org/qwen", "served:host/org/qwen", "served:qwen:7b", "chance"):
        assert shared_name(name) == name


def test_what_a_served_model_is_asked_with_stays_here_and_folders_are_named_by_their_last_part(
    scored: ScoredRun,
) -> None:
    """Neither the address of its server, nor what the user had sent to it."""
    private = {"base_url": "https://gpu7.inner.example/v1", "extra_body": '{"user": "ada"}', "max_image_side": 1024}
    scored.results.model.settings.update(private)
    scored.results.changed_options["encoder"] = "/home/me/mpnet"
    logged = logged_settings(scored.results)
    assert (logged["max_image_side"], logged["options"]) == (1024, {"encoder": "mpnet"})
    assert not {"base_url", "extra_body"} & logged.keys()
    assert "inner.example" not in json.dumps(logged)


def test_wandb_gets_no_command_line_paths_or_packages(scored: ScoredRun, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = MagicMock()
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    log_results("wandb", scored.results, scored.folder)
    given = {"x_disable_meta": True, "x_disable_machine_info": True, "x_save_requirements": False}
    assert given.items() <= wandb.Settings.call_args.kwargs.items()
    assert wandb.init.call_args.kwargs["settings"] is wandb.Settings.return_value


def test_a_setting_like_a_key_is_refused_and_not_repeated(scored: ScoredRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trackers, "_log", lambda *_: pytest.fail("was logged"))
    secret = "hf_" + "a1b2" * 6
    scored.results.generation["stop"] = [secret]
    with pytest.raises(ConfigError, match="looks like a key") as refused:
        log_results("trackio", scored.results, scored.folder)
    assert secret not in str(refused.value)


def test_a_missing_tracker_says_how_to_install_it(scored: ScoredRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    shown = CliRunner().invoke(cli.app, ["score", str(scored.folder), "--log-to", "wandb"])
    assert shown.exit_code == 1
    assert "wandb cannot be used" in shown.stderr
    assert shown.stderr.rstrip().endswith("Fix: pip install wandb")
