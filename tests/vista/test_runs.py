"""The whole way on the small release: build, ask, score, report."""

from collections import Counter
from pathlib import Path

import pytest

from barista_bench.api import evaluate
from barista_bench.benchmarks.vista import TASKS
from barista_bench.benchmarks.vista.release import open_release
from barista_bench.data.folder import build
from barista_bench.reporting import write_report
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.opening import open_questions
from barista_bench.stats import breakdown, breakdown_keys
from tests.conftest import MadeOnce


@pytest.fixture(scope="module")
def dataset(mini: Path, made_once: MadeOnce) -> Path:
    settings = {"benchmark": "vista", "sampling": {"frames": 4}, "cache": False}
    return made_once("built/vista", lambda out: build(mini, out, **settings))


def test_every_environment_is_a_config_with_a_row_for_every_entry(mini: Path, dataset: Path) -> None:
    from datasets import load_dataset

    rows = {task.name: load_dataset(str(dataset), task.name, split="test") for task in TASKS}
    entries: Counter[str] = Counter()
    for problem_set in open_release(mini).sets.values():
        entries[problem_set.environment] += len(problem_set.videos)
    assert {name: len(examples) for name, examples in rows.items()} == {**entries, "all": sum(entries.values())}
    row = rows["virtual_home"][0]
    assert row["video_id"].startswith("alfred/")
    assert len(row["images"]) == 4
    assert {"problem_set", "level", "type", "environment", "sequence_length"} <= row["metadata"].keys()
    assert len(row["inputs"]["labels"]) == len(row["inputs"]["descriptions"]) > 1
    assert set(row["target"]["labels"]) <= set(row["inputs"]["labels"])


@pytest.mark.parametrize(
    ("model", "option", "shown"),
    [("dual:x", (), 32), ("text_only:dual:x", (), 32), ("dual:x", ("shown_frames=8",), 8), ("served:x", (), 16)],
)
def test_a_dual_encoder_sees_32_frames_unless_told_otherwise(
    dataset: Path, tmp_path: Path, model: str, option: tuple[str, ...], shown: int
) -> None:
    config = RunConfig(data=str(dataset), out=tmp_path, benchmark="vista", task=["all"], model=model, option=option)
    (opened,) = open_questions(config)
    assert opened.task.chosen["shown_frames"] == shown


def test_a_report_shows_the_counterparts_of_the_papers_metrics(dataset: Path, tmp_path: Path) -> None:
    settings = {"benchmark": "vista", "task": "all", "repetitions": 1, "progress": False}
    models = ("oracle", "chance")
    runs = [run for model in models for run in evaluate(dataset, model, out=tmp_path / model, **settings).runs]
    write_report(runs, tmp_path / "report", compare=False, tables=True)
    text = (tmp_path / "report" / "report.md").read_text()
    assert "Macro-F1 by environment, level and type (figures 3, 4 and 13 to 15)" in text
    (table,) = (tmp_path / "report/report_tables").glob("paper_*macro_f1_by_environment*.csv")
    assert "majority baseline" in table.read_text()
    assert "Figure 4: permutation problem sets" in text


def test_analysis_groups_only_by_properties_that_a_problem_set_shares(dataset: Path, tmp_path: Path) -> None:
    """The videos of one label, standardised among themselves, could not be told apart by an oracle."""
    (run,) = evaluate(
        dataset, "oracle", benchmark="vista", task="all", repetitions=1, out=tmp_path, progress=False
    ).runs
    keys = set(breakdown_keys(run))
    assert {"environment", "level", "type", "problem_set", "release_type", "set_videos"} <= keys
    assert not {"label", "fitting_descriptions", "shared_prefix", "frame_count"} & keys
    for key in keys:
        assert {row.metric.mean for row in breakdown(run, key, intervals=False)} == {1.0}, key
