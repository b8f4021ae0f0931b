"""The command from end to end: exit codes, output, quiet, pipes."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from barista_bench.cli import commands as cli
from barista_bench.data.frozen import read_frozen
from barista_bench.data.manifest import read_manifest
from tests.releases import document, write_release

invoke = CliRunner().invoke


def test_validate_fails_on_errors_and_names_them(tmp_path: Path, small_release: Path) -> None:
    assert invoke(cli.app, ["validate", str(small_release), "--no-progress"]).exit_code == 0
    write_release(tmp_path, video=False)
    shown = invoke(cli.app, ["validate", str(tmp_path), "--no-progress"])
    assert shown.exit_code == 1
    assert "v1/video.mp4: missing" in shown.output
    assert "1 errors" in shown.output


@pytest.mark.parametrize("plots", [pytest.param([], marks=pytest.mark.full), ["--no-plots"]])
def test_stats_writes_tables_and_plots_and_json_is_equal(small_release: Path, tmp_path: Path, plots: list[str]) -> None:
    arguments = ["show", "stats", str(small_release), "--out", str(tmp_path / "s"), *plots]
    shown = invoke(cli.app, [*arguments, "--no-progress"])
    assert shown.exit_code == 0, shown.output
    assert "6 videos, 240 frames, 1020 instances" in shown.output
    assert {"statistics.json", "statistics.md"} <= {path.name for path in (tmp_path / "s").iterdir()}
    assert bool(list((tmp_path / "s").rglob("*.svg"))) != bool(plots)
    if plots:
        again = invoke(cli.app, [*arguments, "--json"])
        assert json.loads(again.stdout) == json.loads((tmp_path / "s" / "statistics.json").read_text())


@pytest.mark.parametrize("command", ["build", "build --dry-run", "show stats"])
def test_a_video_that_cannot_be_used_is_named_and_counted_and_costs_no_other(
    tmp_path: Path, datasets_cache: Path, command: str
) -> None:
    """The others are finished; the exit code says that a task is missing, as in `annotate run`."""
    content = document()
    content["video_metadata"][0]["frame_count"] = 10_000_000
    root = write_release(write_release(tmp_path / "root", "good"), "bad", content)
    arguments = {"show stats": [str(root), "--no-plots"]}.get(
        command, ["--configs", "relations", "--source", str(root)]
    )
    shown = invoke(cli.app, [*command.split(), *arguments, "--out", str(tmp_path / "out"), "--no-progress"])
    assert shown.exit_code == 1
    assert "lost: bad: " in shown.output
    assert "1 videos could not be used" in shown.output
    if command == "build":
        assert read_manifest(tmp_path / "out")["problems"]["lost_videos"] == 1
        examples = read_frozen(tmp_path / "out/frozen/relations.jsonl", "barista")
        assert [example.video_id for example in examples] == ["good"]
    if command == "show stats":
        assert json.loads((tmp_path / "out/statistics.json").read_text())["unusable_videos"] == 1


def test_the_whole_way_from_a_release_to_a_report(small_release: Path, tmp_path: Path, datasets_cache: Path) -> None:
    data, oracle, chance = (str(tmp_path / name) for name in ("barista", "oracle", "chance"))
    steps = [
        ["build", "--source", str(small_release), "--out", data, "--sampling", "frame_step=10", "--no-progress"],
        ["run", data, "--task", "relations", "--model", "oracle", "--out", oracle, "--no-progress"],
        [
            *["run", "--task", "relations", "--model", "chance", "--repetitions", "2", "--no-progress", "--out"],
            chance,
            data,
        ],
        ["score", oracle],
        ["report", oracle, chance, "--out", str(tmp_path / "report")],
    ]
    for step in steps:
        shown = invoke(cli.app, step)
        assert shown.exit_code == 0, shown.output
    assert "oracle: micro_f1 1.000 ± 0.000 over 3 repetition(s), 72/72 answered (ok 72)" in shown.output
    assert "oracle" in (tmp_path / "report/report.html").read_text()
    scored = json.loads(invoke(cli.app, ["score", oracle, chance, "--json"]).stdout)
    text = invoke(cli.app, ["score", oracle, chance]).stdout.splitlines()
    for results, line in zip(scored, text, strict=True):
        metric = results["metrics"]["micro_f1"]
        repetitions = f"over {results['repetitions']} repetition(s)"
        assert f"micro_f1 {metric['mean']:.3f} ± {metric['std']:.3f} {repetitions}" in line
    compared = json.loads(invoke(cli.app, ["compare", oracle, chance, "--permutations", "100", "--json"]).stdout)
    text = invoke(cli.app, ["compare", oracle, chance, "--permutations", "100"]).stdout.splitlines()
    assert f"= {compared['comparisons'][0]['difference']:+.3f} " in text[0]
    beside = len(compared["beside"])
    assert text[1 : beside + 1] == [f"beside: {line}" for line in compared["beside"]]
    for (name, costs), line in zip(compared["costs"].items(), text[beside + 1 :], strict=True):
        assert line.startswith(f"costs: {name}: {costs['seconds']['mean']:.2f} seconds a sample")
    traced = invoke(cli.app, ["show", "trace", "v0", "10", "--data", data]).output
    assert all(task in traced for task in ("relations", "hand_object", "referring"))
    assert invoke(cli.app, ["show", "trace", "v0", "10", "--data", str(tmp_path)]).exit_code == 1
    assert "chance" in (tmp_path / "report/report.md").read_text()


@pytest.mark.full
def test_a_benchmark_that_is_made_from_a_kitchen_goes_all_the_way(small_kitchen: Path, tmp_path: Path) -> None:
    made, data, runs = tmp_path / "made", tmp_path / "data", tmp_path / "runs"
    flags = ["--source", str(small_kitchen), "--out", str(made), "--families", "handyvqa", "--per-subtask", "4"]
    generated = invoke(cli.app, ["generate", *flags, "--no-progress"])
    assert generated.exit_code == 0, generated.output
    assert "  action: 1 of 4" in generated.output
    again = invoke(cli.app, ["generate", *flags, "--no-progress"])
    assert again.exit_code == 1
    assert "is there already" in again.output
    release = made / "handyvqa"
    checked = invoke(cli.app, ["validate", str(release), "--benchmark", "handyvqa", "--no-progress"])
    assert "0 errors" in checked.output
    build_flags = ["--benchmark", "handyvqa", "--out", str(data / "hands"), "--no-cache", "--no-progress"]
    assert invoke(cli.app, ["build", "--source", str(release), *build_flags]).exit_code == 0
    evaluate_flags = ["--benchmark", "handyvqa", "--task", "action", "--model", "prior", "--out", str(runs)]
    result = invoke(cli.app, ["evaluate", str(data / "hands"), *evaluate_flags, "--repetitions", "1", "--no-progress"])
    assert result.exit_code == 0, result.output
    assert "handyvqa/action, prior: accuracy" in result.output
    assert (runs / "report" / "report.html").is_file()
    clip = json.loads((data / "hands" / "frozen" / "action.jsonl").read_text().splitlines()[0])["frames"][0]
    traced = invoke(
        cli.app, ["show", "trace", clip["video_id"], str(clip["frame_index"]), "--data", str(data / "hands")]
    )
    assert (traced.exit_code, "action: " in traced.output) == (0, True)


@pytest.mark.full
def test_quiet_shows_only_errors(small_release: Path, tmp_path: Path) -> None:
    built = ["--source", str(small_release), "--configs", "relations", "--no-cache", "--out", str(tmp_path / "data")]
    asked = ["run", str(tmp_path / "data"), "--limit", "1", "--repetitions", "1"]
    run = [*asked, "--model", "oracle", "--out", str(tmp_path / "runs")]
    for command in (["build", *built], run):
        shown = invoke(cli.app, ["--quiet", *command])
        assert (shown.exit_code, shown.output) == (0, "")
    assert (tmp_path / "runs" / "relations" / "samples.jsonl").is_file()
    second = invoke(cli.app, ["-q", *asked, "--model", "chance", "--out", str(tmp_path / "chance")])
    assert (second.exit_code, second.output) == (0, "")
    refused = invoke(cli.app, ["-q", *asked, "--model", "chance", "--out", str(tmp_path / "runs")])
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "holds a run with model" in refused.stderr

    results = {
        "score": ["score", str(tmp_path / "runs/relations")],
        "compare": ["compare", str(tmp_path / "runs"), str(tmp_path / "chance")],
        "agreement": ["compare", "agreement", str(tmp_path / "runs"), str(tmp_path / "chance")],
        "diff": ["compare", "settings", str(tmp_path / "runs/relations"), str(tmp_path / "chance/relations")],
        "run --dry-run": [*run, "--dry-run"],
        "tasks": ["show", "tasks"],
        "validate": ["validate", str(small_release), "--no-progress"],
        "build --dry-run": ["build", *built[:-1], str(tmp_path / "dry"), "--dry-run"],
        "trace": ["show", "trace", "v0", "0", "--data", str(tmp_path / "data")],
        "stats": ["show", "stats", str(small_release), "--out", str(tmp_path / "stats")],
    }
    for name, command in results.items():
        shown = invoke(cli.app, ["-q", *command])
        assert shown.stdout.strip(), name
        assert "wrote " not in shown.stdout, name
    alone = invoke(cli.app, ["-q", *results["compare"], "--json"])
    assert set(json.loads(alone.stdout)) == {"comparisons", "beside", "costs", "stopped"}
