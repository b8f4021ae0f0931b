"""Word overlap, labelled lines and the vocabulary: what the free-text tasks share."""

import pytest
from hypothesis import given, strategies as st

from barista_bench.benchmarks.kinds.text import lexical_statistics
from barista_bench.benchmarks.lexical import NO_OVERLAP, Overlap, after_label, content_words, overlap
from barista_bench.scene_graph.domain import domain_vocabulary


def test_words_are_compared_without_case_order_and_plural() -> None:
    assert overlap("Machines: Coffee!", "the coffee machine").f1 == 1.0
    assert overlap("red red", "red cup").precision == 0.5, "a word counts once for each time it is wanted"
    assert overlap("", "a cup") == overlap("a cup", "") == overlap("the", "of") == (0.0, 0.0, 0.0)
    assert overlap("cup on saucer", "cup under saucer").f1 == pytest.approx(2 / 3), "place is content"


def test_true_words_that_are_not_asked_for_cost_nothing() -> None:
    plain = overlap("a white cup", "a white cup under a machine", context="machine: (red)")
    more = overlap("a white cup, red", "a white cup under a machine", context="machine: (red)")
    wrong = overlap("a white cup, blue", "a white cup under a machine", context="machine: (red)")
    assert plain == more
    assert wrong.f1 < plain.f1


def test_repeating_the_question_earns_nothing() -> None:
    question, reference = "What does the left hand touch?", "The left hand touches the lid."
    assert overlap(question, reference, question=question).f1 == 0.0
    assert overlap("a lid", reference, question=question).f1 == 1.0
    assert overlap("the left hand", "the left hand", question=question).f1 == 1.0, "there is nothing else to say"


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_overlap_is_bounded_and_only_recall_ignores_context(answer: str, reference: str, context: str) -> None:
    score = overlap(answer, reference, context=context)
    assert all(0.0 <= fraction <= 1.0 for fraction in score)
    assert score.recall == overlap(answer, reference).recall
    assert score.f1 >= overlap(answer, reference).f1
    if content_words(reference):
        assert overlap(reference, reference, context=context, question=answer).f1 == 1.0


@given(st.text(alphabet=st.characters(exclude_categories=["C", "Z"]), min_size=1).filter(lambda t: ":" not in t))
def test_what_is_labelled_is_read_back(text: str) -> None:
    assert after_label(f"Thinking...\nDescription: {text}", "description") == text


def test_the_vocabulary_describes_the_45_categories() -> None:
    vocabulary = domain_vocabulary()
    assert len(vocabulary) == 45
    assert "unknown" not in vocabulary
    assert {"coffee machine", "left hand", "water tank", "needle distributor"} <= set(vocabulary)
    assert all(10 < len(text) < 120 for text in vocabulary.values())


def test_means_count_unreadable_answers_as_nothing() -> None:
    statistics = lexical_statistics([Overlap(1.0, 0.5, 0.6), None, NO_OVERLAP], ["a", "a", "b"])
    result = statistics.published_metrics()
    assert result["lexical_f1"] == pytest.approx(0.2)
    assert result["per_category"]["a"] == {
        "lexical_f1": 0.3,
        "lexical_precision": 0.5,
        "lexical_recall": 0.25,
        "support": 2,
    }
    assert (result["n"], result["n_failed"], result["coverage"]) == (3, 1, pytest.approx(2 / 3))
    assert statistics.scores()["lexical_f1"].tolist() == [0.6, 0.0, 0.0]
    assert statistics.subset([0]).published_metrics()["per_category"].keys() == {"a"}
