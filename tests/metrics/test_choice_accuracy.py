"""The arithmetic of the choice_accuracy metric: against slow references, by hand, and by its properties."""

import random
from fractions import Fraction

import pytest
from choice_accuracy import choice_accuracy

from tests.metrics.conftest import assert_metrics

COLUMNS = ("predictions", "references", "classes", "verbs", "choices")
VERBS = {"A": "open", "B": "open", "C": "close", "D": "turn", "E": "turn"}


def fraction(values):
    values = list(values)
    return Fraction(sum(values), len(values)) if values else None


def slow_metrics(rows):
    """`rows`: dicts with answer, reference, class, verb and choices ({id: verb} or None)."""
    right = [row["answer"] == row["reference"] for row in rows]
    parsed = [r for r, row in zip(right, rows, strict=True) if row["answer"] is not None]
    classes = {row["class"] for row in rows if row["class"]}
    of_class = {c: fraction(r for r, row in zip(right, rows, strict=True) if row["class"] == c) for c in classes}
    verbs = {row["verb"] for row in rows if row["verb"]}
    wrong = [
        row
        for row in rows
        if row["answer"] not in (None, row["reference"]) and row["choices"] and all(row["choices"].values())
    ]
    # What random wrong picks would give: every wrong pick of every question, written out.
    picks = [
        fraction(
            verb == row["choices"][row["reference"]]
            for choice, verb in row["choices"].items()
            if choice != row["reference"]
        )
        for row in wrong
    ]
    known = all(row["choices"] for row in rows)
    same_verb = fraction(row["choices"][row["answer"]] == row["choices"][row["reference"]] for row in wrong)
    return {
        "accuracy": fraction(right),
        "accuracy_on_parsed": fraction(parsed),
        "chance_level": sum(Fraction(1, len(row["choices"])) for row in rows) / len(rows) if known else None,
        "class_mean_accuracy": sum(of_class.values()) / len(of_class) if of_class else None,
        "distractors": {"same_verb_share": same_verb, "random_share": sum(picks) / len(picks) if picks else None},
        "per_class": of_class,
        "per_verb": {v: fraction(r for r, row in zip(right, rows, strict=True) if row["verb"] == v) for v in verbs},
    }


def random_row(rng):
    ids = rng.sample("ABCDEFG", rng.randint(2, 7))
    choices = {i: rng.choice(["open", "close", "turn"]) for i in ids}
    if rng.random() < 0.1:
        choices[ids[0]] = None
    reference = ids[rng.randrange(len(ids))]
    verb = choices[reference]
    return {
        "answer": rng.choice([None, reference, *ids]),
        "reference": reference,
        "class": rng.choice([None, "x", "y", "z"]),
        "verb": verb,
        "choices": None if rng.random() < 0.02 else choices,
    }


def columns(rows):
    names = ("answer", "reference", "class", "verb", "choices")
    return dict(zip(COLUMNS, ([row[name] for row in rows] for name in names), strict=True))


@pytest.mark.parametrize("n_cases", [200, pytest.param(2000, marks=pytest.mark.full)])
def test_equals_a_slow_reference_on_random_cases(n_cases):
    rng, n_with_wrong = random.Random(0), 0
    for _ in range(n_cases):
        rows = [random_row(rng) for _ in range(rng.randint(1, 10))]
        got, want = choice_accuracy(**columns(rows)), slow_metrics(rows)
        distractors = want.pop("distractors")
        assert_metrics(got["distractors"] or dict.fromkeys(distractors), distractors)
        for name in ("per_class", "per_verb"):
            accuracies = {group: metrics["accuracy"] for group, metrics in (got[name] or {}).items()}
            assert accuracies == pytest.approx(want.pop(name), rel=0, abs=1e-12)
        assert_metrics(got, want)
        n_with_wrong += distractors["random_share"] is not None
    assert n_with_wrong > n_cases / 2


def test_metrics_are_as_computed_by_hand():
    result = choice_accuracy(
        ["A", "B", None, "B", "C"],
        ["A", "A", "C", "D", "E"],
        classes=["open lid", "open lid", "close lid", None, "turn knob"],
        choices=[VERBS] * 5,
    )
    assert (result["accuracy"], result["accuracy_on_parsed"], result["chance_level"]) == (0.2, 0.25, 0.2)
    assert (result["n"], result["n_failed"], result["n_correct"], result["coverage"]) == (5, 1, 1, 0.8)
    assert result["per_class"]["open lid"] == {"accuracy": 0.5, "n_correct": 1, "n": 2, "n_failed": 0}
    assert list(result["per_class"]) == ["close lid", "open lid", "turn knob"]
    assert result["class_mean_accuracy"] == pytest.approx(0.5 / 3)
    assert {verb: group["n"] for verb, group in result["per_verb"].items()} == {"close": 1, "open": 2, "turn": 2}
    # B for A has the verb, B for D and C for E have not. Each reference has 1 same-verb choice among 4 wrong ones.
    assert result["distractors"] == {"n_wrong": 3, "same_verb_share": pytest.approx(1 / 3), "random_share": 0.25}


@pytest.mark.filterwarnings("error")
def test_figures_without_input_or_answers_are_none_without_a_warning():
    result = choice_accuracy([None, None], ["A", "B"])
    names = ("accuracy_on_parsed", "chance_level", "per_class", "class_mean_accuracy", "per_verb", "distractors")
    assert [result[name] for name in names] == [None] * 6
    assert (result["accuracy"], result["coverage"]) == (0, 0)
    nothing_wrong = choice_accuracy(["A", None], ["A", "B"], choices=[VERBS, VERBS])
    assert nothing_wrong["distractors"] == {"n_wrong": 0, "same_verb_share": None, "random_share": None}


def test_the_chance_level_needs_the_choices_of_all_questions():
    assert choice_accuracy(["A", "a"], ["A", "a"], choices=[VERBS, ["a", "b"]])["chance_level"] == 0.35
    assert choice_accuracy(["A", "a"], ["A", "a"], choices=[VERBS, None])["chance_level"] is None
    assert choice_accuracy(["A"], ["B"], choices=[[chr(65 + i) for i in range(25)]])["chance_level"] == 0.04


def test_case_of_verbs_and_white_space_do_not_matter_but_case_of_ids_does():
    result = choice_accuracy([" B"], ["A "], verbs=["OPEN"], choices=[{"A": " Open", "B ": "open"}])
    assert (result["distractors"]["same_verb_share"], list(result["per_verb"])) == (1, ["open"])
    assert choice_accuracy(["a"], ["A"])["accuracy"] == 0


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ((["A"], [None]), TypeError, r"references\[0\]: is None .*give the id of the right choice"),
        (([True], ["A"]), TypeError, r"predictions\[0\]: is True .bool.; give the id .* None for no usable"),
        (([" "], ["A"]), ValueError, r"predictions\[0\]: is ' ', which is empty; .* None for no usable answer"),
        ((["A"], ["A"], ["x", "y"]), ValueError, "classes: has 2 entries for 1 references"),
        ((["A"], ["A"], [1.5]), TypeError, r"classes\[0\]: is 1.5 .float.; give the name"),
        ((["A"], ["A"], None, [3.5]), TypeError, r"verbs\[0\]: a verb: is 3.5"),
        ((["A"], ["A"], None, None, ["AB"]), TypeError, r"choices\[0\]: is 'AB' .*give a list of ids or a dict"),
        ((["A"], ["A"], None, None, [[]]), ValueError, r"choices\[0\]: is empty"),
        ((["A"], ["A"], None, None, [["A", "A "]]), ValueError, r"choices\[0\]: holds an id twice"),
        ((["A"], ["B"], None, None, [["A", "C"]]), ValueError, r"references\[0\]: 'B' is not among choices\[0\]"),
        ((["B"], ["A"], None, None, [["A", "C"]]), ValueError, r"predictions\[0\]: 'B' is not among .* give None"),
        ((["A"], ["A"], None, ["turn"], [VERBS]), ValueError, r"verbs\[0\]: is 'turn', but choices\[0\] has 'open'"),
    ],
)
def test_wrong_input_is_named_with_its_place_and_remedy(inputs, error, message):
    with pytest.raises(error, match=message):
        choice_accuracy(**dict(zip(COLUMNS, inputs, strict=False)))
