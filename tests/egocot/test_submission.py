"""The submission file: its content, and refusals."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from barista_bench.benchmarks import get_benchmark
from barista_bench.benchmarks.egocot.cot import Cot
from barista_bench.benchmarks.egocot.submission import (
    SubmissionLine,
    check_questions,
    read_submission,
    submission_lines,
    write_submission,
)
from barista_bench.core.example import Example, Prediction, Scored
from barista_bench.errors import DataError
from tests import answering


def answered(example: Example, letter: str = "B", reasoning: str = "It is held.") -> Scored:
    return Scored(example, Prediction({"answer": letter, "reasoning": reasoning}))


def test_hidden_questions_are_all_submitted_by_qid(hidden: list[Example]) -> None:
    lines = submission_lines([*(answered(example) for example in reversed(hidden[1:])), Scored(hidden[0], None)])
    assert [line.qid for line in lines] == sorted(example.example_id.removeprefix("egocot:") for example in hidden)
    assert set(lines[0].model_dump()) == {"qid", "predicted_answer", "reasoning"}
    unread = next(line for line in lines if line.qid == hidden[0].example_id.removeprefix("egocot:"))
    assert (unread.predicted_answer, unread.reasoning) == ("", ""), "what cannot be read is sent empty"


def test_a_file_that_is_no_submission_of_this_benchmark_is_refused(hidden: list[Example]) -> None:
    with pytest.raises(DataError, match="answered twice"):
        submission_lines([answered(hidden[0]), answered(hidden[0])])
    with pytest.raises(DataError, match="not one of its choices"):
        submission_lines([answered(hidden[0], "Z")])
    with pytest.raises(DataError, match="not a question of EgoCoT-Bench"):
        submission_lines([answered(replace(hidden[0], benchmark="barista"))])


def test_a_submission_answers_known_questions_once(hidden: list[Example]) -> None:
    lines = submission_lines([answered(example) for example in hidden])
    qids = [line.qid for line in lines]
    check_questions(lines, qids)
    with pytest.raises(DataError, match="appears twice"):
        check_questions([*lines, lines[0]], qids)
    with pytest.raises(DataError, match="not a question of this split"):
        check_questions(lines, qids[1:])


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"qid": "a", "predicted_answer": "BB", "reasoning": ""}', "record 0.predicted_answer"),
        ('{"qid": "a", "predicted_answer": 1, "reasoning": ""}', "record 0.predicted_answer"),
        ('{"qid": "a", "predicted_answer": "B"}', "record 0.reasoning"),
        ('{"qid": "a", "predicted_answer": "B", "reasoning": "", "x": 1}', "record 0.x"),
        ("[1, 2", "is not JSON"),
        ("[" * 50_000, "is not JSON"),
        ('[{"qid": "", "predicted_answer": "B", "reasoning": ""}]', "record 0.qid"),
    ],
)
def test_missing_and_broken_files_are_named_with_record_and_field(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "s.jsonl"
    with pytest.raises(DataError, match="no submission file"):
        read_submission(path)
    path.write_text(text)
    with pytest.raises(DataError, match=what):
        read_submission(path)


def test_a_submission_is_scored_over_the_answers_beside_it(dev: list[Example], mini_root: Path, tmp_path: Path) -> None:
    shutil.copy(mini_root / "dev.json", tmp_path / "dev.json")
    task = Cot()
    samples = [answered(example, "B", "At 99:00 it happens.") for example in dev[1:]]
    write_submission(submission_lines([*samples, Scored(dev[0], None)]), tmp_path / "mine_submission.jsonl")
    (recorded,) = get_benchmark("egocot").formats["egocot_submission"](tmp_path)
    assert (recorded.model, recorded.task, len(recorded.examples)) == ("mine_submission", Cot, len(dev))
    read = {}
    for example, answer in zip(recorded.examples, recorded.answers, strict=True):
        read[example.example_id] = answering.answered(task, example, answer.text)
    assert read[dev[0].example_id].prediction is None
    metrics = task.aggregate(list(read.values()))
    assert metrics["accuracy"] == sum(example.target["answer"] == "B" for example in dev[1:]) / len(dev)
    assert metrics["contradiction_rate"] == 0.0  # the lengths of the videos are unknown
    with pytest.raises(DataError, match="no submission file"):
        get_benchmark("egocot").formats["egocot_submission"](mini_root)


@given(st.lists(st.tuples(st.text(min_size=1, max_size=20), st.sampled_from(["", "A", "Z"]), st.text(max_size=50))))
def test_any_lines_survive_both_containers(tmp_path_factory: pytest.TempPathFactory, rows) -> None:
    try:
        lines = [SubmissionLine(qid=qid, predicted_answer=letter, reasoning=text) for qid, letter, text in rows]
        "".join(qid + text for qid, _, text in rows).encode()
    except UnicodeError:
        return
    folder = tmp_path_factory.mktemp("lines")
    for name in ("s.json", "s.jsonl"):
        assert read_submission(write_submission(lines, folder / "deep" / name)) == lines
