"""Errors about one object are found in five benchmarks, and chance is not mistaken for them."""

import random
from collections import defaultdict
from pathlib import Path

import pytest

from barista_bench.core.example import graph_span
from barista_bench.reporting.analyses import analyse
from barista_bench.reporting.facts import difficulty_tables
from barista_bench.reporting.figures import report_figures
from barista_bench.reporting.report import build_report
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.scene_graph import SceneGraph
from barista_bench.stats import cross_propagation, fact_answers, fact_consistency
from barista_bench.stats.propagation import NEAR, ObjectError, ObjectKey, edge_of, object_errors, shared_errors
from tests.conftest import MadeOnce
from tests.five_benchmarks import run_model, write_data

pytestmark = pytest.mark.full
ROWS = [
    ("barista / grounding", "handyvqa / objects"),
    ("barista / relations", "egocot / cot"),
    ("barista / activity", "vista / real_world"),
]
"""The rows of the paper's question: localisation, interaction and action, each into another benchmark."""


@pytest.fixture(scope="module")
def five(made_once: MadeOnce) -> Path:
    return made_once("five_benchmarks", write_data)


@pytest.fixture(scope="module")
def blind(five: Path, tmp_path_factory: pytest.TempPathFactory) -> list[ScoredRun]:
    """A model that errs on everything about the milk carton, and on nothing else."""
    cartons = {
        item.id for video in SceneGraph(five / "kitchen") for item in video.objects if item.category == "milk carton"
    }
    return run_model(five, tmp_path_factory.mktemp("blind"), "blind", cartons)


def test_three_rows_across_benchmarks_show_the_errors_about_one_object(blind: list[ScoredRun]) -> None:
    edges = {(edge.source, edge.target): edge for edge in cross_propagation(blind, "blind").edges}
    assert all(edges[row].n > 0 and (edges[row].odds_ratio or 0) > 1 for row in ROWS)


def test_the_interval_holds_1_where_the_errors_are_dealt_at_random(blind: list[ScoredRun]) -> None:
    errors = {f"{run.task.benchmark} / {run.task.name}": object_errors(run) for run in blind}
    for source, target in ROWS:
        held = sum(
            edge.low is None or edge.high is None or edge.low <= 1 <= edge.high
            for seed in range(200)
            for edge in [edge_of("", "", shared_errors(errors[source], dealt(errors[target], seed), near=NEAR))]
        )
        assert held >= 180


def dealt(errors: dict[ObjectKey, list[ObjectError]], seed: int) -> dict[ObjectKey, list[ObjectError]]:
    """The same answers, with the errors of each video dealt to its objects at random."""
    by_video: dict[str, list[bool]] = defaultdict(list)
    for (_, video_id, _), rows in errors.items():
        by_video[video_id] += [row.has_erred for row in rows]
    for video_id, values in by_video.items():
        random.Random(f"{seed} {video_id}").shuffle(values)
    return {place: [row._replace(has_erred=by_video[place[1]].pop()) for row in rows] for place, rows in errors.items()}


def test_the_oracle_never_contradicts_itself_and_chance_does_as_counted_by_hand(
    five: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    runs = {name: run_model(five, tmp_path_factory.mktemp(name), name) for name in ("oracle", "chance")}
    oracle, chance = (fact_consistency(name, fact_answers(runs[name])) for name in runs)
    assert oracle is not None
    assert chance is not None
    assert (oracle.contradicted, oracle.facts) == (0, chance.facts)
    right: dict[tuple[str, str], set[str]] = defaultdict(set)
    wrong: dict[tuple[str, str], set[str]] = defaultdict(set)
    for run in runs["chance"]:
        for sample in run.samples:
            failures = [set(each.objects) for each in run.task.failures(sample.example, sample.prediction)]
            for fact, objects in run.task.asked_facts(sample.example).items():
                failed = any(set(objects) <= names for names in failures)
                place = graph_span(sample.example).video_id, fact
                (wrong if failed else right)[place].add(f"{run.task.benchmark} {run.task.name}")
    by_hand = sum(any(a != b for a in right[place] for b in wrong[place]) for place in right.keys() & wrong.keys())
    assert by_hand == chance.contradicted > 0


def test_the_report_has_the_tables_and_a_curve_for_all_benchmarks_with_graphs(blind: list[ScoredRun]) -> None:
    report = build_report(blind, analyses=analyse(blind, compare=False))
    titles = [table.title for table in report.across]
    assert "Consistency of one fact" in titles
    assert "What is known, and what can be written" in titles
    assert any(title == "Error propagation: blind, across benchmarks" for title in titles)
    curves = list(difficulty_tables([{"blind": run} for run in blind]))
    assert {table.title for table in curves} <= set(titles)
    benchmarks = {column.name for table in curves for column in table.columns[1:]}
    assert benchmarks >= {"barista", "handyvqa", "tog_bench", "egocot", "vista"}
    assert any(name.startswith("difficulty_by") for name in report_figures(report))
