"""Figures of reports, compared with the table of their numbers, with any names of models and any missing values."""

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from matplotlib import rc_context
from matplotlib.cbook import is_math_text
from matplotlib.text import Text

from barista_bench.judging.cross import CrossJudge, SampleAgreement
from barista_bench.judging.cross_text import answer_agreement
from barista_bench.plots import draw, label, labels, save
from barista_bench.reporting import FIGURE_FOLDER, TABLE_FOLDER, write_report
from barista_bench.reporting.figures import OTHER, UNREAD, confusion_table, figures_of, score_and_costs
from barista_bench.runs.score.costs import Cost
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.tables import Cell, Drawing, RangedScore, Table, chart, to_csv
from tests.six_tasks import Runs
from tests.stats.conftest import renamed

TASKS = ("activity", "grounding", "relations")
NAMES = {
    "strong": "org/$x_1^2$ <b>&amp;",
    "fair": "</svg><script>alert(1)</script> $\\frac{1}{0}$",
    "weak": "org/a-name-that-is-long-enough-to-be-cut-twice-Instruct-2507\u202e\x00",
}


@pytest.fixture(scope="module")
def runs(scored: Runs) -> list[ScoredRun]:
    return [replace(renamed(scored[skill, task], name), name=name) for skill, name in NAMES.items() for task in TASKS]


@pytest.fixture(scope="module")
def figures(runs: list[ScoredRun]) -> Mapping[str, Table]:
    return figures_of(runs)


@pytest.fixture(scope="module")
def written(runs: list[ScoredRun], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("figures") / "report"
    write_report(runs, out, samples=0, compare=False, tables=True, figures=True)
    return out


def of_kind(figures: Mapping[str, Table], kind: Drawing) -> Table:
    return next(table for table in figures.values() if table.drawn == kind)


@pytest.mark.full
def test_a_report_writes_each_metric_in_four_forms_with_the_numbers_of_its_tables(
    written: Path, figures: Mapping[str, Table]
) -> None:
    folder = written / FIGURE_FOLDER
    assert {table.drawn for table in figures.values()} == {"forest", "radar", "heat", "stack", "scatter"}
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        f"{name}.{ending}" for name in figures for ending in ("csv", "pdf", "svg", "tex")
    )
    shared = [path.name for path in folder.glob("*.csv") if (written / TABLE_FOLDER / path.name).exists()]
    assert {"leaderboard_barista.csv", "rank_agreement_between_tasks.csv"} < set(shared)
    assert len(shared) > 2 * len(TASKS)
    for name in shared:
        drawn, table = (list(csv.DictReader((place / name).open())) for place in (folder, written / TABLE_FOLDER))
        assert drawn == [{column: row[column] for column in drawn[0]} for row in table]
        assert set(table[0]) - set(drawn[0]) <= {"mean rank"}


@pytest.mark.full
def test_equal_tables_give_equal_bytes_under_any_style_of_the_user(
    written: Path, figures: Mapping[str, Table], tmp_path: Path
) -> None:
    with rc_context({"font.size": 20, "text.usetex": True, "svg.hashsalt": None, "figure.dpi": 300}):
        for name, table in {table.drawn: (name, table) for name, table in figures.items()}.values():
            for path in save(draw(table), tmp_path, name):
                assert path.read_bytes() == (written / FIGURE_FOLDER / path.name).read_bytes(), path.name


@pytest.mark.full
def test_pictures_hold_fonts_and_no_date_script_or_address(written: Path) -> None:
    for path in (written / FIGURE_FOLDER).glob("*.svg"):
        root = ElementTree.fromstring(path.read_bytes())
        tags = {element.tag.rpartition("}")[2] for element in root.iter()}
        assert not tags & {"script", "image", "text", "date"}, path.name  # texts are outlines
    for path in (written / FIGURE_FOLDER).glob("*.pdf"):
        content = path.read_bytes()
        assert b"/FontFile2" in content
        assert b"/Type3" not in content
        assert b"CreationDate" not in content


def test_names_are_shown_as_they_are_and_never_as_formulas(figures: Mapping[str, Table]) -> None:
    drawn = [text.get_text() for table in figures.values() for text in draw(table).findobj(Text)]
    assert not any(map(is_math_text, drawn))
    for name in NAMES.values():
        assert label(name) in drawn
    assert labels(["a" * 20 + "b" * 30 + "c" * 20, "a" * 20 + "d" * 30 + "c" * 20])[0] != labels(["a" * 70])[0]
    assert len(set(labels(["a" * 20 + "b" * 9 + "c" * 20, "a" * 20 + "d" * 9 + "c" * 20]))) == 2


def test_the_numbers_of_a_heat_map_a_radar_and_bars_equal_the_table(figures: Mapping[str, Table]) -> None:
    heat = figures["rank_agreement_between_tasks"]
    shown = [text.get_text() for text in draw(heat).axes[0].texts]
    assert shown == [cell.text for row in heat.rows for cell in row[1:]]
    radar = of_kind(figures, "radar")
    lines = draw(radar).axes[0].lines
    means = [[cell.value[0] for cell in row[1:] if isinstance(cell.value, RangedScore)] for row in radar.rows]
    assert [list(line.get_ydata()[:-1]) for line in lines] == means
    stack = of_kind(figures, "stack")
    widths = [[bar.get_width() for bar in kind] for kind in draw(stack).axes[0].containers]
    fractions = [[cell.bar.value if cell.bar else 0 for cell in row[2:]] for row in stack.rows]
    assert widths == [pytest.approx(of_kind_of_failure) for of_kind_of_failure in fractions]


def test_scores_are_plotted_over_the_cost_of_the_answers(scored: Runs) -> None:
    models = []
    for name, tokens in (("strong", 40.0), ("fair", 2000.0)):
        run = scored[name, "activity"]
        costs = {**run.results.timing.costs, "output_tokens": Cost(total=9, mean=tokens, samples=9)}
        timing = run.results.timing.model_copy(update={"costs": costs})
        models.append((name, replace(run, results=run.results.model_copy(update={"timing": timing}))))
    table = score_and_costs(models)
    assert table is not None
    for (name, run), row in zip(models, table.values, strict=True):
        figure, costs = run.results.metrics["accuracy"], run.results.timing.costs
        ranged = (figure.mean, figure.low, figure.high)
        assert row == (name, ranged, costs["output_tokens"].mean, costs["seconds"].mean)
    tokens, seconds = draw(table).axes
    assert tokens.get_xscale() == "log"
    for panel, at in ((tokens, 2), (seconds, 3)):
        points = [(line.get_xdata()[0], line.get_ydata()[0]) for line in panel.lines[1::2]]
        assert points == [(row[at], row[1][0]) for row in table.values]  # type: ignore[index]
    assert score_and_costs(models[:1]) is None


def test_a_confusion_counts_each_sample_of_a_class_once(scored: Runs) -> None:
    run = scored["fair", "activity"]
    table = confusion_table("fair", run)
    assert table is not None
    right = sum(row[1 + at].value for at, row in enumerate(table.rows))  # type: ignore[misc]
    counted: list[Any] = [value for row in table.values for value in row[1:]]
    assert right == sum(sample.scores["accuracy"] for sample in run.samples)
    assert sum(counted) == run.results.coverage.scored
    assert table.heads[-2:] == (OTHER, UNREAD)
    unread = sum(row[-1].value for row in table.rows)  # type: ignore[misc]
    assert unread == run.results.coverage.scored - run.results.coverage.answered > 0
    assert confusion_table("fair", scored["fair", "relations"]) is None


@pytest.mark.full
def test_one_model_and_one_task_and_missing_cells_are_drawn(scored: Runs, tmp_path: Path) -> None:
    alone = figures_of([scored["fair", "activity"]])
    assert not {"radar", "scatter"} & {table.drawn for table in alone.values()}
    for table in alone.values():
        draw(table)
    missing = Table.of("Some", ("model", "a: x", "b: x", "c: x"), [("m", None, 0.5, RangedScore(0.4, 0.5, 0.6))])
    for kind in ("forest", "radar", "heat", "scatter"):
        assert save(draw(replace(missing, drawn=kind)), tmp_path, kind)[0].stat().st_size  # type: ignore[arg-type]
    draw(replace(missing, rows=((Cell("m"), *[Cell(None)] * 3),), drawn="heat"))
    gaps = draw(chart("Gaps", "frames", "score", {"m": {1: 0.5, 4: RangedScore(0.5, 0.4, 0.6)}, "n": {4: None}}))
    assert list(gaps.axes[0].lines[0].get_xdata()) == [1, 4]
    bars = draw(chart("Bars", "subtask", "score", {"m": {"x": 0.5}, "n": {"y": 0.25}}, "bar"))
    assert [bar.get_height() for group in bars.axes[0].containers for bar in group] == [0.5, 0.25]


def test_intervals_end_where_no_score_can_be_and_counts_have_whole_ticks() -> None:
    wide = draw(chart("Wide", "level", "score", {"m": {1: RangedScore(0.9, 0.3, 1.5), 2: RangedScore(0.1, -0.4, 0.6)}}))
    assert wide.axes[0].get_ylim() == (0, 1.05)
    below = draw(chart("Below", "level", "score", {"m": {1: RangedScore(-0.5, -0.9, -0.1), 2: RangedScore(3, 2, 4)}}))
    assert below.axes[0].get_ylim()[0] <= -0.9
    assert below.axes[0].get_ylim()[1] >= 4
    counts = draw(chart("Counts", "subtask", "questions", {"m": {"a": 1, "b": 3}}, "bar"))
    assert all(float(tick).is_integer() for tick in counts.axes[0].get_yticks())


def test_no_two_series_look_alike_and_single_bars_are_over_their_names() -> None:
    many = draw(chart("Many", "group", "score", {f"m{at}": {"x": 0.5} for at in range(20)}, "bar"))
    looks = [(bar.get_facecolor(), bar.get_hatch()) for group in many.axes[0].containers for bar in group]
    assert len(set(looks)) == 20
    alone = draw(chart("Alone", "subtask", "questions", {"g": {"x": 2}, "h": {"y": 1, "z": 3}}, "bar"))
    bars = [bar for group in alone.axes[0].containers for bar in group]
    assert [bar.get_x() + bar.get_width() / 2 for bar in bars] == [0, 1, 2]


def test_judges_agree_answer_by_answer_in_a_heat_map() -> None:
    pair = SampleAgreement("accuracy", ("a", "b"), n=4, coverage=1.0, exact=0.75, within_1=1.0, qwk=-0.25, tau=None)
    (table,) = answer_agreement(CrossJudge({}, {}, (), (), (pair,)))
    axes = draw(table).axes[0]
    assert [text.get_text() for text in axes.texts] == ["+0.75", "+1.00", "−0.25", "–"]
    assert list(csv.reader(to_csv(table).splitlines()))[1][5:] == ["0.75", "1.0", "-0.25", ""]
