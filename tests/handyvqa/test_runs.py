"""From a small generated release all the way to scores."""

from collections.abc import Callable
from pathlib import Path

import pytest

from barista_bench.api import evaluate
from barista_bench.data.folder import build
from barista_bench.reporting import write_report
from tests.conftest import MadeOnce


@pytest.fixture(scope="module")
def root(generated: Callable[[str], Path]) -> Path:
    return generated("handyvqa")


@pytest.fixture(scope="module")
def dataset(root: Path, made_once: MadeOnce) -> Path:
    settings = {"benchmark": "handyvqa", "sampling": {"frames": 4}, "cache": False}
    return made_once("built/handyvqa", lambda out: build(root, out, **settings))


@pytest.mark.parametrize("model", [pytest.param("tiny", marks=pytest.mark.full), "dual:tiny"])
def test_tiny_models_answer_every_kind_of_question(dataset: Path, tmp_path: Path, model: str) -> None:
    tasks = "objects" if model == "tiny" else "action,objects"
    settings = {"benchmark": "handyvqa", "task": tasks, "option": ["max_side=32"], "max_new_tokens": 4}
    evaluation = evaluate(dataset, model, out=tmp_path, repetitions=1, limit=1, **settings)
    for run in evaluation.runs:
        assert run.results.coverage.scored == 1
        if model == "dual:tiny":
            assert all(sample.prediction is not None for sample in run.samples)


def test_options_change_the_shown_part_of_frozen_images(dataset: Path, tmp_path: Path) -> None:
    options = ["mode=frame_wise", "max_side=32", "truth_options=true"]
    settings = {"benchmark": "handyvqa", "task": "rvos_objects", "option": options}
    frame_wise = evaluate(dataset, "oracle", out=tmp_path, repetitions=1, **settings)
    (run,) = frame_wise.runs
    assert run.results.metrics["J_and_F"].mean == 1.0
    for index, example in enumerate(run.examples.examples):
        images = run.examples[index].images(run.task)
        assert len(images) == len(example.inputs["frames"])  # type: ignore[arg-type]
        assert {max(image.size) for image in images} == {32}
    whole = evaluate(
        dataset, "oracle", out=tmp_path / "whole", repetitions=1, benchmark="handyvqa", task="rvos_objects"
    )
    write_report([run, *whole.runs], tmp_path / "report", compare=False, tables=True)
    (table_5,) = (tmp_path / "report/report_tables").glob("*table_5*.csv")
    assert len(table_5.read_text().splitlines()) == 1 + 2
