"""docs/other_graphs.md: its commands run as they stand, on a stand-in of the dataset."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from barista_bench.cli import commands as cli
from barista_bench.scene_graph.release import ReleaseCoverage

PAGE = (Path(__file__).parents[2] / "docs" / "other_graphs.md").read_text(encoding="utf-8")


@pytest.mark.full
def test_the_commands_of_the_page_run(pvsg: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "PVSG").symlink_to(pvsg)
    part = PAGE.partition("## Annotations of other tools")[0]  # test_tables_page.py runs the rest
    commands = re.findall(r"^ {4}barista-bench (.*)$", part, re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        done = CliRunner().invoke(cli.app, [*shlex.split(command), "--no-progress"])
        assert done.exit_code == 0, (command, done.output)
    assert "license: other" in (tmp_path / "grounding" / "README.md").read_text()


def test_the_coverage_that_the_page_shows_can_be_read() -> None:
    (shown,) = re.findall(r"```json\n\"coverage\": (.*?)```", PAGE, re.DOTALL)
    coverage = msgspec.json.decode(shown, type=ReleaseCoverage)
    assert coverage.frames
    assert msgspec.json.decode(shown).keys() == set(coverage.__struct_fields__)
