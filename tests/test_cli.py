"""The command: help that reads well, flags named as keywords, errors in one line."""

import inspect
import json
import logging
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from barista_bench import __version__
from barista_bench.annotate.decisions import accept
from barista_bench.annotate.exporting import export as export_graphs
from barista_bench.annotate.project import open_project, start
from barista_bench.annotate.running import run as run_stages
from barista_bench.api import load_results
from barista_bench.benchmarks import BENCHMARKS, task_names
from barista_bench.cli import commands as cli
from barista_bench.cli.annotate_commands import DescribingSettings
from barista_bench.cli.output import echo
from barista_bench.cli.tree import SECTIONS
from barista_bench.data.frozen import read_frozen
from barista_bench.data.manifest import read_manifest
from barista_bench.data.settings import BuildSettings
from barista_bench.data.trace import trace
from barista_bench.demo import demo
from barista_bench.diagnosis.running import DiagnoseConfig
from barista_bench.doctor import examine
from barista_bench.errors import ConfigError, RecordError
from barista_bench.files.text_out import LogFormatter
from barista_bench.generate.audit import choice_sets
from barista_bench.generate.review_statistics import read_votes
from barista_bench.generate.settings import GenerateSettings
from barista_bench.generate.writing.config import QuestionConfig, RewordConfig, WriteConfig
from barista_bench.hub.publishing import publication
from barista_bench.hub.pushing import Pusher
from barista_bench.hub.settings import SubmissionSettings
from barista_bench.interchange.exporting import export_run
from barista_bench.interchange.importing import import_run
from barista_bench.interchange.mask_formats import read_mask_tracks
from barista_bench.interchange.recorded_answers import import_recorded, write_submission_file
from barista_bench.judging.config import JudgeConfig
from barista_bench.mini import write_kitchen
from barista_bench.other_graphs.importing import import_graphs
from barista_bench.preflight.settings import PreflightConfig
from barista_bench.reporting import write_report
from barista_bench.reporting.paper import set_statistics
from barista_bench.runs.ask.config import RunConfig, check_settings
from barista_bench.runs.ask.watching import WatchConfig
from barista_bench.runs.decide.planning import plan_table, plan_tasks
from barista_bench.runs.diff import diff
from barista_bench.runs.log_reader import compact, merge
from barista_bench.runs.score.scoring import score
from barista_bench.scene_graph import SceneGraph, validate
from barista_bench.scene_graph.statistics import statistics
from barista_bench.scene_graph.statistics_files import write_statistics
from barista_bench.stats import answer_agreement, compare_runs
from barista_bench.stats.tables import analysis_tables, write_tables
from barista_bench.studio.server import studio_server
from barista_bench.studio.sharing import study_server
from barista_bench.studio.study import Study
from barista_bench.studio.workspace import open_workspace
from barista_bench.training.exporting import export
from tests.releases import document, write_release

invoke = CliRunner().invoke


COMMANDS = {
    f"{name} {part}".strip(): subcommand.params
    for name, command in typer.main.get_command(cli.app).commands.items()
    for part, subcommand in getattr(command, "commands", {"": command}).items()
}
"""Parameters by command; those of a group as `group command`."""

# {command: (what it calls, its flags that are no keyword there)}
CALLED: dict[str, tuple[list[Callable], set[str]]] = {
    "mini": ([write_kitchen], set()),
    "generate": ([GenerateSettings], {"dry_run"}),
    "import-graph": ([import_graphs], {"from_"}),
    "show audit": ([choice_sets], {"runs", "out"}),
    "validate": ([validate], {"strict", "show", "benchmark", "videos"}),
    "show": ([], set()),
    "show tasks": ([], {"json"}),
    "show setup": ([examine], {"json"}),
    "show stats": ([SceneGraph, statistics, write_statistics, set_statistics], {"json", "domain_draft"}),
    "build": ([BuildSettings], set()),
    "demo": ([demo], {"browser"}),
    "run": ([RunConfig], {"config", "dry_run"}),
    "evaluate": ([RunConfig], {"config"}),
    "diagnose": ([DiagnoseConfig], {"config", "dry_run"}),
    "show trace": ([trace], {"data"}),
    "run import": ([import_run], {"protocol"}),
    "export": ([export], {"task"}),
    "export run": ([export_run], {"form"}),
    "annotate start": ([start], {"project"}),
    "annotate run": ([run_stages], set()),
    "annotate accept": ([accept], {"source", "add_names"}),
    "annotate import": ([accept, read_mask_tracks], {"source_format", "only_asked", "video", "replace", "add_names"}),
    "annotate describe": ([DescribingSettings], {"config"}),
    "annotate status": ([open_project], {"project"}),
    "annotate review": ([open_project], {"project", "show", "plots"}),
    "annotate export": ([export_graphs], {"project", "target_format"}),
    "score": (
        [score, import_recorded],
        {"folders", "option", "box_format", "think_tags", "log_to", "json", "num_proc"},
    ),
    "preflight": ([PreflightConfig], {"config"}),
    "run watch": ([WatchConfig], {"config"}),
    "report": ([load_results, write_report], {"option", "max_size"}),
    "compare settings": ([diff], set()),
    "run compact": ([compact], set()),
    "run merge": ([merge], set()),
    "compare": ([load_results, compare_runs], {"csv", "option", "json"}),
    "compare agreement": ([load_results, answer_agreement], {"option"}),
    "compare all": ([load_results, analysis_tables, write_tables], {"judge", "option"}),
    "plan": ([load_results, plan_tasks, plan_table], {"json", "model", "against"}),
    "judge": ([JudgeConfig], {"config"}),
    "compare judges": ([load_results], {"out", "human", "vendor", "option"}),
    "generate questions": ([QuestionConfig], {"config"}),
    "generate reviewed": ([read_votes], set()),
    "generate reworded": ([RewordConfig], {"config"}),
    "generate written": ([WriteConfig], {"config"}),
    "studio": ([open_workspace, studio_server, study_server], {"by", "compare", "browser"}),
    "studio invite": ([Study], {"task", "out"}),
    "publish": ([publication, Pusher.publish], {"dry_run", "token_env"}),
    "publish answers": ([write_submission_file], {"run"}),
    "export lmms-eval-tasks": ([RunConfig], set()),
    "publish submission": ([SubmissionSettings], set()),
}


def names_in(section: str, text: str) -> list[str]:
    """Names of commands in a section of a help text."""
    (rows,) = re.findall(rf"^{section}:\n((?:  .*\n)+)", text, re.MULTILINE)
    return re.findall(r"^  (\S+(?: \S+)?)  ", rows, re.MULTILINE)


def test_the_overview_names_each_command_of_one_word_in_the_order_in_which_people_need_it() -> None:
    shown = invoke(cli.app, ["--help"]).output
    named = {section: names_in(section, shown) for section in SECTIONS}
    assert named["Start here"] == ["demo", "evaluate", "report"]
    all_named = [name for names in named.values() for name in names]
    assert set(all_named) == {command.partition(" ")[0] for command in COMMANDS}
    assert len(all_named) <= 20
    assert not re.search(r"\.\.\.$", shown.partition("\n")[2], re.MULTILINE), "a sentence is cut off"
    assert "`barista-benchshow--help`" in "".join(shown.split())
    assert invoke(cli.app, ["--version"]).output.strip() == __version__


@pytest.mark.parametrize("parent", ["run", "generate", "export", "compare", "show", "studio", "publish"])
def test_the_help_of_a_parent_names_the_commands_that_begin_with_its_name(parent: str) -> None:
    named = names_in("Related commands", invoke(cli.app, [parent, "--help"], terminal_width=200).output)
    assert named == [command for command in COMMANDS if command.startswith(f"{parent} ")]
    assert named


def test_every_command_of_two_words_has_a_parent() -> None:
    assert {command.partition(" ")[0] for command in COMMANDS} <= set(typer.main.get_command(cli.app).commands)


def test_a_parent_that_only_groups_commands_lists_them_and_ends_as_a_group_does() -> None:
    shown, group = invoke(cli.app, ["show"]), invoke(cli.app, ["annotate"])
    assert shown.exit_code == group.exit_code == 2
    assert "show stats" in names_in("Related commands", shown.output)


@pytest.mark.parametrize(
    ("typed", "nearest"),
    [
        ("shwo stats", "show"),
        ("show stat", "show stats"),
        ("stats kitchen", "show stats"),
        ("submit runs", "publish submission"),
        ("import-run runs", "run import"),
        ("judges runs", "compare judges"),
    ],
)
def test_a_mistyped_or_old_name_is_refused_with_the_nearest_name(typed: str, nearest: str) -> None:
    shown = invoke(cli.app, typed.split())
    assert shown.exit_code == 2
    assert f"Did you mean '{nearest}'?" in shown.output


def test_a_name_like_no_other_is_refused() -> None:
    shown = invoke(cli.app, ["xyzzy"])
    assert shown.exit_code == 2
    assert "No such command 'xyzzy'." in shown.output


def test_every_command_says_what_it_calls() -> None:
    assert set(CALLED) == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_flag_is_a_keyword_of_what_the_command_calls(command: str) -> None:
    called, of_the_command_alone = CALLED[command]
    keywords = set().union(*(inspect.signature(function).parameters for function in called))
    assert {parameter.name for parameter in COMMANDS[command]} - keywords == of_the_command_alone


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_explained_and_called_as_its_keyword(command: str) -> None:
    shown = invoke(cli.app, [*command.split(), "--help"], terminal_width=200)
    assert shown.exit_code == 0
    for parameter in COMMANDS[command]:
        assert parameter.help.strip(), parameter.name
        if parameter.param_type_name == "option":
            assert f"--{parameter.name.replace('_', '-')}" in parameter.opts or parameter.opts in (
                ["--format"],
                ["--from"],
            )
            assert parameter.opts[0] in shown.output


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
    """The others are finished; the exit code says that something is missing, as that of `annotate run` does."""
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
            "run",
            data,
            "--task",
            "relations",
            "--model",
            "chance",
            "--repetitions",
            "2",
            "--out",
            chance,
            "--no-progress",
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


@pytest.mark.parametrize(
    "arguments",
    [
        ["build", "--source", "/nowhere"],
        ["build", "--source", "{release}", "--sampling", "step=1"],
        ["build", "--source", "{release}", "--configs", "relation"],
        ["run", "/nowhere", "--model", "oracle", "--out", "x"],
        ["run", "nowhere", "--model", "oracle", "--out", "x"],
        ["score", "/nowhere"],
        ["validate", "/nowhere"],
    ],
)
def test_an_error_is_one_line_with_its_remedy(
    arguments: list[str], small_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = invoke(cli.app, [argument.format(release=small_release) for argument in arguments])
    assert shown.exit_code == 1
    assert "error: " in shown.output
    assert "Traceback" not in shown.output
    assert len(shown.output.strip().splitlines()) == 1


def test_evaluate_is_for_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    refused = invoke(
        cli.app, ["evaluate", str(tmp_path), "--model", "oracle", "--out", str(tmp_path / "runs"), "--no-progress"]
    )
    assert refused.exit_code == 1
    assert "have finished. Fix: start `run`" in refused.output


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


def test_every_task_is_listed_with_its_question_answer_and_metric() -> None:
    listed = json.loads(invoke(cli.app, ["show", "tasks", "--json"]).stdout)
    assert [row["task"] for row in listed] == [name for benchmark in BENCHMARKS for name in task_names(benchmark)]
    assert all(row["asked"] and row["answer"] and row["primary"] for row in listed)
    text = invoke(cli.app, ["show", "tasks"]).stdout
    assert "barista/activity: frames of one activity, its lettered choices, and the right one\n" in text
    assert "answered as the letter of a choice; headline figure accuracy; published with at most 500 examples" in text


def test_a_terminal_that_lacks_a_character_gets_its_number() -> None:
    prints = "from barista_bench.files.text_out import echo; echo('\\u2212')"
    environment = os.environ | {"PYTHONIOENCODING": "latin-1"}
    done = subprocess.run([sys.executable, "-c", prints], capture_output=True, check=False, env=environment)
    assert (done.returncode, done.stdout) == (0, rb"\u2212" + b"\n"), done.stderr


@pytest.mark.full
def test_quiet_leaves_errors_alone(small_release: Path, tmp_path: Path) -> None:
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


def test_help_has_what_most_need_before_what_few_do() -> None:
    shown = invoke(cli.app, ["--help"]).output
    assert [line[:-1] for line in shown.splitlines() if re.fullmatch(r"\w.*:", line)] == ["Options", *SECTIONS]
    common, _, rare = invoke(cli.app, ["run", "--help"], terminal_width=200).output.partition("\nServed models:")
    assert all(f"  --{flag} " in common for flag in ("model", "task", "out", "temperature"))
    assert all(f"  --{flag} " in rare for flag in ("base-url", "tensor-parallel", "batch-size", "top-k", "workers"))


@pytest.mark.full
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("run data --task re", {"relations", "referring", "real_world"}),
        ("run data --benchmark vista --task all,re", {"all,real_world"}),
        ("run data --model text_only:ch", {"text_only:chance"}),
        ("run data --benchmark eg", {"egocot"}),
        ("sh", {"show"}),
        ("ann", {"annotate"}),
    ],
)
def test_the_shell_completes_names_without_torch(typed: str, completed: set[str], tmp_path: Path) -> None:
    program = (
        "import sys, typer\nfrom barista_bench.cli.commands import app\ntry:\n    app(prog_name='barista-bench')\n"
    )
    program += "finally:\n    assert 'torch' not in sys.modules and 'datasets' not in sys.modules"
    variables = {"_BARISTA_BENCH_COMPLETE": "complete_bash", "COMP_WORDS": f"barista-bench {typed}"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, **variables, "COMP_CWORD": str(len(typed.split()))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert set(done.stdout.split()) == completed, done.stderr


@pytest.mark.full
def test_output_that_nobody_reads_any_more_ends_the_command_without_a_word() -> None:
    command = [sys.executable, "-m", "barista_bench.cli", "show", "tasks"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 1


def test_help_lists_a_setting_under_the_models_that_read_it() -> None:
    sections = {"": ""}
    for line in CliRunner().invoke(cli.app, ["run", "--help"], terminal_width=200).output.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            sections[line] = ""
        else:
            sections[list(sections)[-1]] += line + "\n"
    for flag in ("--reasoning", "--frames-as", "--video-fps", "--structured-output"):
        assert flag in sections["Models that write text:"], flag
    assert "--base-url" in sections["Served models:"]
    assert "--batch-size" in sections["Local checkpoints:"]
    assert "--device" in sections["Local checkpoints:"]
    assert "--limit <int>" in sections["Options:"]


@pytest.mark.parametrize(
    ("command", "sections"),
    [
        ("build", {"Options", "Rare settings"}),
        ("generate", {"Options", "Rare settings", "Related commands"}),
        ("publish submission", {"Arguments", "Options", "Upload"}),
    ],
)
def test_a_command_has_only_sections_of_its_own_settings(command: str, sections: set[str]) -> None:
    shown = invoke(cli.app, [*command.split(), "--help"], terminal_width=200).output
    assert set(re.findall(r"^(\w.*):$", shown, re.MULTILINE)) == sections


def test_quiet_and_no_progress_keep_the_bars_of_libraries_away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Those of "Loading weights" and of downloads, here and in processes that are started from here."""
    from huggingface_hub.utils import are_progress_bars_disabled, enable_progress_bars

    kitchen = ["import-graph", str(tmp_path), "--out", str(tmp_path / "out"), "--from", "pvsg", "--no-progress"]
    for command in (["-q", "show", "tasks"], ["show", "tasks", "--json"], kitchen):
        monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "")
        enable_progress_bars()
        try:
            invoke(cli.app, command)
            assert (are_progress_bars_disabled(), os.environ["HF_HUB_DISABLE_PROGRESS_BARS"]) == (True, "1"), command
        finally:
            enable_progress_bars()


@pytest.mark.parametrize(
    "flags", [["--configs", "relations,grounding"], ["--configs", "relations, ", "--configs", "grounding"]]
)
def test_names_of_configs_have_commas_between_or_a_flag_each(flags: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[object] = []
    monkeypatch.setattr("barista_bench.data.folder.build", lambda *_, configs, **__: built.append(configs))
    invoke(cli.app, ["build", "--source", "release", *flags])
    assert built == [("relations", "grounding")]


def test_a_message_that_quotes_a_sentence_has_one_full_stop_before_its_remedy(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "the server says: Not now.. Fix: wait"
    wanted = "the server says: Not now. Fix: wait"
    assert str(ConfigError(said)) == str(RecordError("the server says", "Not now.", "wait")) == wanted
    echo(said)
    logging.getLogger("barista_bench").warning("%s", said)
    record = caplog.records[-1]
    assert (capsys.readouterr().out, LogFormatter("%(message)s").format(record)) == (f"{wanted}\n", wanted)


def test_the_remedy_of_a_value_that_cannot_be_used_names_the_flag() -> None:
    for name in RunConfig.model_fields:
        with pytest.raises(ConfigError) as caught:
            check_settings(RunConfig, {"data": "x", "out": "x", "model": "oracle", name: object()})
        assert f"Fix: give another --{name.replace('_', '-')}" in str(caught.value)
    with pytest.raises(ConfigError, match=r"out is missing\. Fix: give it as --out, "):
        check_settings(RunConfig, {"data": "x", "model": "oracle"})
    with pytest.raises(ConfigError, match=r"data is missing\. Fix: give it as an argument, "):
        check_settings(RunConfig, {"out": "x", "model": "oracle"})


def test_the_commands_that_the_demo_offers_name_a_folder_whose_name_has_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barista_bench.demo.demo", lambda out, **options: Path(out) / "report.html")
    done = invoke(cli.app, ["demo", "--out", "my demo", "--no-browser"])
    assert done.exit_code == 0, done.output
    commands = [shlex.split(line, comments=True) for line in done.output.splitlines() if line.startswith("  barista-b")]
    assert [sum(word.startswith("my demo/") for word in words) for words in commands] == [2, 2, 2, 3]
