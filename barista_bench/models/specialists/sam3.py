"""SAM 3 (Meta, 2025; the paper's specialist for phrase grounding) through transformers, as a model like any other.

It reads no prompt: it takes phrases out of `Request.inputs` and finds every instance of them.

* With a `phrase` it looks at the request's one image. Masks become tight boxes, which the answer gives in pixels with
  their confidences: `{"bboxes": [[x0, y0, x1, y1], ...], "scores": [...]}`, the most confident first.
* With `answer: "masks"` it segments images of a clip; `sam3_masks` says how it is asked and what it answers. Each image
  is looked at alone, unless `mode: "sequential"` asks for one pass over the clip (`Sam3Video`).

Temperature and the other settings of generation change nothing, so all runs answer alike.

Needs torchvision, which transformers' image processor for SAM 3 is written with.
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
from barista_bench.errors import ConfigError, ModelError, require_extra
from barista_bench.files.checkpoints import Pretrained, load_pretrained, loading_of, require_libraries, revision_of
from barista_bench.models.base import Completion, Failure, GenerationConfig, ModelIdentity, Request
from barista_bench.models.local.batching import is_out_of_memory
from barista_bench.models.specialists.sam3_masks import (
    Mask,
    is_sequential,
    phrases_of,
    problem_with,
    wanted_images,
    wants_masks,
    write_masks,
)

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

log = logging.getLogger(__name__)

PHRASE_TOKENS = 32
"""Tokens of a phrase that the processor pads to and the text encoder was trained with, both ends included."""
_OUTPUTS = ("pred_logits", "pred_boxes", "pred_masks", "presence_logits")

Instances = dict[str, "torch.Tensor"]
"""Objects found in an image: `masks` (n, height, width) and `scores` (n)."""


class Sam3Grounder:
    """Grounds `inputs["phrase"]` in the one image of a request, or segments `inputs["phrases"]` in its images.

    A request without these is a `Failure`.

    Args:
        identity: without the thresholds, which are added.
        threshold: instances of a lower confidence (0..1) are left out.
        mask_threshold: a pixel belongs to a mask above it (0..1).
        batch_size: images at once at the most; halved when the memory runs out.
        open_video: loads what follows phrases through a clip, when that is first asked for; None where nothing does.

    Raises:
        ConfigError: a threshold is not within 0..1, or the batch size is not positive.
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
        for name, value in (("threshold", threshold), ("mask_threshold", mask_threshold)):
            if not 0 <= value <= 1:
                raise ConfigError(f"{name} is {value}. Remedy: give a number from 0 to 1")
        if batch_size < 1:
            raise ConfigError(f"batch_size is {batch_size}. Remedy: give 1 or more")
        chosen = {"threshold": threshold, "mask_threshold": mask_threshold}
        self.identity = ModelIdentity(identity.name, identity.revision, {**identity.settings, **chosen})
        self.box_format = BoxFormat("xyxy", None)
        self.batch_size = batch_size
        self._model = model
        self._processor = processor
        self._threshold = threshold
        self._mask_threshold = mask_threshold
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
        """A checkpoint by local folder or Hub id (`facebook/sam3`, which asks for an accepted licence).

        Raises:
            ModelError: it cannot be read, weights are missing, or torch, transformers or torchvision is.
        """
        require_libraries()
        require_extra(f"model {name}: SAM 3's processor", "torchvision", extra="video")
        from transformers import Sam3Model, Sam3Processor, Sam3VideoModel, Sam3VideoProcessor

        load = partial(load_pretrained, name, revision=revision, device=device, dtype=dtype)
        model, processor = load(Sam3Processor.from_pretrained, Sam3Model.from_pretrained, kind="SAM 3")
        of_clips = Sam3VideoProcessor.from_pretrained, Sam3VideoModel.from_pretrained
        return cls(
            model,
            processor,
            ModelIdentity(f"sam3:{name}", revision_of(name, model.config), loading_of(model)),
            threshold=threshold,
            mask_threshold=mask_threshold,
            batch_size=batch_size,
            open_video=lambda: Sam3Video(*load(*of_clips, kind="SAM 3 for clips")),
        )

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        answers: dict[int, Completion | Failure] = {}
        items: list[_PhraseInImage] = []
        for index, request in enumerate(requests):
            refusal = self._refusal(request)
            if refusal is not None:
                answers[index] = refusal
            elif is_sequential(request):
                answers[index] = self._followed(request)
            else:
                items += _phrases_in_images(index, request)
        parts_of: dict[int, list[_Result]] = {item.request: [] for item in items}
        for part in self._find(items):
            parts_of[part.item.request].append(part)
        for index, parts in parts_of.items():
            answers[index] = _completion_of(requests[index], parts)
        return [[answers[index]] * len(request.seeds) for index, request in enumerate(requests)]

    def _refusal(self, request: Request) -> Failure | None:
        """The failure of a request that cannot be taken; None where it can."""
        request.check_images()
        if wants_masks(request):
            problem = problem_with(request)
            if problem:
                return Failure(
                    f"{request.request_id}: {problem}. Remedy: see barista_bench.models.specialists.sam3_masks"
                )
            return self._too_long(request, phrases_of(request))
        phrase = request.inputs.get("phrase")
        if not isinstance(phrase, str) or not phrase.strip():
            remedy = "ask it barista/grounding, the task whose inputs have a phrase"
            return Failure(f"{request.request_id}: SAM 3 grounds a phrase and there is none. Remedy: {remedy}")
        if len(request.images) != 1:
            return Failure(f"{request.request_id}: SAM 3 looks at one image, not {len(request.images)}")
        return self._too_long(request, (phrase,))

    def _too_long(self, request: Request, phrases: Sequence[str]) -> Failure | None:
        for phrase in phrases:
            tokens = len(self._processor.tokenizer(phrase)["input_ids"])
            if tokens > PHRASE_TOKENS:
                return Failure(f"{request.request_id}: the phrase has {tokens} tokens, SAM 3 reads {PHRASE_TOKENS}")
        return None

    def _followed(self, request: Request) -> Completion | Failure:
        """The masks of a clip that is seen in one pass."""
        try:
            self._video = self._video or self._load_video()
            masks = self._video.segment(request.images, phrases_of(request), wanted_images(request))
        except ModelError as error:
            return Failure(f"{request.request_id}: {error}")
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            return Failure(f"{request.request_id}: does not fit into memory ({error})")
        return Completion(write_masks(masks), batch_size=1)

    def _load_video(self) -> Sam3Video:
        if self._open_video is None:
            raise ModelError("this SAM 3 looks at single images. Remedy: ask with mode=frame_wise")
        return self._open_video()

    def _find(self, items: Sequence[_PhraseInImage]) -> Iterator[_Result]:
        """The results of items, in batches that become smaller where the memory runs out."""
        import torch

        waiting = list(items)
        while waiting:
            batch = waiting[: self.batch_size]
            try:
                with torch.inference_mode():
                    parts = self._parts(batch)
            except torch.OutOfMemoryError as error:
                parts = [] if len(batch) > 1 else [_Result(batch[0], error=str(error))]
            yield from parts
            waiting = waiting[len(parts) :]
            if not parts:
                self.batch_size = len(batch) // 2
                log.warning("SAM 3 ran out of memory: batches of %d from here on", self.batch_size)
                torch.cuda.empty_cache()

    def _parts(self, batch: Sequence[_PhraseInImage]) -> list[_Result]:
        images = [item.image.convert("RGB") for item in batch]
        inputs = self._processor(images=images, text=[item.phrase for item in batch], return_tensors="pt")
        device, dtype = self._model.device, self._model.dtype
        outputs = self._model(
            pixel_values=inputs["pixel_values"].to(device, dtype),
            input_ids=inputs["input_ids"].to(device),
            attention_mask=inputs["attention_mask"].to(device),
        )
        parts = []
        for row, (item, image) in enumerate(zip(batch, images, strict=True)):
            # One image at a time: masks are as large as the image, and there are up to 200 of them.
            (instances,) = self._processor.post_process_instance_segmentation(
                _row(outputs, row),
                threshold=self._threshold,
                mask_threshold=self._mask_threshold,
                target_sizes=[(image.height, image.width)],
            )
            if item.as_boxes:
                parts.append(_Result(item, text=_boxes_json(instances), batch_size=len(batch)))
            else:
                masks = (instances["masks"] > 0).reshape(-1, image.height, image.width).any(dim=0)
                parts.append(_Result(item, mask=masks.cpu().numpy(), batch_size=len(batch)))
        return parts


@dataclass(frozen=True, slots=True)
class _PhraseInImage:
    """One phrase to find in one image: `image_index` counts the images of its request."""

    request: int
    image_index: int
    image: Image.Image
    phrase: str
    as_boxes: bool


@dataclass(frozen=True, slots=True)
class _Result:
    """The result of an item: an answer, a mask (height, width), or why there is neither."""

    item: _PhraseInImage
    text: str = ""
    mask: Mask | None = None
    error: str = ""
    batch_size: int = 1


def _phrases_in_images(index: int, request: Request) -> list[_PhraseInImage]:
    if not wants_masks(request):
        return [_PhraseInImage(index, 0, request.images[0], str(request.inputs["phrase"]), as_boxes=True)]
    return [
        _PhraseInImage(index, image_index, request.images[image_index], phrase, as_boxes=False)
        for image_index in wanted_images(request)
        for phrase in phrases_of(request)
    ]


def _completion_of(request: Request, parts: Sequence[_Result]) -> Completion | Failure:
    """A request's answer; the masks of one image are united."""
    failed = [part.error for part in parts if part.error]
    if failed:
        return Failure(f"{request.request_id}: does not fit into memory ({failed[0]})")
    batch_size = max((part.batch_size for part in parts), default=1)
    if not wants_masks(request):
        return Completion(parts[0].text, batch_size=batch_size)
    masks: dict[int, Mask] = {}
    for part in parts:
        assert part.mask is not None
        index = part.item.image_index
        masks[index] = masks[index] | part.mask if index in masks else part.mask
    return Completion(write_masks(masks), batch_size=batch_size)


def mask_box(mask: torch.Tensor) -> list[int] | None:
    """The tight box [x0, y0, x1, y1] of a mask (height, width), pixels, far edges exclusive; None if it is empty."""
    rows, columns = mask.any(dim=1).nonzero(), mask.any(dim=0).nonzero()
    if not len(rows):
        return None
    return [int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1]


def _boxes_json(instances: Instances) -> str:
    """Boxes and confidences of one image as the task's parser reads them; instances with an empty mask are dropped."""
    scores = cast("list[float]", instances["scores"].tolist())
    boxes = [mask_box(mask > 0) for mask in instances["masks"]]
    pairs = [(score, box) for score, box in zip(scores, boxes, strict=True) if box is not None]
    pairs.sort(key=lambda pair: -pair[0])
    return json.dumps({"bboxes": [box for _, box in pairs], "scores": [score for score, _ in pairs]})


def _row(outputs: object, row: int) -> SimpleNamespace:
    """One image's part of a batch's outputs, in single precision: masks are resized, and confidences written down."""
    parts = {name: getattr(outputs, name) for name in _OUTPUTS}
    return SimpleNamespace(
        **{name: None if part is None else part[row : row + 1].float() for name, part in parts.items()}
    )


class Sam3Video:
    """Follows phrases through a clip."""

    def __init__(self, model: Pretrained, processor: Pretrained) -> None:
        self._model = model
        self._processor = processor

    def segment(self, images: Sequence[Image.Image], phrases: Sequence[str], wanted: Sequence[int]) -> dict[int, Mask]:
        """The region of all instances of all phrases, (height, width), in each of the wanted images.

        Args:
            images: the clip in order, of one size; all of them are seen.
            wanted: indices of images, from 0.

        Raises:
            ModelError: the images differ in size.
        """
        import torch

        if len({image.size for image in images}) > 1:
            raise ModelError("the images of a clip have several sizes. Remedy: ask with mode=frame_wise")
        width, height = images[0].size
        masks = {index: np.zeros((height, width), dtype=np.bool_) for index in wanted}
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
