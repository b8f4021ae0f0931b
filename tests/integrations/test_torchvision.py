"""Videos, and a family whose image processor is torchvision's, in an environment that has torchvision."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integrations.torchvision_operators import DECLARED

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]
ROOT = Path(__file__).resolve().parents[2]
ONE_BY_ONE = {"llava_onevision", "smolvlm", "video_llava", "minicpmv4_6"}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    folder = tmp_path_factory.mktemp("torchvision")
    packages = folder / "packages"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(packages)]
    subprocess.run([*pip, "torchvision==0.28.0", "num2words", "docopt"], check=True)
    if not __import__("torch").cuda.is_available():
        (packages / "sitecustomize.py").write_text(DECLARED)
    path = os.pathsep.join(map(str, (packages, ROOT)))
    command = [sys.executable, "-m", "tests.integrations.torchvision_families", folder / "zoo"]
    variables = {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers: dict[str, dict[str, object]] = json.loads(done.stdout.splitlines()[-1])
    return answers


def test_videos_are_answered_and_batches_that_are_wrong_are_found_out(outcomes) -> None:
    """SmolVLM and MiniCPM-V give other logits in batches; two others refuse videos of unequal length."""
    for name, seen in outcomes.items():
        assert (seen["answered"], seen["different"], seen["equal"]) == (4, 4, True), (name, seen)
        assert seen["together"] is (name not in ONE_BY_ONE), (name, seen)


def test_molmo_2_answers_in_batches_as_alone(outcomes) -> None:
    """It counts the patches of a whole batch: its tensors are not put one after another."""
    assert outcomes["molmo2"]["together"]
    assert outcomes["molmo2"]["image_processor"] == "Molmo2ImageProcessor"
