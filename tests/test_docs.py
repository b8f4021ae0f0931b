"""README and docs: every Python example runs, every command of ours that they show exists."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from barista_bench import cli

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.slow
def test_the_examples_of_the_readme_run(small_release: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) >= 4
    shutil.copytree(small_release, tmp_path / "kitchen")
    (tmp_path / "metrics").symlink_to(ROOT / "metrics")
    environment = {**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"}
    command = "from barista_bench.cli import main; main()"
    subprocess.run(
        [sys.executable, "-c", command, "build", "--source", "kitchen", "--sampling", "frame_step=20"],
        cwd=tmp_path,
        env=environment,
        check=True,
    )
    program = "\n".join(blocks).replace("[0, 30, 60]", "[0, 30, 39]")  # the test's videos have 40 frames
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "left holds coffee cup" in done.stdout
    assert done.stdout.strip().endswith("0.6666666666666666")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_that_pages_show_exist(page: Path) -> None:
    commands = get_command(cli.app).commands
    for line in re.findall(r"^ {4}barista-bench (.*)$|`barista-bench ([^`]*)`", page.read_text(), re.MULTILINE):
        words = shlex.split((line[0] or line[1]).partition("#")[0])
        if not words or words[0] == "COMMAND":
            continue
        assert words[0] in commands, words
        options = {name for parameter in commands[words[0]].params for name in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options | {"--help"}, words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_pages_name_exist(page: Path) -> None:
    folders = "barista_bench|docs|metrics|scripts|tests|perf|dataset_cards"
    for name in re.findall(rf"`((?:{folders})/[\w./-]*)`", page.read_text()):
        assert (ROOT / name).exists(), name
