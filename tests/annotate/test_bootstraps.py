"""Detector and segmenter with tiny random checkpoints: shapes, bounds, provenance. Their findings mean nothing."""

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from barista_bench.annotate.converting import decisions_of_graph
from barista_bench.annotate.decisions import DecidedKeyframe, Decisions, accept
from barista_bench.annotate.project import VideoFiles, open_project, start_project
from barista_bench.annotate.proposals import (
    Detection,
    ObjectDetector,
    PhraseDetector,
    PromptedSegmenter,
    contact_confidence,
)
from barista_bench.annotate.records import KeyframeProposals, MaskPrompt, PromptPoint, ProposalsFile, SignalFile
from barista_bench.annotate.running import run_video
from barista_bench.errors import DataError, ModelError
from barista_bench.media.video import FrameReader
from barista_bench.models.base import Completion, Failure, GenerationConfig, ModelIdentity, Request
from barista_bench.scene_graph.domain import load_domain
from tests.annotate.projects import VIDEO, only, reference, started, with_models
from tests.annotate.sam_checkpoints import write_checkpoint
from tests.annotate.scenes import HEIGHT, WIDTH, texture


@pytest.mark.full
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


@pytest.fixture(
    scope="module",
    params=[
        "sam2_video",
        pytest.param("sam3_tracker_video", marks=pytest.mark.full),
        pytest.param("sam3_video", marks=pytest.mark.full),
    ],
)
def segmenter(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> PromptedSegmenter:
    folder = write_checkpoint(tmp_path_factory.mktemp(request.param) / "checkpoint", request.param)
    return PromptedSegmenter.load(str(folder))


BOX = (10.0, 10.0, 60.0, 50.0)
POINTS = [PromptPoint(x=30, y=20), PromptPoint(x=100, y=80, inside=False)]


def test_each_prompt_gets_a_mask_of_the_pictures_size_beside_any_other_prompts(segmenter: PromptedSegmenter) -> None:
    picture = texture(0, HEIGHT, WIDTH)
    prompts: list[Any] = [(BOX, []), (None, POINTS), (BOX, POINTS), (None, POINTS[:1])]
    answers = segmenter.segment(picture, prompts)
    for prompt, answer in zip(prompts, answers, strict=True):
        assert answer.mask.shape == (HEIGHT, WIDTH)
        assert answer.mask.dtype == np.bool_
        assert 0 <= answer.score <= 1
        (alone,) = segmenter.segment(picture, [prompt])
        assert (alone.mask == answer.mask).all()
    assert segmenter.segment(picture, []) == []


def test_prompts_are_scaled_to_the_square_that_the_model_sees(
    segmenter: PromptedSegmenter, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[dict[str, Any]] = []
    forward = type(segmenter._model).forward

    def noted(self: Any, **inputs: Any) -> Any:
        given.append(inputs)
        return forward(self, **inputs)

    monkeypatch.setattr(type(segmenter._model), "forward", noted)
    segmenter.segment(texture(0, HEIGHT, WIDTH), [(BOX, POINTS)])
    (inputs,) = given
    side = segmenter._model.prompt_encoder.input_image_size
    scale = np.array([side / WIDTH, side / HEIGHT])
    assert inputs["input_boxes"].numpy().reshape(2, 2) == pytest.approx(np.array(BOX).reshape(2, 2) * scale)
    assert inputs["input_points"].numpy()[0, 0] == pytest.approx(np.array([(30, 20), (100, 80)]) * scale)
    assert inputs["input_labels"].tolist() == [[[1, 0]]]


class Scripted:
    """A hand that reaches a cup."""

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


class PhraseAnswers:
    """Replaces `Sam3Grounder`: a box for each phrase that is short enough."""

    identity = ModelIdentity("sam3:scripted")
    batch_size = 1

    def generate(self, requests: list[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        answers: list[list[Completion | Failure]] = []
        for number, request in enumerate(requests):
            request.check_images()
            text = json.dumps({"bboxes": [[number, 0, 20, 30]], "scores": [0.5]})
            is_long = len(str(request.inputs["phrase"])) > 30
            answers.append([Failure("the phrase is too long") if is_long else Completion(text)])
        return answers


def test_sam3_is_asked_for_one_phrase_after_the_other() -> None:
    detector = PhraseDetector(PhraseAnswers())  # type: ignore[arg-type]
    picture = texture(0, HEIGHT, WIDTH)
    assert detector.detect(picture, ["lid", "red cup"]) == [
        ("lid", 0.5, (0, 0, 20, 30)),
        ("red cup", 0.5, (1, 0, 20, 30)),
    ]
    with pytest.raises(DataError, match=r"too long.*Fix: "):
        detector.detect(picture, ["a very long description of a cup"])


def proposals_of(video: VideoFiles) -> dict[int, KeyframeProposals]:
    return {entry.frame: entry for entry in video.read(ProposalsFile).keyframes}


@pytest.mark.full
def test_a_project_with_both_proposes_a_signal_and_masks_marked_as_unverified(
    checkpoints: Path, small_kitchen: Path, tmp_path: Path
) -> None:
    project = start_project(tmp_path / "project", only(small_kitchen, tmp_path / "videos"), propagator="copy_nearest")
    with_models(project, detector=checkpoints / "detector", segmenter=f"sam:{checkpoints / 'segmenter'}")
    outcome = run_video(project.folder, VIDEO)
    assert outcome.made == ["signal", "segments", "keyframes", "proposals"]
    assert "masks on" in outcome.missing
    video = open_project(project.folder).video(VIDEO)
    signal = video.read(SignalFile)
    assert not signal.verified
    assert not video.read(ProposalsFile).verified
    assert signal.provenance is not None
    assert signal.provenance.revision
    assert proposals_of(video).keys() == video.asked_segments().keys()
    assert {item.origin for entry in proposals_of(video).values() for item in entry.proposals} == {"detected"}
    accept(project, Decisions(video=VIDEO, by="anna", contacts=[(20, 60)]))
    assert "signal" not in run_video(project.folder, VIDEO).made  # a person's decision is not made again
    assert video.read(SignalFile).verified


@pytest.mark.full
def test_boxes_points_and_words_are_answered_and_accepted_by_their_ids(
    checkpoints: Path, small_kitchen: Path, tmp_path: Path
) -> None:
    project = started(small_kitchen, tmp_path)
    with_models(project, detector=checkpoints / "detector", segmenter=f"sam:{checkpoints / 'segmenter'}")
    project = open_project(project.folder)
    video = project.video(VIDEO)
    frame = min(video.asked_segments())
    prompts = [
        MaskPrompt(frame=frame, category="lid", box=(10, 10, 60, 50)),
        MaskPrompt(frame=frame, category="spoon", points=POINTS[:1], object="spoon-1"),
        MaskPrompt(frame=frame, category="coffee cup", words="white cup"),
    ]
    accept(project, Decisions(video=VIDEO, by="anna", prompts=prompts))
    run_video(project.folder, VIDEO)
    proposals = proposals_of(video)[frame].proposals
    assert {item.category for item in proposals} == {"lid", "spoon", "coffee cup"}
    assert {item.origin for item in proposals} == {"prompted", "words"}
    spoon = next(item for item in proposals if item.category == "spoon")
    assert (spoon.object, spoon.rle.size) == ("spoon-1", (video.source.height, video.source.width))
    taken = DecidedKeyframe(frame=frame, proposals={"spoon-1": spoon.id})
    accept(project, Decisions(video=VIDEO, by="anna", keyframes=[taken]))
    accepted = video.accepted()
    assert accepted.objects == {"spoon-1": "spoon"}
    assert accepted.keyframes[0].masks["spoon-1"].rle == spoon.rle
    unknown = DecidedKeyframe(frame=frame, proposals={"spoon-1": "00000000"})
    with pytest.raises(DataError, match=r"no proposal '00000000'.*Fix: "):
        accept(project, Decisions(video=VIDEO, by="anna", keyframes=[unknown]))


@pytest.mark.full
def test_a_video_fails_if_no_model_can_answer_its_prompts(
    checkpoints: Path, small_kitchen: Path, tmp_path: Path
) -> None:
    project = started(small_kitchen, tmp_path)
    words = MaskPrompt(frame=3, category="lid", words="white lid")
    accept(project, Decisions(video=VIDEO, by="anna", prompts=[words]))
    with_models(project, segmenter=None)
    assert '"segmenter" in project.json' in run_video(project.folder, VIDEO).problem
    with_models(project, segmenter=f"sam:{checkpoints / 'segmenter'}")
    assert '"detector" in project.json' in run_video(project.folder, VIDEO).problem


def test_earlier_objects_are_offered_again_on_later_keyframes_of_their_segment(
    small_kitchen: Path, tmp_path: Path
) -> None:
    project = start_project(tmp_path / "project", only(small_kitchen, tmp_path / "videos"))
    accept(project, Decisions(video=VIDEO, by="anna", contacts=[(0, 150)]))
    run_video(project.folder, VIDEO)
    video = project.video(VIDEO)
    first, second, *_ = video.asked_segments()
    decisions = decisions_of_graph(reference(small_kitchen), [first])
    accept(project, msgspec.structs.replace(decisions, contacts=None, layers=None), "anna")
    assert run_video(project.folder, VIDEO).made == ["proposals"]
    entry = proposals_of(video)[second]
    masks = video.accepted().keyframes[0].masks
    assert entry.earlier.keys() == masks.keys()
    carried = {item.object: item for item in entry.proposals}
    assert {item.origin for item in entry.proposals} == {"carried"}
    assert len(carried) > len(masks) / 2
    assert all(item.category == entry.earlier[name or ""] for name, item in carried.items())
    taken = DecidedKeyframe(frame=second, proposals={name or "": item.id for name, item in carried.items()})
    accept(project, Decisions(video=VIDEO, by="anna", keyframes=[taken]))
    assert video.accepted().keyframes[1].masks.keys() == carried.keys()


@pytest.mark.parametrize("kind", [ObjectDetector, PromptedSegmenter])
def test_a_folder_that_is_no_checkpoint_is_refused(
    kind: type[ObjectDetector | PromptedSegmenter], tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match="Fix: "):
        kind.load(str(tmp_path))
