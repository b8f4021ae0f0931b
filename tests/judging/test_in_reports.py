"""What judges say in a report: a table a task, and the verdicts beside each answer."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from barista_bench.judging.scoring import all_judged
from barista_bench.judging.session import judge
from barista_bench.models import Completion
from barista_bench.reporting import write_report
from barista_bench.reporting.judges import labelled, tables, verdicts, warnings
from barista_bench.running.scoring import ScoredRun, score
from tests.judging.judges import ScriptedJudge, criterion, verdict
from tests.reporting.made_runs import HOSTILE

VQA = "temporal_vqa"


@pytest.fixture
def judged_run(make_run: Callable, use: Callable) -> ScoredRun:
    run = make_run(VQA, lambda example, seed: f"Answer: {example}", name="student")
    scores = {"accuracy": 8, "completeness": 4}
    use(ScriptedJudge(lambda request, _: verdict(scores[criterion(request)], f"Since {HOSTILE}"), name="mild"))
    judge(run, "mild", draws=2)
    judge(run, "lexical")
    return score(run)


def test_a_table_has_scores_spread_coverage_and_how_they_were_made(judged_run: ScoredRun) -> None:
    judges = labelled([("student", all_judged(judged_run))])
    overview, by_category = tables(judges)
    names = [f"{column.group}: {column.name}" if column.group else column.name for column in overview.columns]
    mild = next(row for row in overview.rows if row[1].text == "mild")
    found = {name: cell.text for name, cell in zip(names, mild, strict=True)}
    assert found["score, 0 to 1: mean"] == "0.600"
    assert found["score, 0 to 1: accuracy"] == "0.800"
    assert found["sd over draws: accuracy"] == "0.000"
    assert found["coverage (answers): judged %"] == "100.0 %"
    samples = len(judged_run.samples)
    assert (found["how scored: draws"], found["how scored: plain"]) == ("2", str(samples * 4))
    assert found["unusable verdicts: missing"] == "0"
    assert "lexical counts shared words" in overview.note
    assert [row[0].text for row in by_category.rows] == sorted({s.example.label for s in judged_run.samples})
    assert warnings(judges) == []


def test_missing_verdicts_are_announced(judged_run: ScoredRun) -> None:
    log = next(judged_run.folder.glob("judges/mild-*")) / "verdicts.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
    (warning,) = warnings(labelled([("student", all_judged(judged_run))]))
    assert warning.startswith("student as judged by mild is incomplete:")


def test_runs_without_judges_have_no_section(make_run: Callable, tmp_path: Path) -> None:
    run = score(make_run(VQA))
    assert tables(labelled([("student", all_judged(run))])) == ()
    _, text = write_report([run], tmp_path / "report", samples=2)
    assert "Judges" not in text.read_text()


def test_verdicts_say_scores_of_all_draws_and_a_reason(make_run: Callable, use: Callable) -> None:
    run = make_run(VQA, lambda example, seed: "Answer: cup", runs=1)
    use(ScriptedJudge(lambda _, place: [Completion("?"), verdict(7, "why" * 100)][place], name="mild"))
    judge(run, "mild", draws=2)
    found = verdicts(labelled([("student", all_judged(score(run)))]), "student", 10)
    lines = next(iter(found.values()))
    assert lines[0] == ("mild, accuracy", "parse error, 7 of 10 (plain): whywhywhyw […]")


def test_the_page_and_the_markdown_show_them_and_run_no_markup_of_judges(judged_run: ScoredRun, tmp_path: Path) -> None:
    page, text = write_report([judged_run], tmp_path / "report", samples=3)
    markdown, html = text.read_text(), page.read_text()
    assert "### Judges\n" in markdown
    assert "mild, accuracy: 8, 8 of 10 (plain): Since &lt;/script&gt;" in markdown
    assert "<h3>Judges</h3>" in html
    chunks = re.findall(r'id="chunk-\d+">([^<]*)<', html)
    samples = [s for chunk in chunks for s in json.loads(zlib.decompress(base64.b64decode(chunk)))]
    shown = [answer["verdicts"] for s in samples for answers in s["models"] for answer in answers]
    assert all([name for name, _ in own] == [name for name, _ in shown[0]] for own in shown)
    assert {name for name, _ in shown[0]} == {
        f"{j}, {c}" for j in ("mild", "lexical") for c in ("accuracy", "completeness")
    }
    assert HOSTILE not in html
    assert "<img src=x" not in markdown
