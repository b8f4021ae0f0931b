"""pass@k, majority vote and best-of-k by a judge, from logged repetitions."""

import itertools
import random
import statistics
from pathlib import Path

import pytest

from barista_bench.models.base import ScriptedModel
from barista_bench.runs.ask import runner
from barista_bench.runs.score.scoring import score
from barista_bench.stats.repetitions import best_of, repeated_scores
from tests.conftest import Use
from tests.evaluators.recorded import barista
from tests.one_run import run


@pytest.mark.parametrize("seed", range(20))
def test_best_of_k_is_the_mean_over_all_draws(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(2, 6)
    scores = [float(rng.choice((0, 0, 1))) for _ in range(count)]
    by = [float(rng.randint(0, 2)) for _ in range(count)]
    for k in range(1, count + 1):
        draws = list(itertools.combinations(range(count), k))
        highest = [[n for n in draw if by[n] == max(by[m] for m in draw)] for draw in draws]
        expected = statistics.fmean(statistics.fmean(scores[n] for n in best) for best in highest)
        assert best_of(scores, by, k) == pytest.approx(expected)
        solved = statistics.fmean(float(any(scores[n] for n in draw)) for draw in draws)
        assert best_of(scores, scores, k) == pytest.approx(solved)


@pytest.fixture
def repeated(six_tasks: Path, tmp_path: Path, loads_model: object) -> Path:
    """Five repetitions: A three times, then B, then something unreadable, by the order of the seeds."""
    answers = ["ANSWER: A", "ANSWER: B", "ANSWER: A", "what?", "ANSWER: A"]
    calls: dict[str, int] = {}

    def answer(example_id: str, seed: int) -> str:
        calls[example_id] = calls.get(example_id, -1) + 1
        return answers[calls[example_id] % 5]

    use: Use = loads_model(runner)  # type: ignore[operator]
    use(ScriptedModel("fickle", answer))
    run(six_tasks, tmp_path / "run", task="activity", model="served:fickle", repetitions=5)
    return tmp_path / "run"


def test_each_way_is_scored_with_its_interval(repeated: Path) -> None:
    scored = score(repeated)
    letters = [example.target["choice_id"] for example in scored.examples.examples]
    is_a, is_b = (statistics.fmean(letter == name for letter in letters) for name in "AB")
    rows = {(row.way, row.k): row for row in repeated_scores(scored)}
    assert rows["best of k (pass@k)", 1].mean == pytest.approx(0.6 * is_a + 0.2 * is_b)
    assert rows["best of k (pass@k)", 5].mean == pytest.approx(is_a + is_b)
    assert rows["majority", 5].mean == pytest.approx(is_a)
    for row in rows.values():
        assert row.interval is not None
        assert row.interval.low <= row.mean <= row.interval.high


def test_a_judge_that_prefers_the_second_repetition(repeated: Path) -> None:
    scored = score(repeated)
    judged = {sample.name: float(sample.record.repetition == 1) for sample in scored.samples}
    rows = {(row.way, row.k): row for row in repeated_scores(scored, {"jury": judged})}
    letters = [example.target["choice_id"] for example in scored.examples.examples]
    assert rows["best of k by jury", 5].mean == pytest.approx(statistics.fmean(name == "B" for name in letters))


def test_report_and_analysis_have_a_table(repeated: Path, tmp_path: Path) -> None:
    barista("report", repeated, "--out", tmp_path / "report", "--no-compare", "--tables")
    (table,) = (tmp_path / "report").rglob("*repetitions.csv")
    assert "majority" in table.read_text(encoding="utf-8")
    barista("compare", "all", repeated, "--out", tmp_path / "analysis")
    assert "majority" in (tmp_path / "analysis/repetitions.csv").read_text(encoding="utf-8")


def test_one_repetition_has_none(six_tasks: Path, tmp_path: Path) -> None:
    run(six_tasks, tmp_path / "run", task="activity", repetitions=1)
    assert repeated_scores(score(tmp_path / "run")) == []
