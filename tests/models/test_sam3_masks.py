"""SAM 3 as a segmenter: phrases become one region an image, frame by frame or over a clip.

With stand-ins for model and processor, so that nothing here needs torchvision but the tests at the end: they build a
small SAM 3 video model of random weights and go through transformers' own detection, tracking and post-processing.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from PIL import Image
from pycocotools import mask as coco_mask

torch = pytest.importorskip("torch")

from barista_bench.core.prompt import ImagePart, Prompt, TextPart  # noqa: E402
from barista_bench.errors import ModelError  # noqa: E402
from barista_bench.models import Completion, Failure, GenerationConfig, Request  # noqa: E402
from barista_bench.models.specialists.sam3 import Sam3Grounder, Sam3Video  # noqa: E402
from barista_bench.models.specialists.sam3_masks import write_masks  # noqa: E402
from tests.models.test_sam3 import SIZE, StandIn, checkpoint, small_checkpoint  # noqa: E402, F401  (a fixture)

CONFIG = GenerationConfig()
FOUND = {"cup": [(0.75, (1, 2, 4, 5)), (0.875, (3, 4, 6, 6))], "lid": [(0.75, (0, 0, 2, 2))], "none": []}


def request(name: str, phrases: object = ("cup",), images: int = 1, **inputs: object) -> Request:
    prompt = Prompt("", (*map(ImagePart, range(images)), TextPart("Segment it.")))
    pictures = tuple(Image.new("RGB", (SIZE, SIZE)) for _ in range(images))
    return Request(name, prompt, pictures, (1, 2), {"answer": "masks", "phrases": phrases, **inputs})


def rectangles(*boxes: tuple[int, int, int, int]) -> np.ndarray:
    mask = np.zeros((SIZE, SIZE), dtype=bool)
    for x0, y0, x1, y1 in boxes:
        mask[y0:y1, x0:x1] = True
    return mask


def masks_in(answer: Completion | Failure) -> dict[int, np.ndarray]:
    assert isinstance(answer, Completion), answer
    return {entry["frame"]: coco_mask.decode(entry["rle"]).astype(bool) for entry in json.loads(answer.text)["masks"]}


def error_in(grounder: Sam3Grounder, asked: Request) -> str:
    ((failed, _),) = grounder.generate([asked], CONFIG)
    assert isinstance(failed, Failure)
    return failed.error


def test_all_instances_of_all_phrases_are_one_region() -> None:
    ((answer, again),) = StandIn(FOUND).grounder().generate([request("a", ["cup", "lid", "cup"])], CONFIG)
    assert answer == again
    masks = masks_in(answer)
    assert list(masks) == [0]
    np.testing.assert_array_equal(masks[0], rectangles((1, 2, 4, 5), (3, 4, 6, 6), (0, 0, 2, 2)))


def test_the_model_looks_only_at_the_wanted_images_and_at_all_where_none_is_named() -> None:
    model = StandIn(FOUND)
    asked = [request("a", images=5, frames=[3, 1, 3]), request("b", images=3)]
    answers = model.grounder(batch_size=2).generate(asked, CONFIG)
    assert [list(masks_in(answer)) for answer, _ in answers] == [[1, 3], [0, 1, 2]]
    assert model.batches[0] == ["cup", "cup"]


def test_nothing_found_or_wanted_is_an_answer_without_masks() -> None:
    for asked in (request("a", ["none"]), request("a", frames=[])):
        ((answer, _),) = StandIn(FOUND).grounder().generate([asked], CONFIG)
        assert isinstance(answer, Completion)
        assert json.loads(answer.text) == {"masks": []}


def test_boxes_and_masks_can_be_asked_side_by_side() -> None:
    boxes = replace(request("b"), inputs={"phrase": "lid"})
    requests = [request("a", images=2), boxes, request("c", ["lid"])]
    rows = StandIn(FOUND).grounder(batch_size=2).generate(requests, CONFIG)
    assert [list(masks_in(rows[0][0])), list(masks_in(rows[2][0]))] == [[0, 1], [0]]
    assert isinstance(rows[1][0], Completion)
    assert json.loads(rows[1][0].text)["bboxes"] == [[0, 0, 2, 2]]


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ({"phrases": []}, "there are no phrases to segment"),
        ({"phrases": "cup"}, "there are no phrases to segment"),
        ({"phrases": ["cup", " "]}, "its phrases are not all texts"),
        ({"phrases": ["cup", 3]}, "its phrases are not all texts"),
        ({"frames": "0"}, "its frames are no list of indices"),
        ({"frames": [True]}, "its frames are no list of indices"),
        ({"frames": [0, 7]}, "there is no image 7 among 2"),
        ({"frames": [-1]}, "there is no image -1 among 2"),
        ({"phrases": ["cup " * 40]}, "SAM 3 reads 32"),
        ({"images": 0}, "no images to segment"),
    ],
)
def test_only_requests_that_cannot_be_taken_fail(inputs: dict[str, Any], problem: str) -> None:
    wrong = request("a", **{"images": 2, **inputs})
    (failed, _), (good, _) = StandIn(FOUND).grounder().generate([wrong, request("b")], CONFIG)
    assert isinstance(failed, Failure)
    assert failed.error.startswith("a: ")
    assert problem in failed.error
    assert masks_in(good)


@given(st.integers(1, 12), st.integers(1, 12), st.data())
def test_written_masks_are_read_back_by_pycocotools(height: int, width: int, data: st.DataObject) -> None:
    bits = data.draw(st.lists(st.booleans(), min_size=height * width, max_size=height * width))
    mask = np.array(bits).reshape(height, width)
    entries = json.loads(write_masks({3: mask}))["masks"]
    assert bool(entries) == mask.any()
    for entry in entries:
        assert entry["frame"] == 3
        np.testing.assert_array_equal(coco_mask.decode(entry["rle"]).astype(bool), mask)


class Clip:
    """Video model and processor in one: the phrase's square moves one pixel right an image."""

    device, dtype = torch.device("cpu"), torch.float32

    def __init__(self) -> None:
        self.seen: list[tuple[int, list[str]]] = []

    def init_video_session(self, *, video: list[Image.Image], inference_device: Any, dtype: Any) -> SimpleNamespace:
        return SimpleNamespace(frames=len(video), phrases=[])

    def add_text_prompt(self, session: SimpleNamespace, text: list[str]) -> None:
        session.phrases += text

    def propagate_in_video_iterator(self, session: SimpleNamespace) -> Iterator[SimpleNamespace]:
        self.seen.append((session.frames, session.phrases))
        yield from (SimpleNamespace(frame_idx=index) for index in range(session.frames))

    def postprocess_outputs(self, session: SimpleNamespace, output: SimpleNamespace) -> dict[str, Any]:
        masks = [rectangles((output.frame_idx, row, output.frame_idx + 2, row + 2)) for row in (0, 4)]
        stacked = np.stack(masks[: len(session.phrases)]) if session.phrases != ["none"] else np.zeros((0, SIZE, SIZE))
        return {"masks": torch.from_numpy(stacked.astype(bool))}


def follower(clip: Clip, instances: dict[str, Sequence[Any]] = FOUND) -> Sam3Grounder:
    return StandIn(instances).grounder(open_video=lambda: Sam3Video(clip, clip))


def test_a_clip_is_seen_in_one_pass_and_answered_where_wanted() -> None:
    clip = Clip()
    asked = request("a", ["cup", "lid"], images=4, frames=[3, 1], mode="sequential")
    ((answer, _),) = follower(clip).generate([asked], CONFIG)
    assert clip.seen == [(4, ["cup", "lid"])]
    masks = masks_in(answer)
    assert list(masks) == [1, 3]
    np.testing.assert_array_equal(masks[3], rectangles((3, 0, 5, 2), (3, 4, 5, 6)))
    ((answer, _),) = follower(Clip()).generate([request("a", ["none"], images=4, mode="sequential")], CONFIG)
    assert masks_in(answer) == {}


def test_the_video_model_is_loaded_once_and_only_when_it_is_asked_for() -> None:
    loaded: list[int] = []

    def load() -> Sam3Video:
        loaded.append(1)
        return Sam3Video(Clip(), Clip())

    grounder = StandIn(FOUND).grounder(open_video=load)
    grounder.generate([request("a", images=2, mode="frame_wise")], CONFIG)
    assert loaded == []
    grounder.generate([request(name, images=2, mode="sequential") for name in "bc"], CONFIG)
    assert loaded == [1]


def test_without_a_video_model_sequential_requests_are_refused_by_name() -> None:
    grounder = StandIn(FOUND).grounder()
    (failed, _), (good, _) = grounder.generate([request("a", mode="sequential"), request("b")], CONFIG)
    assert isinstance(failed, Failure)
    assert failed.error == "a: this SAM 3 looks at single images. Fix: ask with mode=frame_wise"
    assert masks_in(good)


def test_a_checkpoint_without_a_tracker_fails_the_request() -> None:
    def load() -> Sam3Video:
        raise ModelError("model x: weights are missing (tracker, ...). Fix: download it again")

    error = error_in(StandIn(FOUND).grounder(open_video=load), request("a", mode="sequential"))
    assert error == "a: model x: weights are missing (tracker, ...). Fix: download it again"


def test_a_clip_that_does_not_fit_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    clip = Clip()

    def full(session: object) -> Iterator[object]:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(clip, "propagate_in_video_iterator", full)
    assert error_in(follower(clip), request("a", mode="sequential")).startswith("a: does not fit into memory")


def test_images_of_several_sizes_are_no_clip() -> None:
    asked = request("a", images=2, mode="sequential")
    asked = replace(asked, images=(asked.images[0], Image.new("RGB", (4, 4))))
    assert "several sizes" in error_in(follower(Clip()), asked)


def noise(images: int, width: int = 64, height: int = 48) -> tuple[Image.Image, ...]:
    rng = np.random.default_rng(0)
    return tuple(Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8)) for _ in range(images))


def small_video_checkpoint(folder: Path, side: int = 56, width: int = 128) -> Path:
    """The small SAM 3 of the grounding tests with a tracker of random weights, which tracks every detection."""
    from transformers import Sam3Config, Sam3Processor, Sam3VideoConfig, Sam3VideoModel, Sam3VideoProcessor
    from transformers.models.sam2_video.video_processing_sam2_video import Sam2VideoVideoProcessor
    from transformers.models.sam3_tracker_video.configuration_sam3_tracker_video import Sam3TrackerVideoConfig

    part = small_checkpoint(folder / "part", side, width)
    detector = Sam3Config.from_pretrained(part)
    following = Sam3TrackerVideoConfig(
        vision_config=detector.vision_config.to_dict(),
        prompt_encoder_config={"hidden_size": width, "image_size": side, "patch_size": 14},
        mask_decoder_config={"num_attention_heads": 2, "mlp_dim": 64}
        | dict.fromkeys(("hidden_size", "iou_head_hidden_dim"), width),
        memory_attention_hidden_size=width,
        memory_attention_num_layers=1,
        memory_attention_feed_forward_hidden_size=64,
        memory_encoder_hidden_size=width,
        memory_encoder_output_channels=64,  # what its layers are written for
        mask_downsampler_embed_dim=width,
        memory_fuser_embed_dim=width,
        memory_fuser_intermediate_dim=64,
        image_size=side,
    )
    config = Sam3VideoConfig(
        detector_config=detector.to_dict(),
        tracker_config=following.to_dict(),
        low_res_mask_size=4 * side // 14,
        score_threshold_detection=0.0,
        new_det_thresh=0.0,
        hotstart_delay=0,
        max_num_objects=2,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        Sam3VideoModel(config).save_pretrained(folder)
    processor = Sam3Processor.from_pretrained(part)
    square = {"height": side, "width": side}
    Sam3VideoProcessor(
        processor.image_processor, Sam2VideoVideoProcessor(size=square), processor.tokenizer
    ).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def video_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torchvision", reason="transformers' SAM 3 is written with torchvision")
    return small_video_checkpoint(tmp_path_factory.mktemp("sam3_video"))


def test_a_real_sam3_segments_as_its_own_post_processing(checkpoint: Path) -> None:  # noqa: F811
    from transformers import Sam3Model, Sam3Processor

    images = noise(2)
    model, processor = Sam3Model.from_pretrained(checkpoint).eval(), Sam3Processor.from_pretrained(checkpoint)
    inputs = processor(images=images[1], text="cup", return_tensors="pt")
    with torch.inference_mode():
        outputs = model(**{name: inputs[name] for name in ("pixel_values", "input_ids", "attention_mask")})
    (expected,) = processor.post_process_instance_segmentation(
        outputs, threshold=0.0, mask_threshold=0.5, target_sizes=[(48, 64)]
    )
    region = (expected["masks"] > 0).any(dim=0).numpy()
    assert region.any()
    asked = replace(request("a", images=2, frames=[1]), images=images)
    ((answer, _),) = Sam3Grounder.load(str(checkpoint), device="cpu", threshold=0.0).generate([asked], CONFIG)
    np.testing.assert_array_equal(masks_in(answer)[1], region)


def test_a_real_sam3_follows_a_clip_as_its_own_post_processing(one_thread: None, video_checkpoint: Path) -> None:
    from transformers import Sam3VideoModel, Sam3VideoProcessor

    images = noise(3)
    model = Sam3VideoModel.from_pretrained(video_checkpoint).eval()
    processor = Sam3VideoProcessor.from_pretrained(video_checkpoint)
    expected = {}
    with torch.inference_mode():
        session = processor.init_video_session(video=list(images))
        processor.add_text_prompt(session, "cup")
        for output in model.propagate_in_video_iterator(session):
            masks = processor.postprocess_outputs(session, output)["masks"]
            expected[output.frame_idx] = masks.any(dim=0).numpy() if len(masks) else np.zeros((48, 64), bool)
    assert any(mask.any() for mask in expected.values())
    segmented = Sam3Video(model, processor).segment(images, ["cup"], [0, 2])
    assert sorted(segmented) == [0, 2]
    for frame, mask in segmented.items():
        np.testing.assert_array_equal(mask, expected[frame])
