"""One fact in several formats: contradictions, what can be written, and the distance to prior, computed by hand."""

import pytest

from barista_bench.stats.facts import FactKey, TaskKey, fact_consistency, format_rows, prior_rows

BOX, CHOICE, TEXT = TaskKey("barista", "grounding"), TaskKey("egocot", "cot"), TaskKey("barista", "referring")


def key(number: int, video: str = "a") -> FactKey:
    return FactKey(0, video, f"relation:{number}")


ANSWERS = {
    key(0): {BOX: [True], CHOICE: [False]},
    key(1): {BOX: [True], CHOICE: [True]},
    key(2): {BOX: [False], CHOICE: [False]},
    key(3, "b"): {BOX: [True, False], TEXT: [True]},
    key(4, "b"): {BOX: [True, False]},
}


def test_a_model_contradicts_itself_where_one_task_is_right_and_another_wrong() -> None:
    row = fact_consistency("m", ANSWERS)
    assert row is not None
    assert (row.facts, row.contradicted, row.rate) == (4, 2, 0.5)
    assert row.low is not None
    assert fact_consistency("m", {key(4): ANSWERS[key(4, "b")]}) is None


def test_facts_that_a_model_knows_elsewhere_are_beside_its_answer() -> None:
    rows = {row.task: row for row in format_rows("m", ANSWERS)}
    assert (rows["grounding"].facts, rows["grounding"].right) == (4, pytest.approx(2.5 / 4))
    assert (rows["grounding"].known, rows["grounding"].right_if_known) == (2, pytest.approx(0.75))
    assert (rows["cot"].known, rows["cot"].right_if_known) == (2, pytest.approx(0.5))


def test_the_score_above_prior_is_of_the_same_facts_and_tasks() -> None:
    prior = {key(0): {BOX: [False], CHOICE: [True]}, key(1): {BOX: [False]}, key(9): {BOX: [True]}}
    rows = {row.benchmark: row for row in prior_rows("m", ANSWERS, prior)}
    assert (rows["barista"].answers, rows["barista"].right, rows["barista"].above) == (2, 1.0, 1.0)
    assert (rows["egocot"].answers, rows["egocot"].above) == (1, -1.0)
