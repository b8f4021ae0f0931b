"""Models of text tasks are ranked by their judge, as in the paper; without one, the heading says that words count."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from barista_bench.core.example import evidence_objects
from barista_bench.errors import ConfigError
from barista_bench.judging import session
from barista_bench.judging.chosen import ranked_by_judge
from barista_bench.judging.scoring import all_judged
from barista_bench.judging.session import judge
from barista_bench.reporting.analyses import Analyses, analyse
from barista_bench.reporting.report import Report, build_report
from barista_bench.runs.score.scoring import ScoredRun, score
from barista_bench.stats import RankAgreement, rank_agreement
from barista_bench.stats.propagation import propagation
from barista_bench.tables import Table
from tests.conftest import MadeOnce
from tests.judging.judges import VQA, ScriptedJudge, verdict
from tests.six_tasks import SKILLS

TASKS = ("activity", "referring", VQA)
GRADES = dict(zip(SKILLS, (1, 5, 9), strict=True))
"""The better a model's words, the lower its grade."""


@pytest.fixture(scope="module")
def reversed_folder(six_runs: Path, made_once: MadeOnce) -> Path:
    """Three models on three tasks, the text tasks judged so that the order of the models is reversed."""

    def make(out: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            for model, grade in GRADES.items():
                for task in TASKS:
                    shutil.copytree(six_runs / model / task, out / model / task)
                graded = ScriptedJudge(lambda request, _, grade=grade: verdict(grade), name="gpt-judge")
                patch.setattr(session, "load_model", lambda *args, graded=graded, **kwargs: graded)
                for task in ("referring", VQA):
                    judge(out / model / task, "gpt-judge", verdicts_per_answer=1)
                    judge(out / model / task, "lexical", verdicts_per_answer=1)

    return made_once("reversed_judge", make)


@pytest.fixture(scope="module")
def plain(reversed_folder: Path) -> list[ScoredRun]:
    return [score(reversed_folder / model / task) for model in GRADES for task in TASKS]


@pytest.fixture(scope="module")
def judged(plain: list[ScoredRun]) -> list[ScoredRun]:
    return ranked_by_judge(plain, {run.folder: all_judged(run) for run in plain})


def tau(ranks: RankAgreement, first: str, second: str) -> float | None:
    at = [next(i for i, task in enumerate(ranks.tasks) if task.startswith(name)) for name in (first, second)]
    return ranks.tau[at[0]][at[1]]


def table_17(report: Report) -> Table:
    return next(table for table in report.across if table.title.startswith("All tasks by preparation"))


def report_of(runs: list[ScoredRun]) -> tuple[Report, Analyses]:
    analyses = analyse(runs, compare=True, permutations=100)
    return build_report(runs, analyses=analyses), analyses


def test_the_judge_reverses_tau_and_table_17_and_the_headings_name_it(
    plain: list[ScoredRun], judged: list[ScoredRun]
) -> None:
    assert tau(rank_agreement(plain), "activity", "referring") == pytest.approx(1)
    ranks = rank_agreement(judged)
    assert tau(ranks, "activity", "referring") == pytest.approx(-1)
    assert "referring: correctness by gpt-judge" in ranks.tasks
    floor, by_judge = report_of(plain)[0], report_of(judged)[0]
    names = [column.name for column in table_17(by_judge).columns]
    assert "correctness by gpt-judge" in names
    assert [c.name for c in table_17(floor).columns].count("word overlap (floor)") == 2
    at = names.index("correctness by gpt-judge")
    weak = [row[at].text for row in table_17(by_judge).rows if row[1].text == "weak"]
    assert weak == ["0.900"] * 3


def test_the_leaderboard_and_its_gaps_are_the_judges(judged: list[ScoredRun]) -> None:
    report, analyses = report_of(judged)
    (board,) = report.boards
    (column,) = [c.name for c in board.table.columns if c.name.startswith("referring")]
    assert column == "referring: correctness by gpt-judge"
    section = next(s for s in report.sections if s.standing.name == "referring")
    assert section.labels == ("weak", "fair", "strong")
    pair = analyses.comparisons[section.runs[0].folder]
    assert (pair.first, pair.second, pair.name) == ("weak", "fair", "correctness by gpt-judge")
    assert (pair.first_value, pair.difference) == pytest.approx((0.9, 0.4))


def test_an_answer_below_the_highest_band_errs_about_its_objects(judged: list[ScoredRun]) -> None:
    for model in ("strong", "weak"):
        runs = [run for run in judged if run.results.model.label == model]
        edge = next(e for e in propagation(runs).edges if (e.source, e.target) == ("activity", "referring"))
        unread = sum(len(evidence_objects(s.example)) for s in runs[1].samples if s.prediction is None)
        erred = edge.both + edge.target_only
        assert erred == edge.n if model == "strong" else erred <= unread < edge.n


def test_no_run_is_ranked_by_words_beside_runs_ranked_by_a_judge(plain: list[ScoredRun]) -> None:
    by_judge = {run.folder: all_judged(run) for run in plain if run.results.model.label != "fair"}
    runs = ranked_by_judge(plain, by_judge)
    fair = next(run for run in runs if run.results.model.label == "fair" and run.task.name == "referring")
    assert fair.ranking_metric is None
    assert all(fair.score_of(sample) is None for sample in fair.samples)


def test_a_judge_must_be_named_if_there_are_several_and_must_exist(
    plain: list[ScoredRun], two_judged: Callable[[ScoredRun], list]
) -> None:
    lexical = ranked_by_judge(plain, {run.folder: all_judged(run) for run in plain}, "lexical")
    assert {run.score_note for run in lexical} == {"", "correctness by lexical", "mean over criteria by lexical"}
    with pytest.raises(ConfigError, match="no run has verdicts of 'gemini'"):
        ranked_by_judge(plain, {run.folder: all_judged(run) for run in plain}, "gemini")
    two = {run.folder: two_judged(run) for run in plain}
    assert not any(run.judged for run in ranked_by_judge(plain, two))


@pytest.fixture
def two_judged() -> Callable[[ScoredRun], list]:
    """The judges of a run, the lexical one under the name of a language model."""
    from dataclasses import replace

    def rename(run: ScoredRun) -> list:
        judges = all_judged(run)
        for at, each in enumerate(judges):
            if each.results.judge.name == "lexical":
                info = each.results.judge.model_copy(update={"name": "other-judge"})
                judges[at] = replace(each, results=each.results.model_copy(update={"judge": info}))
        return judges

    return rename
