"""The tuple_f1 metric inside `evaluate`: loading, batches, several processes, and its documents."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "metrics"))
from tuple_f1 import tuple_f1  # noqa: E402
from tuple_f1.scoring import Relation  # noqa: E402

ON = (1, 2, "position", "on")
UNDER = (2, 1, "position", "under")
HOLDS = (3, 1, "human_actions", "holds")

PREDICTIONS = [None, [ON, HOLDS], [], [UNDER, UNDER]]
REFERENCES = [[ON], [ON], [], [UNDER]]


@pytest.fixture(scope="module")
def metric_class(tmp_path_factory):
    """TupleF1 as evaluate.load finds it: copied, with its sibling, into evaluate's folder of modules."""
    evaluate = pytest.importorskip("evaluate")
    patch = pytest.MonkeyPatch()
    modules = tmp_path_factory.mktemp("modules")
    patch.setattr(evaluate.config, "HF_MODULES_CACHE", modules)
    patch.setattr(evaluate.config, "HF_METRICS_CACHE", modules / "data")
    patch.setattr(sys, "path", [*sys.path])
    patch.chdir(REPO)
    metric = evaluate.load("metrics/tuple_f1", cache_dir=str(modules / "data"))
    yield type(metric)
    patch.undo()


def test_evaluate_copies_the_script_and_its_sibling(metric_class):
    copied = Path(sys.modules[metric_class.__module__].__file__).parent
    assert {"scoring.py", "tuple_f1.py"} <= {path.name for path in copied.iterdir()}
    assert REPO not in copied.parents


def as_dict(relation):
    return dict(zip(Relation._fields, relation, strict=True))


def as_dicts(column):
    return [None if example is None else [as_dict(relation) for relation in example] for example in column]


@pytest.mark.parametrize("keep_in_memory", [False, True])
def test_compute_add_and_add_batch_equal_the_function(metric_class, tmp_path, keep_in_memory):
    want = tuple_f1(PREDICTIONS, REFERENCES)
    options = {"cache_dir": str(tmp_path), "keep_in_memory": keep_in_memory}
    at_once = metric_class(**options).compute(predictions=as_dicts(PREDICTIONS), references=as_dicts(REFERENCES))
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
    assert metric.compute() == tuple_f1(PREDICTIONS, REFERENCES)


def test_combine_reports_the_metric_beside_others(metric_class, tmp_path):
    import evaluate

    both = evaluate.combine([metric_class(cache_dir=str(tmp_path)), metric_class(cache_dir=str(tmp_path))])
    both.add(prediction=None, reference=[ON])
    both.add_batch(predictions=[[ON]], references=[[ON]])
    result = both.compute()
    assert result["tuple_f1_0_micro_recall"] == result["tuple_f1_1_micro_recall"] == 0.5


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
    assert results[0] == tuple_f1(PREDICTIONS, REFERENCES)
    assert results[1] is None


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ({"predictions": [], "references": []}, ValueError, "nothing to score"),
        ({"references": [[ON]]}, TypeError, "predictions: is of type NoneType"),
        ({"predictions": [[(1, 2, 3, "v")]], "references": [[ON]]}, TypeError, "relation_type is 3"),
        ({"predictions": [[ON]], "references": [[ON]], "weight": 2}, TypeError, "weight"),
    ],
)
def test_evaluate_passes_on_the_clear_errors(metric_class, inputs, error, message):
    with pytest.raises(error, match=message):
        metric_class(keep_in_memory=True).compute(**inputs)


def test_a_column_of_a_dataset_is_accepted(metric_class):
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_dict({"p": as_dicts(PREDICTIONS), "r": as_dicts(REFERENCES)})
    result = metric_class(keep_in_memory=True).compute(predictions=table["p"], references=table["r"])
    assert result == tuple_f1(PREDICTIONS, REFERENCES)


def test_the_example_of_the_readme_runs(metric_class, monkeypatch):
    monkeypatch.chdir(REPO)
    outcome = doctest.testfile(str(REPO / "metrics/tuple_f1/README.md"), module_relative=False)
    assert outcome.attempted >= 8
    assert outcome.failed == 0


def test_the_examples_in_the_docstrings_run(metric_class):
    from tuple_f1 import scoring

    assert doctest.testmod(scoring).failed == 0
    assert doctest.testmod(sys.modules[metric_class.__module__]).failed == 0


def test_the_readme_is_a_space_card():
    import yaml

    head = yaml.safe_load((REPO / "metrics/tuple_f1/README.md").read_text().split("---")[1])
    assert head["sdk"] == "gradio"
    assert head["tags"] == ["evaluate", "metric"]
    assert (REPO / "metrics/tuple_f1" / head["app_file"]).is_file()


BLOCKED_LOAD = """
import importlib.abc, sys

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("barista_bench", "metrics"):
            raise ModuleNotFoundError(f"{name} is not installed here", name=name)

sys.meta_path.insert(0, Blocked())
import evaluate
metric = evaluate.load(sys.argv[1])
result = metric.compute(predictions=[None, [[1, 2, "a", "b"]]], references=[[[1, 2, "a", "b"]]] * 2)
print(result["micro_recall"])
"""


@pytest.mark.slow
def test_the_metric_loads_where_barista_bench_is_not_installed(tmp_path):
    env = os.environ | {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-I", "-c", BLOCKED_LOAD, str(REPO / "metrics/tuple_f1")]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "0.5"
