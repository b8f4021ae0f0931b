"""Proposes masks for a person to accept, and detects objects by words.

SAM makes masks from boxes, points and words. Earlier objects of the segment are proposed again. Open-vocabulary
detectors (Grounding DINO, OWLv2, SAM 3) return boxes for words. These boxes also give a contact signal.

Boxes come from a person, or from a detector that gets the words of the vocabulary. Coordinates are pixels of the
displayed frame, x to the right and y down. The detectors do not detect contact: the overlap of a hand's box with an
object's box is only a first estimate, and is marked as not verified.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from barista_bench.annotate.project import VideoFiles
from barista_bench.annotate.propagation import Propagator, decoded_frames
from barista_bench.annotate.records import (
    AcceptedKeyframe,
    KeyframeProposals,
    MaskPrompt,
    PromptPoint,
    PromptsFile,
    Proposal,
    ProposalOrigin,
    digest,
)
from barista_bench.annotate.sam_propagation import PixelScale, enlarged_mask, load_sam
from barista_bench.core.prompt import ImagePart, Prompt
from barista_bench.errors import DataError
from barista_bench.files.checkpoints import Pretrained, load_pretrained, on_device, require_libraries, revision_of
from barista_bench.media.video import FrameReader
from barista_bench.models.base import Failure, GenerationConfig, Model, ModelIdentity, Request
from barista_bench.scene_graph.domain import Domain
from barista_bench.scene_graph.masks import Rle, encode_mask

_THRESHOLD = 0.1
_LOOKS = 5  # sampled frames per second


class Detection(NamedTuple):
    """A detected object. `box` is (left, top, right, bottom) in pixels, within the picture; `score` is 0..1."""

    label: str
    score: float
    box: tuple[float, float, float, float]


class Detector(Protocol):
    """Finds objects by words (`detector` in project.json). `finds_objects` is False for a detector of hands only."""

    identity: ModelIdentity
    finds_objects: bool

    def detect(self, picture: NDArray[np.uint8], labels: Sequence[str]) -> list[Detection]:
        """Return detections of the labels in an RGB picture (height, width, 3)."""
        ...


class ObjectDetector:
    """A checkpoint that finds objects by their names."""

    finds_objects = True

    def __init__(self, model: Pretrained, processor: Pretrained, identity: ModelIdentity) -> None:
        self._model = model
        self._processor = processor
        self.identity = identity

    @classmethod
    def load(cls, name: str) -> Self:
        """Load a local folder or Hub id. Raises ModelError if the checkpoint is not such a detector."""
        require_libraries()
        from transformers import AutoModelForZeroShotObjectDetection, AutoProcessor

        def read_processor(source: str, **settings: object) -> Pretrained:
            settings["backend"] = "pil"  # torchvision is not needed
            return AutoProcessor.from_pretrained(source, **settings)

        model, processor = load_pretrained(
            name, read_processor, AutoModelForZeroShotObjectDetection.from_pretrained, kind="an object detector"
        )
        return cls(model, processor, ModelIdentity(f"detector:{name}", revision_of(name, model.config)))

    def detect(self, picture: NDArray[np.uint8], labels: Sequence[str]) -> list[Detection]:
        """Return detections of the labels in an RGB picture (height, width, 3), in the order that the model returns."""
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
    """SAM 3 as a detector; it is asked for one phrase after the other. Its processor needs torchvision.

    Args:
        grounder: a `Sam3Grounder`, or a model that answers a phrase with boxes in the same form.
    """

    finds_objects = True

    def __init__(self, grounder: Model) -> None:
        self._grounder = grounder
        self.identity = grounder.identity

    @classmethod
    def load(cls, name: str) -> Self:
        """Load a local folder or Hub id. Raises ModelError if the checkpoint is not SAM 3."""
        from barista_bench.models.specialists.sam3 import Sam3Grounder

        return cls(Sam3Grounder.load(name, threshold=_THRESHOLD))

    def detect(self, picture: NDArray[np.uint8], labels: Sequence[str]) -> list[Detection]:
        """Return boxes of labels; see `ObjectDetector.detect`.

        Raises DataError for a label that the model does not support.
        """
        image = Image.fromarray(picture)
        prompt = Prompt("", (ImagePart(0),))
        requests = [Request(label, prompt, (image,), inputs={"phrase": label}) for label in labels]
        detections = []
        for label, (answer,) in zip(labels, self._grounder.generate(requests, GenerationConfig()), strict=True):
            if isinstance(answer, Failure):
                raise DataError(f"{answer.error}. Fix: use shorter words, or another detector")
            boxes = msgspec.json.decode(answer.text, type=_PhraseBoxes)
            detections += [Detection(label, *row) for row in zip(boxes.scores, boxes.bboxes, strict=True)]
        return detections


class _PhraseBoxes(msgspec.Struct):
    bboxes: list[tuple[float, float, float, float]]
    scores: list[float]


def contact_confidence(detector: Detector, frames: FrameReader, domain: Domain) -> Iterator[float | None]:
    """Yield each frame's confidence, 0..1, that a hand's box overlaps an object's box; None for skipped frames.

    For each pair of a hand and an object, the lower of the two scores is multiplied by the fraction of the smaller box
    that both boxes share. The confidence is the highest product.
    """
    hands = [name for names in domain.hands.values() for name in names]
    labels = [*hands, *(name for name in domain.categories if name not in hands)]
    step = max(1, round(frames.fps / _LOOKS))
    for index, picture in decoded_frames(frames, range(0, len(frames), step)):
        detections = detector.detect(picture, labels)
        touching = [item for item in detections if item.label in hands]
        others = [item for item in detections if item.label not in hands]
        pairs = (
            min(hand.score, item.score) * _shared_fraction(hand.box, item.box) for hand in touching for item in others
        )
        yield round(min(max(pairs, default=0.0), 1.0), 4)
        yield from [None] * (min(step, len(frames) - index) - 1)


def _shared_fraction(first: tuple[float, ...], second: tuple[float, ...]) -> float:
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (first, second)]
    return max(width, 0.0) * max(height, 0.0) / min(areas)


_MOST = 40  # limit of detections per keyframe
_SEGMENTERS = {
    **dict.fromkeys(("sam2", "sam2_video"), "Sam2Model"),
    **dict.fromkeys(("sam3_tracker", "sam3_tracker_video", "sam3_video"), "Sam3TrackerModel"),
}
"""transformers' classes by the `model_type` in a checkpoint's configuration."""


class SegmentedMask(NamedTuple):
    """A mask of the picture's size, and the segmenter's estimate of the mask's quality, 0..1; SAM estimates the IoU."""

    mask: NDArray[np.bool_]
    score: float


ShapePrompt: TypeAlias = "tuple[tuple[float, float, float, float] | None, Sequence[PromptPoint]]"
"""A box (left, top, right, bottom) in pixels, or points, or a box with points."""


class Segmenter(Protocol):
    """Makes masks from prompts (`segmenter` in project.json). Points along a line make a stroke."""

    identity: ModelIdentity

    def segment(self, picture: NDArray[np.uint8], prompts: Sequence[ShapePrompt]) -> list[SegmentedMask]:
        """Return a mask for each prompt; it may be empty. `picture` is RGB (height, width, 3)."""
        ...


class PromptedSegmenter:
    """SAM 2, or the tracker of SAM 3, applied to single pictures. It does not need torchvision."""

    def __init__(self, model: Pretrained, scale: PixelScale, identity: ModelIdentity) -> None:
        self._model = model
        self._scale = scale
        self.identity = identity

    @classmethod
    def load(cls, name: str) -> Self:
        """Load a local folder or Hub id; the checkpoints of `SamPropagator` work. Raises ModelError for others."""
        # transformers 5.23 does not remove this prefix from a `sam3_video` checkpoint
        mapping = {r"^tracker_model\.": ""}
        return cls(*load_sam(name, _SEGMENTERS, "segmenter of SAM 2 or SAM 3", key_mapping=mapping))

    def segment(self, picture: NDArray[np.uint8], prompts: Sequence[ShapePrompt]) -> list[SegmentedMask]:
        """Return a mask for each prompt; see `Segmenter.segment`."""
        import torch

        if not prompts:
            return []
        height, width = picture.shape[:2]
        side = self._model.prompt_encoder.input_image_size
        device, dtype = self._model.device, self._model.dtype
        shrink = torch.tensor([side / width, side / height], device=device)
        segmented = []
        with torch.inference_mode():
            pixels = self._scale.pixels(picture, side, device).to(dtype)
            embeddings = self._model.get_image_embeddings(pixels[None])
            for box, points in prompts:
                inputs: dict[str, torch.Tensor] = {}
                if box is not None:
                    inputs["input_boxes"] = (torch.tensor(box, device=device).reshape(2, 2) * shrink).reshape(1, 1, 4)
                if points:
                    coordinates = torch.tensor([(point.x, point.y) for point in points], device=device)
                    inputs["input_points"] = (coordinates * shrink)[None, None]
                    inputs["input_labels"] = torch.tensor([[[int(point.inside) for point in points]]], device=device)
                outputs = self._model(image_embeddings=embeddings, multimask_output=False, **inputs)
                mask = enlarged_mask(outputs.pred_masks[0], height, width)
                score = min(max(float(outputs.iou_scores.flatten()[0]), 0.0), 1.0)
                segmented.append(SegmentedMask(mask, score))
        return segmented


class _SegmenterPrompt(NamedTuple):
    """One prompt for the segmenter, and the object that the mask is proposed for."""

    category: str
    object: str | None
    origin: ProposalOrigin
    score: float
    box: tuple[float, float, float, float] | None
    points: Sequence[PromptPoint] = ()


@dataclass(frozen=True)
class Proposer:
    """The models that make proposals; a model may be None, and is then not asked."""

    domain: Domain
    propagator: Propagator
    segmenter: Segmenter | None
    detector: Detector | None

    def proposals(self, video: VideoFiles) -> list[KeyframeProposals]:
        """Return proposals for each keyframe without annotation and each frame with prompts.

        The earlier objects of the segment are proposed too. Raises DataError if there are prompts that no model can
        answer.
        """
        segment_of, accepted = video.asked_segments(), video.accepted()
        annotated = {keyframe.frame: keyframe for keyframe in accepted.keyframes}
        prompts = video.prompts()
        self._check_models(prompts, video)
        unannotated = set(segment_of) - annotated.keys()
        keyframes = []
        with video.open() as frames:
            for frame, picture in decoded_frames(frames, sorted(unannotated.union(prompt.frame for prompt in prompts))):
                segment = segment_of.get(frame, -1)
                earlier = [annotated[k] for k in sorted(annotated) if k < frame and segment_of.get(k) == segment]
                known_objects = {name: accepted.objects[name] for keyframe in earlier for name in keyframe.masks}
                masks = list(self._segment_prompts(picture, [prompt for prompt in prompts if prompt.frame == frame]))
                if frame in unannotated and earlier:
                    masks += self._carry_objects(frames, earlier[-1], frame, known_objects)
                keyframes.append(KeyframeProposals(frame=frame, proposals=masks, earlier=known_objects))
        return keyframes

    def _check_models(self, prompts: Sequence[MaskPrompt], video: VideoFiles) -> None:
        if prompts and self.segmenter is None:
            remedy = 'name "grabcut" or "sam:CHECKPOINT" as "segmenter" in project.json'
            raise DataError(f"{video.file(PromptsFile)}: the project has no model for prompts. Fix: {remedy}")
        if self.detector is None and any(prompt.words for prompt in prompts):
            remedy = 'name a "detector" in project.json, or give a box or points'
            raise DataError(f"{video.file(PromptsFile)}: the project has no model that finds words. Fix: {remedy}")

    def _segment_prompts(self, picture: NDArray[np.uint8], prompts: Sequence[MaskPrompt]) -> Iterator[Proposal]:
        """Yield masks for a person's prompts; if there are no prompts, yield masks for all detections."""
        if self.segmenter is None:
            return
        asks = [ask for prompt in prompts for ask in self._segmenter_prompts(picture, prompt)]
        if not prompts and self.detector is not None:
            detections = _surest(self.detector.detect(picture, list(self.domain.categories)))
            asks = [_SegmenterPrompt(item.label, None, "detected", item.score, item.box) for item in detections]
        segmented = self.segmenter.segment(picture, [(ask.box, ask.points) for ask in asks])
        for ask, (mask, score) in zip(asks, segmented, strict=True):
            if mask.any():
                yield _proposal(ask.category, ask.object, ask.origin, encode_mask(mask), ask.score * score)

    def _segmenter_prompts(self, picture: NDArray[np.uint8], prompt: MaskPrompt) -> Iterator[_SegmenterPrompt]:
        if prompt.words is None:
            yield _SegmenterPrompt(prompt.category, prompt.object, "prompted", 1.0, prompt.box, prompt.points)
            return
        assert self.detector is not None
        for item in _surest(self.detector.detect(picture, [prompt.words])):
            yield _SegmenterPrompt(prompt.category, prompt.object, "words", item.score, item.box)

    def _carry_objects(
        self, frames: FrameReader, keyframe: AcceptedKeyframe, frame: int, categories: Mapping[str, str]
    ) -> Iterator[Proposal]:
        keyframe_masks = {keyframe.frame: {name: mask.rle for name, mask in keyframe.masks.items()}}
        if frame - keyframe.frame > self.propagator.reach(frames.fps):
            return
        span = range(keyframe.frame, frame + 1)
        (carried,) = deque(self.propagator.propagate(frames, keyframe_masks, span), maxlen=1)
        for name, mask in carried.masks.items():
            yield _proposal(categories[name], name, "carried", mask.rle, mask.confidence)


def _surest(detections: Sequence[Detection]) -> list[Detection]:
    return sorted(detections, key=lambda detection: -detection.score)[:_MOST]


def _proposal(category: str, name: str | None, origin: ProposalOrigin, rle: Rle, confidence: float) -> Proposal:
    return Proposal(
        id=digest(category, name, rle)[:8],
        category=category,
        object=name,
        origin=origin,
        rle=rle,
        confidence=round(min(max(confidence, 0.0), 1.0), 4),
    )
