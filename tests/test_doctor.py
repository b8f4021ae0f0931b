"""A newcomer's first output, and the equipment of the machine."""

import configparser
import json
import re
import shlex
import sys
from importlib import metadata
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from barista_bench.cli import commands as cli
from barista_bench.doctor import examine_machine

ROOT = Path(__file__).resolve().parents[1]
invoke = CliRunner().invoke


def test_every_extra_of_users_is_looked_at_by_what_setup_cfg_requires(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"peft": None, "openai": "2.0"}
    installed = metadata.version

    def version(name: str) -> str:
        if name in versions and versions[name] is None:
            raise metadata.PackageNotFoundError(name)
        return versions.get(name) or installed(name)

    monkeypatch.setattr(metadata, "version", version)
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    parts = {item.name: item for item in examine_machine() if item.topic == "Optional parts"}
    assert set(parts) == set(config["options.extras_require"]) - {"dev", "docs"}
    assert (parts["peft"].result, parts["peft"].remedy) == ("missing", "pip install 'barista_bench[peft]'")
    assert "no peft" in parts["peft"].found
    assert "openai 2.0, wanted >=3" in parts["api"].found
    assert (parts["studio"].result, parts["studio"].remedy) == ("ok", None)


def test_a_missing_part_names_its_installation_and_a_login_is_shown_without_its_token(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr("huggingface_hub.get_token", lambda: "hf_of_the_user")
    monkeypatch.chdir(tmp_path)
    shown = invoke(cli.app, ["show", "setup"])
    assert (shown.exit_code, "hf_of" in shown.output) == (0, False)
    assert "logged in" in shown.output
    found = json.loads(invoke(cli.app, ["show", "setup", "--json"]).stdout)
    assert {item["topic"] for item in found} == set(re.findall(r"^(\w.*)$", shown.output, re.MULTILINE))
    assert all((item["result"] == "missing") == bool(item["remedy"]) for item in found)
    (torch,) = (item for item in found if item["name"] == "torch")
    assert torch["remedy"] == "pip install 'barista_bench[run]'"
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    assert "hf auth login" in invoke(cli.app, ["show", "setup"]).output


def test_the_first_output_leads_to_commands_that_exist() -> None:
    shown = invoke(cli.app, [])
    assert shown.exit_code == 0
    commands = [shlex.split(line) for line in re.findall(r"^  barista-bench (.*?) {2,}", shown.output, re.MULTILINE)]
    assert [words[0] for words in commands] == ["demo", "show", "validate", "evaluate"]
    known = get_command(cli.app).commands
    for words in commands:
        command = known.get(" ".join(words[:2])) or known[words[0]]
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options
