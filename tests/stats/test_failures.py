"""Each mistake has its kind of failure."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from barista_bench.benchmarks.barista.relation_answers import relation_failures
from barista_bench.core.display import AnswerFailure
from barista_bench.core.example import Prediction
from barista_bench.metrics.tuple_f1.scoring import RelationTuple
from tests.six_tasks import TASKS, Runs

LEFT, RIGHT, MUG, TABLE = 1, 2, 3, 4


@pytest.mark.parametrize(
    ("said", "kind", "marks"),
    [
        (RelationTuple(MUG, LEFT, "human_actions", "holds"), "wrong_direction", (LEFT, MUG)),
        (RelationTuple(LEFT, MUG, "human_actions", "pushes"), "wrong_relation", (LEFT, MUG)),
        (RelationTuple(RIGHT, MUG, "human_actions", "holds"), "wrong_hand", (LEFT, MUG, RIGHT)),
        (RelationTuple(LEFT, TABLE, "human_actions", "holds"), "wrong_object", (LEFT, MUG, TABLE)),
    ],
)
def test_a_nearly_right_relation_has_its_own_kind_of_failure(
    said: RelationTuple, kind: str, marks: tuple[int, ...]
) -> None:
    true = RelationTuple(LEFT, MUG, "human_actions", "holds")
    assert relation_failures(Counter([true]), Counter([said]), {LEFT, RIGHT}) == [(kind, marks)]


def test_relations_without_a_counterpart_are_missed_hallucinated_or_repeated() -> None:
    true, other = RelationTuple(LEFT, MUG, "human_actions", "holds"), RelationTuple(TABLE, MUG, "position", "under")
    assert relation_failures(Counter([true]), Counter(), set()) == [("missed", (LEFT, MUG))]
    assert relation_failures(Counter(), Counter([other]), set()) == [("hallucinated", (TABLE, MUG))]
    assert relation_failures(Counter([true]), Counter([true, true]), set()) == [("duplicate", (LEFT, MUG))]


relations = st.builds(
    RelationTuple, st.integers(1, 3), st.integers(1, 3), st.just("position"), st.sampled_from(["on", "under"])
)
multisets = st.lists(relations, max_size=6).map(Counter)


@given(multisets, multisets)
def test_every_relation_left_over_by_the_score_fails_once(reference: Counter, said: Counter) -> None:
    kinds = Counter(kind for kind, _ in relation_failures(reference, said, {1, 2}))
    near = sum(kinds[kind] for kind in ("wrong_direction", "wrong_relation", "wrong_hand", "wrong_object"))
    assert kinds["missed"] + near == (reference - said).total()
    assert kinds["hallucinated"] + kinds["duplicate"] + near == (said - reference).total()


@pytest.mark.parametrize("task", TASKS)
def test_examples_whose_file_names_no_objects_fail_in_the_same_ways(scored: Runs, task: str) -> None:
    """Released frozen files leave evidence out."""
    run = scored["weak", task]
    for sample in run.samples[:60]:
        failures = run.task.failures(sample.example, sample.prediction)
        bare = replace(sample.example, evidence={**sample.example.evidence, "object_ids": []})
        blind = run.task.failures(bare, sample.prediction)
        assert [f.kind for f in blind] == [f.kind for f in failures]


def test_an_unreadable_answer_fails_in_all_objects_of_its_example(scored: Runs) -> None:
    run = scored["oracle", "relations"]
    example = run.examples.examples[0]
    assert run.task.failures(example, None) == (AnswerFailure("format", tuple(example.evidence["object_ids"])),)


def test_wrong_and_loose_hands_are_failures_of_interactions_that_match(scored: Runs) -> None:
    run = scored["oracle", "hand_object"]
    sample = next(s for s in run.samples if s.example.target["interactions"][0]["hand_type"] == "left")
    assert sample.prediction is not None
    (item,) = sample.prediction.value["interactions"]
    cup = item | {"hand_type": "right"}, item | {"hand_boxes": [[0.0, 0.0, 5.0, 5.0]]}
    kinds = [
        [f.kind for f in run.task.failures(sample.example, Prediction({"interactions": [changed]}))] for changed in cup
    ]
    assert kinds == [["wrong_hand"], ["loose_hand"]]


def test_a_wrong_activity_is_wrong_in_its_verb_or_its_object_or_both(scored: Runs) -> None:
    run = scored["oracle", "activity"]
    example = next(e for e in run.examples.examples if e.label == "Place cup")
    letters = {choice["text"]: choice["choice_id"] for choice in example.inputs["choices"]}
    by_example = {
        text: [f.kind for f in run.task.failures(example, Prediction({"choice_id": letter}))]
        for text, letter in letters.items()
    }
    assert by_example == {
        "Place cup": [],
        "Place pod": ["wrong_object"],
        "Remove cup": ["wrong_verb"],
        "Press button": ["wrong_verb", "wrong_object"],
    }


def test_a_description_fails_by_omissions_and_by_inventions(scored: Runs) -> None:
    run = scored["oracle", "referring"]
    example = next(e for e in run.examples.examples if e.label == "coffee cup")
    nothing_else = run.task.failures(example, Prediction({"description": "coffee cup"}))
    assert {f.kind for f in nothing_else} == {"missed"}
    other = [f.kind for f in run.task.failures(example, Prediction({"description": "a green teapot"}))]
    assert {"wrong_object", "wrong_attribute", "hallucinated"} <= set(other)
    assert {f.objects for f in nothing_else} == {(example.evidence["object_ids"][0],)}


def test_failures_agree_with_the_score(scored: Runs) -> None:
    """Where nothing fails the sample score is full, and where it is full nothing fails."""
    for task in ("hand_object", "relations", "activity"):
        run = scored["weak", task]
        for sample in run.samples:
            kinds = {f.kind for f in run.task.failures(sample.example, sample.prediction)} - {
                "wrong_hand",
                "loose_hand",
            }
            assert (sample.scores[run.task.sample_score] == 1) == (not kinds), json.dumps(sample.record.text)


def test_the_analysis_code_mentions_no_benchmark_or_task() -> None:
    folder = Path(__file__).resolve().parents[2] / "barista_bench" / "stats"
    words = {"barista/", "benchmarks.barista", "get_task", *(f'"{task}"' for task in TASKS)}
    paths = sorted(folder.glob("*.py"))
    assert paths
    for path in paths:
        assert not [word for word in words if word in path.read_text()], path
