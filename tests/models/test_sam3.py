"""SAM 3 as a grounder: masks become boxes that the grounding task reads.

The batching, the boxes and the failures are tested with stand-ins for model and processor, so that they run without
torchvision. The tests at the end need it: they build a small SAM 3 of random weights and go through transformers' own
processor.
"""

import json
import sys
from collections.abc import Sequence
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

from barista_bench.benchmarks.barista.grounding import Grounding  # noqa: E402
from barista_bench.core.boxes import BoxFormat  # noqa: E402
from barista_bench.core.example import Prediction  # noqa: E402
from barista_bench.core.prompt import ImagePart, Prompt, TextPart  # noqa: E402
from barista_bench.errors import ConfigError, ModelError  # noqa: E402
from barista_bench.models import Completion, Failure, GenerationConfig, ModelIdentity, Request  # noqa: E402
from barista_bench.models.specialists.sam3 import Sam3Grounder, mask_box  # noqa: E402

CONFIG = GenerationConfig()
SIZE = 8
Instance = tuple[float, tuple[int, int, int, int]]
"""A confidence, and the rectangle that its mask fills."""


def request(name: str, phrase: object = "cup", images: int = 1, seeds: tuple[int, ...] = (1,)) -> Request:
    prompt = Prompt("", (*map(ImagePart, range(images)), TextPart("Find it.")))
    pictures = tuple(Image.new("RGB", (SIZE, SIZE)) for _ in range(images))
    return Request(name, prompt, pictures, seeds, {} if phrase is None else {"phrase": phrase})


class StandIn:
    """Model and processor in one: `instances` says by phrase which instances there are."""

    device, dtype = torch.device("cpu"), torch.float32

    def __init__(self, instances: dict[str, Sequence[Instance]], fits: int = 100) -> None:
        self.instances, self.fits = instances, fits
        self.batches: list[list[str]] = []

    def grounder(self, **options: Any) -> Sam3Grounder:
        processor = SimpleNamespace(tokenizer=self.tokenizer, post_process_instance_segmentation=self.post_process)
        return Sam3Grounder(self, Processor(self, processor), ModelIdentity("sam3:x", "rev"), **options)

    def tokenizer(self, text: str) -> dict[str, list[int]]:
        return {"input_ids": [0, *map(ord, text.split()[0][:1]), *[2] * text.count(" "), 1]}

    def __call__(self, *, pixel_values: Any, input_ids: Any, attention_mask: Any) -> Any:
        phrases = ["".join(map(chr, ids)).rstrip("\0") for ids in input_ids.tolist()]
        self.batches.append(phrases)
        if len(phrases) > self.fits:
            raise torch.OutOfMemoryError("CUDA out of memory")
        queries = max(len(instances) for instances in self.instances.values())
        scores = torch.zeros(len(phrases), queries)
        masks = torch.zeros(len(phrases), queries, SIZE, SIZE)
        for row, phrase in enumerate(phrases):
            for query, (score, (x0, y0, x1, y1)) in enumerate(self.instances[phrase]):
                scores[row, query] = score
                masks[row, query, y0:y1, x0:x1] = 1
        return SimpleNamespace(pred_logits=scores, pred_masks=masks, pred_boxes=scores, presence_logits=None)

    def post_process(self, outputs: Any, *, threshold: float, mask_threshold: float, target_sizes: Any) -> Any:
        assert target_sizes == [(SIZE, SIZE)]
        assert outputs.presence_logits is None
        kept = outputs.pred_logits[0] > threshold
        masks = (outputs.pred_masks[0][kept] > mask_threshold).to(torch.long)
        return [{"scores": outputs.pred_logits[0][kept], "masks": masks}]


class Processor:
    def __init__(self, model: StandIn, parts: SimpleNamespace) -> None:
        vars(self).update(vars(parts))

    def __call__(self, *, images: list[Image.Image], text: list[str], return_tensors: str) -> dict[str, Any]:
        assert all(image.mode == "RGB" for image in images)
        ids = torch.tensor([[*map(ord, phrase), *[0] * (20 - len(phrase))] for phrase in text])
        pixels = torch.stack([torch.zeros(3, 4, 4) for _ in images])
        return {"pixel_values": pixels, "input_ids": ids, "attention_mask": (ids > 0).long()}


def only(answers: list[list[Completion | Failure]]) -> Completion | Failure:
    ((answer,),) = answers
    return answer


def only_error(grounder: Sam3Grounder, asked: Request) -> str:
    answer = only(grounder.generate([asked], CONFIG))
    assert isinstance(answer, Failure)
    return answer.error


BOXES: dict[str, tuple[list[Instance], dict[str, list[object]]]] = {
    "tight, the most confident first": (
        [(0.75, (1, 2, 4, 5)), (1.0, (0, 0, 8, 3)), (0.25, (5, 5, 6, 6))],
        {"bboxes": [[0, 0, 8, 3], [1, 2, 4, 5]], "scores": [1.0, 0.75]},
    ),
    "an empty mask is dropped": (
        [(0.75, (3, 3, 3, 3)), (0.625, (1, 1, 2, 2))],
        {"bboxes": [[1, 1, 2, 2]], "scores": [0.625]},
    ),
    "nothing found is an answer": ([(0.25, (1, 1, 2, 2))], {"bboxes": [], "scores": []}),
}


@pytest.mark.parametrize(("instances", "boxes"), BOXES.values(), ids=BOXES)
def test_masks_become_boxes(instances: list[Instance], boxes: dict[str, list[object]]) -> None:
    answer = only(StandIn({"cup": instances}).grounder().generate([request("a")], CONFIG))
    assert isinstance(answer, Completion)
    assert json.loads(answer.text) == boxes


def test_the_grounding_task_reads_boxes_and_confidences() -> None:
    grounder = StandIn({"cup": [(0.75, (1, 2, 4, 5))]}).grounder()
    answer = only(grounder.generate([request("a")], CONFIG))
    assert isinstance(answer, Completion)
    assert grounder.box_format == BoxFormat("xyxy", None)
    size = {"frame_width": SIZE, "frame_height": SIZE}
    parsed = Grounding(options={"protocol": "paper"}).parse(answer.text, size, grounder.box_format)
    assert parsed == Prediction({"boxes": [[1.0, 2.0, 4.0, 5.0]], "scores": [0.75]})
    released = Grounding().parse(answer.text, size, grounder.box_format)
    assert isinstance(released, Prediction)
    assert "scores" not in released.value, "the release knows no confidences"


def test_every_run_gets_the_same_answer_and_order_is_kept() -> None:
    model = StandIn({"cup": [(0.75, (1, 1, 3, 3))], "lid": [(0.75, (2, 2, 4, 4))]})
    requests = [request("a", "lid", seeds=(1, 2, 3)), request("b", "cup"), request("c", "lid")]
    answers = model.grounder(batch_size=2).generate(requests, CONFIG)
    assert [len(row) for row in answers] == [3, 1, 1]
    assert len(set(map(str, answers[0]))) == 1
    boxes = [json.loads(row[0].text)["bboxes"] for row in answers if isinstance(row[0], Completion)]
    assert boxes == [[[2, 2, 4, 4]], [[1, 1, 3, 3]], [[2, 2, 4, 4]]]
    assert model.batches == [["lid", "cup"], ["lid"]]


@pytest.mark.parametrize("phrase", [None, "", "  ", 7])
def test_only_a_request_without_a_phrase_fails_and_its_message_names_the_right_request(phrase: object) -> None:
    model = StandIn({"cup": [(0.75, (1, 1, 3, 3))]})
    (first,), (second,) = model.grounder().generate([request("a", phrase), request("b")], CONFIG)
    assert isinstance(first, Failure)
    assert first.error.startswith("a: SAM 3 grounds a phrase, but got none. Fix: ask it barista/grounding")
    assert isinstance(second, Completion)
    assert model.batches == [["cup"]]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (request("a", images=0), "a: SAM 3 looks at one image, not 0"),
        (request("a", images=2), "a: SAM 3 looks at one image, not 2"),
        (request("a", "cup " * 40), "SAM 3 reads 32"),
    ],
)
def test_an_unreadable_image_is_a_failure(asked: Request, said: str) -> None:
    assert said in only_error(StandIn({"cup": []}).grounder(), asked)


def test_images_that_do_not_fit_the_prompt_are_the_callers_error() -> None:
    with pytest.raises(ValueError, match="request a: the prompt places images"):
        StandIn({"cup": []}).grounder().generate([replace(request("a"), images=())], CONFIG)


def test_out_of_memory_halves_the_batch_and_loses_nothing() -> None:
    model = StandIn({"cup": [(0.75, (1, 1, 3, 3))]}, fits=1)
    grounder = model.grounder(batch_size=4)
    answers = grounder.generate([request(name) for name in "abcde"], CONFIG)
    assert all(isinstance(row[0], Completion) for row in answers)
    assert [len(batch) for batch in model.batches] == [4, 2, 1, 1, 1, 1, 1]
    assert grounder.batch_size == 1


def test_one_image_that_does_not_fit_is_a_failure() -> None:
    model = StandIn({"cup": [(0.75, (1, 1, 3, 3))]}, fits=0)
    assert "a: does not fit into memory" in only_error(model.grounder(), request("a"))


def test_thresholds_are_part_of_the_identity() -> None:
    identity = StandIn({}).grounder(threshold=0.3, mask_threshold=0.4).identity
    assert identity == ModelIdentity("sam3:x", "rev", {"threshold": 0.3, "mask_threshold": 0.4})


@pytest.mark.parametrize("wrong", [{"threshold": 1.5}, {"mask_threshold": -0.1}, {"batch_size": 0}])
def test_settings_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(wrong))} is"):
        StandIn({}).grounder(**wrong)


@given(st.integers(1, 12), st.integers(1, 12), st.data())
def test_boxes_equal_pycocotools(height: int, width: int, data: st.DataObject) -> None:
    bits = data.draw(st.lists(st.booleans(), min_size=height * width, max_size=height * width))
    mask = np.array(bits, dtype=np.uint8).reshape(height, width)
    x, y, w, h = coco_mask.toBbox(coco_mask.encode(np.asfortranarray(mask))).tolist()
    expected = [x, y, x + w, y + h] if mask.any() else None
    assert mask_box(torch.from_numpy(mask) > 0) == expected


def small_checkpoint(folder: Path, side: int = 56, width: int = 32) -> Path:
    """A SAM 3 of 0.25 million random weights with a tokenizer of single letters."""
    from transformers import CLIPTokenizer, Sam3Model, Sam3Processor
    from transformers.models.sam3.image_processing_sam3 import Sam3ImageProcessor

    from tests.annotate.sam_checkpoints import sam3_detector, sam3_vision

    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    words = ["<|startoftext|>", "<|endoftext|>", *letters, *(f"{letter}</w>" for letter in letters)]
    config = sam3_detector(sam3_vision(side, width, width), width, len(words))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        Sam3Model(config).save_pretrained(folder)
    tokenizer = CLIPTokenizer(vocab={word: index for index, word in enumerate(words)}, merges=[])
    square = {"height": side, "width": side}
    Sam3Processor(Sam3ImageProcessor(size=square), tokenizer).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torchvision", reason="transformers' SAM 3 is written with torchvision")
    return small_checkpoint(tmp_path_factory.mktemp("sam3"))


def noise(name: str, width: int, height: int, phrase: str) -> Request:
    pixels = np.random.default_rng(len(name)).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return replace(request(name, phrase), images=(Image.fromarray(pixels),))


def test_a_real_sam3_is_loaded_and_answers_alike_in_any_batch(checkpoint: Path) -> None:
    load = lambda size: Sam3Grounder.load(str(checkpoint), device="cpu", threshold=0.0, batch_size=size)  # noqa: E731
    requests = [noise("a", 64, 48, "cup"), noise("bb", 40, 80, "white lid"), noise("ccc", 64, 48, "hand")]
    alone, together = load(1).generate(requests, CONFIG), load(3).generate(requests, CONFIG)
    for asked, (lone,), (two,) in zip(requests, alone, together, strict=True):
        assert isinstance(lone, Completion)
        assert isinstance(two, Completion)
        first, second = json.loads(lone.text), json.loads(two.text)
        assert first["scores"] == sorted(first["scores"], reverse=True)
        assert all(0 <= score <= 1 for score in first["scores"])
        assert np.allclose(first["scores"], second["scores"], atol=1e-5)
        width, height = asked.images[0].size
        assert first["bboxes"]
        assert all(0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height for x0, y0, x1, y1 in first["bboxes"])


def test_a_real_sam3_agrees_with_its_own_post_processing(checkpoint: Path) -> None:
    from transformers import Sam3Model, Sam3Processor

    asked = noise("a", 64, 48, "cup")
    model, processor = Sam3Model.from_pretrained(checkpoint).eval(), Sam3Processor.from_pretrained(checkpoint)
    inputs = processor(images=asked.images[0], text="cup", return_tensors="pt")
    with torch.inference_mode():
        outputs = model(**{name: inputs[name] for name in ("pixel_values", "input_ids", "attention_mask")})
    (expected,) = processor.post_process_instance_segmentation(
        outputs, threshold=0.0, mask_threshold=0.5, target_sizes=[(48, 64)]
    )
    grounder = Sam3Grounder.load(str(checkpoint), device="cpu", threshold=0.0)
    answer = only(grounder.generate([asked], CONFIG))
    assert isinstance(answer, Completion)
    boxes = []
    for mask in expected["masks"].numpy().astype(np.uint8):
        x, y, w, h = coco_mask.toBbox(coco_mask.encode(np.asfortranarray(mask))).tolist()
        boxes += [[x, y, x + w, y + h]] if mask.any() else []
    answer_read = json.loads(answer.text)
    assert sorted(answer_read["bboxes"]) == sorted(boxes)
    assert len(answer_read["bboxes"]) >= 1


def test_a_folder_that_is_no_checkpoint_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be loaded as SAM 3"):
        Sam3Grounder.load(str(tmp_path), device="cpu")


def test_without_torchvision_loading_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchvision", None)
    with pytest.raises(ModelError, match="needs torchvision"):
        Sam3Grounder.load("facebook/sam3")
