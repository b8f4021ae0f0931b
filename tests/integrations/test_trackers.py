"""What `score --log-to` writes, read back from the trackers, in an environment that has them."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.integrations.test_fresh_environments import environment, run

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

READ_BACK = """
import json, sqlite3, struct
from pathlib import Path
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from wandb.proto import wandb_internal_pb2

database = sqlite3.connect("trackio/barista_bench.db")
trackio = json.loads(database.execute("select metrics from metrics").fetchone()[0])
(config,) = database.execute("select config from configs").fetchone()

events = EventAccumulator("runs/relations/tensorboard")
events.Reload()
tensorboard = {tag: events.Scalars(tag)[0].value for tag in events.Tags()["scalars"]}

# LevelDB's log format after a header of 7 bytes: blocks of 32 KiB, records whole (1) or in parts (2, 3, the last is 4).
data, place, parts, wandb = next(Path().glob("wandb/offline-run-*/*.wandb")).read_bytes(), 7, b"", {}
while place + 7 <= len(data):
    if (left := 2**15 - place % 2**15) < 7:
        place += left
        continue
    length, kind = struct.unpack("<HB", data[place + 4 : place + 7])
    parts += data[place + 7 : place + 7 + length]
    place += 7 + length
    if kind in (1, 4):
        history = wandb_internal_pb2.Record.FromString(parts).history
        wandb |= {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in history.item}
        parts = b""
print(json.dumps({"trackio": trackio, "config": json.loads(config), "tensorboard": tensorboard, "wandb": wandb}))
"""


def test_trackers_give_back_metrics_settings_and_coverage(wheel: Path, tmp_path: Path) -> None:
    scripts = environment(tmp_path / "env", wheel, "torch")
    # Without the constraints, which hold versions of libraries that trackio does not take.
    run([scripts / "pip", "install", "--quiet", "trackio==0.43.0", "wandb==0.31.0", "tensorboard"], tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    offline = {"TRACKIO_DIR": str(work / "trackio"), "WANDB_MODE": "offline", "HF_HUB_OFFLINE": "1"}
    variables = {**os.environ, **offline, "HF_HOME": str(tmp_path / "hf")}
    variables.pop("PYTHONPATH", None)

    def said(*command: str) -> str:
        return subprocess.run(
            [scripts / command[0], *command[1:]], cwd=work, env=variables, capture_output=True, text=True, check=True
        ).stdout

    said("barista-bench", "-q", "mini", "kitchen", "--videos", "3", "--width", "128", "--height", "72")
    said("barista-bench", "-q", "build", "--source", "kitchen", "--configs", "relations", "--out", "data", "--no-cache")
    said(
        "barista-bench", "-q", "run", "data", "--model", "prior", "--repetitions", "2", "--limit", "9", "--out", "runs"
    )
    for tracker in ("trackio", "wandb", "tensorboard"):
        (scored,) = json.loads(said("barista-bench", "score", "runs", "--json", "--log-to", tracker))
    metric = scored["metrics"]["micro_f1"]
    assert not list(work.glob("wandb/offline-run-*/files/wandb-metadata.json"))  # command line, paths, hardware
    assert str(tmp_path).encode() not in next(work.glob("wandb/offline-run-*/*.wandb")).read_bytes()
    back = json.loads(said("python", "-c", READ_BACK))
    for tracker in ("trackio", "wandb", "tensorboard"):
        metrics = back[tracker]
        assert metrics["micro_f1"] == pytest.approx(metric["mean"])
        assert metrics["micro_f1/low"] == pytest.approx(metric["low"])
        assert metrics["samples/expected"] == scored["coverage"]["expected"]
    assert {"model": "prior", "task": "relations", "wording": "ours v2"}.items() <= back["config"].items()
