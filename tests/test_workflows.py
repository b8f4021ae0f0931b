"""The workflows say what the repository says: targets, versions of Python, pinned actions."""

import configparser
import re
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
