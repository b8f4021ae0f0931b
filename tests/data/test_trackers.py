"""What goes to experiment trackers. `tests/integrations/test_trackers.py` reads it back from them."""

import base64
import io
import json
import sys
import zlib
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from barista_bench.benchmarks.barista.grounding import Grounding
from barista_bench.cli import commands as cli
from barista_bench.core.display import Overlay
from barista_bench.core.example import Example, Prediction
from barista_bench.core.task import Task
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.data.loaded_example import LoadedExample
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.text_out import shared_name
from barista_bench.interchange import trackers
from barista_bench.interchange.fiftyone_dataset import write_fiftyone
from barista_bench.interchange.trackers import log_results, logged_metrics, logged_settings
from barista_bench.runs.score.scoring import ScoredRun, score
from barista_bench.scene_graph.masks import encode_mask
from tests.one_run import run


@pytest.fixture
def scored(six_frozen: Path, tmp_path: Path) -> ScoredRun:
    run(six_frozen, tmp_path / "run", task="grounding", model="chance", repetitions=2, limit=3)
    return score(tmp_path / "run")


def test_metrics_settings_and_coverage_are_logged_and_no_texts(scored: ScoredRun) -> None:
    metrics, settings = logged_metrics(scored.results), logged_settings(scored.results)
    of_table = scored.results.metrics["map"]
    assert (metrics["map"], metrics["map/low"], metrics["map/std"]) == (of_table.mean, of_table.low, of_table.std)
    assert (metrics["samples/expected"], metrics["samples/answered"]) == (6, 6)
    assert {"task": "grounding", "model": "chance", "temperature": 0.7, "repetitions": 2}.items() <= settings.items()
    written = json.dumps([metrics, settings])
    assert scored.results.dataset.content_hash in written
    for sample in scored.samples:
        assert sample.record.text not in written
        assert sample.example.example_id not in written


def test_a_local_model_has_the_last_part_of_its_path_as_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("checkpoints/qwen").mkdir(parents=True)
    paths = ("/home/me/checkpoints/qwen", "checkpoints/qwen", "first_frame:~/qwen", "served:/models/qwen")
    assert [shared_name(path) for path in paths] == ["qwen", "qwen", "first_frame:qwen", "served:qwen"]
    for name in ("org/qwen", "text_only:org/qwen", "served:host/org/qwen", "served:qwen:7b", "chance"):
        assert shared_name(name) == name


def test_secrets_of_a_served_model_stay_here_and_folders_are_named_by_their_last_part(scored: ScoredRun) -> None:
    """Neither the address of its server, nor the user's headers to it."""
    private = {"base_url": "https://gpu7.inner.example/v1", "extra_body": '{"user": "ada"}', "jpeg_quality": 80}
    scored.results.model.settings.update(private)
    scored.results.changed_options["encoder"] = "/home/me/mpnet"
    logged = logged_settings(scored.results)
    assert (logged["jpeg_quality"], logged["options"]) == (80, {"encoder": "mpnet"})
    assert not {"base_url", "extra_body"} & logged.keys()
    assert "inner.example" not in json.dumps(logged)


def test_wandb_gets_no_command_line_paths_or_packages(scored: ScoredRun, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = MagicMock()
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    log_results("wandb", scored.results, scored.folder)
    given = {"x_disable_meta": True, "x_disable_machine_info": True, "x_save_requirements": False}
    assert given.items() <= wandb.Settings.call_args.kwargs.items()
    assert wandb.init.call_args.kwargs["settings"] is wandb.Settings.return_value


def test_a_setting_like_a_key_is_refused_and_not_repeated(scored: ScoredRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trackers, "_log", lambda *_: pytest.fail("was logged"))
    secret = "hf_" + "a1b2" * 6
    scored.results.generation["stop"] = [secret]
    with pytest.raises(ConfigError, match="looks like a key") as refused:
        log_results("trackio", scored.results, scored.folder)
    assert secret not in str(refused.value)


def test_a_missing_tracker_says_how_to_install_it(scored: ScoredRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    shown = CliRunner().invoke(cli.app, ["score", str(scored.folder), "--log-to", "wandb"])
    assert shown.exit_code == 1
    assert "wandb cannot be used" in shown.stderr
    assert shown.stderr.rstrip().endswith("Fix: pip install wandb")


def read(folder: Path) -> list[dict]:
    return json.loads((folder / "samples.json").read_text())["samples"]


def test_every_answer_is_a_sample_with_its_image_boxes_texts_and_scores(six_frozen: Path, tmp_path: Path) -> None:
    run(six_frozen, tmp_path / "run", task="grounding", model="oracle", repetitions=2, limit=2)
    arguments = ["export", "run", str(tmp_path / "run"), "--format", "fiftyone", "--out", str(tmp_path / "made")]
    assert CliRunner().invoke(cli.app, arguments).exit_code == 0
    samples = read(tmp_path / "made")
    assert [(sample["example_id"], sample["repetition"]) for sample in samples] == [
        (sample["example_id"], number) for sample in samples[::2] for number in (0, 1)
    ]
    assert len({sample["_id"]["$oid"] for sample in samples}) == len(samples) == 4
    for sample in samples:
        assert (sample["tags"], sample["answer"]) == (["ok"], sample["reference_answer"])
        with Image.open(tmp_path / "made" / sample["filepath"]) as image:
            width, height = image.size
        reference = [box["bounding_box"] for box in sample["reference"]["detections"]]
        x, y, wide, high = (round(v * 1000) for v in reference[0])
        assert json.loads(sample["answer"])["bboxes"][0] == [x, y, x + wide, y + high], (width, height)
        assert [box["bounding_box"] for box in sample["predicted"]["detections"]] == reference
    described = json.loads((tmp_path / "made" / "metadata.json").read_text())
    stored = {"_id" if field["name"] == "id" else field["name"] for field in described["sample_fields"]}
    assert set(samples[0]) == stored
    assert described["info"]["samples"] == {"expected": 4, "scored": 4, "answered": 4}
    write_fiftyone(tmp_path / "run", tmp_path / "again")
    for path in (tmp_path / "made").rglob("*.*"):
        assert path.read_bytes() == (tmp_path / "again" / path.relative_to(tmp_path / "made")).read_bytes()


def test_texts_are_on_the_first_image_and_examples_without_images_are_counted(
    small_kitchen: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampling = {"mask_tracking": {"limit": 2, "spacing": 20}}
    build(small_kitchen, tmp_path / "made", benchmark="extended", configs=[*sampling], sampling=sampling, cache=False)
    run(tmp_path / "made", tmp_path / "run", benchmark="extended", task="mask_tracking", model="oracle", repetitions=1)
    decoded = LoadedExample.images

    def images(self: LoadedExample, task: Task) -> tuple[Image.Image, ...]:
        if self.example.example_id == lost:
            raise DataError("cannot be decoded")
        return decoded(self, task)

    lost = open_examples(tmp_path / "made", "extended", "mask_tracking").examples[0].example_id
    monkeypatch.setattr(LoadedExample, "images", images)
    counts = write_fiftyone(tmp_path / "run", tmp_path / "out")
    first, *others = read(tmp_path / "out")
    assert counts == (1 + len(others), 1)
    assert first["answer"] == first["reference_answer"] != ""
    assert {(sample["answer"], sample["reference_answer"]) for sample in others} == {(None, None)}
    assert first["question"].startswith("[system]\n")


def test_a_mask_is_cut_to_its_box_in_pixels(six_frozen: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mask = np.zeros((9, 16), dtype=bool)
    mask[3:6, 4:8] = True
    mask[3, 4] = False

    def overlays(self: Grounding, example: Example, prediction: Prediction | None) -> tuple[Overlay, ...]:
        width, height = example.inputs["frame_width"], example.inputs["frame_height"]
        box = (width / 4, height / 3, width / 2, 2 * height / 3)
        return (Overlay(0, box, "reference", mask=encode_mask(mask)), Overlay(0, (-9, -9, -1, -1), "given"))

    monkeypatch.setattr(Grounding, "overlays", overlays)
    run(six_frozen, tmp_path / "run", task="grounding", model="oracle", repetitions=1, limit=1)
    write_fiftyone(tmp_path / "run", tmp_path / "made")
    (sample,) = read(tmp_path / "made")
    (detection,) = sample["reference"]["detections"]
    assert detection["bounding_box"] == pytest.approx([1 / 4, 1 / 3, 1 / 4, 1 / 3])
    packed = base64.b64decode(detection["mask"]["$binary"]["base64"])
    np.testing.assert_array_equal(np.load(io.BytesIO(zlib.decompress(packed))), mask[3:6, 4:8])
