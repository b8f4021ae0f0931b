"""The judge_score metric inside `evaluate`: equal to its function, in every configuration."""

import subprocess
import sys

import numpy as np
import pytest
from judge_score import egocot_reasoning, judge_agreement, judge_score

from tests.conformance.loading import METRICS

METRIC = "judge_score"

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


@pytest.mark.parametrize("config", WANT)
def test_the_module_computes_the_functions_result(metric_class, config):
    predictions, references = INPUT[config]
    result = metric_class(config, keep_in_memory=True).compute(predictions=predictions, references=references)
    assert result == WANT[config]


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


def test_verdicts_are_scored_where_scipy_is_not_installed():
    code = """
import sys
sys.modules["scipy"] = None  # as if it were not there
sys.path.insert(0, sys.argv[1])
from judge_score import judge_score
print(judge_score([None, {"accuracy": [7, 9]}])["mean"])
"""
    command = [sys.executable, "-I", "-c", code, str(METRICS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout.strip()) == (0, "0.8"), done.stderr
