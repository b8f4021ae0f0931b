"""Judges that stop when the score of the verdicts is decided."""

from pathlib import Path

import pytest

from barista_bench.errors import DataError
from barista_bench.judging.judge_folder import VERDICTS_FILE
from barista_bench.judging.scoring import all_judged, read_judged_run
from barista_bench.judging.session import judge
from barista_bench.reporting import write_report
from barista_bench.runs.log.sample_log import counting_records
from barista_bench.runs.score.scoring import read_scored
from tests.decide.conftest import TASK, Asks, skilled

pytestmark = pytest.mark.full


@pytest.fixture
def strong(six_tasks: Path, asks: Asks, tmp_path: Path) -> Path:
    asks(tmp_path / "strong", skilled(six_tasks, 0.95, "strong"))
    return tmp_path / "strong" / TASK


def test_a_judge_stops_gives_the_reason_and_continues_to_the_score_of_all(
    strong: Path, weak: Path, tmp_path: Path
) -> None:
    judge(weak / TASK, "lexical")
    session = judge(strong, "lexical", until="decided", against=weak)
    assert "strong above weak in mean of the judge, decided after" in session.decision
    run = read_scored(strong)
    early = read_judged_run(run, session.folder).results
    assert early.metrics == {}
    assert early.stopped is not None
    assert all_judged(run) == []
    _, markdown = write_report([run], tmp_path / "report")
    assert session.decision in markdown.read_text()
    asked = len(counting_records(session.folder / VERDICTS_FILE))
    judge(strong, "lexical")
    complete = read_judged_run(run, session.folder).results
    assert complete.stopped is None
    assert early.stopped.low <= complete.metrics["mean"].mean <= early.stopped.high
    assert asked < len(counting_records(session.folder / VERDICTS_FILE))


def test_a_threshold_stops_a_judge(strong: Path) -> None:
    assert "strong above 0.300" in judge(strong, "lexical", until="above=0.3").decision


def test_the_other_run_must_be_judged_by_this_judge_to_the_end(strong: Path, weak: Path) -> None:
    with pytest.raises(DataError, match="is not judged by"):
        judge(strong, "lexical", until="decided", against=weak)
    judge(weak / TASK, "lexical", until="above=0.9")
    with pytest.raises(DataError, match="verdicts are missing"):
        judge(strong, "lexical", until="decided", against=weak)
