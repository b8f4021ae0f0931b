"""Agreement of answers: alpha against its definition and a published example, scores against the tasks' scores."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from barista_bench.benchmarks import BENCHMARKS, task_class
from barista_bench.cli.commands import app
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example, Prediction, Scored
from barista_bench.core.task import Task
from barista_bench.data.dataset import config_names, open_examples
from barista_bench.data.folder import build
from barista_bench.errors import ConfigError, DataError
from barista_bench.stats import answer_agreement
from barista_bench.stats.agreement import krippendorff_alpha
from tests.six_tasks import Runs
from tests.stats.conftest import renamed

BOXES = BoxFormat()
SAME_AS_TRUTH = ("relations", "grounding", "hand_object", "rvos_objects", "rvos_parts")


def alpha_by_definition(rows: list[list[int | None]]) -> float:
    """1 - D_o / D_e, from the coincidences of all ordered pairs of values (Krippendorff 2011); rows are raters."""
    coincidences: Counter[tuple[int, int]] = Counter()
    for column in zip(*rows, strict=True):
        values = [value for value in column if value is not None]
        for first, second in product(range(len(values)), repeat=2):
            if first != second:
                coincidences[values[first], values[second]] += 1 / (len(values) - 1)  # type: ignore[assignment]
    totals: Counter[int] = Counter()
    for (value, _), count in coincidences.items():
        totals[value] += count
    n = sum(totals.values())
    observed = sum(count for (a, b), count in coincidences.items() if a != b) / n
    expected = sum(totals[a] * totals[b] for a, b in product(totals, repeat=2) if a != b) / (n * (n - 1))
    return 1 - observed / expected


def units(rows: list[list[int | None]]) -> list[list[int]]:
    return [[value for value in column if value is not None] for column in zip(*rows, strict=True)]


def test_alpha_equals_the_published_example() -> None:
    rows = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."]
    read = [[None if value == "." else int(value) for value in row] for row in rows]
    assert krippendorff_alpha(units(read)) == pytest.approx(0.743, abs=5e-4)


def test_alpha_is_its_definition_on_random_values() -> None:
    rng = random.Random(0)
    for _ in range(50):
        rows = [[rng.choice([None, 0, 1, 1, 2]) for _ in range(20)] for _ in range(rng.randint(2, 5))]
        assert krippendorff_alpha(units(rows)) == pytest.approx(alpha_by_definition(rows), abs=1e-12)


def test_choices_agree_as_counted_by_hand(scored: Runs) -> None:
    runs = [scored[model, "activity"] for model in ("strong", "fair", "weak")]
    chosen: dict[str, dict[str, Any]] = {run.results.model.name: {} for run in runs}
    for run in runs:
        for sample in run.samples:
            if sample.record.repetition == 0 and sample.prediction:
                chosen[run.results.model.name][sample.example.example_id] = sample.prediction.value["choice_id"]
    rows = {row.raters: row for row in answer_agreement(runs)}
    assert list(rows) == [*combinations(chosen, 2), tuple(chosen)]
    for (first, second), row in list(rows.items())[:3]:
        both = sorted(chosen[first].keys() & chosen[second].keys())
        assert (row.examples, row.pairs, row.score) == (len(both), len(both), None)
        assert row.same == pytest.approx(sum(chosen[first][e] == chosen[second][e] for e in both) / len(both))
    every = sorted({example for answers in chosen.values() for example in answers})
    letters = [[ord(of[e]) if e in of else None for e in every] for of in chosen.values()]
    assert rows[tuple(chosen)].alpha == pytest.approx(alpha_by_definition(letters))


def test_other_answers_are_scored_both_ways(scored: Runs) -> None:
    """F1 of relations is the same from either side, so that the oracle's partner has its own scores."""
    fair = scored["fair", "relations"]
    (row,) = answer_agreement([fair, scored["oracle", "relations"]])
    scores = [s.scores["f1"] for s in fair.samples if s.record.repetition == 0 and s.prediction]
    assert (row.same, row.alpha, row.examples) == (None, None, len(scores))
    assert row.score == pytest.approx(sum(scores) / len(scores))


def test_people_are_a_separate_party(scored: Runs) -> None:
    runs = [scored[model, "activity"] for model in ("strong", "fair", "weak", "chance")]
    names = ("human:anna", "human:ben", "human:eva")
    people = [renamed(run, name) for run, name in zip(runs[:3], names, strict=True)]
    parties = [row.raters for row in answer_agreement([*people, runs[3]])]
    assert parties == [*combinations((*names, "chance"), 2), names, (*names, "chance")]


def test_runs_without_answers_to_exchange_are_refused_in_words(scored: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"no two runs have a readable answer.*Fix"):
        answer_agreement([scored["fair", "activity"], scored["fair", "relations"]])
    runs = [scored[model, "relations"] for model in ("fair", "oracle")]
    monkeypatch.setattr(type(runs[0].task), "as_target", Task.as_target)
    with pytest.raises(ConfigError, match=r"cannot hold answers against each other.*Fix"):
        answer_agreement(runs)


def test_the_command_prints_a_line_a_party(scored: Runs) -> None:
    folders = [str(scored[model, task].folder) for model in ("oracle", "fair") for task in ("activity", "grounding")]
    done = CliRunner().invoke(app, ["compare", "agreement", *folders])
    assert done.exit_code == 0, done.output
    activity, grounding = done.output.splitlines()
    assert activity.startswith("barista/activity, oracle and fair: same choice 0.")
    assert "Krippendorff's alpha 0." in activity
    assert grounding.startswith(
        "barista/grounding, oracle and fair: score of one answer with another as the reference 0."
    )


def agreed(task: Task, example: Example, reference: Prediction, answer: Prediction) -> float:
    target = task.as_target(example, reference)
    assert target is not None
    scores = task.statistics([Scored(replace(example, target=target.write()), answer)]).scores()
    return float(scores[task.sample_score][0])


def compare_with_the_truth(data: Path, benchmark: str) -> None:
    """The reference answer as a target: it agrees with itself, and scores others as the target does."""
    for name in config_names(data):
        kind = task_class(benchmark, name)
        task = kind(options={"matcher": "exact"} if "matcher" in kind.options else {})  # no sentence encoder at hand
        for example in open_examples(data, benchmark, task.name).examples[:3]:
            answer = task.parse(task.reference_answer(example, BOXES), example.inputs, BOXES)
            other = task.parse(task.random_answer(example, random.Random(4), BOXES), example.inputs, BOXES)
            assert isinstance(answer, Prediction), task.name
            assert isinstance(other, Prediction), task.name
            if task.choices(example):
                assert task.score(example, answer)[task.sample_score] == 1
                assert set(task.answered_choices(answer)) <= set(task.choices(example))
                assert set(task.correct_choices(example)) <= set(task.answered_choices(answer))
                continue
            assert agreed(task, example, answer, answer) == pytest.approx(1, abs=1e-6), task.name
            if benchmark == "extended" or task.name in SAME_AS_TRUTH:
                reference = task.score(example, other)[task.sample_score]
                assert agreed(task, example, answer, other) == pytest.approx(reference, abs=0.02), task.name


def test_answers_of_every_task_can_be_held_against_each_other(six_tasks: Path) -> None:
    compare_with_the_truth(six_tasks, "barista")


@pytest.mark.full
@pytest.mark.parametrize("benchmark", sorted(BENCHMARKS.keys() - {"barista"}))
def test_answers_of_every_sibling_can_be_held_against_each_other(
    benchmark: str, source_of: Callable[[str], Path], generated: Callable[[str], Path], tmp_path: Path
) -> None:
    source = source_of(benchmark) if benchmark == "extended" else generated(benchmark)
    tasks = list(BENCHMARKS[benchmark].task_names)
    build(source, tmp_path / "data", benchmark=benchmark, configs=tasks, cache=False)
    compare_with_the_truth(tmp_path / "data", benchmark)
