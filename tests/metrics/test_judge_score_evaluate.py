"""The judge_score metric inside `evaluate`: configurations, batches, several processes, and its documents."""

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
from judge_score import egocot_reasoning, judge_agreement, judge_score  # noqa: E402

FOLDER = REPO / "metrics/judge_score"
VERDICTS = [None, {"accuracy": [8, None], "completeness": 6}, {"accuracy": [4, 5.5]}, {}]
CATEGORIES = [None, "state", "", "state"]
JUDGED = [{"b": 7}, {"a": 8, "b": [7, 9]}, None, {"a": 3, "b": 1}]
MODELS = ["x", None, "y", "y"]
SAMPLES = [
    None,
    {"score": 2, "correct": True},
    {"score": None, "correct": True, "empty_reasoning": False},
    {"score": None, "correct": True, "empty_reasoning": True},
]
SUBTASKS = ["AOG", "AOG", None, "PR"]

WANT = {
    "verdicts": judge_score(VERDICTS, CATEGORIES),
    "agreement": judge_agreement({"a": [None, 8, None, 3], "b": [7, 8, None, 1]}, MODELS),
    # A sample without an answer is wrong, and its rationale empty.
    "egocot": egocot_reasoning(
        [None, 2, None, None], [False, True, True, True], SUBTASKS, empty_reasoning=[True, False, False, True]
    ),
}
INPUT = {"verdicts": (VERDICTS, CATEGORIES), "agreement": (JUDGED, MODELS), "egocot": (SAMPLES, SUBTASKS)}
configurations = pytest.mark.parametrize("config", WANT)


@pytest.fixture(scope="module")
def metric_class(tmp_path_factory):
    """JudgeScore as evaluate.load finds it: copied, with its siblings, into evaluate's folder of modules."""
    evaluate = pytest.importorskip("evaluate")
    patch = pytest.MonkeyPatch()
    modules = tmp_path_factory.mktemp("modules")
    patch.setattr(evaluate.config, "HF_MODULES_CACHE", modules)
    patch.setattr(evaluate.config, "HF_METRICS_CACHE", modules / "data")
    patch.setattr(sys, "path", [*sys.path])
    patch.chdir(REPO)
    metric = evaluate.load("metrics/judge_score", "egocot", cache_dir=str(modules / "data"))
    assert metric.config_name == "egocot"
    yield type(metric)
    patch.undo()


def test_evaluate_copies_the_script_and_its_siblings(metric_class):
    copied = Path(sys.modules[metric_class.__module__].__file__).parent
    assert {"scoring.py", "agreement.py", "egocot.py", "judge_score.py"} <= {path.name for path in copied.iterdir()}
    assert REPO not in copied.parents


def test_the_default_configuration_is_that_of_verdicts(metric_class):
    metric = metric_class(keep_in_memory=True)
    assert metric.compute(predictions=VERDICTS, references=CATEGORIES) == WANT["verdicts"]


@configurations
@pytest.mark.parametrize("keep_in_memory", [False, True])
def test_compute_add_and_add_batch_equal_the_function(metric_class, tmp_path, config, keep_in_memory):
    predictions, references = INPUT[config]
    options = {"cache_dir": str(tmp_path), "keep_in_memory": keep_in_memory}
    one_by_one, batches = metric_class(config, **options), metric_class(config, **options)
    for prediction, reference in zip(predictions, references, strict=True):
        one_by_one.add(prediction=prediction, reference=reference)
    for part in (slice(None, 1), slice(1, None)):
        batches.add_batch(predictions=predictions[part], references=references[part])
    at_once = metric_class(config, **options).compute(predictions=predictions, references=references)
    assert at_once == one_by_one.compute() == batches.compute() == WANT[config]


def test_references_may_be_left_out(metric_class):
    metric = metric_class(keep_in_memory=True)
    assert metric.compute(predictions=VERDICTS) == judge_score(VERDICTS)
    metric.add(prediction={"a": np.array([3.0, np.nan])})
    assert metric.compute() == judge_score([{"a": [3, None]}])


def test_options_go_to_compute(metric_class):
    got = metric_class(keep_in_memory=True).compute(predictions=[{"a": 4}], criteria=["a", "b"], scale=5)
    assert got == judge_score([{"a": 4}], criteria=["a", "b"], scale=5)
    got = metric_class("agreement", keep_in_memory=True).compute(predictions=JUDGED, judges=["b", "a"], ddof=1)
    assert got["judges"] == ["b", "a"]
    got = metric_class("egocot", keep_in_memory=True).compute(predictions=SAMPLES, threshold=1)
    assert got["n_spurious"] == 1


def test_combine_reports_the_metric_beside_others(metric_class, tmp_path):
    import evaluate

    both = evaluate.combine([metric_class(cache_dir=str(tmp_path)), metric_class(cache_dir=str(tmp_path))])
    both.add(prediction=None, reference="a")
    both.add_batch(predictions=[{"accuracy": 8}], references=["a"])
    result = both.compute()
    assert result["judge_score_0_mean"] == result["judge_score_1_mean"] == 0.8


@configurations
def test_two_processes_pool_their_examples(metric_class, tmp_path, config):
    predictions, references = INPUT[config]

    def member(rank):
        settings = {"cache_dir": str(tmp_path), "num_process": 2, "process_id": rank, "experiment_id": "two"}
        metric = metric_class(config, timeout=30, **settings)
        metric.add_batch(predictions=predictions[rank::2], references=references[rank::2])
        results[rank] = metric.compute()

    results = {}
    threads = [threading.Thread(target=member, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert results[0] == WANT[config]
    assert results[1] is None


@pytest.mark.parametrize(
    ("config", "inputs", "error", "message"),
    [
        ("verdicts", {"predictions": []}, ValueError, "verdicts: is empty"),
        ("verdicts", {"references": ["a"]}, TypeError, "predictions: is of type NoneType"),
        ("verdicts", {"predictions": [{"a": "8"}]}, TypeError, r"predictions\[0\]\['a'\]: is '8'"),
        ("verdicts", {"predictions": [{"a": [-1]}]}, ValueError, r"is -1, outside 0 upwards"),
        ("verdicts", {"predictions": [{"a": 11}]}, ValueError, r"\['a'\]\[0\]: is 11.0, outside 0 to 10"),
        ("verdicts", {"predictions": [None], "references": [1]}, TypeError, r"references\[0\]: is 1"),
        ("verdicts", {"predictions": [None], "references": ["a", "b"]}, ValueError, "references: has 2 entries for 1"),
        ("verdicts", {"predictions": [{"a": 1}], "weight": 2}, TypeError, "weight"),
        ("agreement", {"predictions": [{"a": 1}]}, ValueError, "give at least two"),
        ("egocot", {"predictions": [5]}, TypeError, r"predictions\[0\]: is 5 .int.; give a dict with score"),
        ("egocot", {"predictions": [{"score": 5}]}, ValueError, r"predictions\[0\]: has the keys \['score'\]"),
        ("egocot", {"predictions": [{"score": 6, "correct": True}]}, ValueError, r"predictions\[0\].*is 6, outside"),
        ("egocot", {"predictions": []}, ValueError, "scores: are empty"),
    ],
)
def test_evaluate_passes_on_the_clear_errors(metric_class, config, inputs, error, message):
    with pytest.raises(error, match=message):
        metric_class(config, keep_in_memory=True).compute(**inputs)


def test_an_unknown_configuration_is_refused(metric_class):
    with pytest.raises(ValueError, match="config_name: is 'kappa'; give one of verdicts, agreement, egocot"):
        metric_class("kappa")


def test_the_example_of_the_readme_runs(metric_class, monkeypatch):
    monkeypatch.chdir(REPO)
    outcome = doctest.testfile(str(FOLDER / "README.md"), module_relative=False)
    assert outcome.attempted >= 12
    assert outcome.failed == 0


def test_the_examples_in_the_docstrings_run(metric_class):
    from judge_score import agreement, egocot, scoring

    assert sum(doctest.testmod(module).failed for module in (agreement, egocot, scoring)) == 0
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
print(metric.compute(predictions=[None, {"accuracy": [7, 9]}])["mean"])
"""


@pytest.mark.slow
def test_the_metric_loads_where_neither_barista_bench_nor_scipy_is_installed(tmp_path):
    env = os.environ | {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-I", "-c", BLOCKED_LOAD, str(FOLDER)]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "0.8"
