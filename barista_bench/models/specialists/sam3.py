"""Runs SAM 3 (Meta, 2025), the paper's specialist for phrase grounding, through transformers, like any other model.

SAM 3 reads no prompt. It takes phrases from `Request.inputs`, and finds every instance of each phrase.

* With a `phrase` it examines the request's one image. Masks become tight boxes. The answer has the boxes in pixels and
their confidences, the most confident box first: `{"bboxes": [[x0, y0, x1, y1], ...], "scores": [...]}`.
* With `answer: "masks"` it segments images of a clip; `sam3_masks` describes the request and the answer. Each image is
examined
  separately, unless `mode: "sequential"` requests one pass over the clip (`Sam3Video`).

Temperature and the other settings of generation have no effect, so all runs are equal.

SAM 3's image processor in transformers needs torchvision.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Self, cast

import numpy as np
from PIL import Image

from barista_bench.core.boxes import BoxFormat
from barista_bench.errors import ConfigError, ModelError, flag_of, require_extra
from barista_bench.files.checkpoints import Pretrained, load_pretrained, loading_of, require_libraries, revision_of
from barista_bench.models.base import Completion, Failure, GenerationConfig, ModelIdentity, Request, is_out_of_memory
from barista_bench.models.specialists.sam3_masks import (
    Mask,
    images_to_segment,
    is_sequential,
    phrases_of,
    problem_with,
    wants_masks,
    write_masks,
)

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

log = logging.getLogger(__name__)

PHRASE_TOKENS = 32
"""Length in tokens to which phrases are padded, as in the text encoder's training; start and end tokens count."""
_OUTPUTS = ("pred_logits", "pred_boxes", "pred_masks", "presence_logits")

Instances = dict[str, "torch.Tensor"]
"""Objects found in an image: `masks` (n, height, width) and `scores` (n)."""


class Sam3Grounder:
    """Grounds `inputs["phrase"]` in the one image of a request, or segments `inputs["phrases"]` in its images.

    A request without these inputs is a `Failure`.

    Args:
        identity: the model's identity; the thresholds are added to it.
        threshold: instances with a lower confidence (0..1) are left out.
        mask_threshold: a pixel belongs to a mask if its value (0..1) is above this.
        batch_size: limit of images per batch; halved when memory runs out.
        open_video: loads the model that follows phrases through a clip. It is called on first use; None if unsupported.

    Raises:
        ConfigError: a threshold is not within 0..1, or the batch size is less than 1.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        processor: Pretrained,
        identity: ModelIdentity,
        *,
        threshold: float = 0.5,
        mask_threshold: float = 0.5,
        batch_size: int = 4,
        open_video: Callable[[], Sam3Video] | None = None,
    ) -> None:
        thresholds = {"threshold": threshold, "mask_threshold": mask_threshold}
        for name, value in thresholds.items():
            if not 0 <= value <= 1:
                raise ConfigError(f"{name} is {value}. Fix: give {flag_of(name)} from 0 to 1")
        if batch_size < 1:
            raise ConfigError(f"batch_size is {batch_size}. Fix: give --batch-size 1 or more")
        self.identity = ModelIdentity(identity.name, identity.revision, {**identity.settings, **thresholds})
        self.box_format, self.batch_size = BoxFormat("xyxy", None), batch_size
        self._model, self._processor, self._thresholds = model, processor, thresholds
        self._open_video = open_video
        self._video: Sam3Video | None = None

    @classmethod
    def load(
        cls,
        name: str,
        *,
        revision: str | None = None,
        device: str = "auto",
        dtype: str = "auto",
        threshold: float = 0.5,
        mask_threshold: float = 0.5,
        batch_size: int = 4,
    ) -> Self:
        """Load a checkpoint by local folder or Hub id (`facebook/sam3`, whose licence you must accept).

        Raises:
            ModelError: the checkpoint cannot be read, or weights, torch, transformers or torchvision are missing.
        """
        require_libraries()
        require_extra(f"model {name}: SAM 3's processor", "torchvision", extra="video")
        from transformers import Sam3Model, Sam3Processor, Sam3VideoModel, Sam3VideoProcessor

        load = partial(load_pretrained, name, revision=revision, device=device, dtype=dtype)
        model, processor = load(Sam3Processor.from_pretrained, Sam3Model.from_pretrained, kind="SAM 3")
        clip_loaders = Sam3VideoProcessor.from_pretrained, Sam3VideoModel.from_pretrained
        return cls(
            model,
            processor,
            ModelIdentity(f"sam3:{name}", revision_of(name, model.config), loading_of(model)),
            threshold=threshold,
            mask_threshold=mask_threshold,
            batch_size=batch_size,
            open_video=lambda: Sam3Video(*load(*clip_loaders, kind="SAM 3 for clips")),
        )

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        answers: dict[int, Completion | Failure] = {}
        items: list[_PhraseInImage] = []
        results: dict[int, list[_Result]] = {}
        for index, request in enumerate(requests):
            refusal = self._refusal(request)
            if refusal is not None:
                answers[index] = refusal
            elif is_sequential(request):
                answers[index] = self._follow(request)
            else:
                results[index] = []
                for_masks = wants_masks(request)
                places = images_to_segment(request) if for_masks else (0,)
                phrases = phrases_of(request) if for_masks else (str(request.inputs["phrase"]),)
                items += [_PhraseInImage(index, place, phrase) for place in places for phrase in phrases]
        for result in self._find(requests, items):
            results[result[0].request].append(result)
        answers |= {index: _completion_of(of_request) for index, of_request in results.items()}
        return [[answers[index]] * len(request.seeds) for index, request in enumerate(requests)]

    def _refusal(self, request: Request) -> Failure | None:
        """Return the failure for a request that cannot be answered; None for a valid request."""
        request.check_images()
        if wants_masks(request):
            if problem := problem_with(request):
                remedy = "see barista_bench.models.specialists.sam3_masks"
                return Failure(f"{request.request_id}: {problem}. Fix: {remedy}")
            return self._length_refusal(request, phrases_of(request))
        phrase = request.inputs.get("phrase")
        if not isinstance(phrase, str) or not phrase.strip():
            remedy = "ask it barista/grounding, the task whose inputs have a phrase"
            return Failure(f"{request.request_id}: SAM 3 grounds a phrase, but got none. Fix: {remedy}")
        if len(request.images) != 1:
            return Failure(f"{request.request_id}: SAM 3 looks at one image, not {len(request.images)}")
        return self._length_refusal(request, (phrase,))

    def _length_refusal(self, request: Request, phrases: Sequence[str]) -> Failure | None:
        for phrase in phrases:
            tokens = len(self._processor.tokenizer(phrase)["input_ids"])
            if tokens > PHRASE_TOKENS:
                return Failure(f"{request.request_id}: the phrase has {tokens} tokens, SAM 3 reads {PHRASE_TOKENS}")
        return None

    def _follow(self, request: Request) -> Completion | Failure:
        """Return the masks of a clip after one pass over all of its images."""
        if self._open_video is None:
            remedy = "ask with mode=frame_wise"
            return Failure(f"{request.request_id}: this SAM 3 looks at single images. Fix: {remedy}")
        try:
            self._video = self._video or self._open_video()
            masks = self._video.segment(request.images, phrases_of(request), images_to_segment(request))
        except ModelError as error:
            return Failure(f"{request.request_id}: {error}")
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            return Failure(f"{request.request_id}: does not fit into memory ({error})")
        return Completion(write_masks(masks), batch_size=1)

    def _find(self, requests: Sequence[Request], items: Sequence[_PhraseInImage]) -> Iterator[_Result]:
        """Yield the results of `items` in order. Batches shrink when memory runs out."""
        import torch

        items_left = list(items)
        while items_left:
            batch = items_left[: self.batch_size]
            try:
                with torch.inference_mode():
                    images = [requests[item.request].images[item.place].convert("RGB") for item in batch]
                    for_masks = [wants_masks(requests[item.request]) for item in batch]
                    outputs = self._boxes_or_masks(batch, images, for_masks)
            except torch.OutOfMemoryError as error:
                name = requests[batch[0].request].request_id
                outputs = [] if len(batch) > 1 else [Failure(f"{name}: does not fit into memory ({error})")]
            yield from ((item, output, len(batch)) for item, output in zip(batch, outputs, strict=False))
            items_left = items_left[len(outputs) :]
            if not outputs:
                self.batch_size = len(batch) // 2
                log.warning("SAM 3 ran out of memory: batches of %d from here on", self.batch_size)
                torch.cuda.empty_cache()

    def _boxes_or_masks(
        self, batch: Sequence[_PhraseInImage], images: Sequence[Image.Image], for_masks: Sequence[bool]
    ) -> list[_ImageOutput]:
        inputs = self._processor(images=images, text=[item.phrase for item in batch], return_tensors="pt")
        device, dtype = self._model.device, self._model.dtype
        outputs = self._model(
            pixel_values=inputs["pixel_values"].to(device, dtype),
            input_ids=inputs["input_ids"].to(device),
            attention_mask=inputs["attention_mask"].to(device),
        )
        image_outputs: list[_ImageOutput] = []
        for row, image in enumerate(images):
            # One image at a time: masks are as large as the image, and an image may have up to 200 masks.
            (instances,) = self._processor.post_process_instance_segmentation(
                _row(outputs, row), target_sizes=[(image.height, image.width)], **self._thresholds
            )
            if for_masks[row]:
                masks = (instances["masks"] > 0).reshape(-1, image.height, image.width).any(dim=0)
                image_outputs.append(masks.cpu().numpy())
            else:
                image_outputs.append(_boxes_json(instances))
        return image_outputs


@dataclass(frozen=True, slots=True)
class _PhraseInImage:
    """One phrase to find in one image: `request` is the request's number, and `place` the image's number in it."""

    request: int
    place: int
    phrase: str


_ImageOutput = str | Mask | Failure
_Result = tuple[_PhraseInImage, _ImageOutput, int]
"""A phrase in an image, the result (boxes as JSON, or a mask of shape (height, width)), and the batch size."""


def _completion_of(results: Sequence[_Result]) -> Completion | Failure:
    """Return the answer to a request; the masks of one image are united."""
    batch_size = max((size for _, _, size in results), default=1)
    masks: dict[int, Mask] = {}
    for item, output, _ in results:
        if isinstance(output, Failure):
            return output
        if isinstance(output, str):
            return Completion(output, batch_size=batch_size)
        masks[item.place] = masks[item.place] | output if item.place in masks else output
    return Completion(write_masks(masks), batch_size=batch_size)


def mask_box(mask: torch.Tensor) -> list[int] | None:
    """Return the tight box [x0, y0, x1, y1] of a mask (height, width) in pixels, far edges exclusive; None if empty."""
    rows, columns = mask.any(dim=1).nonzero(), mask.any(dim=0).nonzero()
    if not len(rows):
        return None
    return [int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1]


def _boxes_json(instances: Instances) -> str:
    """Write the boxes and confidences of one image for the task's parser; instances with empty masks are dropped."""
    scores = cast("list[float]", instances["scores"].tolist())
    boxes = [mask_box(mask > 0) for mask in instances["masks"]]
    pairs = [(score, box) for score, box in zip(scores, boxes, strict=True) if box is not None]
    pairs.sort(key=lambda pair: -pair[0])
    return json.dumps({"bboxes": [box for _, box in pairs], "scores": [score for score, _ in pairs]})


def _row(outputs: object, row: int) -> SimpleNamespace:
    """Return one image's part of a batch's outputs in single precision, for resizing masks and writing confidences."""
    parts = {name: getattr(outputs, name) for name in _OUTPUTS}
    return SimpleNamespace(
        **{name: None if part is None else part[row : row + 1].float() for name, part in parts.items()}
    )


class Sam3Video:
    """Follows phrases through a clip."""

    def __init__(self, model: Pretrained, processor: Pretrained) -> None:
        self._model, self._processor = model, processor

    def segment(self, images: Sequence[Image.Image], phrases: Sequence[str], indices: Sequence[int]) -> dict[int, Mask]:
        """Return, for each selected image, the region (height, width) of all instances of all phrases.

        Args:
            images: the images of the clip in order, all of one size. The model sees all images.
            indices: the numbers of the selected images, from 0.

        Raises:
            ModelError: the images differ in size.
        """
        import torch

        if len({image.size for image in images}) > 1:
            raise ModelError("the images of a clip have several sizes. Fix: ask with mode=frame_wise")
        width, height = images[0].size
        masks = {index: np.zeros((height, width), dtype=np.bool_) for index in indices}
        with torch.inference_mode():
            session = self._processor.init_video_session(
                video=[image.convert("RGB") for image in images],
                inference_device=self._model.device,
                dtype=self._model.dtype,
            )
            self._processor.add_text_prompt(session, list(phrases))
            for output in self._model.propagate_in_video_iterator(session):
                if output.frame_idx in masks:
                    instances = self._processor.postprocess_outputs(session, output)["masks"]
                    masks[output.frame_idx] |= instances.reshape(-1, height, width).any(dim=0).cpu().numpy()
        return masks
