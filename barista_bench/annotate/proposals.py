"""Masks that a person may accept: what SAM makes of boxes, points and words, and earlier objects of the segment again.

Boxes come from a person or from a detector that is asked for the vocabulary; words are looked for by that detector.
Coordinates are pixels of the displayed frame, x to the right and y down.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from barista_bench.annotate.detection import Detection, Detector
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
from barista_bench.errors import DataError
from barista_bench.files.checkpoints import Pretrained
from barista_bench.media.video import FrameReader
from barista_bench.models.base import ModelIdentity
from barista_bench.scene_graph.domain import Domain
from barista_bench.scene_graph.masks import Rle, encode_mask

_MOST = 40  # detections a keyframe
_SEGMENTERS = {
    **dict.fromkeys(("sam2", "sam2_video"), "Sam2Model"),
    **dict.fromkeys(("sam3_tracker", "sam3_tracker_video", "sam3_video"), "Sam3TrackerModel"),
}
"""Classes of transformers by the `model_type` of a checkpoint's configuration."""


class SegmentedMask(NamedTuple):
    """A mask of the picture's size, and SAM's own estimate of its IoU, 0..1."""

    mask: NDArray[np.bool_]
    score: float


Prompt: TypeAlias = "tuple[tuple[float, float, float, float] | None, Sequence[PromptPoint]]"
"""A box (left, top, right, bottom) in pixels, or points, or both."""


class Segmenter(Protocol):
    """A model that answers prompts with masks (`segmenter` in project.json)."""

    identity: ModelIdentity

    def segment(self, picture: NDArray[np.uint8], prompts: Sequence[Prompt]) -> list[SegmentedMask]:
        """The mask that answers each prompt, which may be empty; `picture` is RGB, (height, width, 3)."""
        ...


class PromptedSegmenter:
    """SAM 2, or the tracker of SAM 3, asked about single pictures. No torchvision is needed."""

    def __init__(self, model: Pretrained, scale: PixelScale, identity: ModelIdentity) -> None:
        self._model = model
        self._scale = scale
        self.identity = identity

    @classmethod
    def load(cls, name: str) -> Self:
        """A local folder or Hub id; checkpoints of `SamPropagator` do. Raises ModelError for any other."""
        # transformers 5.23 leaves the prefix of a `sam3_video` on
        mapping = {r"^tracker_model\.": ""}
        return cls(*load_sam(name, _SEGMENTERS, "segmenter of SAM 2 or SAM 3", key_mapping=mapping))

    def segment(self, picture: NDArray[np.uint8], prompts: Sequence[Prompt]) -> list[SegmentedMask]:
        """As `Segmenter.segment`."""
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
                given: dict[str, torch.Tensor] = {}
                if box is not None:
                    given["input_boxes"] = (torch.tensor(box, device=device).reshape(2, 2) * shrink).reshape(1, 1, 4)
                if points:
                    at = torch.tensor([(point.x, point.y) for point in points], device=device)
                    given["input_points"] = (at * shrink)[None, None]
                    given["input_labels"] = torch.tensor([[[int(point.inside) for point in points]]], device=device)
                outputs = self._model(image_embeddings=embeddings, multimask_output=False, **given)
                mask = enlarged_mask(outputs.pred_masks[0], height, width)
                score = min(max(float(outputs.iou_scores.flatten()[0]), 0.0), 1.0)
                segmented.append(SegmentedMask(mask, score))
        return segmented


class _Asked(NamedTuple):
    """One prompt for the segmenter, and what its answer is a proposal of."""

    category: str
    object: str | None
    origin: ProposalOrigin
    score: float
    box: tuple[float, float, float, float] | None
    points: Sequence[PromptPoint] = ()


@dataclass(frozen=True)
class Proposer:
    """The models that make proposals; one that is None is not asked."""

    domain: Domain
    propagator: Propagator
    segmenter: Segmenter | None
    detector: Detector | None

    def proposals(self, video: VideoFiles) -> list[KeyframeProposals]:
        """For each keyframe that nobody has annotated, and each frame of prompts: masks, and the segment's objects.

        Raises:
            DataError: there are prompts, and nothing that can answer them.
        """
        asked, accepted = video.asked(), video.accepted()
        annotated = {keyframe.frame: keyframe for keyframe in accepted.keyframes}
        prompts = video.prompts()
        self._check(prompts, video)
        waiting = set(asked) - annotated.keys()
        keyframes = []
        with video.open() as frames:
            for frame, picture in decoded_frames(frames, sorted(waiting.union(prompt.frame for prompt in prompts))):
                before = [annotated[k] for k in sorted(annotated) if k < frame and asked.get(k) == asked.get(frame, -1)]
                known = {name: accepted.objects[name] for keyframe in before for name in keyframe.masks}
                masks = list(self._segmented(picture, [prompt for prompt in prompts if prompt.frame == frame]))
                if frame in waiting and before:
                    masks += self._carried(frames, before[-1], frame, known)
                keyframes.append(KeyframeProposals(frame=frame, proposals=masks, earlier=known))
        return keyframes

    def _check(self, prompts: Sequence[MaskPrompt], video: VideoFiles) -> None:
        if prompts and self.segmenter is None:
            remedy = 'name "sam:CHECKPOINT" as "segmenter" in project.json'
            raise DataError(f"{video.file(PromptsFile)}: nothing can answer prompts. Remedy: {remedy}")
        if self.detector is None and any(prompt.words for prompt in prompts):
            remedy = 'name a "detector" in project.json, or give a box or points'
            raise DataError(f"{video.file(PromptsFile)}: nothing can look for words. Remedy: {remedy}")

    def _segmented(self, picture: NDArray[np.uint8], prompts: Sequence[MaskPrompt]) -> Iterator[Proposal]:
        """A person's prompts, and where there is none, all that the detector sees."""
        if self.segmenter is None:
            return
        asks = [ask for prompt in prompts for ask in self._asked(picture, prompt)]
        if not prompts and self.detector is not None:
            detections = _surest(self.detector.detect(picture, list(self.domain.categories)))
            asks = [_Asked(item.label, None, "detected", item.score, item.box) for item in detections]
        segmented = self.segmenter.segment(picture, [(ask.box, ask.points) for ask in asks])
        for ask, (mask, score) in zip(asks, segmented, strict=True):
            if mask.any():
                yield _proposal(ask.category, ask.object, ask.origin, encode_mask(mask), ask.score * score)

    def _asked(self, picture: NDArray[np.uint8], prompt: MaskPrompt) -> Iterator[_Asked]:
        if prompt.words is None:
            yield _Asked(prompt.category, prompt.object, "prompted", 1.0, prompt.box, prompt.points)
            return
        assert self.detector is not None
        for item in _surest(self.detector.detect(picture, [prompt.words])):
            yield _Asked(prompt.category, prompt.object, "words", item.score, item.box)

    def _carried(
        self, frames: FrameReader, keyframe: AcceptedKeyframe, frame: int, categories: Mapping[str, str]
    ) -> Iterator[Proposal]:
        """The objects of an earlier keyframe of the segment, as the propagator carries them here."""
        given = {keyframe.frame: {name: mask.rle for name, mask in keyframe.masks.items()}}
        if frame - keyframe.frame > self.propagator.reach(frames.fps):
            return
        (last,) = deque(self.propagator.propagate(frames, given, range(keyframe.frame, frame + 1)), maxlen=1)
        for name, mask in last.masks.items():
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
