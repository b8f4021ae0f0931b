"""The spatio_temporal_grounding metric inside `evaluate`: loading, batches, several processes, and its documents."""

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
from spatio_temporal_grounding import spatio_temporal_grounding  # noqa: E402

BOX = [0, 0, 10, 10]
CUP = {"category": "cup", "intervals": [[0, 4]], "boxes": {"0": BOX, "4": BOX}}
PEN = {"category": "pen", "kind": "implicit", "intervals": [[0, 1], [3, 4]], "boxes": [{"timestamp": 2.5, "box": BOX}]}
ONE, TWO = {"kind": "explicit", "objects": [CUP]}, {"kind": "implicit", "objects": [CUP, PEN]}
FOUND = {"match": 0, "intervals": [[0, 2]], "boxes": {"0": [BOX, [0, 0, 5, 5]], "8": BOX}}
BROKEN = {"match": 1, "intervals": "late", "boxes": {"2.5": [0, 0, 10, 9], "3": [1]}}

PREDICTIONS = [None, [FOUND, BROKEN, {"match": None}], [], [FOUND]]
REFERENCES = [ONE, TWO, ONE, ONE]


@pytest.fixture(scope="module")
def metric_class(tmp_path_factory):
    """SpatioTemporalGrounding as evaluate.load finds it: copied, with its siblings, into evaluate's modules."""
    evaluate = pytest.importorskip("evaluate")
    patch = pytest.MonkeyPatch()
    modules = tmp_path_factory.mktemp("modules")
    patch.setattr(evaluate.config, "HF_MODULES_CACHE", modules)
    patch.setattr(evaluate.config, "HF_METRICS_CACHE", modules / "data")
    patch.setattr(sys, "path", [*sys.path])
    forget_copied_modules()
    patch.chdir(REPO)
    metric = evaluate.load("metrics/spatio_temporal_grounding", cache_dir=str(modules / "data"))
    yield type(metric)
    patch.undo()
    forget_copied_modules()


def forget_copied_modules():
    """The package of copied modules remembers its first folder, and would look for other tests' metrics there."""
    for name in [name for name in sys.modules if name.split(".")[0] == "evaluate_modules"]:
        del sys.modules[name]


def test_evaluate_copies_the_script_and_its_sibling(metric_class):
    copied = Path(sys.modules[metric_class.__module__].__file__).parent
    assert {"parsing.py", "scoring.py", "spatio_temporal_grounding.py"} <= {path.name for path in copied.iterdir()}
    assert REPO not in copied.parents


@pytest.mark.parametrize("keep_in_memory", [False, True])
def test_compute_add_and_add_batch_equal_the_function(metric_class, tmp_path, keep_in_memory):
    want = spatio_temporal_grounding(PREDICTIONS, REFERENCES)
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
    assert metric.compute() == spatio_temporal_grounding(PREDICTIONS, REFERENCES)


def test_combine_reports_the_metric_beside_others(metric_class, tmp_path):
    import evaluate

    both = evaluate.combine([metric_class(cache_dir=str(tmp_path)), metric_class(cache_dir=str(tmp_path))])
    both.add(prediction=None, reference=ONE)
    both.add_batch(predictions=[[FOUND]], references=[ONE])
    result = both.compute()
    assert result["spatio_temporal_grounding_0_O-Acc"] == result["spatio_temporal_grounding_1_O-Acc"] == 0.5


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
    in_order = [0, 2, 1, 3]  # the first process's tasks come first
    want = spatio_temporal_grounding([PREDICTIONS[i] for i in in_order], [REFERENCES[i] for i in in_order])
    assert results[0] == want
    assert results[1] is None


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ({"predictions": [], "references": []}, ValueError, "nothing to score"),
        ({"references": [ONE]}, TypeError, "predictions: is of type NoneType"),
        ({"predictions": [[{"match": 5}]], "references": [ONE]}, ValueError, r"predictions\[0\]\[0\]: match is 5"),
        ({"predictions": [[FOUND]], "references": [ONE], "viou": "all"}, ValueError, "viou is 'all'"),
        ({"predictions": [[FOUND]], "references": [ONE], "weight": 2}, TypeError, "weight"),
    ],
)
def test_evaluate_passes_on_the_clear_errors(metric_class, inputs, error, message):
    with pytest.raises(error, match=message):
        metric_class(keep_in_memory=True).compute(**inputs)


def test_the_kind_of_viou_is_passed_on(metric_class):
    result = metric_class(keep_in_memory=True).compute(predictions=[[FOUND]], references=[ONE], viou="union")
    assert result == spatio_temporal_grounding([[FOUND]], [ONE], viou="union")
    assert result["O-m_vIoU"] == pytest.approx(1 / 3)


def test_columns_of_a_dataset_are_accepted(metric_class):
    datasets = pytest.importorskip("datasets")
    boxes = [{"timestamp": 0, "box": BOX}]
    answers = [[{"match": 0, "intervals": [[0, 2]], "boxes": boxes}], None]
    references = [{"kind": "explicit", "objects": [CUP | {"boxes": boxes}]}] * 2
    table = datasets.Dataset.from_dict({"p": answers, "r": references})
    result = metric_class(keep_in_memory=True).compute(predictions=table["p"], references=table["r"])
    assert result == spatio_temporal_grounding(answers, references)


def test_the_example_of_the_readme_runs(metric_class, monkeypatch):
    monkeypatch.chdir(REPO)
    outcome = doctest.testfile(str(REPO / "metrics/spatio_temporal_grounding/README.md"), module_relative=False)
    assert outcome.attempted >= 8
    assert outcome.failed == 0


def test_the_examples_in_the_docstrings_run(metric_class):
    from spatio_temporal_grounding import parsing, scoring

    assert doctest.testmod(scoring).failed == doctest.testmod(parsing).failed == 0
    assert doctest.testmod(sys.modules[metric_class.__module__]).failed == 0


def test_the_readme_is_a_space_card():
    import yaml

    head = yaml.safe_load((REPO / "metrics/spatio_temporal_grounding/README.md").read_text().split("---")[1])
    assert head["sdk"] == "gradio"
    assert head["tags"] == ["evaluate", "metric"]
    assert (REPO / "metrics/spatio_temporal_grounding" / head["app_file"]).is_file()


BLOCKED_LOAD = """
import importlib.abc, sys

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("barista_bench", "metrics"):
            raise ModuleNotFoundError(f"{name} is not installed here", name=name)

sys.meta_path.insert(0, Blocked())
import evaluate
metric = evaluate.load(sys.argv[1])
cup = {"category": "cup", "intervals": [[0, 1]], "boxes": {0: [0, 0, 1, 1]}}
task = {"kind": "explicit", "objects": [cup]}
print(metric.compute(predictions=[None, [cup | {"match": 0}]], references=[task] * 2)["O-m_vIoU"])
"""


@pytest.mark.slow
def test_the_metric_loads_where_barista_bench_is_not_installed(tmp_path):
    env = os.environ | {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-I", "-c", BLOCKED_LOAD, str(REPO / "metrics/spatio_temporal_grounding")]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "0.5"
