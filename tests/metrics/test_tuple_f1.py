"""The arithmetic of the tuple_f1 metric: against a slow reference, by hand, and by its properties."""

import random
from collections import Counter

import pytest
from tuple_f1 import tuple_confusion, tuple_f1
from tuple_f1.scoring import NOTHING, RelationTuple

from tests.metrics.conftest import assert_metrics

ON = (1, 2, "position", "on")
UNDER = (2, 1, "position", "under")
HOLDS = (3, 1, "human_actions", "holds")


def as_dict(relation):
    return dict(zip(RelationTuple._fields, relation, strict=True))


def slow_matches(prediction, reference):
    """Walk two sorted lists side by side; no multiset type."""
    left = sorted((a, b, t.strip().casefold(), v.strip().casefold()) for a, b, t, v in prediction)
    right = sorted((a, b, t.strip().casefold(), v.strip().casefold()) for a, b, t, v in reference)
    matched, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        if left[i] == right[j]:
            matched.append(left[i])
            i, j = i + 1, j + 1
        elif left[i] < right[j]:
            i += 1
        else:
            j += 1
    return matched, left, right


def slow_fractions(n_matched, n_left, n_right):
    if n_left == 0 and n_right == 0:
        return 1.0, 1.0, 1.0
    precision = n_matched / n_left if n_left else 0.0
    recall = n_matched / n_right if n_right else 0.0
    # F1 by counts (the Dice form), not by the two shares.
    return precision, recall, 2 * n_matched / (n_left + n_right)


def slow_macro_f1(parts, group_of):
    """The mean f1 of the groups that a reference relation is of."""
    f1s = []
    for group in {group_of(relation) for relation in parts[2]}:
        f1s.append(slow_fractions(*(sum(group_of(relation) == group for relation in part) for part in parts))[2])
    return sum(f1s) / len(f1s) if f1s else 0.0


def slow_tuple_f1(predictions, references, groups_of):
    cases = list(zip(predictions, references, strict=True))
    parts, f1s = ([], [], []), []
    for prediction, reference in cases:
        found = slow_matches(prediction or [], reference)
        for part, relations in zip(parts, found, strict=True):
            part.extend(relations)
        f1s.append(0.0 if prediction is None else slow_fractions(*map(len, found))[2])
    failed = predictions.count(None)
    pooled = slow_fractions(*map(len, parts)) if failed < len(references) else (0.0, 0.0, 0.0)
    if groups_of == "answered":
        found = [slow_matches(prediction, reference) for prediction, reference in cases if prediction is not None]
        parts = [[relation for example in found for relation in example[side]] for side in range(3)]
    per_type = {}
    for kind in {t[2] for part in parts for t in part}:
        counts = [sum(t[2] == kind for t in part) for part in parts]
        per_type[kind] = dict(zip(("precision", "recall", "f1"), slow_fractions(*counts), strict=True))
        per_type[kind]["support"] = counts[2]
    return {
        **dict(zip(("micro_precision", "micro_recall", "micro_f1"), pooled, strict=True)),
        "mean_example_f1": sum(f1s) / len(f1s),
        "macro_f1": slow_macro_f1(parts, lambda t: t[2]),
        "macro_value_f1": slow_macro_f1(parts, lambda t: t[2:]),
        "per_relation_type": per_type,
        "n_failed": failed,
    }


def random_relation(rng):
    kind, value = rng.choice([("position", "on"), ("Position ", "under"), ("human_actions", "HOLDS")])
    return rng.randint(1, 2), rng.randint(1, 2), kind, value


def random_example(rng):
    reference = [random_relation(rng) for _ in range(rng.randint(0, 6))]
    prediction = [r for r in reference if rng.random() < 0.6]
    prediction += [random_relation(rng) for _ in range(rng.randint(0, 3))]
    rng.shuffle(prediction)
    return None if rng.random() < 0.15 else prediction, reference


@pytest.mark.parametrize("groups_of", ["all", "answered"])
@pytest.mark.parametrize("n_cases", [200, pytest.param(2000, marks=pytest.mark.full)])
def test_equals_a_slow_reference_on_random_cases(n_cases, groups_of):
    rng = random.Random(0)
    for _ in range(n_cases):
        cases = [random_example(rng) for _ in range(rng.randint(1, 5))]
        predictions, references = [c[0] for c in cases], [c[1] for c in cases]
        got = tuple_f1(predictions, references, groups_of=groups_of)
        want = slow_tuple_f1(predictions, references, groups_of)
        per_type = want.pop("per_relation_type")
        assert_metrics(got, want)
        assert got["per_relation_type"].keys() == per_type.keys()
        for kind, metrics in got["per_relation_type"].items():
            assert_metrics(metrics, per_type[kind])


@pytest.mark.parametrize(
    ("prediction", "reference", "tp", "precision", "recall", "f1"),
    [
        ([], [], 0, 1, 1, 1),
        ([ON], [], 0, 0, 0, 0),
        ([], [ON], 0, 0, 0, 0),
        ([as_dict(ON) | {"confidence": 0.5}], [list(ON)], 1, 1, 1, 1),
        ([ON, ON], [ON], 1, 0.5, 1, 2 / 3),
        ([ON], [ON, ON], 1, 1, 0.5, 2 / 3),
        ([ON, HOLDS, UNDER], [ON, HOLDS, HOLDS, HOLDS], 2, 2 / 3, 0.5, 4 / 7),
        ([(1, 2, " POSITION", "On\n")], [ON], 1, 1, 1, 1),
        ([(2, 1, "position", "on")], [ON], 0, 0, 0, 0),
        ([(1, 2, "position", "part  of")], [(1, 2, "position", "part of")], 0, 0, 0, 0),
        ([(1, 2, "position", "STRASSE")], [(1, 2, "position", "straße")], 1, 1, 1, 1),
        (None, [ON], 0, 0, 0, 0),
        (None, [], 0, 0, 0, 0),
    ],
)
def test_an_example_is_scored_as_computed_by_hand(prediction, reference, tp, precision, recall, f1):
    score = tuple_f1([prediction], [reference])
    assert score["tp"] == tp
    fractions = [score["micro_precision"], score["micro_recall"], score["micro_f1"]]
    assert fractions == pytest.approx([precision, recall, f1])


def test_values_are_pooled_by_type_and_value():
    result = tuple_f1([[ON, UNDER, HOLDS]], [[ON, ON, HOLDS]])
    assert list(result["per_value"]) == ["human_actions/holds", "position/on", "position/under"]
    assert result["per_value"]["position/on"]["recall"] == 0.5
    assert result["per_value"]["position/under"] == {
        "precision": 0.0, "recall": 0.0, "f1": 0.0, "tp": 0, "n_predicted": 1, "support": 0,
    }  # fmt: skip
    assert result["per_relation_type"]["position"]["precision"] == 0.5


@pytest.mark.parametrize(
    ("predictions", "references", "error", "message"),
    [
        ([as_dict(ON)], [[ON]], TypeError, r"predictions\[0\]: .*give a list"),
        ([[ON, "on"]], [[ON]], TypeError, r"predictions\[0\]\[1\]: is 'on'.*give a dict"),
        ([[ON], [(1, 2, "position")]], [[ON], []], ValueError, r"predictions\[1\]\[0\]: has 3 elements"),
        ([[{"source_id": 1}]], [[ON]], ValueError, "target_id, relation_type, value is missing"),
        ([[("1", 2, "p", "v")]], [[ON]], TypeError, "source_id is '1' .str., not an integer"),
        ([[(True, 2, "p", "v")]], [[ON]], TypeError, "source_id is True"),
        ([[(1, 2, None, "v")]], [[ON]], TypeError, "relation_type is None"),
        ([[ON]], [[(1, 2, "p", 3)]], TypeError, r"references\[0\]\[0\]: value is 3"),
    ],
)
def test_wrong_input_is_named_with_its_place_and_remedy(predictions, references, error, message):
    with pytest.raises(error, match=message):
        tuple_f1(predictions, references)
    with pytest.raises(ValueError, match="groups_of is 'some'; give 'all' or 'answered'"):
        tuple_f1([[ON]], [[ON]], groups_of="some")


def test_macro_f1_gives_every_group_with_a_reference_the_same_weight():
    on, under, holds = (1, 2, "position", "on"), (1, 2, "position", "under"), (3, 1, "human_actions", "holds")
    result = tuple_f1([[on, under, (5, 5, "other", "x")]], [[on, holds]])
    assert result["per_relation_type"]["position"]["f1"] == pytest.approx(2 / 3)
    assert result["macro_f1"] == pytest.approx((2 / 3 + 0) / 2), "`other` has no reference"
    assert result["macro_value_f1"] == pytest.approx((1 + 0) / 2)
    assert tuple_f1([[]], [[]])["macro_f1"] == 0.0


def test_the_confusion_counts_every_relation_of_any_type_once():
    on, holds = (1, 2, "position", "on"), (1, 2, "human_actions", "holds")
    assert tuple_confusion([[holds]], [[on]]) == {"position/on": {"human_actions/holds": 1}}
    rng = random.Random(5)
    labels = [("p", "on"), ("p", "in"), ("h", "on")]

    def example():
        return [(rng.randint(1, 2), rng.randint(1, 2), *rng.choice(labels)) for _ in range(rng.randint(0, 5))]

    for _ in range(200):
        predictions, references = ([example(), example()] for _ in range(2))
        confusion = tuple_confusion(predictions, references)
        of_truth, of_answer = Counter(), Counter()
        for reference, answers in confusion.items():
            for answered, count in answers.items():
                of_truth[reference] += count
                of_answer[answered] += count
        for counted, column in ((of_truth, references), (of_answer, predictions)):
            wanted = Counter(f"{kind}/{value}" for example in column for _, _, kind, value in example)
            assert {label: n for label, n in counted.items() if label != NOTHING} == dict(wanted)
        hits = sum(answers.get(reference, 0) for reference, answers in confusion.items())
        assert hits == tuple_f1(predictions, references)["tp"]
