from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pandas as pd
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import barista_bench
from barista_bench import Evaluation, compare, evaluate, load_results
from barista_bench.cli.commands import app
from barista_bench.errors import ConfigError, DataError
from barista_bench.stats import breakdown, compare_runs
from tests.six_tasks import Runs


def test_evaluate_runs_and_scores_and_asks_nothing_twice(six_tasks: Path, tmp_path: Path) -> None:
    first = evaluate(six_tasks, "chance", task="activity", repetitions=2, out=tmp_path / "runs")
    log = (tmp_path / "runs" / "activity" / "samples.jsonl").read_bytes()
    again = evaluate(six_tasks, "chance", task="activity", repetitions=2, out=tmp_path / "runs")
    assert (tmp_path / "runs" / "activity" / "samples.jsonl").read_bytes() == log
    pd.testing.assert_frame_equal(first.to_frame(), again.to_frame())
    assert set(first.to_frame().columns) == {
        "model", "task", "metric", "primary", "mean", "std", "low", "high", "repetitions", "expected", "scored",
        "answered", "trained_on",
    }  # fmt: skip


def test_a_folder_is_named_after_the_model(six_tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = evaluate(six_tasks, "text_only:chance", task=("activity", "relations"), repetitions=1, limit=4)
    parent = Path("runs/text_only_chance")
    assert [run.folder for run in done.runs] == [parent / "activity", parent / "relations"]
    assert len(done.samples) == 8


def test_unknown_names_are_refused_with_the_list_of_known_ones(six_tasks: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="colour"):
        evaluate(six_tasks, "chance", out=tmp_path, colour="red")
    with pytest.raises(DataError, match="no run here"):
        load_results(tmp_path)
    with pytest.raises(AttributeError, match="nonsense"):
        barista_bench.nonsense  # noqa: B018
    assert {"evaluate", "compare", "load_results", "Evaluation"} <= set(dir(barista_bench))


def test_frames_hold_what_results_and_logs_hold(scored: Runs) -> None:
    run = scored["fair", "relations"]
    loaded = load_results(run.folder)
    primary = loaded.metrics.query("primary").iloc[0]
    metric = run.results.metrics["micro_f1"]
    assert (primary["mean"], primary["std"], primary["low"], primary["high"]) == (
        metric.mean, metric.std, metric.low, metric.high,
    )  # fmt: skip
    assert len(loaded.samples) == len(run.samples)
    assert_allclose(loaded.samples.f1, [s.scores["f1"] for s in run.samples])
    table = loaded.breakdown(["preparation"], intervals=False)
    assert_allclose(table["mean"], [row.metric.mean for row in breakdown(run, "preparation", intervals=False)])


def test_compare_takes_folders_runs_and_evaluations(scored: Runs) -> None:
    strong, weak = scored["strong", "activity"], scored["weak", "activity"]
    tables = [
        compare([strong.folder, weak.folder], permutations=200),
        compare([strong, weak], permutations=200),
        compare([load_results(strong.folder), weak], permutations=200),
    ]
    for table in tables:
        pd.testing.assert_frame_equal(table, tables[0])
    assert_allclose(table.difference, compare_runs([strong, weak], permutations=200)[0].difference)


def test_the_compare_command_tells_each_pair_and_writes_its_table(scored: Runs, tmp_path: Path) -> None:
    folders = [str(scored[model, "activity"].folder) for model in ("strong", "fair", "weak")]
    done = CliRunner().invoke(app, ["compare", *folders, "--permutations", "200", "--csv", str(tmp_path / "pairs.csv")])
    assert done.exit_code == 0, done.output
    assert "activity, accuracy: strong" in done.output
    assert "Holm" in done.output
    table = pd.read_csv(tmp_path / "pairs.csv")
    assert list(zip(table["first"], table["second"], strict=True)) == list(combinations(("strong", "fair", "weak"), 2))
    refused = CliRunner().invoke(app, ["compare", folders[0]])
    assert refused.exit_code == 1
    assert "no two runs are of the same task" in refused.output


@pytest.mark.full
def test_the_analyse_command_writes_every_table_that_the_runs_allow(scored: Runs, tmp_path: Path) -> None:
    folders = [
        str(scored[model, task].folder)
        for model in ("strong", "fair", "weak", "chance")
        for task in ("relations", "activity")
    ]
    done = CliRunner().invoke(
        app, ["compare", "all", *folders, "--out", str(tmp_path / "out"), "--permutations", "100"]
    )
    assert done.exit_code == 0, done.output
    names = {path.stem for path in (tmp_path / "out").glob("*.csv")}
    assert names == {
        "metrics", "breakdowns", "failures", "consistency", "comparisons", "rank_agreement",
        "answer_agreement", "propagation", "baselines", "repetitions",
    }  # fmt: skip
    done = CliRunner().invoke(
        app, ["compare", "all", folders[0], "--out", str(tmp_path / "one"), "--permutations", "100"]
    )
    assert "no comparisons: no two runs are of the same task" in done.output
    assert "no rank_agreement" in done.output


def test_results_show_themselves_in_a_few_lines(scored: Runs) -> None:
    evaluation = Evaluation(tuple(scored["fair", task] for task in ("activity", "relations")), {"<b>vqa": "no answers"})
    table = evaluation.to_frame()
    metric = table[(table["task"] == "relations") & table["primary"]].iloc[0]
    row = ["fair", "barista/relations", "micro_f1", f"{metric['mean']:.3f}", f"[{metric['low']:.3f},"]
    lines = repr(evaluation).splitlines()
    assert lines[2].split()[:5] == row
    assert lines[2].endswith(f" {metric['answered']}/{metric['expected']}")
    assert lines[3:] == ["not scored: <b>vqa: no answers"]
    page = evaluation._repr_html_()
    assert all(f"<td>{cell}</td>" in page for cell in row[:4])
    assert "not scored: &lt;b&gt;vqa" in page
    many = repr(Evaluation(evaluation.runs * 100))
    assert "and 160 more: see to_frame()" in many
    assert len(many) < 5000
    assert len(repr(evaluation.runs[0])) < 500


def test_a_plot_has_the_means_and_intervals_of_the_table(scored: Runs) -> None:
    evaluation = Evaluation((scored["fair", "activity"], scored["weak", "activity"]))
    (panel,) = evaluation.plot().axes
    rows = evaluation.to_frame().query("primary")
    intervals, dots = panel.lines[::2], panel.lines[1::2]
    assert [dot.get_xdata()[0] for dot in dots] == list(rows["mean"])
    assert [list(line.get_xdata()) for line in intervals] == rows[["low", "high"]].to_numpy().tolist()
    assert [label.get_text() for label in panel.get_yticklabels()] == ["fair", "weak"]
    assert panel.get_title(loc="left") == "activity: accuracy"


@pytest.mark.full
def test_a_plot_of_another_name_is_refused_and_one_of_a_name_is_written_too(scored: Runs, tmp_path: Path) -> None:
    evaluation = Evaluation((scored["fair", "activity"],))
    with pytest.raises(ConfigError, match=r"no figure 'donut'.*Fix: name one of leaderboard_barista"):
        evaluation.plot("donut")
    evaluation.plot("barista_activity_examples_by_preparation_accuracy", out=tmp_path / "new")
    assert sorted(path.suffix for path in (tmp_path / "new").iterdir()) == [".csv", ".pdf", ".svg", ".tex"]


def test_incomplete_metrics_and_metrics_of_seen_videos_are_marked_in_tables_and_pictures(scored: Runs) -> None:
    run = scored["fair", "activity"]
    coverage = run.results.coverage.model_copy(update={"scored": 3})
    results = run.results.model_copy(update={"coverage": coverage, "trained_on": 2})
    evaluation = Evaluation((replace(run, results=results),))
    assert repr(evaluation).endswith(f"/{coverage.expected} INCOMPLETE TRAINED ON")
    plot = evaluation.plot()
    assert plot.axes[0].lines[1].get_markerfacecolor() == "white"
    assert plot.get_supxlabel().startswith("hollow: not all samples scored")
