"""Tables over all tasks, what analysis found, and their files: each against numbers made by hand."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barista_bench.core.status import Status
from barista_bench.metrics.mean_ap.scoring import evaluate_images, spread_of, summarise
from barista_bench.reporting import all_tasks, diagnosis, tables
from barista_bench.reporting.analyses import Analyses, analyse
from barista_bench.reporting.breakdowns import KeyGroups, breakdown_table, key_groups, separation
from barista_bench.reporting.leaderboard import TaskStanding, leaderboard
from barista_bench.reporting.report import Report, build_report, distinct_names
from barista_bench.reporting.tables import metric_cell
from barista_bench.runs.score.results import Breakdown, MetricValue, PartInfo, summary_line, tie_spread
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.stats import FailureRow, PropagationEdge, PropagationGraph, RankAgreement
from barista_bench.tables import Bar, Cell, Table
from tests.reporting.made_runs import HOSTILE, Fruit, MadeExamples, made_run


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


@pytest.fixture(scope="module")
def tasks() -> list[all_tasks.TaskRuns]:
    examples = MadeExamples(10)
    mixed = made_run(examples, name="mixed")
    whole = made_run(examples, name="whole", statuses=[Status.OK], answer="apple, pear", folder="b")
    other = made_run(MadeExamples(4), name="mixed", statuses=[Status.OK], left_out=1, folder="c")
    return [("garden / fruit", {"mixed": mixed, "whole": whole}), ("garden / more", {"mixed": other})]


def group_scores(run: ScoredRun, value: str) -> list[float]:
    return [
        s.scores["f1"]
        for s in run.samples
        if s.example.metadata["preparation"] == value and s.record.status is not Status.INFRA_ERROR
    ]


def with_spreads(run: ScoredRun, *spreads: tuple[float, float, float, float] | None) -> ScoredRun:
    """The run with the details of a mean average precision: min, max, lower and upper of each run's figure."""
    details: list[Any] = [
        {"constant_scores": spread is not None}
        | {"tie_spread": {"micro_f1": dict(zip(("min", "max", "lower", "upper"), spread or [0.5] * 4, strict=True))}}
        for spread in spreads
    ]
    return replace(run, results=run.results.model_copy(update={"details": details}))


def test_every_place_with_the_metric_explains_the_effect_of_the_order_of_equal_scores() -> None:
    examples = MadeExamples(6)
    ranked = with_spreads(made_run(examples, name="ranked"), None, None)
    partly = with_spreads(made_run(examples, name="partly"), (0.3, 0.4, 0.2, 0.5), None)
    unmoved = with_spreads(made_run(examples, name="unmoved"), (0.4,) * 4, (0.4, 0.4, 0.4, 0.4001))
    equal = with_spreads(made_run(examples, name="equal"), (0.3, 0.4, 0.2, 0.5), (0.35, 0.45, 0.1, 0.475))
    spread = "0.300 to 0.450 over random orders, 0.100 to 0.500 at most"
    sentence = (
        "All scores in their answers are equal, so that the order of the examples, which says nothing of a model, "
        f"decides micro F1 of equal: {spread}."
    )
    runs = {"ranked": ranked, "partly": partly, "unmoved": unmoved, "equal": equal}
    assert tables.metrics_table([(name, run.results) for name, run in runs.items()]).note.endswith(f" {sentence}")
    board = leaderboard("garden", "Garden", [TaskStanding("garden / fruit", runs)], Analyses())
    assert board.table.note.endswith(f" {sentence}")
    assert summary_line(equal.results).endswith(f"the order of the examples decides: {spread}")
    for run in (ranked, partly, unmoved, made_run(examples)):
        assert "order" not in summary_line(run.results)
        assert "order" not in tables.metrics_table([("model", run.results)]).note


def test_the_metric_tells_the_effect_of_the_order() -> None:
    cup, elsewhere = {"boxes": [[0, 0, 9, 9]]}, {"boxes": [[50, 50, 59, 59]]}
    evaluated = evaluate_images([elsewhere, cup], [cup, cup])
    details: list[Any] = [summarise(evaluated) | {"tie_spread": spread_of(evaluated, orders=5)}]
    results = made_run(MadeExamples(2)).results.model_copy(update={"primary": "map", "details": details})
    assert tie_spread(results) == "0.252 to 0.505 over random orders, 0.252 to 0.505 at most"


def test_scores_of_a_group_are_each_models_mean_over_its_scored_samples(tasks: list[all_tasks.TaskRuns]) -> None:
    (table,) = all_tasks.group_tables(tasks)
    cells = {(row[0].text, row[1].text): row[2] for row in table.rows}
    for label, run in tasks[0][1].items():
        expected = group_scores(run, "moka")
        assert cells["moka", label].text == f"{sum(expected) / len(expected):.3f}"
        assert cells["moka", label].notes == (f"{len(expected)} samples",)


def test_the_mean_over_models_weighs_each_model_once_and_leaves_baselines_out() -> None:
    examples = MadeExamples(10)
    runs = {
        "mixed": made_run(examples, name="mixed"),
        "whole": made_run(examples, name="whole", statuses=[Status.OK], answer="apple, pear", folder="b"),
        "chance": made_run(examples, name="chance", statuses=[Status.OK], answer="plum", folder="c"),
    }
    (table,) = all_tasks.group_tables([("garden / fruit", runs)])
    row = next(row for row in table.rows if [cell.text for cell in row[:2]] == ["moka", all_tasks.ALL_MODELS])
    means = [sum(scores) / len(scores) for scores in (group_scores(runs[name], "moka") for name in ("mixed", "whole"))]
    assert row[2].text == f"{sum(means) / 2:.3f}"
    assert row[2].notes == ("2 models",)
    assert table.note.endswith("without chance.")
    assert ("moka", "chance") in {(row[0].text, row[1].text) for row in table.rows}


def test_tokens_are_means_over_samples(tasks: list[all_tasks.TaskRuns]) -> None:
    table = all_tasks.tokens_table(tasks)
    assert table is not None
    assert texts(table) == [["garden / fruit", "100", "10", "100", "10"], ["garden / more", "100", "10", "–", "–"]]


def edge(source: str, target: str) -> PropagationEdge:
    usual = {"n": 10, "videos": 3, "both": 4, "source_only": 1, "target_only": 1, "neither": 4}
    given = {"odds_ratio": 9.0, "low": 2.0, "high": 40.0, "risk_with": 0.8, "risk_without": 0.2}
    return PropagationEdge(source=source, target=target, **usual, **given)  # type: ignore[arg-type]


def test_propagation_has_a_row_for_each_pair_and_rank_agreement_no_diagonal() -> None:
    table = diagnosis.propagation_table(PropagationGraph("m", ("see", "name"), (edge("see", "name"),)))
    assert texts(table) == [["see", "name", "9", "10", "3", "0.800", "0.200", "4", "1", "1", "4"]]
    assert table.rows[0][2].notes == ("[2, 40]",)
    means, tau = ((0.1, 0.2), (0.3, 0.4), (0.5, 0.6)), ((1.0, -1 / 3), (-1 / 3, 1.0))
    agreement = RankAgreement(("see", "name"), ("a", "b", HOSTILE), means, tau)
    assert texts(diagnosis.agreement_table(agreement)) == [["see", "–", "−0.33"], ["name", "−0.33", "–"]]
    assert metric_cell(MetricValue(mean=0.5, std=None, repetitions=[0.5], low=0.4, high=0.61)).notes == (
        "[0.400, 0.610]",
    )
    assert metric_cell(MetricValue(mean=0.5, std=None, repetitions=[0.5])).notes == ()


def test_an_empty_graph_of_errors_is_left_out_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    ratios = {"telling": 9.0, "always wrong": None}

    def made(runs: Sequence[ScoredRun], *, label: str) -> PropagationGraph:
        return PropagationGraph(label, ("see", "name"), (replace(edge("see", "name"), odds_ratio=ratios[label]),))

    monkeypatch.setattr("barista_bench.reporting.analyses.propagation", made)
    runs = [made_run(MadeExamples(4), name=name, folder=f"{name}{n}") for name in ratios for n in (1, 2)]
    names = {run.folder: run.results.model.name for run in runs}
    monkeypatch.setattr("barista_bench.reporting.analyses.run_labels", lambda _: names)
    found = analyse(runs, compare=False)
    assert [graph.model for graph in found.graphs] == ["telling"]
    assert [text for text in found.left_out if text.startswith("Error propagation of always wrong: ")]


def failed(model: str, kinds: Sequence[tuple[str, int]]) -> tuple[str, list[FailureRow]]:
    return model, [FailureRow("t", model, kind, count, count, count / 10) for kind, count in kinds]


def test_failures_are_in_the_order_of_the_vocabulary_and_lead_to_their_samples() -> None:
    table = diagnosis.failures_table([failed("a", [("hallucinated", 3), ("missed", 1)]), failed("b", [("format", 2)])])
    assert table is not None
    assert [row[0] for row in texts(table)] == ["format", "missed", "hallucinated"]
    assert texts(table)[2][2:] == ["30.0%", "–"]
    assert table.rows[2][2] == Cell("30.0%", "3×", bar=Bar(0.3), query=(("failure", "hallucinated"), ("model", "a")))
    assert diagnosis.failures_table([failed("a", [])]) is None


def test_each_model_is_compared_with_the_next_or_left_out_with_the_reason() -> None:
    examples = MadeExamples(10)
    good = made_run(examples, name="good", statuses=[Status.OK], answer="apple, pear")
    bad = made_run(examples, name="bad", statuses=[Status.OK], answer="plum", folder="b")
    again = made_run(examples, name="bad", statuses=[Status.OK], answer="plum", folder="c")
    chance = made_run(examples, name="chance", statuses=[Status.OK], answer="apple", folder="d")
    analysis = analyse([bad, again, chance, good], permutations=50)
    assert [(folder.name, c.first, c.second) for folder, c in analysis.comparisons.items()] == [
        ("a", "good", "bad (b)"),
        ("b", "bad (b)", "bad (c)"),
    ]
    assert [c.difference for c in analysis.comparisons.values()] == [1.0, 0.0]
    assert [c.wins for c in analysis.comparisons.values()] == [10, 0]
    assert [(gap.model, gap.kind) for gap in analysis.gaps] == [(m, "chance") for m in ("bad (b)", "bad (c)", "good")]
    assert analysis.failures[Path("b")]
    assert not analyse([good, bad], compare=False).comparisons
    fewer = made_run(MadeExamples(4), name="bad", folder="d")
    dataset = fewer.results.dataset.model_copy(update={"content_hash": "f" * 64})
    apart = replace(fewer, results=fewer.results.model_copy(update={"dataset": dataset}))
    assert any("Rank agreement" in text for text in analyse([good, bad, apart], compare=False).left_out)


def test_file_names_are_safe_and_each_once() -> None:
    names = distinct_names([" ../../etc/passwd", " ../../etc/passwd", "a / b ", " …"])
    assert names == ["etc_passwd", "etc_passwd_2", "a_b", "table"]


EXAMPLES = MadeExamples(10)


def answering(name: str, answer: str, examples: MadeExamples = EXAMPLES, **settings: object) -> ScoredRun:
    return made_run(examples, name=name, answer=answer, statuses=[Status.OK], folder=name, **settings)  # type: ignore[arg-type]


class Seed(Fruit):
    name = "seed"


def report(*runs: ScoredRun, permutations: int = 50) -> Report:
    return build_report(runs, analyses=analyse(runs, permutations=permutations))


def test_models_are_ordered_by_score_and_people_and_baselines_are_below_them_unranked() -> None:
    runs = [answering("chance", "plum"), answering("weak", "kiwi"), answering("oracle", "apple, pear")]
    runs += [answering("human:ben", "plum"), answering("human:anna", "apple, pear")]
    made = report(*runs, answering("strong", "apple, pear"), answering("middle", "apple"))
    (board,), (section,) = made.boards, made.sections
    order = ["strong", "middle", "weak", "human:anna", "human:ben", "oracle", "chance"]
    assert [row[0].text for row in board.table.rows] == order
    assert board.unranked == 4
    assert [row[0].text for row in section.metrics[0].rows] == order
    assert [row[0].text for row in section.metrics[1].rows] == ["strong", "middle"], "people are no model's next"
    assert section.answers[0].text == "strong"


def test_a_gap_names_the_next_model_and_its_p_value() -> None:
    (board,) = report(answering("strong", "apple, pear"), answering("weak", "kiwi"), answering("as weak", "fig")).boards
    strong, weak, last = (row[1] for row in board.table.rows)
    assert strong.gap is not None
    assert (strong.gap.below, strong.gap.difference, strong.gap.better, strong.gap.worse) == ("weak", 1.0, 10, 0)
    assert strong.gap.p < 0.05
    assert weak.gap is not None
    assert (weak.gap.below, weak.gap.p) == ("as weak", 1.0)
    assert last.gap is None


def test_models_without_a_task_come_after_those_with_all_and_have_no_mean_rank() -> None:
    everywhere = [answering("whole", "apple"), answering("whole", "apple", task=Seed())]
    partial = answering("partial", "apple, pear")
    everywhere[1] = replace(everywhere[1], folder=everywhere[1].folder / "seed")
    (board,) = report(*everywhere, partial).boards
    assert [column.name for column in board.table.columns][:2] == ["model", "mean rank"]
    assert [[cell.text for cell in row[:2]] for row in board.table.rows] == [["whole", "1.50"], ["partial", "–"]]
    assert board.table.rows[1][1].notes == ("1 of 2 tasks",)


def ranged(name: str, answer: str, low: float, high: float, task: Fruit) -> ScoredRun:
    """A run with an interval of its primary metric."""
    run = answering(name, answer, task=task)
    metrics = {
        name: metric.model_copy(update={"low": low, "high": high}) for name, metric in run.results.metrics.items()
    }
    return replace(run, folder=run.folder / task.name, results=run.results.model_copy(update={"metrics": metrics}))


def test_models_are_ordered_by_mean_rank_with_shared_ranks_and_never_by_a_mean_of_metrics() -> None:
    runs = []
    for task in (Fruit(), Seed()):
        runs += [ranged("good", "apple, pear", 0.8, 1.0, task), ranged("close", "apple", 0.5, 0.9, task)]
        runs += [ranged("far", "kiwi", 0.0, 0.4, task), ranged("chance", "kiwi", 0.0, 0.1, task)]
    (board,) = report(*reversed(runs)).boards
    assert [[cell.text for cell in row[:2]] for row in board.table.rows] == [
        *(["good", "1.00"], ["close", "1.00"], ["far", "3.00"]),
        ["chance", "–"],
    ]
    assert board.table.rows[-1][1].notes == (), "a baseline lacks no task"


def test_coverage_is_shown_only_where_it_is_incomplete() -> None:
    runs = {"whole": answering("whole", "apple"), "cut": answering("cut", "apple", left_out=4)}
    board = leaderboard("garden", "Garden", [TaskStanding("garden / fruit", runs)], Analyses())
    whole, cut = (row[1] for row in board.table.rows)
    assert (whole.notes, whole.warn) == ((), False)
    assert (cut.notes, cut.warn) == (("12 of 20 samples scored",), True)


def test_a_breakdown_is_shown_once_and_not_with_one_example_a_row() -> None:
    run = answering("one", "apple")
    all_groups = key_groups(["one"], [run], [analyse([run], compare=False).breakdowns[run.folder]])
    # `activities` cut the examples as `preparation` does.
    assert [groups.key for groups in all_groups] == ["preparation"]
    few = answering("one", "apple", MadeExamples(2))
    assert key_groups(["one"], [few], [analyse([few], compare=False).breakdowns[few.folder]]) == []


def of(examples: int, **means: float) -> dict[str, Breakdown]:
    """A group of examples, and the figure of each model on it."""
    metrics = {name: MetricValue(mean=mean, std=None, repetitions=[mean]) for name, mean in means.items()}
    return {name: Breakdown(examples=examples, metric=metric) for name, metric in metrics.items()}


def test_the_separation_of_models_weighs_groups_by_examples_and_omits_single_ones() -> None:
    values = {"x": of(3, a=0.5, b=0.5), "y": of(9, a=0.9, b=0.5), "z": of(1, a=1.0, b=0.0)}
    assert abs(separation(values, ["a", "b"]) - 9 * 0.4 / 12) < 1e-12
    assert abs(separation(values, ["a"]) - 0.4) < 1e-12


def test_metrics_of_a_breakdown_lead_to_their_samples() -> None:
    table = breakdown_table(KeyGroups("kind", {"a b": of(2, one=0.5)}, 0), ["one", "two"], "f1")
    assert table.rows[0][2].query == (("key", "kind"), ("value", "a b"), ("model", "one"))
    assert [cell.text for cell in table.rows[0]] == ["a b", "2", "0.500", "–"]


def test_a_part_of_a_set_counts_in_no_mean_rank() -> None:
    def of_seed(name: str, answer: str) -> ScoredRun:
        run = answering(name, answer, task=Seed())
        dataset = run.results.dataset.model_copy(update={"part": PartInfo(words="some", asked=10, of=20)})
        results = run.results.model_copy(update={"dataset": dataset})
        return replace(run, results=results, folder=run.folder / "seed")

    whole = [answering("strong", "apple, pear"), answering("weak", "apple")]
    (board,) = report(*whole, of_seed("strong", "kiwi")).boards
    assert "mean rank" not in [column.name for column in board.table.columns]
    assert [row[0].text for row in board.table.rows] == ["strong", "weak"]
