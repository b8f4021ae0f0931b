"""A run asks a part of the examples: by video, id or metadata, or those that another run failed to answer."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from barista_bench.benchmarks.handyvqa import Action
from barista_bench.benchmarks.kinds.choice import ChoiceTask
from barista_bench.core.example import Example, FrameRef, Prediction, Scored
from barista_bench.core.option_order import QuestionStatistics, reordered, statistics_of
from barista_bench.core.statistics import mean_statistics
from barista_bench.data.frozen import read_frozen
from barista_bench.errors import ConfigError, DataError
from barista_bench.hub.number_checks import check_numbers
from barista_bench.models.base import ScriptedModel
from barista_bench.runs.ask import runner
from barista_bench.runs.run_folder import read_run
from barista_bench.runs.score.results import read_results
from barista_bench.runs.score.scoring import read_scored, score
from tests.conftest import Use
from tests.evaluators.recorded import barista, recorded_run
from tests.one_run import run


def asked(folder: Path) -> set[str]:
    return {json.loads(line)["example_id"] for line in (folder / "samples.jsonl").read_text().splitlines()}


def test_examples_are_chosen_by_videos_metadata_and_ids_together(dataset: Path, tmp_path: Path) -> None:
    examples = list(read_frozen(dataset / "frozen/relations.jsonl", "barista"))
    video, key = examples[0].video_id, "preparation"
    value = str(examples[0].metadata[key])
    ids = tmp_path / "ids.txt"
    ids.write_text("\n".join(example.example_id for example in examples[::2]))
    words = ("--videos", video, "--where", f"{key}={value}", "--example-ids", ids)
    flags = ("--model", "oracle", "--task", "relations", "--repetitions", 1)
    barista("run", dataset, *flags, *words, "--out", tmp_path / "part")
    wanted = {e.example_id for e in examples[::2] if e.video_id == video and str(e.metadata[key]) == value}
    assert 0 < len(wanted) < len(examples)
    assert asked(tmp_path / "part/relations") == wanted
    output = barista("score", tmp_path / "part").output
    assert f"PARTIAL: {len(wanted)} OF {len(examples)} EXAMPLES (videos {video}; ids in ids.txt" in output


@pytest.fixture(scope="module")
def part(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("part") / "run"
    video = next(iter(read_frozen(dataset / "frozen/relations.jsonl", "barista"))).video_id
    run(dataset, folder, repetitions=1, videos=[video])
    return folder


def test_a_part_never_ranks_beside_whole_sets(part: Path, dataset: Path, tmp_path: Path) -> None:
    run(dataset, tmp_path / "whole", repetitions=1)
    for folder in (part, tmp_path / "whole"):
        barista("score", folder)
    results = [read_results(folder / "results.json") for folder in (part, tmp_path / "whole")]
    assert results[0].comparability != results[1].comparability
    with pytest.raises(DataError, match="a part of the set"):
        check_numbers(results[0], "results.json")
    barista("report", part, tmp_path / "whole", "--out", tmp_path / "report")
    assert "was asked a part of the set" in (tmp_path / "report/report.md").read_text(encoding="utf-8")


def test_the_same_choice_continues_and_another_is_refused(part: Path, dataset: Path) -> None:
    choice = read_run(part).data.part
    assert choice is not None
    video = next(iter(read_frozen(dataset / "frozen/relations.jsonl", "barista"))).video_id
    assert run(dataset, part, repetitions=1, videos=[video]).asked == 0
    with pytest.raises(ConfigError, match="choice"):
        run(dataset, part, repetitions=1)


def test_a_choice_of_all_is_the_whole_set(dataset: Path, tmp_path: Path) -> None:
    videos = {example.video_id for example in read_frozen(dataset / "frozen/relations.jsonl", "barista")}
    run(dataset, tmp_path / "run", repetitions=1, videos=sorted(videos))
    assert read_run(tmp_path / "run").data.part is None


def test_a_run_can_ask_only_the_failed_questions_of_another_run(six_tasks: Path, tmp_path: Path) -> None:
    ids = [example.example_id for example in read_frozen(six_tasks / "frozen/activity.jsonl", "barista")]
    failed = set(ids[::5])
    first = recorded_run(
        six_tasks, tmp_path / "first", "activity", lambda e: "no idea" if e.example_id in failed else "ANSWER: A"
    )
    second = recorded_run(six_tasks, tmp_path / "second", "activity", lambda e: "ANSWER: A", failed_in=first)
    assert asked(second) == failed
    assert read_scored(second).results.coverage.expected == len(failed)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"videos": ["nowhere"]}, "no example of 'nowhere'"),
        ({"where": ["colour=red"]}, "key of the metadata"),
        ({"where": ["preparation"]}, "KEY=VALUE"),
        ({"where": ["preparation=tea"]}, "no example is chosen"),
        ({"failed_in": "nowhere"}, "no run of relations"),
    ],
)
def test_a_choice_without_examples_is_refused(
    dataset: Path, tmp_path: Path, settings: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        run(dataset, tmp_path / "run", **settings)


def test_ids_without_an_example_are_counted(dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "ids").write_text("ghost\n\nspectre\n")
    with pytest.raises(ConfigError, match="2 of 2 ids are no examples here, first 'ghost'"):
        run(dataset, tmp_path / "run", example_ids=tmp_path / "ids")


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
