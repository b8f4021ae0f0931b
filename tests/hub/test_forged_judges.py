"""Submissions whose judge's log, figures and description disagree. None is taken; the honest one is."""

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from barista_bench.errors import BaristaError
from barista_bench.judging.judge_folder import VERDICTS_FILE
from barista_bench.judging.scoring import score_judged
from barista_bench.runs.log.inputs import digest
from barista_bench.runs.log.sample_log import SampleRecord
from barista_bench.runs.run_folder import JUDGE_FILE, judge_folders
from barista_bench.runs.score.results import write_results
from barista_bench.runs.score.scoring import read_scored, score
from tests.hub.forging import Forgery, Records, contents, edit, first, forge_log, more, other, submit
from tests.hub.made_results import judged, results
from tests.judging.judges import VQA


@pytest.fixture
def run_and_judge(judged_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(judged_run, tmp_path / "run"))


def test_the_honest_judge_is_taken(run_and_judge: Path) -> None:
    before = contents(run_and_judge)
    (entry,) = submit(run_and_judge).eval_results().root
    assert "maker/judge, 2 draw(s)" in str(entry.notes)
    assert contents(run_and_judge) == before


def judge_of(run: Path) -> Path:
    (folder,) = judge_folders(run)
    return folder


def in_judge(file: str, field: str, value: object) -> Forgery:
    return lambda run: edit(judge_of(run) / file, field, value)


def forge_verdicts(change: Callable[[Records], Sequence[SampleRecord]]) -> Forgery:
    return lambda run: forge_log(change, VERDICTS_FILE)(judge_of(run))


def best(record: SampleRecord) -> SampleRecord:
    return other(record, text=json.dumps({"score": 10, "reason": "fine"}), logprobs=None)


JUDGE_METRICS: dict[str, Forgery] = {
    "mean": in_judge("results.json", "metrics.mean.mean", more),
    "interval": in_judge("results.json", "metrics.mean.low", None),
    "name of the judge": in_judge("results.json", "judge.name", "maker/better"),
    "copied": lambda run: write_results(judged(results(VQA), value=0.9), judge_of(run) / "results.json"),
    "verdicts": forge_verdicts(lambda records: [best(r) for r in records]),
}
JUDGE_LOGS: dict[str, Forgery] = {
    "verdicts left out": forge_verdicts(lambda records: records[2:]),
    "verdicts on other answers": forge_verdicts(lambda records: [other(r, example_id="item") for r in records]),
    "verdicts by another form": forge_verdicts(lambda records: [other(r, fingerprint=digest("form")) for r in records]),
    "a draw more": forge_verdicts(lambda records: [*records, other(records[0], repetition=2, key=digest("more"))]),
    "answers changed later": forge_log(lambda records: [other(r, text="Answer: something else") for r in records]),
    "judge": in_judge(JUDGE_FILE, "identity.model.name", "maker/better"),
    "fewer criteria": in_judge(JUDGE_FILE, "rubric.criteria", lambda criteria: criteria[:1]),
    "name of the rubric": in_judge(JUDGE_FILE, "rubric.wording", "release@4086ce5"),
    "steps": in_judge(JUDGE_FILE, "steps", first(lambda steps: steps[:1])),
    "temperature": in_judge(JUDGE_FILE, "generation.temperature", 0.123),
    "no description": in_judge(JUDGE_FILE, "generation", {"heat": 1}),
}


@pytest.mark.parametrize("name", JUDGE_METRICS)
def test_forged_metrics_of_a_judge_are_refused(run_and_judge: Path, name: str) -> None:
    before = contents(run_and_judge)
    JUDGE_METRICS[name](run_and_judge)
    assert contents(run_and_judge) != before, "nothing was forged"
    with pytest.raises(BaristaError, match="Fix"):
        submit(run_and_judge, allow_incomplete=True)


@pytest.mark.full
@pytest.mark.parametrize("rescored", [False, True], ids=["stale", "rescored"])
@pytest.mark.parametrize("name", JUDGE_LOGS)
def test_forged_verdicts_are_refused_scored_again_or_not(run_and_judge: Path, name: str, rescored: bool) -> None:
    before = contents(run_and_judge)
    JUDGE_LOGS[name](run_and_judge)
    assert contents(run_and_judge) != before, "nothing was forged"
    if rescored:
        with suppress(BaristaError):
            score(run_and_judge)
        with suppress(BaristaError):
            score_judged(read_scored(run_and_judge, options={}), judge_of(run_and_judge))
    with pytest.raises(BaristaError, match="Fix"):
        submit(run_and_judge)
