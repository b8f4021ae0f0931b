"""`score` and `report` name the setting that makes most scores zero."""

import random
from pathlib import Path

import pytest

from barista_bench.core.boxes import DEFAULT_BOX_FORMAT
from barista_bench.core.task import Example
from barista_bench.models import Completion, GenerationConfig, ModelIdentity, Request
from barista_bench.runs.ask import runner
from barista_bench.runs.score.letters import Letters
from barista_bench.runs.score.scoring import score
from tests.conftest import Use
from tests.evaluators.recorded import barista, recorded_run
from tests.one_run import run


def test_a_model_that_always_answers_a_is_named_by_score_and_report(six_tasks: Path, tmp_path: Path) -> None:
    folder = recorded_run(six_tasks, tmp_path / "run", "activity", lambda example: "ANSWER: A")
    output = barista("score", folder).output
    results = score(folder).results
    assert results.letters is not None
    assert set(results.letters.answered) == {"A"}
    assert f"{results.letters.total} of {results.letters.total} answers are A, which is right in" in output
    barista("report", folder, "--out", tmp_path / "report", "--no-compare", "--tables")
    (table,) = (tmp_path / "report").rglob("*position_bias.csv")
    assert "position bias" in table.read_text(encoding="utf-8")


@pytest.mark.parametrize("seed", range(20))
def test_models_without_a_favourite_are_left_in_peace(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(50):
        labels = "ABCDE"[: rng.choice((2, 3, 4, 5))]
        right = [rng.choice(labels) for _ in range(rng.randint(12, 60))]
        answered = [label if rng.random() < 0.4 else rng.choice(labels) for label in right]
        counts = Letters(
            answered={name: answered.count(name) for name in labels}, right={name: right.count(name) for name in labels}
        )
        assert counts.in_words == ""
        assert 0 <= counts.bias <= 1


def test_a_favourite_that_is_right_is_no_bias() -> None:
    assert Letters(answered={"A": 40}, right={"A": 38, "B": 2}).in_words == ""
    assert Letters(answered={"A": 11}, right={"A": 1, "B": 10}).in_words == ""
    words = Letters(answered={"A": 40}, right={"A": 10, "B": 30}).in_words
    assert words.startswith("40 of 40 answers are A, which is right in 10")


class Thinker:
    """All its text is reasoning, as a wrong reasoning parser leaves it."""

    identity, box_format, batch_size = ModelIdentity("thinker"), DEFAULT_BOX_FORMAT, 8

    def generate(self, requests: list[Request], config: GenerationConfig) -> list[list[Completion]]:
        return [[Completion("", reasoning="ANSWER: A")] * len(request.seeds) for request in requests]


def test_answers_in_reasoning_content_are_named_and_can_be_read_again(
    six_tasks: Path, tmp_path: Path, loads_model: object
) -> None:
    use: Use = loads_model(runner)  # type: ignore[operator]
    use(Thinker())
    run(six_tasks, tmp_path / "run", task="activity", model="served:thinker", repetitions=1)
    output = barista("score", tmp_path / "run").output
    assert "most answers have no text but their thoughts" in output
    assert "--think-tags" in output
    again = score(tmp_path / "run", options={"think_tags": "[NO],[/NO]"}).results
    assert again.coverage.answered == again.coverage.expected


def _unreadable(example: Example) -> str:
    return '{"bboxes": [[1, 2], "?"]}'


def test_entries_that_could_not_be_read_are_named(six_tasks: Path, tmp_path: Path) -> None:
    folder = recorded_run(six_tasks, tmp_path / "run", "grounding", _unreadable)
    assert "could not be read and count as absent" in barista("score", folder).output
