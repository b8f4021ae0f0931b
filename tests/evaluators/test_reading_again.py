"""A wrong setting does not cost a second run: the log is read again, and both readings are kept and named."""

import itertools
import json
import random
import statistics
from pathlib import Path

import pytest

from barista_bench.benchmarks.barista.grounding import Grounding
from barista_bench.core.boxes import DEFAULT_BOX_FORMAT, BoxFormat
from barista_bench.core.example import Example
from barista_bench.errors import ConfigError, DataError
from barista_bench.hub.number_checks import check_numbers
from barista_bench.hub.rows import read_row
from barista_bench.models import Completion, GenerationConfig, ModelIdentity, Request
from barista_bench.models.base import ScriptedModel
from barista_bench.runs.ask import runner
from barista_bench.runs.score.letters import Letters
from barista_bench.runs.score.results import read_results
from barista_bench.runs.score.scoring import read_scored, score
from barista_bench.stats.repetitions import best_of, repeated_scores
from tests.conftest import Use
from tests.evaluators.recorded import barista, recorded_run
from tests.one_run import run


@pytest.fixture(scope="module")
def fractions(six_tasks: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """True boxes, written as fractions; the run reads them as 0..1000."""

    def answer(example: Example) -> str:
        return Grounding().reference_answer(example, BoxFormat("xyxy", 1))

    return recorded_run(six_tasks, tmp_path_factory.mktemp("again") / "run", "grounding", answer)


def test_the_same_log_by_another_box_format(fractions: Path) -> None:
    own = barista("score", fractions).output
    assert "score --box-format xyxy/1`" in own.replace("\n", " ")
    again = barista("score", fractions, "--box-format", "xyxy/1").output
    assert "log read again by box_format xyxy/1" in again
    files = {path.name: read_results(path) for path in fractions.glob("results*.json")}
    assert len(files) == 2
    readings = {name: (results.reading, results.primary_metric) for name, results in files.items()}
    reading, metric = readings.pop("results.json")
    assert (reading, metric and metric.mean) == ({}, 0.0)
    ((other, metric),) = readings.values()
    assert (other, metric and metric.mean) == ({"box_format": "xyxy/1"}, 1.0)


def test_a_submission_takes_the_reading_fixed_before_scoring(fractions: Path) -> None:
    score(fractions)
    again = score(fractions, options={"box_format": "xyxy/1"})
    assert read_row(fractions).results.reading == {}
    with pytest.raises(DataError, match="log read again"):
        check_numbers(again.results, "results.json")


def test_reports_and_comparisons_name_the_reading(fractions: Path, tmp_path: Path) -> None:
    barista("report", fractions, "--option", "box_format=xyxy/1", "--out", tmp_path, "--no-compare")
    assert "read by box" in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_the_runs_own_format_is_not_offered_as_another_reading(fractions: Path) -> None:
    assert read_scored(fractions, options={"box_format": "xyxy/1000"}).results.reading == {}


@pytest.mark.parametrize(("name", "value"), [("box_format", "zxy/9"), ("think_tags", "<think>")])
def test_an_unknown_format_and_an_incomplete_pair_of_tags_are_refused(fractions: Path, name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=rf"--{name.replace('_', '-')}"):
        read_scored(fractions, options={name: value})


def test_thoughts_are_split_off_by_other_tags(six_tasks: Path, tmp_path: Path) -> None:
    def answer(example: Example) -> str:
        boxes = Grounding().reference_answer(example, BoxFormat())
        return '<<musing>>{"bboxes": [[0, 0, 1, 1]]}<</musing>>' + json.dumps(json.loads(boxes))

    run = recorded_run(six_tasks, tmp_path / "run", "grounding", answer)
    results = barista("score", run, "--think-tags", "<<musing>>,<</musing>>", "--json").output
    (scored,) = json.loads(results)
    assert scored["reading"] == {"think_tags": "<<musing>>,<</musing>>"}
    assert scored["metrics"][scored["primary"]]["mean"] == 1.0


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


def test_each_way_to_combine_repetitions_has_a_score_and_an_interval(repeated: Path) -> None:
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
    tables = (tmp_path / "report").rglob("*repetitions.csv")
    assert any("majority" in table.read_text(encoding="utf-8") for table in tables)
    barista("compare", "all", repeated, "--out", tmp_path / "analysis")
    assert "majority" in (tmp_path / "analysis/repetitions.csv").read_text(encoding="utf-8")


def test_one_repetition_has_no_repeated_scores(six_tasks: Path, tmp_path: Path) -> None:
    run(six_tasks, tmp_path / "run", task="activity", repetitions=1)
    assert repeated_scores(score(tmp_path / "run")) == []


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


def test_a_right_favourite_is_not_called_a_bias() -> None:
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


def test_score_reports_unreadable_entries(six_tasks: Path, tmp_path: Path) -> None:
    folder = recorded_run(six_tasks, tmp_path / "run", "grounding", _unreadable)
    assert "could not be read and count as absent" in barista("score", folder).output
