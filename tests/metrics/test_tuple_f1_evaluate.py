"""The tuple_f1 metric inside `evaluate`: relations as tuples and as dicts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "metrics"))
from tuple_f1 import tuple_f1  # noqa: E402
from tuple_f1.scoring import RelationTuple  # noqa: E402

METRIC = "tuple_f1"

ON = (1, 2, "position", "on")
UNDER = (2, 1, "position", "under")
HOLDS = (3, 1, "human_actions", "holds")

PREDICTIONS = [None, [ON, HOLDS], [], [UNDER, UNDER]]
REFERENCES = [[ON], [ON], [], [UNDER]]


def as_dict(relation):
    return dict(zip(RelationTuple._fields, relation, strict=True))


def as_dicts(column):
    return [None if example is None else [as_dict(relation) for relation in example] for example in column]


@pytest.mark.parametrize("convert", [list, as_dicts], ids=["tuples", "dicts"])
def test_the_module_computes_what_the_function_does(metric_class, convert):
    result = metric_class(keep_in_memory=True).compute(predictions=convert(PREDICTIONS), references=convert(REFERENCES))
    assert result == tuple_f1(PREDICTIONS, REFERENCES)
