"""Prompts are data: our wording by default, any other set from a file or a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from barista_bench.benchmarks import BENCHMARKS
from barista_bench.errors import ConfigError
from barista_bench.prompt_sets import fill, load_prompts

GOOD = "version: 3\nsystem: Look.\nuser: 'Find {what}'\n"


def test_every_task_has_a_wording_of_its_own() -> None:
    for benchmark in BENCHMARKS.values():
        for task in benchmark.tasks:
            prompts = task().prompts
            assert prompts.version >= 1
            assert prompts.system


def test_a_set_is_read_from_a_file_or_a_folder(tmp_path: Path) -> None:
    (tmp_path / "relations.yaml").write_text(GOOD)
    loaded = load_prompts(tmp_path, "relations")
    assert loaded == load_prompts(tmp_path / "relations.yaml", "anything")
    assert (loaded.version, loaded.fill(what="{cups}")) == (3, ("Look.", "Find {cups}"))


def test_values_are_never_filled_again() -> None:
    assert fill("{a}{b}{a} {c}", {"a": "{b}", "b": "x"}) == "{b}x{b} {c}"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("version: 1\nsystem: a\n", "Remedy: give exactly"),
        (GOOD + "more: 1\n", "Remedy: give exactly"),
        ("- a\n", "has list"),
        ("version: one\nsystem: a\nuser: b\n", "version is str"),
        ("version: 1\nsystem: 2\nuser: b\n", "system is int"),
        ("version: [\n", "no YAML"),
        ("version: true\nsystem: a\nuser: b\n", "version is bool"),
        ("version: 2026-13-45\nsystem: a\nuser: b\n", "no YAML"),
        ("version: 1\nsystem: &a x\nuser: *a\n", "alias"),
        ("[" * 3000, "no YAML"),
        ("!!python/object/apply:os.system ['true']\n", "no YAML"),
        ("x" * (2**20 + 1), "larger than"),
    ],
)
def test_a_bad_prompt_file_is_refused(tmp_path: Path, content: str, what: str) -> None:
    (tmp_path / "p.yaml").write_text(content)
    with pytest.raises(ConfigError, match=what):
        load_prompts(tmp_path / "p.yaml", "relations")


def test_a_missing_prompt_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"relations\.yaml: no prompt file"):
        load_prompts(tmp_path, "relations")
