"""The served client beside the local model, over a real `transformers serve` of the same tiny checkpoint."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

for library in ("torch", "transformers", "openai", "fastapi", "uvicorn"):
    pytest.importorskip(library)

from barista_bench.core.prompt import ImagePart, Prompt, TextPart  # noqa: E402
from barista_bench.models import Completion, GenerationConfig, Request  # noqa: E402
from barista_bench.models.local.model import TransformersModel  # noqa: E402
from barista_bench.models.served.model import ServedModel  # noqa: E402

pytestmark = pytest.mark.full

GREEDY = GenerationConfig(temperature=0.0, max_new_tokens=16)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Address of a server that loads the checkpoint which a request names."""
    port = free_port()
    command = [str(Path(sys.executable).with_name("transformers")), "serve", "--device", "cpu"]
    log = (tmp_path_factory.mktemp("server") / "serve.log").open("w")
    process = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", str(port)],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    try:
        wait_for(f"http://127.0.0.1:{port}/health", process, Path(log.name))
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)
        log.close()


@pytest.fixture(params=["gemma3", "idefics3"])
def served(request, folders, server):
    """(folder of the checkpoint, address of the server)"""
    return folders[request.param], server


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def wait_for(url: str, process: subprocess.Popen, log: Path, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.3)
    pytest.fail(f"the server did not start: {log.read_text(encoding='utf-8')[-2000:]}")


def requests() -> list[Request]:
    rng = np.random.default_rng(0)
    pictures = [Image.fromarray(rng.integers(0, 256, (48, 64, 3), dtype=np.uint8)) for _ in range(4)]
    asked = []
    for n in range(6):
        images = tuple(pictures[(n + k) % 4] for k in range(n % 3))
        parts = (*(ImagePart(k) for k in range(len(images))), TextPart(f"Which object does hand {n} touch?"))
        asked.append(Request(f"r{n}", Prompt("Answer in one word." if n % 2 else "", parts), images, (1, 2)))
    return asked


def load(served, **settings) -> ServedModel:
    folder, url = served
    return ServedModel.load(str(folder), base_url=url, api_key_env=None, max_attempts=3, timeout=100, **settings)


def test_greedy_answers_equal_the_local_models_on_prompts_with_and_without_images(served):
    local = TransformersModel.load(str(served[0]), device="cpu").generate(requests(), GREEDY)
    over_http = load(served, image_format="png").generate(requests(), GREEDY)
    for ours, theirs in zip(local, over_http, strict=True):
        assert all(isinstance(entry, Completion) for entry in theirs)
        assert [entry.text for entry in theirs] == [entry.text for entry in ours]
        assert theirs[0].finish_reason == ours[0].finish_reason
        assert (theirs[0].input_tokens, theirs[0].output_tokens) == (ours[0].input_tokens, ours[0].output_tokens)
    assert len({entries[0].text for entries in over_http}) == 6


def test_a_server_that_ignores_n_is_asked_once_a_seed(served):
    model = load(served)
    [entries] = model.generate(requests()[:1], GenerationConfig(temperature=0.7, max_new_tokens=4))
    assert [type(entry) for entry in entries] == [Completion, Completion]
    assert not model.state.takes_n
