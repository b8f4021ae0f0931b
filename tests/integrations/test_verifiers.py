"""Rows of `export --format prompts` in verifiers, answered by a stand-in server: the rewards equal ours."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from barista_bench.core.boxes import BoxFormat
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.rewards import task_reward
from barista_bench.training.exporting import PARQUET, export_training_set
from barista_bench.training.reward_rows import read_reference
from barista_bench.training.task_rewards import answer_text
from tests.integrations.test_fresh_environments import run
from tests.served_standin import Body, Call, Fault, ServedStandIn, change_message
from tests.training.patches import write_patches

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]
HARNESS = Path(__file__).parent / "verifiers_harness"
REQUIREMENT = "verifiers>=0.4,<1"


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts of an environment with verifiers and this package. No pins: verifiers needs openai below 3."""
    folder = tmp_path_factory.mktemp("env") / "env"
    run([sys.executable, "-m", "venv", folder], folder.parent)
    run([folder / "bin/pip", "install", "--quiet", wheel, REQUIREMENT], folder.parent)
    return folder / "bin"


def test_rewards_of_rollouts_equal_ours(scripts: Path, tmp_path: Path) -> None:
    write_patches(tmp_path / "patches", colour_says="relation", videos=2)
    build(tmp_path / "patches", tmp_path / "data", configs=("relations",), sampling={"frame_step": 20},
          split_file=str(tmp_path / "split.json"), cache=False, progress=False)  # fmt: skip
    export_training_set(tmp_path / "data", tmp_path / "rows", "prompts", tasks=["relations"], box_format=BoxFormat())
    rows = pq.read_table(tmp_path / "rows" / PARQUET).to_pylist()
    assert len(rows) > 1
    examples = open_examples(tmp_path / "data", "barista", "relations", split="train").examples
    right = [json.dumps(example.target["relations"]) for example in examples]
    forms = ("[]", "a cup", "<think>[]", "{right}", "<think>Left?</think>It is {right}")
    asked: list[str] = []

    def answer(call: Call) -> Fault:
        pictures = [part for turn in call.body["messages"] for part in turn["content"] if part["type"] == "image_url"]
        assert pictures
        assert "reference" not in json.dumps(call.body)
        text = forms[len(asked) % len(forms)].replace("{right}", right[len(asked)])
        asked.append(text)

        def change(reply: Body) -> None:
            change_message(content=text)(reply)
            reply["created"] = 0

        return Fault("reply", change=change)

    with ServedStandIn(answer) as server:
        command = [
            scripts / "vf-eval", "barista-bench-verifiers", "--env.taskset.rows", tmp_path / "rows",
            "--env.agent.harness.id", "one-call", "--env.agent.runtime.type", "subprocess",
            "--model", "m", "--client.base-url", server.url, "--client.api-key-var", "KEY",
            "--max-concurrent", "1", "--no-push", "--no-rich", "--output-dir", tmp_path / "out", "--run.dir", "run",
        ]  # fmt: skip
        variables = {**os.environ, "PYTHONPATH": str(HARNESS), "KEY": "none", "HF_HOME": str(tmp_path / "hf")}
        done = subprocess.run(list(map(str, command)), env=variables, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = (tmp_path / "out" / "run" / "traces.jsonl").read_text().splitlines()
    reward, references = task_reward("relations"), {row["example_id"]: row["reference"] for row in rows}
    rewards = set()
    for (trace,) in (json.loads(line)["traces"] for line in lines):
        reference = references.pop(trace["task"]["data"]["id"])
        reply = trace["nodes"][-1]["message"].get("content") or ""
        (parts,) = reward.parts([answer_text(reply)], [read_reference(reference)])
        assert {name: each["score"] for name, each in trace["rewards"].items()} == {
            "task": reward(completions=[reply], reference=[reference])[0]
        }
        assert trace["metrics"] == parts
        rewards.add(trace["rewards"]["task"]["score"])
    assert not references
    assert len(rewards) > 2
