"""The spatio_temporal_grounding metric inside `evaluate`: broken objects, and boxes as lists."""

import pytest
from spatio_temporal_grounding import spatio_temporal_grounding

METRIC = "spatio_temporal_grounding"

BOX = [0, 0, 10, 10]
CUP = {"category": "cup", "intervals": [[0, 4]], "boxes": {"0": BOX, "4": BOX}}
PEN = {"category": "pen", "kind": "implicit", "intervals": [[0, 1], [3, 4]], "boxes": [{"timestamp": 2.5, "box": BOX}]}
ONE, TWO = {"kind": "explicit", "objects": [CUP]}, {"kind": "implicit", "objects": [CUP, PEN]}
FOUND = {"match": 0, "intervals": [[0, 2]], "boxes": {"0": [BOX, [0, 0, 5, 5]], "8": BOX}}
BROKEN = {"match": 1, "intervals": "late", "boxes": {"2.5": [0, 0, 10, 9], "3": [1]}}

PREDICTIONS = [None, [FOUND, BROKEN, {"match": None}], [], [FOUND]]
REFERENCES = [ONE, TWO, ONE, ONE]


def test_columns_of_a_dataset_are_accepted(metric_class):
    datasets = pytest.importorskip("datasets")
    boxes = [{"timestamp": 0, "box": BOX}]
    answers = [[{"match": 0, "intervals": [[0, 2]], "boxes": boxes}], None]
    references = [{"kind": "explicit", "objects": [CUP | {"boxes": boxes}]}] * 2
    table = datasets.Dataset.from_dict({"p": answers, "r": references})
    result = metric_class(keep_in_memory=True).compute(predictions=table["p"], references=table["r"])
    assert result == spatio_temporal_grounding(answers, references)
