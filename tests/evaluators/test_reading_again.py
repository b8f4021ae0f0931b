"""A wrong setting does not cost a second run: the log is read again, and both readings are kept and named."""

import json
from pathlib import Path

import pytest

from barista_bench.benchmarks.barista.grounding import Grounding
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.task import Example
from barista_bench.errors import ConfigError, DataError
from barista_bench.hub.number_checks import check_numbers
from barista_bench.hub.rows import read_row
from barista_bench.runs.score.results import read_results
from barista_bench.runs.score.scoring import read_scored, score
from tests.evaluators.recorded import barista, recorded_run


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


def test_the_runs_own_format_is_no_other_reading(fractions: Path) -> None:
    assert read_scored(fractions, options={"box_format": "xyxy/1000"}).results.reading == {}


@pytest.mark.parametrize(("name", "value"), [("box_format", "zxy/9"), ("think_tags", "<think>")])
def test_what_is_no_format_and_no_pair_of_tags_is_refused(fractions: Path, name: str, value: str) -> None:
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
