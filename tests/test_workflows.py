"""The workflows say what the repository says: targets, versions of Python, pinned actions."""

import configparser
import re
import shlex
import subprocess
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / ".github/workflows").glob("*.yml"))}


def test_every_make_that_workflows_run_is_a_target_and_every_action_is_pinned() -> None:
    targets = set(re.findall(r"^([\w/-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for name, text in WORKFLOWS.items():
        for command in re.findall(r"\bmake ([\w/ -]+)$", text, re.MULTILINE):
            assert set(command.split()) <= targets, (name, command)
        used = re.findall(r"uses: ([^\s]+)", text)
        assert all(re.search(r"@v\d+\.\d+\.\d+$", action) or action.startswith("./") for action in used), name
    assert re.findall(r"\bmake ", WORKFLOWS["ci.yml"])


def test_the_versions_of_python_that_are_tested_are_those_that_the_package_names() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    named = re.findall(r"Python :: (3\.\d+)", config["metadata"]["classifiers"])
    assert yaml.safe_load(WORKFLOWS["ci.yml"])["jobs"]["tests"]["strategy"]["matrix"]["python"] == named
    assert config["options"]["python_requires"] == f">={named[0]}"


def test_containers_install_what_setup_cfg_offers() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    for file in (ROOT / "containers").glob("*.Dockerfile"):
        text = file.read_text(encoding="utf-8")
        assert re.search(r"^FROM \S+:\d+\.\d+\.\d+-", text, re.MULTILINE), "the image is not pinned"
        (extras,) = re.findall(r"'\.\[(.+?)\]'", text)
        assert set(extras.split(",")) <= set(config["options.extras_require"])


def test_make_works_in_a_folder_whose_name_has_spaces(tmp_path: Path) -> None:
    folder = tmp_path / "a clone"
    for name in (".venv/installed", "node_modules/installed"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).touch()
    for name in ("Makefile", "setup.cfg", "pyproject.toml", "constraints.txt", "package.json"):
        (folder / name).symlink_to(ROOT / name)
    command = ["make", "--dry-run", "--old-file=.venv/installed", "--old-file=node_modules/installed"]
    targets = ["run", "test", "test-full", "docs", "dist", "fidelity"]
    done = subprocess.run([*command, *targets], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.replace("\\\n", " ").splitlines()
    named = [line for line in printed if "a clone" in line and "Entering" not in line]
    assert len(named) >= 4
    assert all(sum("a clone" in word for word in shlex.split(line)) == line.count("a clone") for line in named), named
