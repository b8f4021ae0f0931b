"""Videos, the times of their frames, and a family whose image processor is torchvision's, in an environment that has
torchvision.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from barista_bench.core.frame_times import FrameTimes
from tests.integrations.torchvision_architectures import TIMES
from tests.integrations.torchvision_operators import DECLARED

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]
ROOT = Path(__file__).resolve().parents[2]
ONE_BY_ONE = {"llava_onevision", "smolvlm", "video_llava", "minicpmv4_6"}

Written = Callable[[Sequence[float]], list[str]]


def each(write: Callable[[float], str], every: int = 1) -> Written:
    """The time of the first of the frames that become one."""
    return lambda seconds: [write(second) for second in seconds[::every]]


def of_pairs(seconds: Sequence[float]) -> list[str]:
    """The mean of two frames that become one."""
    return [f"{sum(pair) / 2:.1f}" for pair in zip(seconds[::2], seconds[1::2], strict=True)]


def tenths(second: float) -> str:
    return f"{second:.1f}"


def clock(second: float) -> str:
    return f"{int(second // 60):02}:{int(second % 60):02}"


def to_the_millisecond(second: float) -> str:
    return f"{int(second // 3600):02}:{clock(second % 3600)}.{int(second % 1 * 1000):03}"


_PAIRS = (r"<(\d+\.\d) seconds>", of_pairs)
_GLM = (r"(\d+\.\d) seconds", each(tenths, 2))
_GLM_WHOLE = (r"<\|end_of_image\|>(\d+)", each(lambda second: str(int(second)), 2))
_GEMMA = (r"(\d\d:\d\d) <boi>", each(clock))
_MUSE = (r"Time: (\d+\.\d)s", each(tenths, 2))
WRITTEN: dict[str, tuple[str, Written]] = {
    **dict.fromkeys(
        ("qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe", "qwen4_exp", "cosmos3_omni", "lfm3_vl"), _PAIRS
    ),
    **dict.fromkeys(("glm46v", "glm5_next", "glm_ocr", "glmga"), _GLM),
    **dict.fromkeys(("glm4v", "glm4v_moe"), _GLM_WHOLE),
    **dict.fromkeys(("gemma4", "gemma4_unified"), _GEMMA),
    **dict.fromkeys(("muse_glimmer", "muse_spark"), _MUSE),
    "cosmos3_edge": (r"<(\d+\.\d) seconds>", each(tenths)),
    "kimi_k25": (r"(\d\d:\d\d:\d\d\.\d{3})", each(to_the_millisecond, 4)),
    "molmo2": (r"(\d+\.\d) <frame_start>", each(tenths)),
    "smolvlm": (r"Frame from (\d\d:\d\d)", each(clock)),
    "video_llama_3": (r"Time (\d+\.\d)s", each(tenths)),
}
"""How a processor writes times into its prompt: a pattern of them, and what they are of the seconds of frames."""
ONE_RATE = {"qwen2_5_vl": "second_per_grid_ts"} | dict.fromkeys(
    ("qwen2_5_omni_thinker", "qwen3_omni_moe_thinker"), "video_second_per_grid"
)
"""The output that tells the seconds from one pair of frames to the next."""
NO_TIMES = {
    *("dots3_note", "exaone4_5", "hyperclovax_vision_v2", "internvl", "llava_next_video", "llava_onevision"),
    *("minicpm_ocr", "minicpmv4_6", "minicpmv4_7", "qwen2_vl", "video_llava"),
}
"""Their models are told the order of frames alone."""
NOT_MADE = {
    "cohere_compass": "Mismatch in `video` token count",  # its tokenizer names another token
    "diffusion_gemma": "writes whole blocks of text",
    "ernie4_5_vl_moe": "only supports a temporal patch size of 2",
    "instructblipvideo": "its processor takes no images",
    "minimax_m3_vl": "tokens in the prompts should be the same",  # its tokens are none of our tokenizer's
    "nemotron_h_omni": "Unrecognized feature extractor",
    "perception_lm": "its vision tower is timm's",
}
"""Types whose tiny checkpoint takes no video."""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("torchvision")
    packages = folder / "packages"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(packages)]
    subprocess.run([*pip, "torchvision==0.28.0", "num2words", "docopt"], check=True)
    if not __import__("torch").cuda.is_available():
        (packages / "sitecustomize.py").write_text(DECLARED)
    path = os.pathsep.join(map(str, (packages, ROOT)))
    command = [sys.executable, "-m", "tests.integrations.torchvision_architectures", folder / "zoo"]
    variables = {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    printed: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return printed


@pytest.fixture(scope="module")
def outcomes(seen: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return seen["outcomes"]


def test_every_type_that_takes_videos_is_looked_at(seen) -> None:
    known = [set(WRITTEN), set(ONE_RATE), NO_TIMES, set(NOT_MADE)]
    assert set(seen["times"]) == set().union(*known)
    assert len(seen["times"]) == sum(map(len, known))
    refused = {name: kept["refused"] for name, kept in seen["times"].items() if "refused" in kept}
    assert set(refused) == set(NOT_MADE)
    assert all(NOT_MADE[name] in said for name, said in refused.items())


@pytest.mark.parametrize(("spacing", "times"), TIMES.items())
@pytest.mark.parametrize("name", sorted({*WRITTEN, *ONE_RATE, *NO_TIMES}))
def test_a_processor_s_own_record_is_when_the_frames_were_filmed(
    seen, name: str, spacing: str, times: FrameTimes
) -> None:
    kept = seen["times"][name][spacing]
    assert kept["record"] == [[times.fps, list(times.indices)]]
    if name in WRITTEN:
        pattern, written = WRITTEN[name]
        assert re.findall(pattern, kept["written"]) == written(times.seconds)
    if name in ONE_RATE:
        assert list(kept["rates"]) == [ONE_RATE[name]]
        (seconds_of_pair,) = kept["rates"][ONE_RATE[name]]
        whole = seconds_of_pair / 2 * (len(times.indices) - 1)
        assert abs(whole - times.span / times.fps) < 1 / times.fps
    else:
        assert kept["rates"] == {}


def test_times_that_differ_become_prompts_that_differ(seen) -> None:
    for name in WRITTEN:
        even, uneven = (seen["times"][name][spacing]["written"] for spacing in TIMES)
        assert even != uneven


def test_videos_are_answered_and_batches_that_are_wrong_are_found_out(outcomes) -> None:
    """SmolVLM and MiniCPM-V give other logits in batches; two others refuse videos of unequal length."""
    for name, seen in outcomes.items():
        assert (seen["answered"], seen["different"], seen["equal"]) == (4, 4, True), (name, seen)
        assert seen["together"] is (name not in ONE_BY_ONE), (name, seen)


def test_smolvlm_s_answers_equal_transformers_own_pipeline_with_the_times(seen) -> None:
    """Without the times, a pipeline writes the times of 24 frames a second into the prompt."""
    assert seen["smolvlm"]["told"] == 8
    assert seen["smolvlm"]["not_told"] < 8


def test_kimi_s_videos_are_refused_by_name(seen) -> None:
    """transformers counts a token for each of the frames that the model's vision tower has averaged."""
    assert "cannot answer about a video of two frames, at which Kimi_K25" in seen["kimi"]
    assert seen["kimi"].endswith("Fix: use frames_as=images")


def test_molmo_2_answers_the_same_in_batches_and_one_by_one(outcomes) -> None:
    """It counts the patches of a whole batch: its tensors are not put one after another."""
    assert outcomes["molmo2"]["together"]
    assert outcomes["molmo2"]["image_processor"] == "Molmo2ImageProcessor"
