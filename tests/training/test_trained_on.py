"""A run whose adapter has seen its videos says so, and has no rank anywhere."""

from dataclasses import replace
from pathlib import Path

import pytest

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.training_videos import TrainingVideos
from barista_bench.data.rows import video_hashes
from barista_bench.errors import ConfigError, DataError
from barista_bench.hub.checks import check_model
from barista_bench.models.local.loading import box_format_of_checkpoint
from barista_bench.reporting import write_report
from barista_bench.runs.ask.config import RunConfig, checked
from barista_bench.runs.ask.runner import trained_videos
from barista_bench.runs.run_folder import read_run
from barista_bench.runs.score.scoring import score
from tests.one_run import run
from tests.tiny_families import make_tiny_model


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return make_tiny_model(tmp_path / "model", "llava")


def adapter_of(model: Path, folder: Path, training: TrainingVideos) -> Path:
    """An adapter of one layer, as it was before training, which says what it was trained on."""
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
    settings = {"model": str(model), "adapter": str(adapter), "temperature": 0, "runs": 1, "max_new_tokens": 8}
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


def test_a_checkpoint_is_asked_for_boxes_as_it_was_trained(tmp_path: Path) -> None:
    TrainingVideos(videos=frozenset({"0" * 64}), box_format="yxyx/100").write(tmp_path)
    config = checked(RunConfig, {"data": "d", "out": tmp_path / "out", "model": f"text_only:{tmp_path}"})
    written = box_format_of_checkpoint(str(tmp_path), "qwen2_5_vl")
    assert trained_videos(config, written) == frozenset({"0" * 64})
    with pytest.raises(ConfigError, match="trained to write boxes as yxyx/100"):
        trained_videos(config, BoxFormat())


def test_an_adapter_is_asked_for_boxes_as_it_was_trained(tmp_path: Path) -> None:
    TrainingVideos(videos=frozenset(), box_format="yxyx/1000").write(tmp_path)
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        (tmp_path / name).touch()
    config = checked(RunConfig, {"data": "d", "out": tmp_path / "out", "adapter": str(tmp_path)})
    assert trained_videos(config, BoxFormat("yxyx", 1000)) == frozenset()
    with pytest.raises(ConfigError, match="trained to write boxes as yxyx/1000"):
        trained_videos(config, BoxFormat())


def test_a_report_shows_a_model_trained_on_the_examples_below_the_ranked_ones(built: Path, tmp_path: Path) -> None:
    """Though its figure is the best."""
    runs = []
    for name, answers, trained_on in (("leaky", "oracle", 3), ("honest", "chance", 0)):
        run(built, tmp_path / name, model=answers, runs=1)
        scored = score(tmp_path / name)
        model = scored.results.model.model_copy(update={"name": name})
        runs.append(
            replace(scored, results=scored.results.model_copy(update={"model": model, "trained_on": trained_on}))
        )
    _, markdown = write_report(runs, tmp_path / "report", compare=False)
    text = markdown.read_text()
    assert text.index("honest") < text.index("leaky")
    assert "trained on 3 of its videos: no rank" in text
