"""The examples of `docs/datasets.md` that need no code of ours: run without the package, and compared with ours."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from datasets import concatenate_datasets, load_dataset

from barista_bench.api import evaluate
from barista_bench.data.folder import build
from barista_bench.mini import write_kitchen
from tests.integrations.test_fresh_environments import ROOT, environment, run
from tests.tiny_architectures import make_tiny_model

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]
ASK, SCORE, _ = re.findall(r"```python\n(.*?)```", (ROOT / "docs/datasets.md").read_text(), re.DOTALL)
MISTAKES: dict[str, Callable[[str], str]] = {
    "relations": lambda answer: json.dumps(json.loads(answer)[:-1]),
    "grounding": lambda answer: json.dumps(
        {"bboxes": [[x - 9, y, *end] for x, y, *end in json.loads(answer)["bboxes"]]}
    ),
    "activity": lambda answer: "ANSWER: A",
}


def write_answers(path: Path, answers: dict[str, str]) -> None:
    header = {"format": "barista_bench.predictions/1", "box_format": "xyxy/1000"}
    lines = [header, *({"example_id": name, "answer": answer} for name, answer in answers.items())]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def our_metric(work: Path, task: str, metric: str, out: Path) -> float:
    settings = {"task": task, "repetitions": 1, "out": out, "progress": False}
    table = evaluate(work / "barista", f"predictions:{work / task}.jsonl", **settings).metrics
    (value,) = table[table["metric"] == metric]["mean"]
    return float(value)


def test_rows_are_asked_and_scored_without_our_package_to_our_metrics(tmp_path: Path) -> None:
    work = tmp_path / "work"
    write_kitchen(tmp_path / "kitchen", videos=2, width=128, height=64, num_proc=1)
    build(tmp_path / "kitchen", work / "barista", configs=list(MISTAKES), sampling={"limit": 6}, cache=False)
    shutil.copytree(ROOT / "metrics", work / "metrics", ignore=shutil.ignore_patterns("__pycache__"))
    model = re.search('MODEL = "(.*)"', ASK)
    assert model
    make_tiny_model(work / model[1], "idefics3")
    python = environment(tmp_path / "env", "torch", "datasets", "transformers", "evaluate", "pillow") / "python"

    absent = "import importlib.util as util; assert util.find_spec('barista_bench') is None\n"
    run([python, "-c", absent + ASK.replace("1024", "8")], work)
    for task, mistake in MISTAKES.items():
        rows = concatenate_datasets(list(load_dataset(str(work / "barista"), task).values()))
        answered = [json.loads(line) for line in (work / f"{task}.jsonl").read_text().splitlines()[1:]]
        assert [line["example_id"] for line in answered] == rows["example_id"][:]
        assert all(line["answer"] for line in answered), "the tiny model says something"
        reference = dict(zip(rows["example_id"][:], rows["answer"][:], strict=True))
        wrong = [answer if index < 2 else mistake(answer) for index, answer in enumerate(reference.values())]
        write_answers(work / f"{task}.jsonl", dict(zip(reference, ["I cannot say.", *wrong[1:]], strict=True)))
    printed = [line.split() for line in run([python, "-c", absent + SCORE], work).splitlines()]
    assert [task for task, *_ in printed] == list(MISTAKES)
    for task, metric, value in printed:
        assert float(value) == our_metric(work, task, metric, tmp_path / "runs")
        assert 0 < float(value) < 1
