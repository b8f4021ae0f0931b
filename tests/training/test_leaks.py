"""No training set holds a test video; a run whose checkpoint or adapter has seen its videos says so and has no rank."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.settings import check_settings
from barista_bench.core.training_videos import TrainingVideos, join_without_leaks
from barista_bench.data.folder import build
from barista_bench.data.rows import hash_by_video, video_hashes
from barista_bench.errors import BaristaError, ConfigError, DataError
from barista_bench.hub.checks import check_model
from barista_bench.models.box_formats import box_format_of_checkpoint
from barista_bench.reporting import write_report
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.runner import trained_videos
from barista_bench.runs.run_folder import read_run
from barista_bench.runs.score.scoring import score
from barista_bench.training.exporting import ExportFormat, export_training_set
from tests.one_run import run
from tests.tiny_architectures import make_tiny_model

VIDEOS = [f"v{index}" for index in range(6)]


def split_build(release: Path, folder: Path, test: list[str], rename: str = "") -> Path:
    """The release built with these test videos; with `rename`, all ids begin with it, and the content stays."""
    root = folder / "release"
    for name in VIDEOS:
        shutil.copytree(release / name, root / f"{rename}{name}")
    split = {"train": [rename + name for name in VIDEOS if name not in test], "test": [rename + name for name in test]}
    (folder / "split.json").write_text(json.dumps(split))
    split_file = str(folder / "split.json")
    build(root, folder / "data", configs=("relations",), split_file=split_file, cache=False, progress=False)
    return folder / "data"


@pytest.fixture(scope="module")
def ours(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return split_build(release, tmp_path_factory.mktemp("ours"), ["v4", "v5"])


MIXED = [(["v0"], ""), (["v2", "v4"], ""), (["v3", "v4", "v5"], "take_"), (["v0", "v1", "v2", "v3"], "other_")]
"""Test videos of the other benchmark, at least one of which is ours to train on; and what its ids begin with."""


@pytest.mark.parametrize("form", ["chat", "prompts"])
@pytest.mark.parametrize(("test", "rename"), MIXED)
def test_a_set_that_trains_on_anothers_test_videos_is_refused(
    form: ExportFormat, test: list[str], rename: str, ours: Path, release: Path, tmp_path: Path
) -> None:
    other = split_build(release, tmp_path / "other", test, rename)
    with pytest.raises(DataError, match="training videos are test videos of"):
        export_training_set(ours, tmp_path / "out", form, box_format=BoxFormat(), held_out=[other])
    assert not (tmp_path / "out").exists()
    # Each was exported separately: a model trained on both is refused, too.
    sets = {}
    for name, data in (("ours", ours), ("other", other)):
        export_training_set(data, tmp_path / f"{name}_chats", form, box_format=BoxFormat())
        sets[name] = TrainingVideos.read(tmp_path / f"{name}_chats")
    with pytest.raises(DataError, match="training videos are test videos of"):
        join_without_leaks(sets)


def test_sets_with_one_split_are_joined(ours: Path, release: Path, tmp_path: Path) -> None:
    same = split_build(release, tmp_path / "same", ["v4", "v5"], "kitchen_")
    done = export_training_set(ours, tmp_path / "out", "chat", box_format=BoxFormat(), held_out=[same])
    record = TrainingVideos.read(tmp_path / "out")
    assert done.videos == len(record.videos) == 4
    assert len(record.held_out) == 2
    assert join_without_leaks({"a": record, "b": record}) == record


def test_only_the_training_split_is_exported(ours: Path, tmp_path: Path) -> None:
    for split in ("test", "all"):
        with pytest.raises(ConfigError, match="held out"):
            export_training_set(ours, tmp_path / "out", "chat", split=split, box_format=BoxFormat())


@pytest.mark.parametrize("sha256", [None, "?"])
def test_videos_without_a_hash_are_refused(sha256: str | None, ours: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(ours, tmp_path / "data"))
    path = min((data / "relations").glob("test-*.parquet"))
    rows = pq.read_table(path)
    hashes = pa.array([sha256] * rows.num_rows, pa.string())
    pq.write_table(rows.set_column(rows.column_names.index("video_sha256"), "video_sha256", hashes), path)
    with pytest.raises(DataError, match="no SHA-256 in a row, or two"):
        export_training_set(data, tmp_path / "out", "chat", box_format=BoxFormat())


def test_a_video_with_two_hashes_is_refused() -> None:
    with pytest.raises(DataError, match="'v0' has no SHA-256 in a row, or two"):
        hash_by_video([("v0", "0" * 64), ("v1", "0" * 64), ("v0", "1" * 64)], "data")


def test_a_set_whose_test_split_was_not_fetched_is_refused(ours: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(ours, tmp_path / "data"))
    for path in data.glob("relations/test-*"):
        path.unlink()
    with pytest.raises(DataError, match="the split 'test' of relations is not here"):
        export_training_set(ours, tmp_path / "out", "chat", box_format=BoxFormat(), held_out=[data])


def test_sets_that_write_boxes_differently_are_not_mixed() -> None:
    parts = {name: TrainingVideos(videos=frozenset(), box_format=name) for name in ("xyxy/1000", "yxyx/1000")}
    with pytest.raises(BaristaError, match="boxes are written"):
        join_without_leaks(parts)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return make_tiny_model(tmp_path / "model", "llava")


def adapter_of(model: Path, folder: Path, training: TrainingVideos) -> Path:
    """An adapter of one layer, as it was before training, with the record of its training."""
    peft = pytest.importorskip("peft")
    from transformers import AutoModelForImageTextToText

    wrapped = peft.get_peft_model(
        AutoModelForImageTextToText.from_pretrained(model), peft.LoraConfig(r=2, target_modules=["q_proj"])
    )
    wrapped.save_pretrained(folder)
    training.write(folder)
    return folder


@pytest.mark.full
def test_a_run_on_videos_of_the_training_set_is_marked_and_not_ranked(built: Path, model: Path, tmp_path: Path) -> None:
    trained = frozenset(video_hashes(built)["train"].values())
    adapter = adapter_of(model, tmp_path / "adapter", TrainingVideos(videos=trained, box_format="xyxy/1000"))
    settings = {"model": str(model), "adapter": str(adapter), "temperature": 0, "repetitions": 1, "max_new_tokens": 8}
    for split in ("train", "test"):
        run(built, tmp_path / split, split=split, **settings)
    described = read_run(tmp_path / "train")
    assert described.training_videos == sorted(trained)
    assert set(described.trained_on) <= trained
    assert read_run(tmp_path / "test").trained_on == []
    seen, unseen = score(tmp_path / "train"), score(tmp_path / "test")
    assert seen.results.trained_on == len(described.trained_on) > 0
    with pytest.raises(DataError, match="never ranked"):
        check_model(seen.results, "results.json")
    check_model(unseen.results, "results.json")


@pytest.mark.parametrize("role", ["model", "adapter"])
def test_a_checkpoint_and_an_adapter_are_asked_for_boxes_as_they_were_trained(role: str, tmp_path: Path) -> None:
    TrainingVideos(videos=frozenset({"0" * 64}), box_format="yxyx/100").write(tmp_path)
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        (tmp_path / name).touch()
    named = {"model": f"text_only:{tmp_path}", "adapter": str(tmp_path)}
    config = check_settings(RunConfig, {"data": "d", "out": tmp_path / "out", "model": "oracle", role: named[role]})
    written = box_format_of_checkpoint(str(tmp_path), "qwen2_5_vl")
    assert trained_videos(config, written) == frozenset({"0" * 64})
    with pytest.raises(ConfigError, match="trained to write boxes as yxyx/100"):
        trained_videos(config, BoxFormat())


def test_a_report_shows_a_model_trained_on_the_examples_below_the_ranked_ones(built: Path, tmp_path: Path) -> None:
    """Though its figure is the best."""
    runs = []
    for name, answers, trained_on in (("leaky", "oracle", 3), ("honest", "chance", 0)):
        run(built, tmp_path / name, model=answers, repetitions=1)
        scored = score(tmp_path / name)
        model = scored.results.model.model_copy(update={"name": name})
        runs.append(
            replace(scored, results=scored.results.model_copy(update={"model": model, "trained_on": trained_on}))
        )
    _, markdown = write_report(runs, tmp_path / "report", compare=False)
    text = markdown.read_text()
    assert text.index("honest") < text.index("leaky")
    assert "trained on 3 of its videos: no rank" in text
