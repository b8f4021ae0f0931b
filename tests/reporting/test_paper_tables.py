"""The counterparts of papers' tables and figures in a report, of benchmarks that the report does not know."""

import csv
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from barista_bench.benchmarks import Benchmark
from barista_bench.core.model_samples import ModelSamples, sample_name
from barista_bench.core.status import Status
from barista_bench.errors import DataError
from barista_bench.judging.judged_run import JudgedRun, SampleVerdict
from barista_bench.judging.results import JudgedResults
from barista_bench.reporting import report, write_report
from barista_bench.reporting.paper import model_samples, paper_part
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.tables import RangedScore, Table, chart
from tests.reporting.made_runs import HOSTILE, Fruit, MadeExamples, made_run
from tests.reporting.test_report import Page, page_of


class Herb(Fruit):
    """The same in another benchmark."""

    benchmark = "meadow"


def benchmark(name: str, paper_tables=None) -> Benchmark:
    return Benchmark(name, name.title(), "", (Fruit,), "other", "", "", lambda video: video, paper_tables=paper_tables)


LINES = chart(
    f"Figure 2: {HOSTILE}",
    "frames",
    "score",
    {"a": {16: RangedScore(0.5, 0.4, 0.6), 8: 0.25, 32: float("nan")}, HOSTILE: {8: 1.0}},
)
BARS = chart("Figure 3", "level", "score", {"a": {"low": 0.1, "high": RangedScore(0.9, 0.8, 1.0)}}, "bar")


def makes(models: Sequence[ModelSamples]) -> list[Table]:
    """One row a model: the number of samples of each run, and oddities of a table."""
    rows = tuple(
        (model.model, len(model.repetitions), next(map(len, model.repetitions)), RangedScore(0.5, 0.25, 1))
        for model in models
    )
    odd = ((HOSTILE, None, float("inf"), 3),)
    return [
        Table.of("Table 1: samples", ("model", "repetitions", "samples", "score"), rows + odd, "a note"),
        LINES,
        BARS,
    ]


@pytest.fixture
def runs() -> list[ScoredRun]:
    examples = MadeExamples(6)
    return [
        made_run(examples, name="one"),
        made_run(examples, name="two", statuses=[Status.OK], folder="b"),
        made_run(examples, name="one", task=Herb(), statuses=[Status.OK], folder="c"),
    ]


def texts(table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def test_the_numbers_of_a_chart_are_a_table_in_the_order_of_its_axis() -> None:
    table = LINES
    assert texts(table) == [["8", "0.250", "1.000"], ["16", "0.500", "–"], ["32", "–", "–"]]
    assert [column.name for column in table.columns] == ["frames", "a", HOSTILE]
    assert texts(BARS) == [["low", "0.100"], ["high", "0.900"]]


def test_tables_get_the_samples_that_count_and_the_judges_own_scores(runs: list[ScoredRun]) -> None:
    name = next(s.example.example_id for s in runs[0].samples)
    verdicts = {
        (name, 0): (SampleVerdict("fit", 0, 4.0, "ok", "", ""), SampleVerdict("fit", 1, 3.0, "ok", "", "")),
        (name, 1): (SampleVerdict("fit", 0, None, "refused", "", ""),),
    }
    results = JudgedResults.model_construct(judge=type("J", (), {"name": "strict", "label": "strict"})())
    samples = model_samples("called", runs[0], [JudgedRun(Path("x/strict-12"), runs[0], results, verdicts)])
    assert samples.model == "called"
    assert samples.judge_scores == {"strict": {sample_name(name, 0): 3.5}}
    lost = sum(s.record.status is Status.INFRA_ERROR for s in runs[0].samples)
    assert lost
    assert sum(map(len, samples.repetitions)) == len(runs[0].samples) - lost


def test_a_report_lists_the_tables_that_a_benchmark_cannot_make(runs: list[ScoredRun]) -> None:
    def fails(models: object) -> list[Table]:
        raise DataError("no run of the second task. Fix: run it")

    part = paper_part(benchmark("garden", fails), "Garden", [("one", runs[0])], {})
    assert part.tables == ()
    assert part.left_out == "The tables of Garden: no run of the second task. Fix: run it"


@pytest.fixture
def written(runs: list[ScoredRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    known = {"garden": benchmark("garden", makes), "meadow": benchmark("meadow")}
    monkeypatch.setattr(report, "BENCHMARKS", known)
    return write_report(runs, tmp_path / "out", compare=False, tables=True)


def test_paper_tables_and_charts_are_in_the_page_and_as_files(written: tuple[Path, Path]) -> None:
    page = Page(written[0].read_text(encoding="utf-8"))
    assert [(task["heading"], task["papers"]) for task in page.index["tasks"]] == [
        ("garden / fruit", [0]),
        ("meadow / fruit", []),
    ]
    part = page.block("paper-0")
    drawn = [table["chart"] for table in part["tables"] if "chart" in table]
    assert [(each["title"], each["kind"]) for each in drawn] == [(f"Figure 2: {HOSTILE}", "line"), ("Figure 3", "bar")]
    assert drawn[0]["series"] == [
        {"name": "a", "points": [[8, 0.25], [16, 0.5, 0.4, 0.6], [32, None]]},  # JSON has no NaN
        {"name": HOSTILE, "points": [[8, 1.0]]},
    ]
    assert page.rows("Table 1: samples")[0] == {"model": "two", "repetitions": "2", "samples": "6", "score": "0.500"}
    assert "Table 1: samples" in written[1].read_text(encoding="utf-8")
    folder = written[0].parent
    rows = list(csv.reader((folder / "report_tables" / "paper_garden_table_1_samples.csv").open()))
    assert rows[0] == ["model", "repetitions", "samples", "score", "score notes"]
    assert [row[:4] for row in rows[1:3]] == [["two", "2", "6", "0.5"], ["one", "2", "5", "0.5"]]
    text = (folder / "report_tables" / "paper_garden_figure_3_the_numbers.tex").read_text(encoding="utf-8")
    assert text.startswith("\\begin{table}\n\\caption{paper Garden: ")
    index = (folder / "report_tables" / "index.tex").read_text(encoding="utf-8")
    files = {path.stem for path in (folder / "report_tables").glob("*.tex")} - {"index"}
    assert set(re.findall(r"\\input\{(\w+)\.tex\}", index)) == files
    assert index.endswith("\\end{document}\n")


def test_tables_put_a_task_of_another_benchmark_beside_their_own(
    runs: list[ScoredRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    garden = replace(benchmark("garden", makes), extra_table_tasks=(("meadow", "fruit"),))
    monkeypatch.setattr(report, "BENCHMARKS", {"garden": garden, "meadow": benchmark("meadow")})
    page = page_of(runs, tmp_path / "out")
    assert [row["model"] for row in page.rows("Table 1: samples")][:-1] == ["two", "one", "one"]


def test_breakdowns_over_tasks_keep_benchmarks_apart(written: tuple[Path, Path]) -> None:
    tables = Page(written[0].read_text(encoding="utf-8")).tables()
    assert {"All tasks of garden by preparation", "All tasks of meadow by preparation"} <= set(tables)
    assert "meadow" not in str(tables["All tasks of garden by preparation"])


def test_two_sets_of_examples_are_two_parts(
    runs: list[ScoredRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "BENCHMARKS", {"garden": benchmark("garden", makes)})
    dataset = runs[1].results.dataset.model_copy(update={"content_hash": "f" * 64})
    other = replace(runs[1], results=runs[1].results.model_copy(update={"dataset": dataset}))
    page = page_of([runs[0], other], tmp_path / "out")
    headings = [page.block(f"paper-{number}")["heading"] for number in (0, 1)]
    assert all(re.fullmatch(r"Garden \(garden / fruit \(examples \w{12}\)\)", heading) for heading in headings)
    assert len(set(headings)) == 2


def test_no_line_of_the_reporting_names_a_benchmark() -> None:
    from barista_bench.benchmarks import BENCHMARKS

    folder = Path(report.__file__).parent
    modules, templates = sorted(folder.glob("*.py")), sorted(folder.glob("templates/*"))
    assert modules
    assert templates
    for path in [*modules, *templates]:
        text = re.sub(r"barista_bench|barista-bench", "", path.read_text(encoding="utf-8"))
        for name in BENCHMARKS:
            assert not re.search(rf"\b{re.escape(name)}\b", text), f"{path.name} names {name}"
