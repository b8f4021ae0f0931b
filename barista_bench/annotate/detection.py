"""Open-vocabulary detectors (Grounding DINO, OWLv2, SAM 3): boxes for words, and from them a contact signal.

No such detector sees contact: that a hand's box overlaps an object's is a bootstrap, and marked as not verified.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from barista_bench.annotate.propagation import decoded_frames
from barista_bench.core.prompt import ImagePart, Prompt
from barista_bench.errors import DataError
from barista_bench.files.checkpoints import Pretrained, load_pretrained, on_device, require_libraries, revision_of
from barista_bench.media.video import FrameReader
from barista_bench.models.base import Failure, GenerationConfig, Model, ModelIdentity, Request
from barista_bench.scene_graph.domain import Domain

_THRESHOLD = 0.1
_LOOKS = 5  # frames a second


class Detection(NamedTuple):
    """`box` is (left, top, right, bottom) in pixels, within the picture; `score` 0..1."""

    label: str
    score: float
    box: tuple[float, float, float, float]


class ObjectDetector:
    """A checkpoint that finds what words name."""

    def __init__(self, model: Pretrained, processor: Pretrained, identity: ModelIdentity) -> None:
        self._model = model
        self._processor = processor
        self.identity = identity

    @classmethod
    def load(cls, name: str) -> Self:
        """A local folder or Hub id. Raises ModelError for what is no such detector."""
        require_libraries()
        from transformers import AutoModelForZeroShotObjectDetection, AutoProcessor

        def read_processor(source: str, **settings: object) -> Pretrained:
            settings["backend"] = "pil"  # torchvision is not needed
            return AutoProcessor.from_pretrained(source, **settings)  # type: ignore[no-untyped-call]

        model, processor = load_pretrained(
            name, read_processor, AutoModelForZeroShotObjectDetection.from_pretrained, kind="an object detector"
        )
        return cls(model, processor, ModelIdentity(f"detector:{name}", revision_of(name, model.config)))

    def detect(self, picture: NDArray[np.uint8], labels: Sequence[str]) -> list[Detection]:
        """Detections of the labels in an RGB picture (height, width, 3), in the order that the model gives."""
        import torch

        height, width = picture.shape[:2]
        words = [list(labels)]
        inputs = self._processor(images=Image.fromarray(picture), text=words, return_tensors="pt", truncation=True)
        with torch.inference_mode():
            outputs = self._model(**on_device(inputs, self._model.device, self._model.dtype))
        (labelled,) = self._processor.post_process_grounded_object_detection(
            outputs, threshold=_THRESHOLD, target_sizes=[(height, width)], text_labels=words
        )
        detections = []
        rows = zip(labelled["text_labels"], labelled["scores"].tolist(), labelled["boxes"].tolist(), strict=True)
        for label, score, corners in rows:
            left, top, right, bottom = np.clip(corners, 0, [width, height, width, height]).tolist()
            if label in labels and right > left and bottom > top:
                detections.append(Detection(label, float(score), (left, top, right, bottom)))
        return detections


class PhraseDetector:
    """SAM 3, asked for one phrase after the other. Its processor needs torchvision.

    Args:
        grounder: a `Sam3Grounder`, or a model that answers a phrase with boxes as it does.
    """

    def __init__(self, grounder: Model) -> None:
        self._grounder = grounder
        self.identity = grounder.identity

    @classmethod
    def load(cls, name: str) -> Self:
        """A local folder or Hub id. Raises ModelError for what is no SAM 3."""
        from barista_bench.models.specialists.sam3 import Sam3Grounder

        return cls(Sam3Grounder.load(name, threshold=_THRESHOLD))

    def detect(self, picture: NDArray[np.uint8], labels: Sequence[str]) -> list[Detection]:
        """As `ObjectDetector.detect`. Raises DataError for a label that the model cannot take."""
        image = Image.fromarray(picture)
        prompt = Prompt("", (ImagePart(0),))
        requests = [Request(label, prompt, (image,), inputs={"phrase": label}) for label in labels]
        detections = []
        for label, (answer,) in zip(labels, self._grounder.generate(requests, GenerationConfig()), strict=True):
            if isinstance(answer, Failure):
                raise DataError(f"{answer.error}. Remedy: use shorter words, or another detector")
            boxes = msgspec.json.decode(answer.text, type=_PhraseBoxes)
            detections += [Detection(label, *row) for row in zip(boxes.scores, boxes.bboxes, strict=True)]
        return detections


class _PhraseBoxes(msgspec.Struct):
    bboxes: list[tuple[float, float, float, float]]
    scores: list[float]


Detector: TypeAlias = ObjectDetector | PhraseDetector


def load_detector(name: str) -> Detector:
    """The detector of project.json: `sam3:CHECKPOINT`, or a checkpoint of another one. Raises ModelError."""
    kind, _, checkpoint = name.partition(":")
    return PhraseDetector.load(checkpoint) if kind == "sam3" else ObjectDetector.load(name)


def contact_confidence(detector: Detector, frames: FrameReader, domain: Domain) -> Iterator[float | None]:
    """For each frame how sure a hand's box overlaps an object's, 0..1; None for frames between those looked at.

    It is the highest product of the surer evidence's lower score and the fraction of the smaller box that is shared.
    """
    hands = [name for names in domain.hands.values() for name in names]
    labels = [*hands, *(name for name in domain.categories if name not in hands)]
    step = max(1, round(frames.fps / _LOOKS))
    for index, picture in decoded_frames(frames, range(0, len(frames), step)):
        detections = detector.detect(picture, labels)
        touching = [item for item in detections if item.label in hands]
        others = [item for item in detections if item.label not in hands]
        pairs = (min(hand.score, item.score) * _shared(hand.box, item.box) for hand in touching for item in others)
        yield round(min(max(pairs, default=0.0), 1.0), 4)
        yield from [None] * (min(step, len(frames) - index) - 1)


def _shared(first: tuple[float, ...], second: tuple[float, ...]) -> float:
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (first, second)]
    return max(width, 0.0) * max(height, 0.0) / min(areas)
