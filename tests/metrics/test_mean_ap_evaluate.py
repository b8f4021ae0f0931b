"""The mean_ap metric inside `evaluate`: loading, batches, several processes, and its documents."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "metrics"))
from mean_ap import mean_ap, tie_spread  # noqa: E402

CUPS = {"boxes": [[10, 10, 50, 50], [60, 10.1, 100, 50]], "labels": "cup"}
MIXED = {"boxes": [[10, 10, 50, 46], [0, 0, 9, 9]], "labels": ["cup", 3], "scores": [0.9, 0.4]}
LOW = {"boxes": [[60, 10, 100, 1 / 3 + 48]], "labels": ["cup"], "scores": [0.2]}
NONE: dict[str, object] = {"boxes": []}

PREDICTIONS = [None, MIXED, NONE, LOW]
REFERENCES = [CUPS, CUPS, NONE, CUPS]


@pytest.fixture(scope="module")
def metric_class(tmp_path_factory):
    """MeanAP as evaluate.load finds it: copied, with its sibling, into evaluate's folder of modules."""
    evaluate = pytest.importorskip("evaluate")
    patch = pytest.MonkeyPatch()
    modules = tmp_path_factory.mktemp("modules")
    patch.setattr(evaluate.config, "HF_MODULES_CACHE", modules)
    patch.setattr(evaluate.config, "HF_METRICS_CACHE", modules / "data")
    patch.setattr(sys, "path", [*sys.path])
    patch.chdir(REPO)
    metric = evaluate.load("metrics/mean_ap", cache_dir=str(modules / "data"))
    yield type(metric)
    patch.undo()


def test_evaluate_copies_the_script_and_its_sibling(metric_class):
    copied = Path(sys.modules[metric_class.__module__].__file__).parent
    assert {
        "accumulate.py",
        "inputs.py",
        "matching.py",
        "overlap.py",
        "scoring.py",
        "spread.py",
        "values.py",
        "mean_ap.py",
    } <= {path.name for path in copied.iterdir()}
    assert REPO not in copied.parents


@pytest.mark.parametrize("keep_in_memory", [False, True])
def test_compute_add_and_add_batch_equal_the_function(metric_class, tmp_path, keep_in_memory):
    want = mean_ap(PREDICTIONS, REFERENCES)
    options = {"cache_dir": str(tmp_path), "keep_in_memory": keep_in_memory}
    at_once = metric_class(**options).compute(predictions=PREDICTIONS, references=REFERENCES)
    one_by_one, batches = metric_class(**options), metric_class(**options)
    for prediction, reference in zip(PREDICTIONS, REFERENCES, strict=True):
        one_by_one.add(prediction=prediction, reference=reference)
    for start in (0, 1):
        batches.add_batch(predictions=PREDICTIONS[start::2], references=REFERENCES[start::2])
    assert at_once == want
    assert one_by_one.compute() == want
    assert batches.compute() == want


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_splitting_into_batches_changes_nothing(metric_class, cut):
    metric = metric_class(keep_in_memory=True)
    for part in (slice(None, cut), slice(cut, None)):
        metric.add_batch(predictions=PREDICTIONS[part], references=REFERENCES[part])
    assert metric.compute() == mean_ap(PREDICTIONS, REFERENCES)


def test_combine_reports_the_metric_beside_others(metric_class, tmp_path):
    import evaluate

    both = evaluate.combine([metric_class(cache_dir=str(tmp_path)), metric_class(cache_dir=str(tmp_path))])
    both.add(prediction=None, reference=CUPS)
    both.add_batch(predictions=[CUPS], references=[CUPS])
    result = both.compute()
    assert result["mean_ap_0_recall@50"] == result["mean_ap_1_recall@50"] == 0.5


def test_two_processes_pool_their_examples(metric_class, tmp_path):
    def member(rank):
        metric = metric_class(cache_dir=str(tmp_path), num_process=2, process_id=rank, experiment_id="two", timeout=30)
        metric.add_batch(predictions=PREDICTIONS[rank::2], references=REFERENCES[rank::2])
        results[rank] = metric.compute()

    results = {}
    threads = [threading.Thread(target=member, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert results[0] == mean_ap(PREDICTIONS, REFERENCES)
    assert results[1] is None


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ({"predictions": [], "references": []}, ValueError, "nothing to score"),
        ({"references": [CUPS]}, TypeError, "predictions: is of type NoneType"),
        ({"predictions": [{"boxes": [[1, 2]]}], "references": [CUPS]}, ValueError, r"predictions\[0\]: boxes has the"),
        ({"predictions": [CUPS], "references": [CUPS], "weight": 2}, TypeError, "weight"),
        ({"predictions": [CUPS], "references": [CUPS], "iou_type": "segm"}, ValueError, "masks is missing"),
    ],
)
def test_evaluate_passes_on_the_clear_errors(metric_class, inputs, error, message):
    with pytest.raises(error, match=message):
        metric_class(keep_in_memory=True).compute(**inputs)


def test_a_column_of_a_dataset_is_accepted(metric_class):
    datasets = pytest.importorskip("datasets")
    images = [{"boxes": CUPS["boxes"], "labels": ["cup", "cup"]}, {"boxes": [], "labels": []}]
    table = datasets.Dataset.from_dict({"p": images, "r": images[::-1]})
    result = metric_class(keep_in_memory=True).compute(predictions=table["p"], references=table["r"])
    assert result == mean_ap(images, images[::-1])


def test_arrays_and_tensors_are_accepted(metric_class):
    torch = pytest.importorskip("torch")
    tensors = {"boxes": torch.tensor(CUPS["boxes"], dtype=torch.float64), "labels": np.array([1, 1])}
    lists = {"boxes": CUPS["boxes"], "labels": [1, 1]}
    result = metric_class(keep_in_memory=True).compute(predictions=[tensors], references=[lists])
    assert result == mean_ap([lists], [lists])


def test_masks_and_options_reach_the_function(metric_class):
    mask = pytest.importorskip("pycocotools.mask")
    squares = mask.frPyObjects(np.array([[2.0, 2, 8, 8], [12, 2, 9, 5]]), 24, 24)
    image = {"masks": squares, "scores": [1.0, 0.5]}
    metric = metric_class(keep_in_memory=True)
    result = metric.compute(
        predictions=[image, None], references=[{"masks": squares}] * 2, iou_type="segm", rounding="float32"
    )
    assert result == mean_ap([image, None], [{"masks": squares}] * 2, iou_type="segm", rounding="float32")
    orders = {"tie_orders": 7, "seed": 3}
    spread = metric.compute(predictions=PREDICTIONS, references=REFERENCES, **orders)["tie_spread"]
    assert spread == tie_spread(PREDICTIONS, REFERENCES, orders=7, seed=3)


def test_the_example_of_the_readme_runs(metric_class, monkeypatch):
    monkeypatch.chdir(REPO)
    outcome = doctest.testfile(str(REPO / "metrics/mean_ap/README.md"), module_relative=False)
    assert outcome.attempted >= 8
    assert outcome.failed == 0


def test_the_examples_in_the_docstrings_run(metric_class):
    from mean_ap import accumulate, inputs, matching, overlap, scoring, spread, values

    assert all(
        doctest.testmod(part).failed == 0 for part in (accumulate, inputs, matching, overlap, scoring, spread, values)
    )
    assert doctest.testmod(sys.modules[metric_class.__module__]).failed == 0


def test_the_readme_is_a_space_card():
    import yaml

    head = yaml.safe_load((REPO / "metrics/mean_ap/README.md").read_text().split("---")[1])
    assert head["sdk"] == "gradio"
    assert head["tags"] == ["evaluate", "metric"]
    assert (REPO / "metrics/mean_ap" / head["app_file"]).is_file()


BLOCKED_LOAD = """
import importlib.abc, sys

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("barista_bench", "metrics"):
            raise ModuleNotFoundError(f"{name} is not installed here", name=name)

sys.meta_path.insert(0, Blocked())
import evaluate
metric = evaluate.load(sys.argv[1])
cup = {"boxes": [[0, 0, 9, 9]], "labels": "cup"}
result = metric.compute(predictions=[None, cup], references=[cup] * 2)
print(result["recall@50"])
"""


@pytest.mark.slow
def test_the_metric_loads_where_barista_bench_is_not_installed(tmp_path):
    env = os.environ | {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-I", "-c", BLOCKED_LOAD, str(REPO / "metrics/mean_ap")]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "0.5"
