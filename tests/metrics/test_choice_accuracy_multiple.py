"""Questions with several right choices, and HanDyVQA's rules: against scikit-learn, a slow reader, and by hand."""

import itertools
import random

import numpy as np
import pytest
from choice_accuracy import average_precision, handyvqa_letters, multi_answer

from tests.metrics.conftest import assert_metrics

OPTIONS = ["cup", "lid", "spoon", "milk"]


@pytest.mark.parametrize("n_cases", [100, pytest.param(2000, marks=pytest.mark.full)])
def test_average_precision_equals_scikit_learn_on_random_cases(n_cases):
    reference = pytest.importorskip("sklearn.metrics").average_precision_score
    rng = np.random.default_rng(0)
    for case in range(n_cases):
        n = int(rng.integers(1, 40))
        labels = rng.integers(0, 2, n)
        labels[rng.integers(n)] = 1
        # Many ties, few ties, and the 0/1 scores of chosen options.
        scores = [rng.integers(0, 4, n), rng.normal(size=n), rng.integers(0, 2, n)][case % 3]
        assert average_precision(labels, scores) == pytest.approx(reference(labels, scores), rel=0, abs=1e-12)


def slow_pooled(predictions, references, choices, *, parsed_only=False):
    """0/1 scores have two thresholds: the chosen options, then all of them."""
    rows = [row for row in zip(predictions, references, choices, strict=True) if row[0] is not None or not parsed_only]
    chosen = [choice in right for answer, right, options in rows for choice in options if choice in (answer or [])]
    every = [choice in right for _, right, options in rows for choice in options]
    if not every:
        return None
    first = sum(chosen) / len(chosen) if chosen else 0.0
    recall = sum(chosen) / sum(every)
    return recall * first + (1 - recall) * sum(every) / len(every)


def test_chosen_options_are_pooled_as_a_slow_reference_does_on_random_cases():
    rng = random.Random(0)
    for _ in range(500):
        choices = [list("abcdefghijk"[: rng.randint(2, 11)]) for _ in range(rng.randint(1, 6))]
        references = [rng.sample(options, rng.randint(1, min(5, len(options)))) for options in choices]
        predictions = [
            rng.choice([None, right, rng.sample(options, rng.randint(0, len(options)))])
            for right, options in zip(references, choices, strict=True)
        ]
        want = {
            "average_precision": slow_pooled(predictions, references, choices),
            "average_precision_on_parsed": slow_pooled(predictions, references, choices, parsed_only=True),
        }
        assert_metrics(multi_answer(predictions, references, choices), want)


@pytest.mark.parametrize("kind", [list, np.asarray, np.float16, pytest.param("torch", id="torch")])
@pytest.mark.parametrize(
    ("labels", "scores", "expected"),
    [
        ([1, 0], [2, 1], 1),
        ([1, 0], [1, 2], 0.5),
        ([1, 0], [1, 1], 0.5),
        ([0, 0], [1, 2], 0),
        ([1], [0], 1),
        ([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1], 0.5 + 0.5 * 2 / 3),
    ],
)
def test_average_precision_of_lists_arrays_and_tensors_is_as_computed_by_hand(kind, labels, scores, expected):
    convert = pytest.importorskip("torch").tensor if kind == "torch" else kind
    assert average_precision(convert(labels), convert(scores)) == pytest.approx(expected)


def test_choosing_everything_or_nothing_gives_the_prevalence_and_nothing_is_an_answer():
    result = multi_answer([OPTIONS, OPTIONS], [["cup"], ["lid", "milk"]], [OPTIONS] * 2)
    assert result["average_precision"] == result["prevalence"] == 0.375
    result = multi_answer([None, []], [["cup"], ["lid", "milk"]], [OPTIONS] * 2)
    assert (result["average_precision"], result["n_failed"], result["n_options"]) == (0.375, 1, 8)
    assert multi_answer([None], [["cup"]], [OPTIONS])["average_precision_on_parsed"] is None


def slow_letters(text):
    """The characters before a closing bracket, read one by one."""
    text = "".join(character for character in text.strip().lower() if character != ".")
    return sorted({a for a, b in itertools.pairwise(text) if b == ")" and "a" <= a <= "z"})


def test_letters_equal_a_slow_readers_on_2000_random_texts():
    rng = random.Random(0)
    answered = 0
    for _ in range(2000):
        text = "".join(rng.choice("aBcZ().. \n1é") for _ in range(rng.randint(0, 20)))
        assert handyvqa_letters(text, 26) == slow_letters(text), text
        assert handyvqa_letters(text, 2) == [letter for letter in slow_letters(text) if letter in "ab"], text
        answered += bool(handyvqa_letters(text, 26))
    assert answered > 500


@pytest.mark.parametrize(
    ("text", "letters"),
    [
        ("(B) The person picks up the cup.", ["b"]),
        ("B) the cup", ["b"]),
        ("(B.) the cup", ["b"]),
        ("B. the cup", []),
        ("B", []),
        ("( B ) the cup", []),
        ("(AB)", ["b"]),
        ("(C) and (A), then (C)", ["a", "c"]),
        # Running text in brackets counts as well.
        ("the cup (on a table) is (A)", ["a", "e"]),
        ("(1)", []),
        ("", []),
    ],
)
def test_letters_are_read_as_the_public_script_reads_them(text, letters):
    assert handyvqa_letters(text, 5) == letters


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        (([["cup"]], [["cup"]], None), TypeError, "choices: is of type NoneType; give a list"),
        (([["cup"]], [["cup"]], []), ValueError, "1 predictions and 0 lists of choices for 1 references"),
        (([["cup"]], [["cup"]], [None]), TypeError, r"choices\[0\]: is None; give the ids"),
        (([["cup"]], [[]], [OPTIONS]), ValueError, r"references\[0\]: is empty; give the ids of the right choices"),
        (([["cup"]], [None], [OPTIONS]), TypeError, r"references\[0\]: is None .*give a list of ids"),
        ((["cup"], [["cup"]], [OPTIONS]), TypeError, r"predictions\[0\]: is 'cup' .str.; give a list of ids"),
        (([["tea"]], [["cup"]], [OPTIONS]), ValueError, r"predictions\[0\]: 'tea' is not among .* leave it out"),
        (([[0.5]], [["cup"]], [OPTIONS]), TypeError, r"predictions\[0\]: is 0.5"),
    ],
)
def test_wrong_input_is_named_with_its_place_and_remedy(inputs, error, message):
    with pytest.raises(error, match=message):
        multi_answer(*inputs)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: average_precision([], []), ValueError, "nothing to rank"),
        (lambda: average_precision([1], [1, 2]), ValueError, "1 labels for 2 scores"),
        (lambda: average_precision([2], [1]), ValueError, "labels: hold something other than 0 and 1"),
        (lambda: average_precision([1], [float("nan")]), ValueError, "scores: holds NaN"),
        (lambda: average_precision([1], ["a"]), TypeError, "scores: is not a list of numbers"),
        (lambda: average_precision("1", [1]), TypeError, "labels: is of type str"),
        (lambda: handyvqa_letters(None, 5), TypeError, "text: is None .*as a string"),
    ],
)
def test_wrong_values_are_named_with_their_remedy(call, error, message):
    with pytest.raises(error, match=message):
        call()
