"""Masks that a person may accept: those of a SAM checkpoint in the boxes that a detector finds for the vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from barista_bench.annotate.detection import Detection, ObjectDetector
from barista_bench.annotate.project import VideoFiles
from barista_bench.annotate.propagation import decoded_frames
from barista_bench.annotate.records import KeyframeProposals, Proposal
from barista_bench.files.checkpoints import Pretrained, load_pretrained, require_libraries, revision_of
from barista_bench.models.base import ModelIdentity
from barista_bench.scene_graph.domain import Domain
from barista_bench.scene_graph.masks import encode_mask

_MOST = 40  # proposals a keyframe


class BoxSegmenter:
    """A SAM checkpoint (SAM 1 without torchvision; SAM 2 and 3 need it), asked with boxes."""

    def __init__(self, model: Pretrained, processor: Pretrained, identity: ModelIdentity) -> None:
        self._model = model
        self._processor = processor
        self.identity = identity

    @classmethod
    def load(cls, name: str) -> Self:
        """A local folder or Hub id. Raises ModelError for what is no SAM."""
        require_libraries()
        from transformers import AutoModelForMaskGeneration, AutoProcessor

        model, processor = load_pretrained(
            name, AutoProcessor.from_pretrained, AutoModelForMaskGeneration.from_pretrained, kind="SAM"
        )
        return cls(model, processor, ModelIdentity(f"sam:{name}", revision_of(name, model.config)))

    def segment(self, picture: NDArray[np.uint8], detections: Sequence[Detection]) -> list[Proposal]:
        """A mask in each box; what comes out empty is left out. Confidence: the detector's times SAM's own."""
        import torch

        if not detections:
            return []
        boxes = [[list(detection.box) for detection in detections]]
        inputs = self._processor(images=Image.fromarray(picture), input_boxes=boxes, return_tensors="pt")
        sizes = {key: inputs.pop(key) for key in ("original_sizes", "reshaped_input_sizes") if key in inputs}
        fields = {key: value.to(self._model.device) for key, value in inputs.items()}
        with torch.inference_mode():
            outputs = self._model(**fields, multimask_output=False)
        (masks,) = self._processor.post_process_masks(outputs.pred_masks.cpu(), **sizes)
        scores = outputs.iou_scores.reshape(-1).tolist()
        proposals = []
        for detection, mask, score in zip(detections, masks.numpy(), scores, strict=True):
            if mask[0].any():
                confidence = round(min(max(detection.score * score, 0.0), 1.0), 4)
                rle = encode_mask(mask[0].astype(np.bool_))
                proposals.append(Proposal(category=detection.label, rle=rle, confidence=confidence))
        return proposals


def propose_masks(
    video: VideoFiles, domain: Domain, detector: ObjectDetector, segmenter: BoxSegmenter
) -> list[KeyframeProposals]:
    """Proposals for every keyframe that nobody has annotated, and the objects known in its segment."""
    asked, accepted = video.asked(), video.accepted()
    annotated = {keyframe.frame: keyframe for keyframe in accepted.keyframes}
    waiting = sorted(asked.keys() - annotated.keys())
    keyframes = []
    with video.open() as frames:
        for frame, picture in decoded_frames(frames, waiting):
            detections = detector.detect(picture, list(domain.categories))
            best = sorted(detections, key=lambda detection: -detection.score)[:_MOST]
            earlier = {
                name: accepted.objects[name]
                for other, keyframe in sorted(annotated.items())
                if asked.get(other) == asked[frame]
                for name in keyframe.masks
            }
            proposals = segmenter.segment(picture, best)
            keyframes.append(KeyframeProposals(frame=frame, proposals=proposals, earlier=earlier))
    return keyframes
