"""The region_boundary metric inside `evaluate`: loading, batches, several processes, and its documents."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from pycocotools import mask as coco_mask

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "metrics"))
from region_boundary import region_boundary  # noqa: E402


def square(y, x, side=4, size=(20, 30)):
    mask = np.zeros(size, bool)
    mask[y : y + side, x : x + side] = True
    return mask


A, B, EMPTY = square(4, 4), square(5, 6), square(0, 0, 0)
RLE = coco_mask.encode(np.asfortranarray(B, np.uint8))

PREDICTIONS = [None, [A, None], [EMPTY, B.astype(int).tolist(), RLE], [A, RLE | {"counts": RLE["counts"].decode()}]]
REFERENCES = [[A], [A, B], [EMPTY, A, B], [B, B]]


@pytest.fixture(scope="module")
def metric_class(tmp_path_factory):
    """RegionBoundary as evaluate.load finds it: copied, with its sibling, into evaluate's folder of modules."""
    evaluate = pytest.importorskip("evaluate")
    patch = pytest.MonkeyPatch()
    modules = tmp_path_factory.mktemp("modules")
    patch.setattr(evaluate.config, "HF_MODULES_CACHE", modules)
    patch.setattr(evaluate.config, "HF_METRICS_CACHE", modules / "data")
    patch.setattr(sys, "path", [*sys.path])
    forget_copied_modules()
    patch.chdir(REPO)
    metric = evaluate.load("metrics/region_boundary", cache_dir=str(modules / "data"))
    yield type(metric)
    patch.undo()
    forget_copied_modules()


def forget_copied_modules():
    """The package of copied modules remembers its first folder, and would look for other tests' metrics there."""
    for name in [name for name in sys.modules if name.split(".")[0] == "evaluate_modules"]:
        del sys.modules[name]


def test_evaluate_copies_the_script_and_its_sibling(metric_class):
    copied = Path(sys.modules[metric_class.__module__].__file__).parent
    assert {"masks.py", "scoring.py", "region_boundary.py"} <= {path.name for path in copied.iterdir()}
    assert REPO not in copied.parents


@pytest.mark.parametrize("keep_in_memory", [False, True])
def test_compute_add_and_add_batch_equal_the_function(metric_class, tmp_path, keep_in_memory):
    want = region_boundary(PREDICTIONS, REFERENCES)
    options = {"cache_dir": str(tmp_path), "keep_in_memory": keep_in_memory}
    at_once = metric_class(**options).compute(predictions=PREDICTIONS, references=REFERENCES)
    one_by_one, batches = metric_class(**options), metric_class(**options)
    for prediction, reference in zip(PREDICTIONS, REFERENCES, strict=True):
        one_by_one.add(prediction=prediction, reference=reference)
    for part in (slice(0, 3), slice(3, 4)):
        batches.add_batch(predictions=PREDICTIONS[part], references=REFERENCES[part])
    assert at_once == want
    assert one_by_one.compute() == want
    assert batches.compute() == want


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_splitting_into_batches_changes_nothing(metric_class, cut):
    metric = metric_class(keep_in_memory=True)
    for part in (slice(None, cut), slice(cut, None)):
        metric.add_batch(predictions=PREDICTIONS[part], references=REFERENCES[part])
    assert metric.compute() == region_boundary(PREDICTIONS, REFERENCES)


def test_combine_reports_the_metric_beside_others(metric_class, tmp_path):
    import evaluate

    both = evaluate.combine([metric_class(cache_dir=str(tmp_path)), metric_class(cache_dir=str(tmp_path))])
    both.add(prediction=None, reference=[A])
    both.add_batch(predictions=[[A]], references=[[A]])
    result = both.compute()
    assert result["region_boundary_0_J_mean"] == result["region_boundary_1_J_mean"] == 0.5


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
    in_order = [0, 2, 1, 3]  # the first process's tracks come first
    want = region_boundary([PREDICTIONS[i] for i in in_order], [REFERENCES[i] for i in in_order])
    assert results[0] == want
    assert results[1] is None


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ({"predictions": [], "references": []}, ValueError, "nothing to score"),
        ({"references": [[A]]}, TypeError, "predictions: is of type NoneType"),
        ({"predictions": [[A.T]], "references": [[A]]}, ValueError, r"predictions\[0\]\[0\]: is 30 x 20 pixels"),
        ({"predictions": [[A]], "references": [[A]], "tolerance": 0}, ValueError, "tolerance is 0"),
        ({"predictions": [[A]], "references": [[A]], "weight": 2}, TypeError, "weight"),
    ],
)
def test_evaluate_passes_on_the_clear_errors(metric_class, inputs, error, message):
    with pytest.raises(error, match=message):
        metric_class(keep_in_memory=True).compute(**inputs)


def test_the_tolerance_is_passed_on(metric_class):
    result = metric_class(keep_in_memory=True).compute(predictions=[[A]], references=[[B]], tolerance=3)
    assert result == region_boundary([[A]], [[B]], tolerance=3)
    assert result["F_mean"] == 1


def test_columns_of_a_dataset_are_accepted(metric_class):
    datasets = pytest.importorskip("datasets")
    plain = {"size": RLE["size"], "counts": RLE["counts"].decode()}
    table = datasets.Dataset.from_dict({"p": [[plain], None], "r": [[plain], [plain]]})
    result = metric_class(keep_in_memory=True).compute(predictions=table["p"], references=table["r"])
    assert result == region_boundary([[B], None], [[B], [B]])


def test_more_than_255_masks_are_no_trouble(metric_class):
    result = metric_class(keep_in_memory=True).compute(predictions=[[A] * 300], references=[[RLE] * 300])
    assert result == region_boundary([[A] * 300], [[B] * 300])


def test_the_example_of_the_readme_runs(metric_class, monkeypatch):
    monkeypatch.chdir(REPO)
    outcome = doctest.testfile(str(REPO / "metrics/region_boundary/README.md"), module_relative=False)
    assert outcome.attempted >= 8
    assert outcome.failed == 0


def test_the_examples_in_the_docstrings_run(metric_class):
    from region_boundary import masks, scoring

    assert doctest.testmod(scoring).failed == doctest.testmod(masks).failed == 0
    assert doctest.testmod(sys.modules[metric_class.__module__]).failed == 0


def test_the_readme_is_a_space_card():
    import yaml

    head = yaml.safe_load((REPO / "metrics/region_boundary/README.md").read_text().split("---")[1])
    assert head["sdk"] == "gradio"
    assert head["tags"] == ["evaluate", "metric"]
    assert (REPO / "metrics/region_boundary" / head["app_file"]).is_file()


BLOCKED_LOAD = """
import importlib.abc, sys

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("barista_bench", "metrics"):
            raise ModuleNotFoundError(f"{name} is not installed here", name=name)

sys.meta_path.insert(0, Blocked())
import evaluate
metric = evaluate.load(sys.argv[1])
result = metric.compute(predictions=[None, [[[0, 1]]]], references=[[[[0, 1]]]] * 2)
print(result["J_mean"])
"""


@pytest.mark.slow
def test_the_metric_loads_where_barista_bench_is_not_installed(tmp_path):
    env = os.environ | {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-I", "-c", BLOCKED_LOAD, str(REPO / "metrics/region_boundary")]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "0.5"
