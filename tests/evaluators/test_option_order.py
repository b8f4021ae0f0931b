"""`--option order=circular` and `order=shuffled:SEED`: no luck by position, and position bias named."""

import random
from pathlib import Path

import numpy as np
import pytest

from barista_bench.benchmarks.handyvqa import Action
from barista_bench.benchmarks.kinds.choice import ChoiceTask
from barista_bench.core.option_order import QuestionStatistics, reordered, statistics_of
from barista_bench.core.statistics import mean_statistics
from barista_bench.core.task import Example, FrameRef, Prediction, Scored
from barista_bench.data.frozen import read_frozen
from barista_bench.errors import ConfigError
from barista_bench.models.base import ScriptedModel
from barista_bench.runs.ask import runner
from barista_bench.runs.score.scoring import score
from tests.conftest import Use
from tests.evaluators.recorded import barista, recorded_run
from tests.one_run import run


class Quiz(ChoiceTask):
    benchmark, name, version, prompt_package = "barista", "activity", 1, "barista_bench.benchmarks.barista"


def question(number: int, count: int) -> Example:
    labels = "ABCDEFGHIJ"[:count]
    choices = [{"choice_id": label, "text": f"text {place}"} for place, label in enumerate(labels)]
    inputs = {"question": "Which?", "choices": choices}
    right = {"choice_id": labels[number % count]}
    return Example(f"q{number}", "barista", "quiz", "", (FrameRef(f"v{number % 4}", 0),), inputs, right)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 7, 10])
def test_circular_rotates_every_choice_through_the_places(count: int) -> None:
    task, example = Quiz(), question(1, count)
    rotations = list(reordered(task, example, "circular"))
    assert len(rotations) == min(count, 5)
    assert len({each.example_id for each in rotations}) == len(rotations)
    right = "text 1"
    for each in rotations:
        (label,) = task.correct_choices(each)
        assert task.choices(each)[label] == right
        assert sorted(task.choices(each).values()) == sorted(task.choices(example).values())
    assert len({task.correct_choices(each)[0] for each in rotations}) == len(rotations)


@pytest.mark.parametrize("seed", range(5))
def test_shuffled_permutes_by_seed_and_keeps_the_right_text(seed: int) -> None:
    task, order = Quiz(), f"shuffled:{seed}"
    examples = [question(number, 5) for number in range(40)]
    shuffled = [next(iter(reordered(task, example, order))) for example in examples]
    assert shuffled == [next(iter(reordered(task, example, order))) for example in examples]
    texts = [task.choices(each)[task.correct_choices(each)[0]] for each in shuffled]
    assert texts == [task.choices(each)[task.correct_choices(each)[0]] for each in examples]
    assert sum(a.inputs == b.inputs for a, b in zip(examples, shuffled, strict=True)) < 5


def test_several_right_options_move_along() -> None:
    inputs = {"question": "Which?", "options": ["a", "b", "c"], "reading": "plain"}
    example = Example("q", "handyvqa", "action", "", (FrameRef("v", 0),), inputs, {"correct": [0, 2]})
    task = Action()
    for each in reordered(task, example, "circular"):
        assert sorted(task.choices(each)[label] for label in task.correct_choices(each)) == ["a", "c"]


def scored(each: Example, label: str | None) -> Scored:
    return Scored(each, None if label is None else Prediction({"choice_id": label}))


def test_a_question_is_right_only_if_every_rotation_is() -> None:
    task = Quiz()
    whole, half = (list(reordered(task, question(number, count), "circular")) for number, count in ((0, 4), (1, 2)))
    right = [scored(each, task.correct_choices(each)[0]) for each in (*whole, *half)]
    assert statistics_of(task, right).published_metrics()["accuracy"] == 1.0
    one_wrong = [*right[:-1], scored(half[-1], "A" if right[-1].prediction.value["choice_id"] == "B" else "B")]  # type: ignore[union-attr]
    assert statistics_of(task, one_wrong).published_metrics()["accuracy"] == 0.5
    assert statistics_of(task, right[1:]).published_metrics()["accuracy"] == 0.5  # a rotation is missing
    assert statistics_of(task, [scored(each, "A") for each in (*whole, *half)]).published_metrics()["accuracy"] == 0.0


def test_resamples_and_subsets_of_questions_count_each_once() -> None:
    rng = np.random.default_rng(0)
    values, numbers = [1.0, 0.0, 1.0], np.array([0, 0, 0, 1, 1, 2])
    plain = mean_statistics([{"accuracy": value} for value in values], [True] * 3)
    statistics = QuestionStatistics(plain, numbers)
    units = np.array([0, 0, 0, 1, 1, 0])
    weights = rng.integers(0, 3, (20, 2)).astype(float)
    expected = plain.resampled_metrics(weights, np.array([0, 1, 0]))["accuracy"]
    assert np.array_equal(statistics.resampled_metrics(weights, units)["accuracy"], expected, equal_nan=True)
    assert statistics.subset([3, 4, 5]).published_metrics()["accuracy"] == 0.5
    assert statistics.scores()["accuracy"].tolist() == [1.0, 1.0, 1.0, 0.0, 0.0, 1.0]


def test_a_model_that_always_answers_a(six_tasks: Path, tmp_path: Path, loads_model: object) -> None:
    use: Use = loads_model(runner)  # type: ignore[operator]
    use(ScriptedModel("stubborn", lambda example_id, seed: "ANSWER: A"))
    for option in ("as_built", "circular"):
        folder = tmp_path / option
        run(six_tasks, folder, task="activity", model="served:stubborn", repetitions=1, option=[f"order={option}"])
        output = barista("score", folder).output
        assert "answers are A, which is right in" in output
    circular, built = (score(tmp_path / name).results for name in ("circular", "as_built"))
    assert circular.metrics["accuracy"].mean == 0.0
    assert built.metrics["accuracy"].mean > 0
    assert circular.comparability != built.comparability
    barista("report", tmp_path / "circular", "--out", tmp_path / "report", "--no-compare")
    text = (tmp_path / "report/report.md").read_text(encoding="utf-8")
    assert "the model prefers a position" in text
    assert "order=circular" in text


def test_the_oracle_is_right_in_every_order(six_tasks: Path, tmp_path: Path) -> None:
    for number, order in enumerate(("circular:3", "shuffled:7")):
        run(
            six_tasks, tmp_path / str(number), task="activity", model="oracle", repetitions=1, option=[f"order={order}"]
        )
        results = score(tmp_path / str(number)).results
        assert results.metrics["accuracy"].mean == 1.0
        assert f"order={order}" in results.comparability.options_in_words


def test_the_order_belongs_to_the_run(six_tasks: Path, tmp_path: Path) -> None:
    folder = recorded_run(six_tasks, tmp_path / "run", "activity", lambda example: "ANSWER: A")
    with pytest.raises(ConfigError, match="order changes the questions"):
        score(folder, options={"order": "circular"})
    with pytest.raises(ConfigError, match="order is 'sideways'"):
        run(six_tasks, tmp_path / "other", task="activity", option=["order=sideways"])


def test_a_part_of_the_set_is_chosen_before_its_rotations(six_tasks: Path, tmp_path: Path) -> None:
    names = [example.example_id for example in read_frozen(six_tasks / "frozen/activity.jsonl", "barista")]
    (tmp_path / "ids").write_text("\n".join(random.Random(0).sample(names, 3)))
    run(
        six_tasks,
        tmp_path / "run",
        task="activity",
        repetitions=1,
        option=["order=circular"],
        example_ids=tmp_path / "ids",
    )
    results = score(tmp_path / "run").results
    assert results.dataset.part is not None
    assert (results.dataset.part.asked, results.metrics["accuracy"].mean) == (3, 1.0)
