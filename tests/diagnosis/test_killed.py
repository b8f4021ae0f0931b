"""A diagnosis that the system kills five times ends as one that was never killed."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from barista_bench.diagnosis.records import DIAGNOSIS_FILE, DiagnosisFile

pytestmark = pytest.mark.full
KILLS = 5
FLAGS = [
    "--task",
    "hand_object,relations",
    "--model",
    "chance",
    "--limit",
    "40",
    "--view",
    "mirrored",
    "--workers",
    "1",
]


def _command(data: Path, out: Path) -> list[str]:
    return [str(Path(sys.executable).with_name("barista-bench")), "diagnose", str(data), *FLAGS, "--out", str(out)]


def _answers(out: Path) -> int:
    return sum(file.read_bytes().count(b"\n") for file in out.rglob("samples*.jsonl"))


def test_a_diagnosis_killed_at_random_five_times_equals_one_never_killed(kitchen_data: Path, tmp_path: Path) -> None:
    started = time.monotonic()
    subprocess.run(_command(kitchen_data, tmp_path / "whole"), check=True, capture_output=True)
    duration, rng, counts = time.monotonic() - started, random.Random(5), []
    for _ in range(KILLS):
        process = subprocess.Popen(
            _command(kitchen_data, tmp_path / "killed"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(rng.uniform(0.4, 0.9) * duration)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        counts.append(_answers(tmp_path / "killed"))
    subprocess.run(_command(kitchen_data, tmp_path / "killed"), check=True, capture_output=True)
    assert counts[-1] > 0, "it was killed while answers were there"
    whole, killed = (
        DiagnosisFile.model_validate_json((tmp_path / name / DIAGNOSIS_FILE).read_text())
        for name in ("whole", "killed")
    )
    assert killed == whole
    assert len(whole.diagnoses) == 2
    assert _answers(tmp_path / "killed") == _answers(tmp_path / "whole"), "nothing was asked twice"
