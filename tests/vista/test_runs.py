"""The whole way on the small release: build, ask, score, report."""

import shutil
from pathlib import Path

import pytest

from barista_bench.api import evaluate
from barista_bench.benchmarks.vista import TASKS, counts, open_release
from barista_bench.core.example import Status
from barista_bench.data.folder import build
from barista_bench.reporting import write_report
from barista_bench.stats import breakdown, breakdown_keys
from tests.conftest import MadeOnce


@pytest.fixture(scope="module")
def dataset(mini: Path, made_once: MadeOnce) -> Path:
    return made_once(
        "built/vista", lambda out: build(mini, out, benchmark="vista", sampling={"frames": 4}, cache=False)
    )


def test_every_environment_is_a_config_with_a_row_for_every_entry(mini: Path, dataset: Path) -> None:
    from datasets import load_dataset

    rows = {task.name: load_dataset(str(dataset), task.name, split="test") for task in TASKS}
    table = counts(open_release(mini), ["environment"])
    entries = dict(zip(table["environment"], table["entries"], strict=True))
    assert {name: len(examples) for name, examples in rows.items()} == {**entries, "all": sum(entries.values())}
    row = rows["virtual_home"][0]
    assert row["video_id"].startswith("alfred/")
    assert len(row["images"]) == 4
    assert {"problem_set", "level", "type", "environment", "sequence_length"} <= row["metadata"].keys()
    assert len(row["inputs"]["labels"]) == len(row["inputs"]["descriptions"]) > 1
    assert set(row["target"]["labels"]) <= set(row["inputs"]["labels"])


@pytest.mark.full
def test_an_encoder_answers_in_one_step(dataset: Path, tmp_path: Path) -> None:
    from barista_bench.models.tiny import make_tiny_clip

    clip = make_tiny_clip(tmp_path / "clip")
    evaluation = evaluate(
        dataset, f"dual:{clip}", benchmark="vista", task="all", runs=1, out=tmp_path / "run", progress=False
    )
    (run,) = evaluation.runs
    assert all(sample.record.status is Status.OK for sample in run.samples)
    assert all(sample.record.earlier is None for sample in run.samples)
    figures = run.results.figures
    assert 0 <= figures["macro_f1"].mean < 1
    assert figures["macro_f1"].mean == figures["macro_f1_strict"].mean


@pytest.mark.full
def test_a_generative_model_is_asked_in_two_conversations_or_in_one(dataset: Path, tmp_path: Path) -> None:
    from barista_bench.models.tiny import make_tiny_model

    tiny = make_tiny_model(tmp_path / "tiny")
    runs = {}
    for option in ("two", "single"):
        evaluation = evaluate(
            dataset,
            str(tiny),
            benchmark="vista",
            task="minecraft",
            runs=1,
            limit=6,
            max_new_tokens=8,
            option=[f"conversation={option}"],
            out=tmp_path / option,
            progress=False,
        )
        (runs[option],) = evaluation.runs
    assert all(len(sample.record.earlier or ()) == 1 for sample in runs["two"].samples)
    assert all(sample.record.earlier is None for sample in runs["single"].samples)
    # Random weights write nothing that can be read: counted as wrong, and not left out.
    assert runs["two"].results.figures["macro_f1"].mean == 0.0
    assert runs["two"].results.figures["coverage"].mean == 0.0
    assert runs["two"].results.options["conversation"] == "two"


def test_absent_videos_are_counted_and_never_scored(mini: Path, tmp_path: Path) -> None:
    release = shutil.copytree(mini, tmp_path / "release")
    for path in (release / "alfred/level_3/permutation").rglob("take_2.mp4"):
        path.unlink()
    built = build(
        release, tmp_path / "vista", benchmark="vista", configs=["virtual_home"], sampling={"frames": 2}, cache=False
    )
    (config,) = built.configs
    entries = sum(
        len(problem_set.videos)
        for problem_set in open_release(mini).sets.values()
        if problem_set.environment == "virtual_home"
    )
    assert sum(config.rows.values()) == entries - 1
    assert len(config.skipped) == 1
    assert "the video is absent" in config.skipped[0]
    evaluation = evaluate(
        built.folder, "oracle", benchmark="vista", task="virtual_home", runs=1, out=tmp_path / "run", progress=False
    )
    (details,) = evaluation.runs[0].results.details
    assert (details["problem_sets"], details["incomplete_problem_sets"]) == (4, 1)
    assert (details["videos"], details["macro_f1"]) == (entries - 1, 1.0)


def test_a_report_shows_the_counterparts_of_the_papers_figures(dataset: Path, tmp_path: Path) -> None:
    runs = [
        run
        for model in ("oracle", "chance")
        for run in evaluate(
            dataset, model, benchmark="vista", task="all", runs=1, out=tmp_path / model, progress=False
        ).runs
    ]
    write_report(runs, tmp_path / "report", compare=False, tables=True)
    text = (tmp_path / "report" / "report.md").read_text()
    assert "Macro-F1 by environment, level and type (figures 3, 4 and 13 to 15)" in text
    (table,) = (tmp_path / "report/report_tables").glob("paper_*macro_f1_by_environment*.csv")
    assert "majority baseline" in table.read_text()
    assert "Figure 4: permutation problem sets" in text


def test_analysis_groups_by_what_a_problem_set_has_in_common_alone(dataset: Path, tmp_path: Path) -> None:
    """The videos of one label, standardised among themselves, could not be told apart by an oracle."""
    (run,) = evaluate(dataset, "oracle", benchmark="vista", task="all", runs=1, out=tmp_path, progress=False).runs
    keys = set(breakdown_keys(run))
    assert {"environment", "level", "type", "problem_set", "release_type", "set_videos"} <= keys
    assert not {"label", "fitting_descriptions", "shared_prefix", "frame_count"} & keys
    for key in keys:
        assert {row.figure.mean for row in breakdown(run, key, resamples=0)} == {1.0}, key
