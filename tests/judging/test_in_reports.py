"""What judges say in a report: a table a task, and the verdicts beside each answer."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from barista_bench.core.intervals import ratio_interval
from barista_bench.judging.judged_run import SampleVerdict
from barista_bench.judging.results import CategoryMetrics, JudgedResults, read_judged
from barista_bench.judging.scoring import all_judged, score_judged
from barista_bench.judging.session import judge
from barista_bench.models import Completion
from barista_bench.reporting import write_report
from barista_bench.reporting.judges import judge_tables, judge_verdicts, judge_warnings, labelled_judges
from barista_bench.runs.score.results import MetricValue
from barista_bench.runs.score.samples import metric_value
from barista_bench.runs.score.scoring import ScoredRun, score
from tests.judging.judges import VQA, ScriptedJudge, by_hash, criterion, verdict
from tests.reporting.made_runs import HOSTILE
from tests.reporting.test_report import Page


@pytest.fixture
def judged_run(make_run: Callable, use: Callable) -> ScoredRun:
    run = make_run(VQA, lambda example, seed: f"Answer: {example}", name="student")
    scores = {"accuracy": 8, "completeness": 4}
    use(ScriptedJudge(lambda request, _: verdict(scores[criterion(request)], f"Since {HOSTILE}"), name="/home/me/mild"))
    judge(run, "mild", verdicts_per_answer=2)
    judge(run, "lexical")
    return score(run)


def test_a_table_has_scores_spread_coverage_and_how_they_were_made(judged_run: ScoredRun) -> None:
    judges = labelled_judges([("student", all_judged(judged_run))])
    overview, by_category = judge_tables(judges)
    names = [f"{column.group}: {column.name}" if column.group else column.name for column in overview.columns]
    mild = next(row for row in overview.rows if row[1].text == "mild")
    cells = {name: cell.text for name, cell in zip(names, mild, strict=True)}
    assert cells["score: mean"] == "0.600"
    assert cells["score: accuracy"] == "0.800"
    assert cells["sd over verdicts: accuracy"] == "0.000"
    assert cells["coverage (answers): judged %"] == "100.0%"
    samples = len(judged_run.samples)
    assert (cells["how scored: verdicts"], cells["how scored: plain"]) == ("2", str(samples * 4))
    assert cells["unusable verdicts: missing"] == "0"
    assert "lexical counts shared words" in overview.note
    assert [row[0].text for row in by_category.rows] == sorted({s.example.label for s in judged_run.samples})
    assert judge_warnings(judges) == []


def test_judged_metrics_have_the_interval_of_their_scores_over_videos(judged_run: ScoredRun, use: Callable) -> None:
    use(ScriptedJudge(by_hash, name="varied"))
    judge(judged_run.folder, "varied", verdicts_per_answer=1)
    (judged,) = [judged for judged in all_judged(judged_run) if judged.results.judge.name == "varied"]
    varied = score_judged(judged_run, judged.folder)
    written = read_judged(varied.folder / "results.json")
    assert written == varied.results
    videos = {s.example.example_id: s.example.video_id for s in judged_run.samples}
    for name in ("accuracy", "completeness", "mean"):
        wanted = ("accuracy", "completeness") if name == "mean" else (name,)
        scores = {
            sample: [verdict.score for verdict in verdicts if verdict.criterion in wanted]
            for sample, verdicts in varied.verdicts.items()
        }
        usable = {sample: row for sample, row in scores.items() if row and None not in row}
        ends = ratio_interval(
            np.array([sum(values) / len(values) / 10 for values in usable.values()]),
            np.ones(len(usable)),
            repetitions=[run for _, run in usable],
            units=[videos[example] for example, _ in usable],
        )
        metric = written.metrics[name]
        assert ends is not None
        assert ends.units == 3
        assert (metric.low, metric.high) == pytest.approx((ends.low, ends.high))
        assert metric.low < metric.high
    assert any(group.metrics["mean"].low is not None for group in written.per_category.values())
    overview = judge_tables(labelled_judges([("student", [varied])]))[0]
    assert any(note.startswith("[") for note in overview.rows[0][2].notes)


def test_a_judge_of_another_scale_is_shown_in_its_own(judged_run: ScoredRun) -> None:
    """From 0 to 5, as a judgement of reasoning: only its results say so."""
    (mild,) = [judged for judged in all_judged(judged_run) if judged.results.judge.name == "/home/me/mild"]
    rubric = mild.results.rubric.model_copy(update={"criteria": ["reasoning"]})
    metrics = {
        "reasoning": MetricValue(mean=3.25, std=None, repetitions=[3.25], low=3.0, high=3.5),
        "spurious": metric_value([0.125]),
    }
    changed = {"method": "reasoning", "scale": 5.0, "tops": {"reasoning": 5.0}, "rubric": rubric, "metrics": metrics}
    parts = {"a": one_category(metrics), "b": one_category(metrics)}
    groups = {"per_category": parts, "breakdowns": {"group": parts, "split": {}}, "sd_of_verdicts": {}, "scoring": {}}
    results = JudgedResults.model_validate({**mild.results.model_dump(), **changed, **groups})
    verdicts_ = {key: (SampleVerdict("reasoning", 0, 4.0, "ok", "", "sound"),) for key in mild.verdicts}
    judges = labelled_judges([("student", [replace(mild, results=results, verdicts=verdicts_)])])
    overview, by_category, by_group = judge_tables(judges)
    assert by_group.title == "Judges by group: reasoning (0 to 5)"
    names = [f"{column.group}: {column.name}" for column in overview.columns[2:4]]
    assert names == ["score: reasoning (0 to 5)", "score: spurious"]
    assert [cell.text for cell in overview.rows[0][2:4]] == ["3.250", "0.125"]
    assert by_category.title == "Judges by category: reasoning (0 to 5)"
    assert by_category.rows[0][1].text == "3.250"
    assert next(iter(judge_verdicts(judges, "student", 99).values())) == (("mild, reasoning", "4 of 5: sound"),)


def one_category(metrics: dict[str, MetricValue]) -> CategoryMetrics:
    return CategoryMetrics(examples=1, expected=1, judged=1, metrics=metrics)


def test_missing_verdicts_are_announced(judged_run: ScoredRun) -> None:
    log = next(judged_run.folder.glob("judges/*mild-*")) / "verdicts.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
    (warning,) = judge_warnings(labelled_judges([("student", all_judged(judged_run))]))
    assert warning.startswith("student as judged by mild is incomplete:")


def test_runs_without_judges_have_no_section(make_run: Callable, tmp_path: Path) -> None:
    run = score(make_run(VQA))
    assert judge_tables(labelled_judges([("student", all_judged(run))])) == ()
    written, _ = write_report([run], tmp_path / "report", samples=2)
    assert "Judges" not in Page(written.read_text()).tables()


def test_verdicts_say_scores_of_all_draws_and_a_reason(make_run: Callable, use: Callable) -> None:
    run = make_run(VQA, lambda example, seed: "Answer: cup", repetitions=1)
    use(ScriptedJudge(lambda _, draw: [Completion("?"), verdict(7, "why" * 100)][draw], name="mild"))
    judge(run, "mild", verdicts_per_answer=2)
    tables = judge_verdicts(labelled_judges([("student", all_judged(score(run)))]), "student", 10)
    lines = next(iter(tables.values()))
    assert lines[0] == ("mild, accuracy", "parse error, 7 of 10 (plain): whywhywhyw […]")


def test_the_page_shows_them_and_holds_no_markup_of_judges(judged_run: ScoredRun, tmp_path: Path) -> None:
    html = write_report([judged_run], tmp_path / "report", samples=3)[0].read_text()
    page = Page(html)
    assert {row["judge"] for row in page.rows("Judges")} == {"lexical", "mild"}
    shown = [answer["verdicts"] for s in page.samples for answers in s["models"] for answer in answers]
    assert all([name for name, _ in headings] == [name for name, _ in shown[0]] for headings in shown)
    assert {name for name, _ in shown[0]} == {
        f"{j}, {c}" for j in ("mild", "lexical") for c in ("accuracy", "completeness")
    }
    assert f"8, 8 of 10 (plain): Since {HOSTILE}" in dict(shown[0])["mild, accuracy"]
    assert HOSTILE not in html
    assert "/home/" not in html
