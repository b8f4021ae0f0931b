"""docs/harnesses.md: its program makes a file of answers of other harnesses' logs."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from barista_bench import evaluate
from barista_bench.runs.log.sample_log import SampleRecord, read_records

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "harnesses.md").read_text(encoding="utf-8")
(PROGRAM,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def of_inspect_ai(records: list[SampleRecord]) -> str:
    """As `inspect log dump` prints a log of inspect_ai 0.3.285, of what the program reads; one sample failed."""
    samples = [{"id": r.example_id, "epoch": r.repetition + 1, "output": {"completion": r.text}} for r in records]
    failed = {"id": records[0].example_id, "epoch": 9, "output": {"completion": ""}, "error": {"message": "time out"}}
    return json.dumps({"samples": [*samples, failed]}, indent=2)


def of_lmms_eval(records: list[SampleRecord]) -> str:
    """As --log_samples of lmms-eval 0.7.3 writes it: a line an example, with all of its repetitions."""
    texts: dict[str, list[str]] = {}
    for record in sorted(records, key=lambda record: record.repetition):
        texts.setdefault(record.example_id, []).append(record.text)
    lines = [{"metrics": {"example_id": name, "texts": answers}} for name, answers in texts.items()]
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.mark.parametrize(("name", "logged"), [("log.json", of_inspect_ai), ("log.jsonl", of_lmms_eval)])
def test_the_answers_of_a_log_have_the_metrics_of_the_run_that_gave_them(
    name: str, logged: Callable[[list[SampleRecord]], str], dataset: Path, tmp_path: Path
) -> None:
    ours = evaluate(dataset, "chance", task="relations", repetitions=2, out=tmp_path / "ours")
    log, answers = tmp_path / name, tmp_path / "answers.jsonl"
    log.write_text(logged(list(read_records(tmp_path / "ours" / "relations" / "samples.jsonl"))), encoding="utf-8")
    command = [sys.executable, "-c", PROGRAM, str(log), "some model"]
    answers.write_bytes(subprocess.run(command, capture_output=True, check=True).stdout)
    settings = {"task": "relations", "repetitions": 2, "box_format": "xyxy/1000"}
    theirs = evaluate(dataset, f"predictions:{answers}", out=tmp_path / "theirs", **settings)
    assert theirs.metrics["model"].unique().tolist() == ["some model"]
    columns = ["metric", "mean", "std", "low", "high", "scored"]
    assert theirs.metrics[columns].equals(ours.metrics[columns])
    assert ours.metrics["mean"].nunique() > 2
