"""The choice_accuracy metric inside `evaluate`: columns that may be left out, and its configurations."""

from __future__ import annotations

import pytest
from choice_accuracy import choice_accuracy

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


@pytest.mark.parametrize("columns", [{"predictions": PREDICTIONS, "references": REFERENCES}, ALL])
def test_the_module_computes_what_the_function_does(metric_class, columns):
    assert metric_class(keep_in_memory=True).compute(**columns) == choice_accuracy(**columns)


def test_several_right_choices_have_a_configuration_of_their_own(metric_class):
    with pytest.raises(TypeError, match="choices: is of type NoneType"):
        metric_class("multi_answer", keep_in_memory=True).compute(predictions=[["A"]], references=[["A"]])
    with pytest.raises(ValueError, match="the configuration is 'several'; give"):
        metric_class("several")
