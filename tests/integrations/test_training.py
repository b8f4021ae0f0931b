"""scripts/train_lora.py and train_grpo.py in a separate environment: they learn, and continue after a kill."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.training_videos import TrainingVideos
from barista_bench.data.folder import build
from barista_bench.runs.run_folder import read_run
from barista_bench.runs.score.scoring import ScoredRun, score
from barista_bench.stats import compare_pair
from barista_bench.training.exporting import export_training_set
from tests.integrations.test_fresh_environments import ROOT, run
from tests.one_run import run as ask
from tests.training.patches import make_trainable_model, write_patches

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600)]
STEPS = 150
ASKED = {"temperature": 0, "repetitions": 1, "max_new_tokens": 48, "batch_size": 16, "split": "test"}


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an environment with the extras run and train, and torch for the CPU."""
    folder = tmp_path_factory.mktemp("env") / "env"
    run([sys.executable, "-m", "venv", folder], folder.parent)
    install = [folder / "bin/pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt"]
    run([*install, "torch"], folder.parent)
    run([*install, f"{wheel}[run,train]"], folder.parent)
    return folder / "bin/python"


def test_a_killed_training_continues_and_beats_the_untrained_model_and_the_prior(python: Path, tmp_path: Path) -> None:
    write_patches(tmp_path / "patches", colour_says="relation")
    build(tmp_path / "patches", tmp_path / "data", configs=("relations",), sampling={"frame_step": 5},
          split_file=str(tmp_path / "split.json"), cache=False, progress=False)  # fmt: skip
    export_training_set(tmp_path / "data", tmp_path / "chats", "chat", box_format=BoxFormat())
    model = make_trainable_model(tmp_path / "model", tmp_path / "chats")
    adapter = tmp_path / "adapter"
    command = [python, ROOT / "scripts/train_lora.py", tmp_path / "chats", "--model", model, "--out", adapter,
               "--steps", str(STEPS), "--learning-rate", "4e-3", "--rank", "32"]  # fmt: skip
    command = list(map(str, command))
    with subprocess.Popen(command, cwd=tmp_path) as first:
        while not list(adapter.glob("checkpoints/checkpoint-*/trainer_state.json")):
            assert first.poll() is None
            time.sleep(0.5)
        first.send_signal(signal.SIGKILL)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert f" 1/{STEPS} [" not in done.stderr  # the progress bar begins behind the last checkpoint
    trained = {path.name: path.read_bytes() for path in adapter.iterdir() if path.is_file()}
    subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert {path.name: path.read_bytes() for path in adapter.iterdir() if path.is_file()} == trained
    for folder in adapter.glob("checkpoints/checkpoint-*"):
        assert TrainingVideos.read(folder) == TrainingVideos.read(tmp_path / "chats")

    def scored(name: str, **settings: object) -> ScoredRun:
        ask(tmp_path / "data", tmp_path / name, **{**ASKED, **settings})
        return score(tmp_path / name)

    after = scored("after", model=str(model), adapter=str(adapter))
    assert read_run(tmp_path / "after").training_videos
    assert not after.results.trained_on
    for other in (scored("before", model=str(model)), scored("prior", model="prior")):
        comparison = compare_pair(after, other)
        assert comparison.low is not None
        assert comparison.low > 0


def test_a_killed_reinforcement_continues_and_ends_like_an_undisturbed_one(python: Path, tmp_path: Path) -> None:
    write_patches(tmp_path / "patches", colour_says="relation", videos=4)
    build(tmp_path / "patches", tmp_path / "data", configs=("relations",), sampling={"frame_step": 5},
          split_file=str(tmp_path / "split.json"), cache=False, progress=False)  # fmt: skip
    export_training_set(tmp_path / "data", tmp_path / "chats", "chat", box_format=BoxFormat())
    export_training_set(tmp_path / "data", tmp_path / "prompts", "prompts", box_format=BoxFormat())
    model = make_trainable_model(tmp_path / "model", tmp_path / "chats")
    out = tmp_path / "adapter"
    command = [python, ROOT / "scripts/train_grpo.py", tmp_path / "prompts", "--model", model, "--out", out,
               "--steps", "3", "--group", "4", "--questions", "2", "--micro-batch", "4", "--max-new-tokens", "24",
               "--save-steps", "1"]  # fmt: skip
    command = list(map(str, command))
    subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    trained = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    curve = json.loads(trained["rewards.json"])
    assert [entry["step"] for entry in curve] == [1, 2, 3]
    assert all({"reward", "relations/format", "relations/parsed", "relations/score"} <= entry.keys() for entry in curve)
    shutil.rmtree(out / "checkpoints" / "checkpoint-3")
    subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == trained
    assert TrainingVideos.read(out / "checkpoints" / "checkpoint-3") == TrainingVideos.read(tmp_path / "prompts")
