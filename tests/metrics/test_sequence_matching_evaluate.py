"""The sequence_matching metric inside `evaluate`: scores that are missing, groups, options together."""

import numpy as np
import pytest
from sequence_matching import sequence_matching as score

METRIC = "sequence_matching"

PREDICTIONS = [None, [[0.9, 0.8], [0.7, 0.2]], [None, [0.5, None, 0.1], [0.1, 0.2, 0.3]], [[1.0, 0.0]]]
LABELS = [[0, 1], [1, 0], [2, 0, None], [0]]
GROUPS = ["a", None, ["a", "b"], "b"]
REFERENCES = [{"labels": labels, "groups": groups} for labels, groups in zip(LABELS, GROUPS, strict=True)]


@pytest.mark.parametrize("options", [{}, {"standardise": "raw", "ties": "wrong", "missing": -0.1, "softmax": False}])
def test_the_module_computes_what_the_function_does(metric_class, options):
    result = metric_class(keep_in_memory=True).compute(predictions=PREDICTIONS, references=REFERENCES, **options)
    assert result == score(PREDICTIONS, LABELS, GROUPS, **options)


def test_plain_lists_of_labels_and_arrays_are_references_too(metric_class):
    arrays = [np.array([[0.9, 0.8], [0.7, 0.2]]), np.array([[1.0, np.nan], [0.0, 1.0]])]
    labels = [[1, 0], np.array([0, 1])]
    got = metric_class(keep_in_memory=True).compute(predictions=arrays, references=labels)
    assert got == score(arrays, labels)
