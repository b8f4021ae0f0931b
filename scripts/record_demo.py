"""Record the answers of the embedded models to the examples of `barista-bench demo` in `barista_bench/demo`.

    python scripts/record_demo.py [--work FOLDER]

A test of the full tier (`tests/test_demo.py`) fails when the answers must be recorded again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from barista_bench.api import evaluate
from barista_bench.demo import HASHES, RECORDED, SETTINGS, answers_file, make_examples
from barista_bench.models.predictions_file import FORMAT


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=Path("build/demo_record"), help="folder for data and runs")
    work = parser.parse_args().work
    HASHES.write_text(json.dumps(make_examples(work), indent=1) + "\n", encoding="utf-8")
    for model in RECORDED:
        answers_file(model).write_text(record_answers(work / "data", model, work / "runs"), encoding="utf-8")
        print(f"wrote {answers_file(model)}")


def record_answers(data: Path, model: str, runs: Path) -> str:
    """Write the answers of a model as a file of predictions."""
    done = evaluate(data, model, out=runs / model.replace(":", "-"), **SETTINGS).runs
    box_format = done[0].results.model.box_format.format
    header = {"format": FORMAT, "box_format": str(box_format), "model": model.rpartition(":")[2]}
    rows = [{"example_id": s.example.example_id, "answer": s.record.text or ""} for run in done for s in run.samples]
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in (header, *rows))


if __name__ == "__main__":
    main()
