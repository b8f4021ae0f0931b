"""Scores of multiple-choice answers, against scikit-learn and a transcription of the released rule."""

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from barista_bench.benchmarks.handyvqa import Action, Objects
from barista_bench.core.example import Scored, write_scores
from barista_bench.core.prompt import ImagePart
from barista_bench.core.task import Task
from tests.answering import answered
from tests.handyvqa.made import BOXES, CUPS, question

ACTION, OBJECTS = Action(), Objects()


def run_of(task: Task, answers: Sequence[str | None], references: Sequence[Sequence[int]], n: int = 6) -> list[Scored]:
    options = [f"thing {index}" for index in range(n)]
    examples = [
        question(type(task), options, sorted(set(reference)), f"q{k}") for k, reference in enumerate(references)
    ]
    return [answered(task, example, text) for example, text in zip(examples, answers, strict=True)]


def test_scores_of_a_dual_encoder_rank_all_options_together() -> None:
    rng = random.Random(3)
    references = [[rng.randrange(6)] for _ in range(40)]
    scores = [[round(rng.uniform(-1, 1), 6) for _ in range(6)] for _ in references]
    answers = [write_scores(dict(zip("ABCDEF", row, strict=True))) for row in scores]
    metrics = OBJECTS.aggregate(run_of(OBJECTS, answers, references))
    labels = [int(index in reference) for reference in references for index in range(6)]
    expected = average_precision_score(labels, np.concatenate(scores))
    assert metrics["average_precision"] == pytest.approx(expected)
    accuracy = np.mean([int(np.argmax(row)) == reference for row, (reference,) in zip(scores, references, strict=True)])
    assert ACTION.aggregate(run_of(ACTION, answers, references))["accuracy"] == pytest.approx(accuracy)
    assert metrics["exact_match"] == metrics["exact_match_strict"] == pytest.approx(accuracy)


def test_strict_and_released_scores_differ_where_prose_names_letters() -> None:
    references = [[1], [1], [1], [1]]
    answers = ["(B) thing 1", "(B) thing 1\nand no other cup (a)", "it is b)", "B"]
    metrics = ACTION.aggregate(run_of(ACTION, answers, references))
    assert metrics["accuracy"] == pytest.approx(2 / 3)  # the (a) of the second goes first; the fourth is left out
    assert metrics["accuracy_counted"] == 0.5
    assert metrics["accuracy_strict"] == 0.5
    assert (metrics["coverage"], metrics["coverage_strict"]) == (0.75, 0.5)
    ranked = OBJECTS.aggregate(run_of(OBJECTS, [*answers[:1], None], references[:2]))
    assert ranked["average_precision"] == 1.0
    assert ranked["average_precision_counted"] == pytest.approx(1 / 2 + 1 / 2 * 2 / 12), "one first, one among the rest"


@pytest.mark.parametrize("task", [ACTION, OBJECTS])
def test_a_letter_without_an_option_is_not_an_answer(task: Task) -> None:
    metrics = task.aggregate(run_of(task, ["(Z) none", "(Z) or (A)"], [[0], [0]]))
    assert (metrics[task.primary], metrics["coverage"], metrics["coverage_strict"]) == (1.0, 0.5, 0.0)


@pytest.mark.parametrize("task", [ACTION, OBJECTS])
@pytest.mark.parametrize("answer", ["(A) thing 0", None])
def test_a_question_without_a_right_option_has_no_right_answer(task: Task, answer: str | None) -> None:
    (sample,) = run_of(task, [answer], [[]])
    assert set(task.score(sample.example, sample.prediction).values()) == {0.0}
    assert task.aggregate([sample])[task.primary] == 0.0
    assert task.reference_answer(sample.example, BOXES) == ""
    assert "hit" not in {row.kind for row in task.explain(sample.example, sample.prediction).rows}


def test_objects_are_matched_as_sets() -> None:
    (sample,) = run_of(OBJECTS, ["(A) thing 0\n(C) thing 2\n(D) thing 3"], [[0, 2]])
    scores = OBJECTS.score(sample.example, sample.prediction)
    assert (scores["exact_match"], scores["f1"]) == (0, pytest.approx(4 / 5))
    assert OBJECTS.score(sample.example, None) == dict.fromkeys(scores, 0.0)


def test_without_a_single_answer_the_metrics_are_zero_and_say_so() -> None:
    single = ACTION.aggregate(run_of(ACTION, [None, "B"], [[1], [1]]))
    assert (single["accuracy"], single["coverage"]) == (0.0, 0.0)
    multiple = OBJECTS.aggregate(run_of(OBJECTS, [None, "B"], [[1], [1]]))
    assert (multiple["average_precision"], multiple["coverage"]) == (0.0, 0.0)


def test_the_prior_answers_the_place_that_is_most_often_right_in_other_questions() -> None:
    others = [question(Action, CUPS, [index], f"o{k}") for k, index in enumerate((3, 3, 1, 4, 4))]
    mine = question(Action, CUPS[:4], [0])
    assert ACTION.prior_answer(mine, others, BOXES) == "(D) a green cup"
    assert ACTION.prior_answer(mine, [], BOXES) == "(A) a white cup"
    few = question(Action, CUPS[:3], [0])
    assert ACTION.prior_answer(few, others, BOXES) == "(B) a red cup"


def test_a_wording_of_ones_own_may_place_the_images() -> None:
    task = Action(replace(ACTION.prompts, user=f"Look:\n{{images}}\n{ACTION.prompts.user}"))
    parts = task.prompt(question(Action, CUPS, [1]), BOXES).parts
    assert [isinstance(part, ImagePart) for part in parts] == [False, True, True, True, False]


def test_an_explanation_names_right_missed_and_wrong_options() -> None:
    (sample,) = run_of(OBJECTS, ["(A) thing 0\n(C) thing 2\n(K) what"], [[0, 1]])
    rows = [(row.kind, row.text) for row in OBJECTS.explain(sample.example, sample.prediction).rows]
    assert rows == [("hit", "A: thing 0"), ("miss", "B: thing 1"), ("wrong", "C: thing 2")]
    kinds = [failure.kind for failure in OBJECTS.failures(sample.example, sample.prediction)]
    assert kinds == ["missed", "wrong_option"]
    assert [failure.kind for failure in OBJECTS.failures(sample.example, None)] == ["format"]
