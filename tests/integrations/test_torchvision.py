"""Videos, and a family whose image processor is torchvision's, in an environment that has torchvision.

Its wheel is built for CUDA. Beside a torch for the CPU the names of its compiled operators are declared, so that it can
be imported; transformers' processors call none of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]
ROOT = Path(__file__).resolve().parents[2]
ONE_BY_ONE = {"llava_onevision", "smolvlm", "video_llava", "minicpmv4_6"}
DECLARED = """
import torch
library = torch.library.Library("torchvision", "DEF")
for name in ("roi_align", "ps_roi_align", "roi_pool", "ps_roi_pool", "deform_conv2d"):
    library.define(f"{name}(Tensor x) -> Tensor")
    library.define(f"_{name}_backward(Tensor x) -> Tensor")
for name in ("nms", "qnms", "qroi_align"):
    library.define(f"{name}(Tensor x) -> Tensor")
"""


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
