"""The command: help that reads well, flags named as keywords, errors in one line."""

import inspect
import json
import logging
import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from barista_bench import __version__
from barista_bench.benchmarks import BENCHMARKS, task_names
from barista_bench.cli import commands as cli
from barista_bench.cli.output import echo
from barista_bench.cli.tree import SECTIONS
from barista_bench.core.settings import check_settings
from barista_bench.errors import ConfigError, RecordError
from barista_bench.files.reading import load_yaml
from barista_bench.files.text_out import LogFormatter
from barista_bench.runs.ask.config import RunConfig

invoke = CliRunner().invoke


COMMANDS = {
    f"{name} {part}".strip(): subcommand.params
    for name, command in typer.main.get_command(cli.app).commands.items()
    for part, subcommand in getattr(command, "commands", {"": command}).items()
}
"""Parameters by command; those of a group as `group command`."""


def _place(path: str) -> tuple[str, str]:
    module, _, name = path.partition(":")
    return f"barista_bench.{module}", name


_TABLE = (Path(__file__).parent / "commands.yaml").read_text()
CALLED = {
    command: ([attrgetter(name)(import_module(module)) for module, name in map(_place, paths)], own)
    for command, (paths, own) in load_yaml(_TABLE, "commands.yaml").items()
}
"""What each command calls, and its flags that are no keyword there."""


def names_in(section: str, text: str) -> list[str]:
    """Names of commands in a section of a help text."""
    (rows,) = re.findall(rf"^{section}:\n((?:  .*\n)+)", text, re.MULTILINE)
    return re.findall(r"^  (\S+(?: \S+)?)  ", rows, re.MULTILINE)


def test_the_overview_names_each_one_word_command_in_the_order_of_use() -> None:
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


def test_every_command_names_the_function_that_it_calls() -> None:
    assert set(CALLED) == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_flag_is_a_keyword_of_the_function_that_the_command_calls(command: str) -> None:
    called, of_the_command_alone = CALLED[command]
    keywords = set().union(*(inspect.signature(function).parameters for function in called))
    assert {parameter.name for parameter in COMMANDS[command]} - keywords == set(of_the_command_alone)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_explained_and_called_as_its_keyword(command: str) -> None:
    shown = invoke(cli.app, [*command.split(), "--help"], terminal_width=200)
    assert shown.exit_code == 0
    for parameter in COMMANDS[command]:
        assert parameter.help.strip(), parameter.name
        if parameter.param_type_name == "option":
            flag = f"--{parameter.name.replace('_', '-')}"
            assert flag in parameter.opts or parameter.opts in (["--format"], ["--from"])
            assert parameter.opts[0] in shown.output


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


def test_every_task_is_listed_with_its_question_answer_and_metric() -> None:
    listed = json.loads(invoke(cli.app, ["show", "tasks", "--json"]).stdout)
    assert [row["task"] for row in listed] == [name for benchmark in BENCHMARKS for name in task_names(benchmark)]
    assert all(row["asked"] and row["answer"] and row["primary"] for row in listed)
    text = invoke(cli.app, ["show", "tasks"]).stdout
    assert all(f"{row['benchmark']}/{row['task']}: " in text and row["primary"] in text for row in listed)


def test_a_terminal_that_lacks_a_character_gets_its_number() -> None:
    prints = "from barista_bench.files.text_out import echo; echo('\\u2212')"
    environment = os.environ | {"PYTHONIOENCODING": "latin-1"}
    done = subprocess.run([sys.executable, "-c", prints], capture_output=True, check=False, env=environment)
    assert (done.returncode, done.stdout) == (0, rb"\u2212" + b"\n"), done.stderr


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


def test_a_folder_that_arrow_cannot_open_in_this_locale_is_warned_of(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "barista_bench", "--version"]
    settings = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"}
    for folder, is_warned in ((tmp_path, False), (tmp_path / "Küche", True)):
        folder.mkdir(exist_ok=True)
        done = subprocess.run(
            command, cwd=folder, env={**settings, "PWD": str(folder)}, capture_output=True, check=True
        )
        assert (b"Fix: set PYTHONUTF8=1" in done.stderr) is is_warned


@pytest.mark.full
def test_a_closed_output_ends_the_command_silently() -> None:
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
def test_a_command_has_only_sections_of_its_settings(command: str, sections: set[str]) -> None:
    shown = invoke(cli.app, [*command.split(), "--help"], terminal_width=200).output
    assert set(re.findall(r"^(\w.*):$", shown, re.MULTILINE)) == sections


def test_quiet_and_no_progress_keep_the_bars_of_libraries_away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The bars of "Loading weights" and of downloads, in this process and in processes that it starts."""
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
