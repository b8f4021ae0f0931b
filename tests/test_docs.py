"""README and docs: every Python example runs, every command of ours that they show exists."""

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from typer.main import get_command

from barista_bench.benchmarks import BENCHMARKS
from barista_bench.cli import commands as cli
from tests.conftest import Program
from tests.folders import content
from tests.hub_standin import HubStandIn

COMMANDS = get_command(cli.app).commands
ROOT = Path(__file__).resolve().parents[1]
SHOWN = {
    "from_python.md": ("left holds coffee cup", "0.6666666666666666"),
    "running.md": (" 0 failures",),
    "diagnosis.md": ("Why it fails", "chance misses"),
}
"""What pages must print whose examples run here; other pages have tests of their own."""
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


EXAMPLES = {page: re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL) for page in PAGES}


@pytest.fixture(scope="module")
def workplace(small_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a reader of the pages has it: a kitchen and the dataset built from it."""
    folder = tmp_path_factory.mktemp("workplace")
    shutil.copytree(small_release, folder / "kitchen")
    (folder / "metrics").symlink_to(ROOT / "metrics")
    command = "from barista_bench.cli import main; main()"
    outcome([sys.executable, "-c", command, "build", "--source", "kitchen", "--sampling", "frame_step=20"], folder)
    return folder


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "HF_HOME": str(folder / "home"), "HF_HUB_OFFLINE": "1"}


def outcome(command: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command that succeeds in a folder, with its output."""
    env = {**environment(folder), **variables}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done


@pytest.mark.full
@pytest.mark.parametrize("page", [page for page in PAGES if page.name in SHOWN], ids=lambda page: page.name)
def test_the_examples_of_a_page_run(page: Path, workplace: Path) -> None:
    program = "\n".join(EXAMPLES[page]).replace("[0, 30, 60]", "[0, 30, 39]")  # the test's videos have 40 frames
    done = outcome([sys.executable, "-W", "ignore", "-c", program], workplace)
    for shown in SHOWN[page.name]:
        assert shown in done.stdout


@pytest.mark.full
@pytest.mark.parametrize("page", ["your_own_model.md", "paper_tables.md", "new_task.md"])
def test_the_scripts_of_a_tutorial_run_and_end_in_a_report(page: str, write_program: Program, tmp_path: Path) -> None:
    done = run_scripts(page, write_program, tmp_path)
    assert (tmp_path / "report" / "report.html").stat().st_size > 10_000
    assert "error" not in done.stderr


@pytest.mark.full
def test_the_metric_of_the_page_on_plug_ins_is_installed_and_loaded_by_its_name(
    write_program: Program, tmp_path: Path
) -> None:
    assert "{'colour_named': 0.5}" in run_scripts("plugins.md", write_program, tmp_path).stdout


def run_scripts(page: str, write_program: Program, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """All scripts of a page in one folder; their installations are in it, too."""
    scripts = re.findall(r"```bash\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    write_program(tmp_path / "bin" / "barista-bench", module="barista_bench.cli")
    write_program(tmp_path / "bin" / "python")
    offline = f"--quiet --no-deps --no-build-isolation --no-index --target '{tmp_path / 'site'}'"
    pip = tmp_path / "bin" / "pip"  # beside this environment, not into it
    pip.write_text(f'#!/bin/sh\nexec "{sys.executable}" -W ignore -m pip "$@" {offline}\n')
    pip.chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    command = ["bash", "-e", "-u", "-c", "\n".join(scripts)]
    return outcome(command, tmp_path, PATH=path, PYTHONPATH=str(tmp_path / "site"))


@pytest.mark.full
def test_a_release_is_fetched_validated_and_built_by_the_lines_of_the_page(
    small_release: Path, hub: HubStandIn, tmp_path: Path
) -> None:
    """A Hub on this machine serves only data sets: the lines of the model are left out."""
    hub.commit("ramblr/BARISTA", {"README.md": b"# card", **content(small_release)})
    text = (ROOT / "docs" / "datasets.md").read_text(encoding="utf-8")
    fetch, use = re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
    lines = [line for line in (fetch + use).splitlines() if "Qwen" not in line]
    assert len(lines) == 4
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = ["bash", "-e", "-c", "\n".join(lines)]
    outcome(command, tmp_path, HF_HUB_OFFLINE="0", HF_ENDPOINT=hub.endpoint, PATH=programs)
    assert (tmp_path / "data" / "barista" / "frozen" / "grounding.jsonl").stat().st_size


SRUN = """#!/bin/sh
for rank in 0 1; do
    SLURM_STEP_ID=0 SLURM_NTASKS=2 SLURM_PROCID=$rank SLURM_LOCALID=$rank "$@" & started="$started $!"
done
for process in $started; do wait $process || exit 1; done
"""
"""A stand-in: a step of two tasks on this machine."""


@pytest.mark.full
def test_the_batch_file_for_slurm_runs_in_two_shares_and_ends_in_a_report(
    workplace: Path, write_program: Program, tmp_path: Path
) -> None:
    text = (ROOT / "docs" / "many_machines.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```bash\n(#!/bin/bash\n.*?)```", text, re.DOTALL)
    script = script.replace("/shared/models/Qwen3-VL-8B-Instruct", "chance").replace("/shared", str(tmp_path))
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "activate").write_text(f"PATH='{programs}':$PATH\n", encoding="utf-8")
    (programs / "srun").write_text(SRUN, encoding="utf-8")
    (programs / "srun").chmod(0o755)
    write_program(programs / "barista-bench", module="barista_bench.cli")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "barista").symlink_to(workplace / "barista")
    outcome(["bash", "-c", script], tmp_path)
    shares = sorted((tmp_path / "runs" / "qwen" / "grounding").glob("samples*.jsonl"))
    assert len(shares) == 2
    assert all(share.stat().st_size for share in shares)
    assert (tmp_path / "runs" / "qwen-report" / "report.html").is_file()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_files_that_pages_name_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for line in re.findall(r"^ {4}barista-bench (.*)$|`barista-bench ([^`]*)`", text, re.MULTILINE):
        words = shlex.split((line[0] or line[1]).partition("#")[0])
        if not words or words[0] == "COMMAND":
            continue
        command = COMMANDS.get(" ".join(words[:2])) or COMMANDS.get(words[0])
        assert command, words
        if subcommands := getattr(command, "commands", None):
            command = subcommands[words[1]]
        options = {name for parameter in command.params for name in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options | {"--help"}, words
    folders = "barista_bench|docs|metrics|scripts|tests|perf|dataset_cards"
    for name in re.findall(rf"`((?:{folders})/[\w./-]*)`", text):
        assert (ROOT / name).exists(), name


def test_every_promise_names_tests_that_exist() -> None:
    text = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| when")]
    assert len(rows) > 30
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", row.split(" | ")[-1])
        assert named, row
        for file, test in named:
            assert f"\ndef {test}(" in (ROOT / file).read_text(encoding="utf-8"), test


def test_every_argument_that_a_docstring_tells_of_is_one() -> None:
    for path in [*(ROOT / "barista_bench").rglob("*.py"), *(ROOT / "metrics").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "    Args:\n" in text else ():
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            told = re.search(r"^Args:\n((?: {4}.*\n?|\n)+)", ast.get_docstring(node) or "", re.MULTILINE)
            if not told:
                continue
            names = re.findall(r"^ {4}(\w[\w, ]*):", told[1], re.MULTILINE)
            parts = ast.walk(
                node if isinstance(node, ast.ClassDef) else node.args
            )  # a class: its fields and properties
            there = {vars(part).get(key) for part in parts for key in ("arg", "id", "attr", "name")}
            assert {name for several in names for name in several.split(", ")} <= there, (path, node.name)


def test_the_trail_of_the_design_leads_to_files_that_define_its_names() -> None:
    """A name beside a file (`core/boxes.py`: `BoxFormat`, or `Task.frame_times` (`core/task.py`)) is defined there."""
    folders = (ROOT / "barista_bench", ROOT / "tests")
    files = [ROOT / "setup.cfg", *(path for folder in folders for path in folder.rglob("*") if path.is_file())]
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8").partition("| to change | look in |")[2]
    rows = [row.split(" | ", 1)[1] for row in text.partition("\n\n")[0].splitlines()[2:]]
    defined = 0
    for row in rows:
        for name in re.findall(r"`([\w/]+\.\w+)`", row):
            if Path(name).suffix in {".py", ".js", ".ts", ".yaml", ".cfg"}:
                assert [path for path in files if f"/{path}".endswith(f"/{name}")], (name, row)
        places = [*re.findall(r"`([\w/]+\.py)`\*?(?: \(|: )((?:`[\w.]+`(?:, )?)+)", row)]
        places += [(file, name) for name, file in re.findall(r"(`[\w.]+`) \(`([\w/]+\.py)`\)", row)]
        for file, names in places:
            (source,) = (
                path.read_text(encoding="utf-8") for path in files if f"/{path}".endswith(f"barista_bench/{file}")
            )
            for name in re.findall(r"(\w+)`", names):
                assert re.search(rf"^ *((async )?def|class) {name}\b|^ *{name}\b.* = ", source, re.MULTILINE), (
                    file,
                    name,
                )
                defined += 1
    assert len(rows) > 20
    assert defined > 10


def test_the_heads_of_the_modules_with_a_star_name_only_what_exists() -> None:
    heads = re.findall(r"`([\w/]+\.py)`\*", (ROOT / "docs" / "design.md").read_text(encoding="utf-8"))
    modules = [path for path in (ROOT / "barista_bench").rglob("*") if path.suffix in {".py", ".js"}]
    files = [
        ROOT / "setup.cfg",
        *modules,
        *(path for folder in ("metrics", "tests") for path in (ROOT / folder).rglob("*.py")),
    ]
    texts = [path.read_text(encoding="utf-8") for path in modules]
    code = [re.sub('""".*?"""', "", text, flags=re.DOTALL) for text in texts]
    known = {"LEVEL", *re.findall(r"\w+", "\n".join(code))}  # LEVEL is a placeholder
    assert len(heads) > 10
    for head in heads:
        said = ast.get_docstring(ast.parse((ROOT / "barista_bench" / head).read_text(encoding="utf-8"))) or ""
        for name in re.findall(r"`([\w./]+)`", said):
            if name.endswith((".py", ".js", ".cfg")):
                assert [path for path in files if f"/{path}".endswith(f"/{name}")], (head, name)
            elif "/" not in name:
                assert {*name.split(".")} <= known, (head, name)


def test_each_member_that_a_reference_page_lists_exists() -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference").glob("*.md"))
    listed = re.findall(r"^::: (\S+)\n(?: .*\n)*? +members: \[(.*)\]$", pages, re.MULTILINE)
    assert listed
    for module, names in listed:
        assert not [name for name in names.split(", ") if not hasattr(import_module(module), name)], module


def test_every_option_of_a_task_is_documented() -> None:
    text = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    tasks = [task for benchmark in BENCHMARKS.values() for task in benchmark.tasks]
    declared = {(name, option.changes) for task in tasks for name, option in task.options.items()}
    assert declared
    for name, changes in declared:
        rows = [line for line in text.splitlines() if line.startswith("| ") and f" `{name}` (" in line]
        assert len([row for row in rows if row.endswith(f"| {changes} |")]) == 1, (name, changes)


def test_the_frames_of_every_task_are_documented_as_they_are() -> None:
    text = (ROOT / "docs" / "datasets.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+ / [^|]+) \| ([^|]+) \|", text, re.MULTILINE)
    for benchmark in BENCHMARKS.values():
        for task in benchmark.tasks:
            named = re.compile(rf"{benchmark.name} / ([\w, ]*\b{task.name}\b|all tasks)")
            (said,) = (settings for tasks, settings in rows if named.search(tasks))
            names = [name for name in ("frames", "rate", "max_frames") if hasattr(task.sampling, name)]
            settings = ", ".join(f"`{name}={getattr(task.sampling, name)}`" for name in names)
            assert said == (settings or "none"), task
