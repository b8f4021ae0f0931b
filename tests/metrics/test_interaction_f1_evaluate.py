"""The interaction_f1 metric inside `evaluate`: equal to its function, options and errors included."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "metrics"))
from interaction_f1 import interaction_f1  # noqa: E402

METRIC = "interaction_f1"

CUP = {"hand_boxes": [[0.5, 0, 4, 4]], "object_box": [3, 3, 9, 9], "hand_type": "left"}
LID = {"hand_boxes": [[20, 0, 24, 4], [30, 0, 34, 4]], "object_box": [22, 3, 28, 9.125], "hand_type": "both"}
FAR = {"hand_boxes": [], "object_box": [80, 80, 86, 86], "hand_type": "right"}

PREDICTIONS = [None, [CUP, FAR], [], [LID, LID]]
REFERENCES = [[CUP], [CUP], [], [LID]]


def test_the_module_computes_what_the_function_does(metric_class):
    result = metric_class(keep_in_memory=True).compute(predictions=PREDICTIONS, references=REFERENCES)
    assert result == interaction_f1(PREDICTIONS, REFERENCES)


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ({"predictions": [], "references": []}, ValueError, "nothing to score"),
        ({"references": [[CUP]]}, TypeError, "predictions: is of type NoneType"),
        ({"predictions": [[CUP | {"hand_type": 3}]], "references": [[CUP]]}, TypeError, "hand_type is 3"),
        ({"predictions": [[CUP]], "references": [[CUP]], "matching": "best"}, ValueError, "matching is 'best'"),
        ({"predictions": [[CUP]], "references": [[CUP]], "weight": 2}, TypeError, "weight"),
    ],
)
def test_evaluate_passes_on_the_clear_errors(metric_class, inputs, error, message):
    with pytest.raises(error, match=message):
        metric_class(keep_in_memory=True).compute(**inputs)


def test_the_matching_can_be_chosen_when_computing(metric_class):
    result = metric_class(keep_in_memory=True).compute(
        predictions=PREDICTIONS, references=REFERENCES, matching="optimal"
    )
    assert result == interaction_f1(PREDICTIONS, REFERENCES, matching="optimal")
    assert result["greedy_cost"] == 0


def test_a_column_of_a_dataset_is_accepted(metric_class):
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_dict({"p": PREDICTIONS, "r": REFERENCES})
    result = metric_class(keep_in_memory=True).compute(predictions=table["p"], references=table["r"])
    assert result == interaction_f1(PREDICTIONS, REFERENCES)
