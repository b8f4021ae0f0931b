"""The sequence_matching metric inside `evaluate`: loading, batches, several processes, and its documents."""

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
from sequence_matching import sequence_matching as score  # noqa: E402

FOLDER = REPO / "metrics/sequence_matching"
PREDICTIONS = [None, [[0.9, 0.8], [0.7, 0.2]], [None, [0.5, None, 0.1], [0.1, 0.2, 0.3]], [[1.0, 0.0]]]
LABELS = [[0, 1], [1, 0], [2, 0, None], [0]]
GROUPS = ["a", None, ["a", "b"], "b"]
REFERENCES = [{"labels": labels, "groups": groups} for labels, groups in zip(LABELS, GROUPS, strict=True)]


@pytest.fixture(scope="module")
def metric_class(tmp_path_factory):
    """SequenceMatching as evaluate.load finds it: copied, with its siblings, into evaluate's folder of modules."""
    evaluate = pytest.importorskip("evaluate")
    patch = pytest.MonkeyPatch()
    modules = tmp_path_factory.mktemp("modules")
    patch.setattr(evaluate.config, "HF_MODULES_CACHE", modules)
    patch.setattr(evaluate.config, "HF_METRICS_CACHE", modules / "data")
    patch.setattr(sys, "path", [*sys.path])
    patch.chdir(REPO)
    metric = evaluate.load("metrics/sequence_matching", cache_dir=str(modules / "data"))
    yield type(metric)
    patch.undo()


def test_evaluate_copies_the_script_and_its_siblings(metric_class):
    copied = Path(sys.modules[metric_class.__module__].__file__).parent
    names = {"scoring.py", "inputs.py", "rescaling.py", "sequence_matching.py"}
    assert names <= {path.name for path in copied.iterdir()}
    assert REPO not in copied.parents


@pytest.mark.parametrize("keep_in_memory", [False, True])
@pytest.mark.parametrize("options", [{}, {"standardise": "raw", "ties": "wrong", "missing": -0.1, "softmax": False}])
def test_compute_add_and_add_batch_equal_the_function(metric_class, tmp_path, keep_in_memory, options):
    want = score(PREDICTIONS, LABELS, GROUPS, **options)
    settings = {"cache_dir": str(tmp_path), "keep_in_memory": keep_in_memory}
    one_by_one, batches = metric_class(**settings), metric_class(**settings)
    for prediction, reference in zip(PREDICTIONS, REFERENCES, strict=True):
        one_by_one.add(prediction=prediction, reference=reference)
    for part in (slice(None, 1), slice(1, None)):
        batches.add_batch(predictions=PREDICTIONS[part], references=REFERENCES[part])
    at_once = metric_class(**settings).compute(predictions=PREDICTIONS, references=REFERENCES, **options)
    assert at_once == want
    assert one_by_one.compute(**options) == want
    assert batches.compute(**options) == want


def test_plain_lists_of_labels_and_arrays_are_references_too(metric_class):
    arrays = [np.array([[0.9, 0.8], [0.7, 0.2]]), np.array([[1.0, np.nan], [0.0, 1.0]])]
    labels = [[1, 0], np.array([0, 1])]
    got = metric_class(keep_in_memory=True).compute(predictions=arrays, references=labels)
    assert got == score(arrays, labels)


def test_combine_reports_the_metric_beside_others(metric_class, tmp_path):
    import evaluate

    both = evaluate.combine([metric_class(cache_dir=str(tmp_path)), metric_class(cache_dir=str(tmp_path))])
    both.add(prediction=None, reference=[0, 1])
    both.add_batch(predictions=[PREDICTIONS[1]], references=[LABELS[1]])
    result = both.compute()
    assert result["sequence_matching_0_macro_f1"] == result["sequence_matching_1_macro_f1"] == 0.5


def test_two_processes_pool_their_problem_sets(metric_class, tmp_path):
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
    want = score(PREDICTIONS, LABELS, GROUPS)
    per_set = want.pop("per_set")
    # The sets come process by process.
    assert results[0].pop("per_set") == [per_set[index] for index in (0, 2, 1, 3)]
    assert results[0] == want
    assert results[1] is None


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ({"predictions": [], "references": []}, ValueError, "nothing to score"),
        ({"references": [[0]]}, TypeError, "predictions: is of type NoneType"),
        ({"predictions": [[["x"]]], "references": [[0]]}, TypeError, r"predictions\[0\]\[0\]\[0\]: is 'x'"),
        ({"predictions": [[[1.0]]], "references": [{"label": [0]}]}, ValueError, r"references\[0\]: has the keys"),
        ({"predictions": [[[1.0]]], "references": [[0]], "weight": 2}, TypeError, "weight"),
        ({"predictions": [[[1.0]]], "references": [[0]], "ties": "last"}, ValueError, "ties: is 'last'"),
    ],
)
def test_evaluate_passes_on_the_clear_errors(metric_class, inputs, error, message):
    with pytest.raises(error, match=message):
        metric_class(keep_in_memory=True).compute(**inputs)


def test_the_example_of_the_readme_runs(metric_class, monkeypatch):
    monkeypatch.chdir(REPO)
    outcome = doctest.testfile(str(FOLDER / "README.md"), module_relative=False)
    assert outcome.attempted >= 5
    assert outcome.failed == 0


def test_the_examples_in_the_docstrings_run(metric_class):
    from sequence_matching import inputs, rescaling, scoring

    assert sum(doctest.testmod(module).failed for module in (inputs, rescaling, scoring)) == 0
    assert doctest.testmod(sys.modules[metric_class.__module__]).failed == 0


def test_the_readme_is_a_space_card():
    import yaml

    head = yaml.safe_load((FOLDER / "README.md").read_text().split("---")[1])
    assert head["sdk"] == "gradio"
    assert head["tags"] == ["evaluate", "metric"]
    assert (FOLDER / head["app_file"]).is_file()


BLOCKED_LOAD = """
import importlib.abc, sys

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("barista_bench", "metrics", "scipy", "sklearn"):
            raise ModuleNotFoundError(f"{name} is not installed here", name=name)

sys.meta_path.insert(0, Blocked())
import evaluate
metric = evaluate.load(sys.argv[1])
result = metric.compute(predictions=[None, [[0.9, 0.8], [0.7, 0.2]]], references=[[0, 1], [1, 0]])
print(result["macro_f1"])
"""


@pytest.mark.slow
def test_the_metric_loads_where_barista_bench_is_not_installed(tmp_path):
    env = os.environ | {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-I", "-c", BLOCKED_LOAD, str(FOLDER)]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "0.5"
