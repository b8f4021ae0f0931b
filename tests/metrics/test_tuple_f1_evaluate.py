"""The tuple_f1 metric inside `evaluate`: equal to its function, errors included."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "metrics"))
from tuple_f1 import tuple_f1  # noqa: E402
from tuple_f1.scoring import Relation  # noqa: E402

METRIC = "tuple_f1"

ON = (1, 2, "position", "on")
UNDER = (2, 1, "position", "under")
HOLDS = (3, 1, "human_actions", "holds")

PREDICTIONS = [None, [ON, HOLDS], [], [UNDER, UNDER]]
REFERENCES = [[ON], [ON], [], [UNDER]]


def as_dict(relation):
    return dict(zip(Relation._fields, relation, strict=True))


def as_dicts(column):
    return [None if example is None else [as_dict(relation) for relation in example] for example in column]


@pytest.mark.parametrize("convert", [list, as_dicts], ids=["tuples", "dicts"])
def test_the_module_computes_what_the_function_does(metric_class, convert):
    result = metric_class(keep_in_memory=True).compute(predictions=convert(PREDICTIONS), references=convert(REFERENCES))
    assert result == tuple_f1(PREDICTIONS, REFERENCES)


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
