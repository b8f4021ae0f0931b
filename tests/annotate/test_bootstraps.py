"""Detector and segmenter with tiny random checkpoints: shapes, bounds, provenance. What they find means nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import transformers

from barista_bench.annotate.decisions import accept
from barista_bench.annotate.detection import Detection, ObjectDetector, contact_confidence
from barista_bench.annotate.project import PROPOSALS, SIGNAL, open_project, start
from barista_bench.annotate.proposals import BoxSegmenter
from barista_bench.annotate.records import Decisions, ProposalsFile, SignalFile
from barista_bench.annotate.running import run_video
from barista_bench.errors import ModelError
from barista_bench.media.video import FrameReader
from barista_bench.models import tiny
from barista_bench.scene_graph.domain import load_domain
from tests.annotate.projects import VIDEO, only
from tests.annotate.scenes import HEIGHT, WIDTH, texture
from tests.conftest import MadeOnce


def write_detector(folder: Path) -> None:
    from transformers.models.owlv2.image_processing_pil_owlv2 import Owlv2ImageProcessorPil

    tokenizer = tiny.encoder_tokenizer()
    layers = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.Owlv2Config(
        text_config={**tiny.text_tower(tokenizer), **layers, "max_position_embeddings": 16},
        vision_config={**layers, "image_size": 64, "patch_size": 16},
        projection_dim=32,
    )
    tokenizer.model_max_length = 16
    pictures = Owlv2ImageProcessorPil(size={"height": 64, "width": 64})
    transformers.Owlv2ForObjectDetection(config).save_pretrained(folder)
    transformers.Owlv2Processor(pictures, tokenizer).save_pretrained(folder)


def write_segmenter(folder: Path) -> None:
    from transformers.models.sam.image_processing_pil_sam import SamImageProcessorPil

    vision = {
        "hidden_size": 32,
        "output_channels": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": 64,
        "patch_size": 16,
        "mlp_dim": 64,
        "num_pos_feats": 16,
        "global_attn_indexes": [1],
        "window_size": 2,
    }
    config = transformers.SamConfig(
        vision_config=vision,
        prompt_encoder_config={"hidden_size": 32, "image_size": 64, "patch_size": 16, "mask_input_channels": 4},
        mask_decoder_config={
            "hidden_size": 32,
            "mlp_dim": 64,
            "num_attention_heads": 2,
            "iou_head_hidden_dim": 32,
            "num_hidden_layers": 1,
        },
    )
    pictures = SamImageProcessorPil(
        size={"longest_edge": 64}, pad_size={"height": 64, "width": 64}, mask_size={"longest_edge": 16}
    )
    transformers.SamModel(config).save_pretrained(folder)
    transformers.SamProcessor(pictures).save_pretrained(folder)


@pytest.fixture(scope="session")
def checkpoints(made_once: MadeOnce) -> Path:
    def make(folder: Path) -> None:
        transformers.set_seed(0)
        write_detector(folder / "detector")
        write_segmenter(folder / "segmenter")

    return made_once("bootstraps", make)


def test_a_detector_gives_labels_that_were_asked_for_and_boxes_within_the_picture(checkpoints: Path) -> None:
    detector = ObjectDetector.load(str(checkpoints / "detector"))
    labels = ["left hand", "coffee cup", "lid"]
    detections = detector.detect(texture(0, HEIGHT, WIDTH), labels)
    assert detections
    for detection in detections:
        left, top, right, bottom = detection.box
        assert 0 <= left < right <= WIDTH
        assert 0 <= top < bottom <= HEIGHT
        assert detection.label in labels
        assert 0 <= detection.score <= 1


def test_a_segmenter_gives_masks_of_the_pictures_size(checkpoints: Path) -> None:
    segmenter = BoxSegmenter.load(str(checkpoints / "segmenter"))
    detections = [Detection("lid", 0.9, (10, 10, 60, 50)), Detection("coffee cup", 0.5, (40, 20, 150, 90))]
    proposals = segmenter.segment(texture(0, HEIGHT, WIDTH), detections)
    assert proposals
    assert {proposal.rle.size for proposal in proposals} == {(HEIGHT, WIDTH)}
    assert {proposal.category for proposal in proposals} <= {"lid", "coffee cup"}
    assert segmenter.segment(texture(0, HEIGHT, WIDTH), []) == []


class Scripted:
    """A hand that comes to a cup."""

    def detect(self, picture: np.ndarray, labels: list[str]) -> list[Detection]:
        assert {"left hand", "coffee cup"} <= set(labels)
        self.count = getattr(self, "count", -1) + 1
        hand = Detection("left hand", 0.8, (20.0 * self.count, 0.0, 20.0 * self.count + 20, 20.0))
        return [hand, Detection("coffee cup", 0.6, (40.0, 0.0, 80.0, 40.0))]


def test_contact_is_the_share_of_the_smaller_box_times_the_lower_score(scene: FrameReader) -> None:
    values = list(contact_confidence(Scripted(), scene, load_domain()))  # type: ignore[arg-type]
    assert len(values) == len(scene)
    looked = [value for value in values if value is not None]
    assert looked[:4] == [0, 0, 0.6, 0.6]


def test_a_project_with_both_proposes_a_signal_and_masks_marked_as_unverified(
    checkpoints: Path, small_kitchen: Path, tmp_path: Path
) -> None:
    project = start(tmp_path / "project", only(small_kitchen, tmp_path / "videos"), propagator="copy_nearest")
    path = project.folder / "project.json"
    text = path.read_text().replace('"detector": null', f'"detector": "{checkpoints / "detector"}"')
    path.write_text(text.replace('"segmenter": null', f'"segmenter": "{checkpoints / "segmenter"}"'))
    outcome = run_video(project.folder, VIDEO)
    assert outcome.made == ["signal", "segments", "keyframes", "proposals"]
    assert "masks on" in outcome.missing
    video = open_project(project.folder).video(VIDEO)
    signal = video.read(SIGNAL, SignalFile)
    proposals = video.read(PROPOSALS, ProposalsFile)
    assert not signal.verified
    assert not proposals.verified
    assert signal.provenance is not None
    assert signal.provenance.revision
    assert {keyframe.frame for keyframe in proposals.keyframes} == set(video.asked())
    accept(project, Decisions(video=VIDEO, by="anna", contacts=[(20, 60)]))
    assert "signal" not in run_video(project.folder, VIDEO).made  # what a person says is not made again
    assert video.read(SIGNAL, SignalFile).verified


@pytest.mark.parametrize("kind", [ObjectDetector, BoxSegmenter])
def test_what_is_no_checkpoint_is_refused(kind: type[ObjectDetector | BoxSegmenter], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="Remedy: "):
        kind.load(str(tmp_path))
