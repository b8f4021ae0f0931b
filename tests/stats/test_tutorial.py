"""docs/tutorial.md runs from top to bottom, as a reader would run it."""

import re
import runpy
from pathlib import Path

import pytest

from barista_bench.data.folder import build
from tests.six_tasks import write_videos

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"


@pytest.mark.full
def test_the_tutorial_runs_and_shows_the_results_that_it_describes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sampling = {"frame_step": 20, "grounding": {"fraction": 1.0}, "activity": {"frames": 4}}
    write_videos(tmp_path / "release")
    build(
        tmp_path / "release",
        tmp_path / "barista",
        configs=["grounding", "relations", "activity"],
        sampling=sampling,
        cache=False,
    )
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 6
    Path("tutorial.py").write_text("\n".join(blocks), encoding="utf-8")
    runpy.run_path("tutorial.py")
    written = capsys.readouterr().out
    for shown in ("micro_f1", "effect_size", "preparation", "missed", "grounding -> relations: odds ratio"):
        assert shown in written, written
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"chance", "oracle", "prior"}
