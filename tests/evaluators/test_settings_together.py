"""Settings of a run that meet: early decisions, circular choices, parts of a set, worked examples, other readings."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from barista_bench.core.boxes import DEFAULT_BOX_FORMAT
from barista_bench.core.example import Example
from barista_bench.data.dataset import open_examples
from barista_bench.errors import ConfigError, DataError
from barista_bench.hub.checks import check_results
from barista_bench.reporting.analyses import rank_tier
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.sweep import sweep_configs
from barista_bench.runs.decide import order
from barista_bench.runs.merging import merge
from barista_bench.runs.run_folder import read_run
from barista_bench.runs.score.results import summary_line
from barista_bench.runs.score.scoring import read_scored, score
from tests.evaluators.recorded import barista, recorded_run
from tests.evaluators.test_shots import Listener, ask, listener, one_content
from tests.one_run import run

__all__ = ["listener", "one_content"]


@pytest.fixture
def stopped(six_tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(order, "BLOCK", 8)
    settings = {"task": "referring", "model": "chance", "repetitions": 1, "until": "above=0.9"}
    run(six_tasks, tmp_path / "stopped", **settings)
    folder = tmp_path / "stopped"
    return folder if (folder / "run.json").is_file() else folder / "referring"


def test_circular_choices_are_not_decided_early(six_tasks: Path, tmp_path: Path) -> None:
    settings = {"task": "activity", "model": "chance", "repetitions": 1, "option": ("order=circular",)}
    with pytest.raises(ConfigError, match="whole questions"):
        run(six_tasks, tmp_path / "r", until="above=0.9", **settings)


def test_a_view_is_not_decided_early(six_tasks: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="until and view"):
        run(six_tasks, tmp_path / "r", task="activity", model="chance", view=("reversed",), until="above=0.9")


def test_a_stopped_run_is_not_read_again(stopped: Path) -> None:
    assert score(stopped).results.stopped is not None
    with pytest.raises(DataError, match="think-tags"):
        score(stopped, options={"think_tags": "[A],[/A]"})


def test_merged_folders_stay_stopped(stopped: Path, tmp_path: Path) -> None:
    shutil.copytree(stopped, tmp_path / "copy")
    merge([stopped, tmp_path / "copy"], tmp_path / "merged")
    assert score(tmp_path / "merged").results.stopped == score(stopped).results.stopped


@pytest.mark.parametrize("settings", [{"sweep": ("until=above=0.5",)}, {"sweep": ("limit=1",), "until": "above=0.5"}])
def test_a_sweep_has_no_runs_that_stop_early(tmp_path: Path, settings: dict[str, object]) -> None:
    config = RunConfig(data="d", out=tmp_path, model="chance", **settings)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="leave until out"):
        list(sweep_configs(config))


def test_a_question_that_failed_in_one_rotation_is_asked_again(six_tasks: Path, tmp_path: Path) -> None:
    def answer(example: Example) -> str:
        return "no letter" if example.metadata.get("rotation") else "ANSWER: A"

    circular = {"option": ("order=circular",), "limit": 2}
    first = recorded_run(six_tasks, tmp_path / "first", "activity", answer, **circular)
    settings = {"task": "activity", "model": "chance", "repetitions": 1, **circular}
    run(six_tasks, tmp_path / "again", failed_in=first, **settings)
    part = read_run(tmp_path / "again").data.part
    assert part is not None
    assert part.ids == [each.example_id for each in read_scored(first).examples.examples if "~" not in each.example_id]


def test_fewer_frames_hold_for_a_question_and_for_each_worked_example(
    six_tasks: Path, tmp_path: Path, listener: Listener
) -> None:
    ask(six_tasks, tmp_path / "r", shots=2, frames=1)
    assert listener.box_format == DEFAULT_BOX_FORMAT
    assert {len(request.images) for request in listener.requests} == {3}


@pytest.mark.parametrize(
    ("settings", "reading", "expected"), [({}, {}, 0), ({"shots": 2}, {}, 3), ({}, {"think_tags": "[A],[/A]"}, 3)]
)
def test_worked_examples_and_other_readings_have_no_rank(
    settings: dict[str, object], reading: dict[str, str], expected: int
) -> None:
    model = SimpleNamespace(name="served:x", settings=settings)
    results = SimpleNamespace(model=model, reading=reading, trained_on=0)
    assert rank_tier(SimpleNamespace(results=results)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("settings", [{"max_tokens_total": 9}, {"sweep": ("max_tokens_total=1,2",)}])
def test_a_sweep_has_no_limit_of_one_run(tmp_path: Path, settings: dict[str, object]) -> None:
    config = RunConfig(**{"data": "d", "out": tmp_path, "model": "m", "sweep": ("temperature=0,1",), **settings})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="bound one run"):
        list(sweep_configs(config))


def test_a_dry_run_of_a_sweep_counts_each_run(six_tasks: Path, tmp_path: Path) -> None:
    words = ("run", six_tasks, "--model", "chance", "--task", "activity", "--repetitions", 1, "--out", tmp_path)
    output = barista(*words, "--limit", 3, "--sweep", "order=as_built,circular", "--dry-run").output
    assert "order=as_built" in output
    assert "3 requests for 3 samples" in output
    assert output.count("requests for") == 2


def test_a_stopped_run_says_that_it_is_of_a_part(
    six_tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order, "BLOCK", 4)
    ids = [each.example_id for each in open_examples(six_tasks, "barista", "referring").examples[1:]]
    (tmp_path / "ids.txt").write_text("\n".join(ids))
    settings = {"task": "referring", "model": "chance", "repetitions": 1, "until": "above=0.99"}
    run(six_tasks, tmp_path / "r", example_ids=tmp_path / "ids.txt", **settings)
    results = score(tmp_path / "r").results
    assert results.stopped is not None
    assert f"PARTIAL: {len(ids)} OF {len(ids) + 1} EXAMPLES" in summary_line(results)
    with pytest.raises(DataError, match=r"dataset\.part"):
        check_results(results.model_copy(update={"stopped": None}), "r")
