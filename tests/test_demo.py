"""`barista-bench demo`: the whole way from nothing to a report, from recorded answers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from barista_bench import demo
from barista_bench.api import evaluate, load_results
from barista_bench.cli.commands import app
from barista_bench.errors import DataError
from barista_bench.models.predictions_file import FORMAT

SMALL = {"VIDEOS": 1, "WIDTH": 128, "HEIGHT": 72, "SAMPLING": {"limit": 2}}
WITHOUT_TORCH = """
import importlib.util, sys, webbrowser
from importlib.abc import MetaPathFinder
from pathlib import Path

ABSENT = {"torch", "transformers", "accelerate", "matplotlib"}

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
webbrowser.open = lambda address: print("opened", address) is None
from barista_bench import demo
from barista_bench.cli import main
vars(demo).update({SMALL}, HASHES=Path(sys.argv.pop()))
main()
"""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """A kitchen of one small video with its own answers, made by `oracle`."""
    for name, value in SMALL.items():
        monkeypatch.setattr(demo, name, value)
    monkeypatch.setattr(demo, "HASHES", tmp_path / "answers" / "examples.json")
    hashes = demo.make_examples(tmp_path / "first")
    demo.HASHES.parent.mkdir()
    demo.HASHES.write_text(json.dumps(hashes))
    samples = evaluate(tmp_path / "first" / "data", "oracle", out=tmp_path / "told", **demo.SETTINGS).samples
    for model in demo.RECORDED:
        header = {"format": FORMAT, "box_format": "xyxy/1000", "model": model.rpartition(":")[2]}
        rows = [{"example_id": s.example_id, "answer": s.text} for s in samples.itertuples()]
        demo.answers_file(model).write_text("\n".join(map(json.dumps, [header, *rows])))
    return hashes


def test_a_browser_opens_the_report_unless_the_caller_wants_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(demo, "demo", lambda out, **_: out / "report.html")
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) is None)
    for flags in (["--no-browser"], []):
        assert CliRunner().invoke(app, ["demo", "--out", str(tmp_path), *flags]).exit_code == 0
    assert opened == [(tmp_path / "report.html").as_uri()]


@pytest.mark.full
def test_the_command_makes_a_report_of_recorded_and_computed_models_without_torch(
    small: dict[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "demo"
    code = WITHOUT_TORCH.replace("{SMALL}", repr(SMALL))
    arguments = ["demo", "--out", str(out), "--no-progress", str(demo.HASHES)]
    shown = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "USE_TORCH": "0"},  # so that `datasets` does not look for it
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr
    assert "pip install 'barista_bench[run]'" in shown.stdout
    assert f"opened {(out / 'report/report.html').as_uri()}" in shown.stdout
    metrics = load_results(out / "runs").to_frame().query("primary")
    assert set(metrics["model"]) == {*demo.RECORDED, *demo.COMPUTED}
    assert set(metrics["task"]) == set(small)


@pytest.mark.full
def test_answers_to_other_examples_are_refused_with_a_remedy(small: dict[str, str], tmp_path: Path) -> None:
    demo.HASHES.write_text(json.dumps({**small, "grounding": "0" * 64}))
    with pytest.raises(DataError, match=r"other examples of grounding\. Fix: run scripts/record_demo\.py"):
        demo.demo(tmp_path / "demo")
    assert not (tmp_path / "demo/runs").exists()


@pytest.mark.full
@pytest.mark.timeout(900)
def test_the_recorded_answers_equal_the_models_answers_today(tmp_path: Path) -> None:
    """The first answers to each task: what changes pixels, prompts, processors or weights changes most of them.

    One in ten may differ: in long answers other batches and other processors decide a tie otherwise.
    """
    remedy = "run scripts/record_demo.py"
    assert demo.make_examples(tmp_path) == json.loads(demo.HASHES.read_text()), remedy
    for model in demo.RECORDED:
        both = []
        for name in (model, demo.recorded_model(model)):
            out = tmp_path / f"runs_{len(both)}" / model.replace(":", "-")
            both.append(evaluate(tmp_path / "data", name, out=out, limit=4, **demo.SETTINGS).samples)
        asked, recorded = both
        assert list(asked["example_id"]) == list(recorded["example_id"])
        assert (asked["text"] == recorded["text"]).mean() > 0.9, f"{model}: {remedy}"
