"""The choice_accuracy metric inside `evaluate`: equal to its function, in both configurations."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "metrics"))
from choice_accuracy import choice_accuracy, multi_answer  # noqa: E402

METRIC = "choice_accuracy"

VERBS = {"A": "open", "B": "open", "C": "close"}
PREDICTIONS = [None, "A", "B", 3]
REFERENCES = ["A", "A", "A", "3"]
# Whatever may be left out is left out somewhere, and is None in the first question.
EXTRAS = {
    "classes": [None, "open lid", "open lid", 7],
    "verbs": [None, "open", None, "turn"],
    "choices": [None, VERBS, VERBS, [3, 4]],
}
ALL = {"predictions": PREDICTIONS, "references": REFERENCES, **EXTRAS}
OPTIONS = ["cup", "lid", "spoon"]
MULTI = {
    "predictions": [None, ["cup"], []],
    "references": [["cup"], ["cup", "lid"], ["spoon"]],
    "choices": [OPTIONS, OPTIONS, OPTIONS],
}


@pytest.mark.parametrize("columns", [{"predictions": PREDICTIONS, "references": REFERENCES}, ALL])
def test_the_module_computes_what_the_function_does(metric_class, columns):
    assert metric_class(keep_in_memory=True).compute(**columns) == choice_accuracy(**columns)


def test_several_right_choices_have_a_configuration_of_their_own(metric_class):
    assert metric_class("multi_answer", keep_in_memory=True).compute(**MULTI) == multi_answer(**MULTI)
    with pytest.raises(ValueError, match="the configuration is 'several'; give"):
        metric_class("several")


@pytest.mark.parametrize(
    ("config", "inputs", "error", "message"),
    [
        ("default", {"predictions": [], "references": []}, ValueError, "nothing to score"),
        ("default", {"references": ["A"]}, TypeError, "predictions: is of type NoneType"),
        ("default", {"predictions": [2.5], "references": ["A"]}, TypeError, r"predictions\[0\]: is 2.5"),
        ("default", {"predictions": ["A"], "references": ["A"], "weight": 2}, TypeError, "weight"),
        ("multi_answer", {"predictions": [], "references": [], "choices": []}, ValueError, "nothing to score"),
        ("multi_answer", {"predictions": [["A"]], "references": [["A"]]}, TypeError, "choices: is of type NoneType"),
    ],
)
def test_evaluate_passes_on_the_clear_errors(metric_class, config, inputs, error, message):
    with pytest.raises(error, match=message):
        metric_class(config, keep_in_memory=True).compute(**inputs)


def test_a_column_of_a_dataset_is_accepted(metric_class):
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_dict({"p": [None, "A", "B"], "r": ["A", "A", "A"]})
    result = metric_class(keep_in_memory=True).compute(predictions=table["p"], references=table["r"])
    assert result == choice_accuracy([None, "A", "B"], ["A", "A", "A"])
