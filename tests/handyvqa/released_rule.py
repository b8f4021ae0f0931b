"""The public evaluation script's rule, transcribed from its description without looking at the package.

Of a record count `options`, `correct_idx` and `inference`. Where the script would raise, it warns and passes over the
record; so does `answer_of` by returning None, as for a question without an answer (the script runs without those).
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score

SINGLE = ("action", "process", "location", "state", "parts")

Record = Mapping[str, Any]


def places_named(record: Record) -> list[int]:
    """Places of options with their letter before a closing bracket, ascending."""
    output = record["inference"]["output"].strip().lower().replace(".", "")
    letters = {letter for letter, bracket in pairwise(output) if bracket == ")"}
    places = {ord(letter) - ord("a") for letter in letters if "a" <= letter <= "z"}
    return sorted(index for index in places if index < len(record["options"]))


def is_right(record: Record) -> bool | None:
    """Of a question with one right option; None where it does not count."""
    places = places_named(record)
    if not places or not record["correct_idx"]:
        return None
    return bool(places[0] == record["correct_idx"][0])


def ranked(record: Record) -> tuple[list[int], list[float]] | None:
    """Labels and scores of the options of an objects question; None where it does not count."""
    count = len(record["options"])
    labels = [int(index in record["correct_idx"]) for index in range(count)]
    scores = record["inference"].get("inferred_scores")
    if scores is not None:
        return labels, list(scores)
    places = places_named(record)
    return (labels, [float(index in places) for index in range(count)]) if places else None


def official_metrics(records: Iterable[Record]) -> dict[str, float]:
    """The six figures, over the categories with counted answers."""
    metrics: dict[str, float] = {}
    records = list(records)
    for category in SINGLE:
        verdicts = [is_right(record) for record in records if record["category"] == category]
        counted = [verdict for verdict in verdicts if verdict is not None]
        if counted:
            metrics[category] = float(np.mean(counted))
    rows = [row for record in records if record["category"] == "objects" and (row := ranked(record))]
    labels, scores = [label for row in rows for label in row[0]], [score for row in rows for score in row[1]]
    if labels:
        # Without a single right option scikit-learn warns, and gives 0 as well.
        metrics["objects"] = float(average_precision_score(labels, scores)) if any(labels) else 0.0
    return metrics
