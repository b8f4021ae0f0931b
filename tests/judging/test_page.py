"""docs/judging.md: its Python examples run, and its rubric is one."""

import contextlib
import io
import re
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from barista_bench.benchmarks import get_task
from barista_bench.judging.rubric import load_rubric
from tests.judging.test_injection import ATTACKS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "judging.md").read_text()


def test_the_python_examples_run(make_run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    make_run("temporal_vqa").rename(tmp_path / "runs" / "mine" / "temporal_vqa")
    monkeypatch.chdir(tmp_path)
    said = io.StringIO()
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 3
    with contextlib.redirect_stdout(said):
        for block in blocks:
            (tmp_path / "block.py").write_text(block)
            runpy.run_path(str(tmp_path / "block.py"))
    lines = said.getvalue().splitlines()
    assert lines[0].endswith(" 24")
    assert lines[1:4] == [
        "JudgeVerdict(score=7, reason='wrong colour')",
        "score is 11, not from 0 to 10",
        "not JSON: Expecting value",
    ]
    assert lines[4].startswith("WeightedScore(score=7.333333")


def test_the_rubric_of_the_page_is_one(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "rubric.yaml").write_text(text)
    assert load_rubric(get_task("barista", "referring"), tmp_path / "rubric.yaml").names == ("brevity",)


def test_the_number_of_attacks_is_as_the_page_says() -> None:
    assert f"holds {len(set(ATTACKS))} attacks" in PAGE
