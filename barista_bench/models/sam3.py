"""SAM 3 (Meta, 2025; the paper's specialist for phrase grounding) through transformers, as a model like any other.

It reads no prompt: it takes the phrase out of `Request.inputs` and finds every instance of it in the request's one
image. Its masks become tight boxes, which the answer gives in pixels with their confidences:
`{"bboxes": [[x0, y0, x1, y1], ...], "scores": [...]}`, the most confident first. Temperature and the other settings
of generation change nothing, so all runs answer alike.

Needs torchvision, which transformers' image processor for SAM 3 is written with.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Protocol, Self, cast

from PIL import Image

from barista_bench.errors import ConfigError, ModelError
from barista_bench.models.base import Completion, Failure, GenerationConfig, ModelIdentity, Request
from barista_bench.models.checks import check_images
from barista_bench.prompt import BoxFormat

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

log = logging.getLogger(__name__)

PHRASE_TOKENS = 32
"""Tokens of a phrase that the processor pads to and the text encoder was trained with, both ends included."""
_OUTPUTS = ("pred_logits", "pred_boxes", "pred_masks", "presence_logits")

Found = dict[str, "torch.Tensor"]


class Sam3Processing(Protocol):
    """What is used of `transformers.Sam3Processor`."""

    def __call__(
        self, *, images: list[Image.Image], text: list[str], return_tensors: str
    ) -> dict[str, torch.Tensor]: ...

    def tokenizer(self, text: str) -> dict[str, list[int]]: ...

    def post_process_instance_segmentation(
        self, outputs: object, *, threshold: float, mask_threshold: float, target_sizes: list[tuple[int, int]]
    ) -> list[Found]: ...


class Sam3Grounder:
    """Grounds `inputs["phrase"]` in the one image of a request; a request without either is a `Failure`.

    Args:
        model: `Sam3Model` on its device.
        processor: `Sam3Processor`.
        identity: without the thresholds, which are added.
        threshold: instances of a lower confidence (0..1) are left out.
        mask_threshold: a pixel belongs to a mask above it (0..1).
        batch_size: images at once at the most; halved when the memory runs out.

    Raises:
        ConfigError: a threshold is not within 0..1, or the batch size is not positive.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        processor: Sam3Processing,
        identity: ModelIdentity,
        *,
        threshold: float = 0.5,
        mask_threshold: float = 0.5,
        batch_size: int = 4,
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
        from barista_bench.models.transformers_loading import require_libraries

        require_libraries()
        if find_spec("torchvision") is None:
            raise ModelError(f"model {name}: SAM 3's processor needs torchvision. Remedy: pip install torchvision")
        model, processor = _loaded(name, revision, device, dtype)
        identity = _identity(name, model)
        options = {"threshold": threshold, "mask_threshold": mask_threshold}
        return cls(model, processor, identity, batch_size=batch_size, **options)

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        answers: list[Completion | Failure | None] = [self._refusal(request) for request in requests]
        waiting = [index for index, answer in enumerate(answers) if answer is None]
        while waiting:
            batch = waiting[: self.batch_size]
            found = self._ground([requests[index] for index in batch])
            if found is None:
                continue  # with a smaller batch
            for index, answer in zip(batch, found, strict=True):
                answers[index] = answer
            waiting = waiting[len(batch) :]
        return [
            [cast("Completion | Failure", answer)] * len(request.seeds)
            for request, answer in zip(requests, answers, strict=True)
        ]

    def _refusal(self, request: Request) -> Failure | None:
        """Why a request cannot be taken; None where it can."""
        check_images(request)
        phrase = request.inputs.get("phrase")
        if not isinstance(phrase, str) or not phrase.strip():
            remedy = "ask it barista/grounding, the task whose inputs have a phrase"
            return Failure(f"{request.request_id}: SAM 3 grounds a phrase and there is none. Remedy: {remedy}")
        if len(request.images) != 1:
            return Failure(f"{request.request_id}: SAM 3 looks at one image, not {len(request.images)}")
        tokens = len(self._processor.tokenizer(phrase)["input_ids"])
        if tokens > PHRASE_TOKENS:
            return Failure(f"{request.request_id}: the phrase has {tokens} tokens, SAM 3 reads {PHRASE_TOKENS}")
        return None

    def _ground(self, batch: Sequence[Request]) -> Sequence[Completion | Failure] | None:
        """One answer a request; None where the memory ran out and a smaller batch may fit."""
        import torch

        try:
            with torch.inference_mode():
                return self._answers(batch)
        except torch.OutOfMemoryError as error:
            if len(batch) == 1:
                return [Failure(f"{batch[0].request_id}: does not fit into memory ({error})")]
        self.batch_size = len(batch) // 2
        log.warning("SAM 3 ran out of memory: batches of %d from here on", self.batch_size)
        torch.cuda.empty_cache()
        return None

    def _answers(self, batch: Sequence[Request]) -> list[Completion]:
        images = [request.images[0].convert("RGB") for request in batch]
        phrases = [str(request.inputs["phrase"]) for request in batch]
        inputs = self._processor(images=images, text=phrases, return_tensors="pt")
        device, dtype = self._model.device, self._model.dtype
        outputs = self._model(
            pixel_values=inputs["pixel_values"].to(device, dtype),
            input_ids=inputs["input_ids"].to(device),
            attention_mask=inputs["attention_mask"].to(device),
        )
        answers = []
        for place, image in enumerate(images):
            # One image at a time: masks are as large as the image, and there are up to 200 of them.
            (found,) = self._processor.post_process_instance_segmentation(
                _row(outputs, place),
                threshold=self._threshold,
                mask_threshold=self._mask_threshold,
                target_sizes=[(image.height, image.width)],
            )
            answers.append(Completion(_written(found), batch_size=len(batch)))
        return answers


def mask_box(mask: torch.Tensor) -> list[int] | None:
    """The tight box [x0, y0, x1, y1] of a mask (height, width), pixels, far edges exclusive; None if it is empty."""
    rows, columns = mask.any(dim=1).nonzero(), mask.any(dim=0).nonzero()
    if not len(rows):
        return None
    return [int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1]


def _written(found: Found) -> str:
    """Boxes and confidences of one image as the task's parser reads them; instances with an empty mask are dropped."""
    scores = cast("list[float]", found["scores"].tolist())
    boxes = [mask_box(mask > 0) for mask in found["masks"]]
    pairs = [(score, box) for score, box in zip(scores, boxes, strict=True) if box is not None]
    pairs.sort(key=lambda pair: -pair[0])
    return json.dumps({"bboxes": [box for _, box in pairs], "scores": [score for score, _ in pairs]})


def _row(outputs: object, place: int) -> SimpleNamespace:
    """One image's part of a batch's outputs, in single precision: masks are resized, and confidences written down."""
    parts = {name: getattr(outputs, name) for name in _OUTPUTS}
    return SimpleNamespace(
        **{name: None if part is None else part[place : place + 1].float() for name, part in parts.items()}
    )


def _loaded(name: str, revision: str | None, device: str, dtype: str) -> tuple[PreTrainedModel, Sam3Processing]:
    import torch
    from safetensors import SafetensorError
    from transformers import Sam3Model, Sam3Processor

    if Path(name).is_dir() and revision is not None:
        raise ModelError(f"model {name}: a folder has no revisions. Remedy: leave the revision out, or give a Hub id")
    commit = revision or "main"
    try:
        processor = Sam3Processor.from_pretrained(name, revision=commit)
        loaded = Sam3Model.from_pretrained(
            name, revision=commit, dtype=dtype, output_loading_info=True, use_safetensors=True
        )
        model, report = cast("tuple[PreTrainedModel, dict[str, set[str]]]", loaded)
        if report["missing_keys"]:
            # transformers only warns, and would answer with random weights.
            missing = ", ".join(sorted(report["missing_keys"])[:3])
            raise ModelError(f"model {name}: weights are missing ({missing}, ...). Remedy: download it again")
        wanted = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
        model.to(torch.device(wanted))  # type: ignore[arg-type]
    except (
        OSError,
        ImportError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RuntimeError,
        SafetensorError,
    ) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        remedy = "give a folder or Hub id of a SAM 3 checkpoint that this machine can reach, and a device that it has"
        raise ModelError(f"model {name}: cannot be loaded as SAM 3: {first}. Remedy: {remedy}") from error
    model.eval()  # type: ignore[no-untyped-call]
    return model, cast("Sam3Processing", processor)


def _identity(name: str, model: PreTrainedModel) -> ModelIdentity:
    from barista_bench.models.transformers_loading import content_hash

    folder = Path(name)
    revision = content_hash(folder) if folder.is_dir() else getattr(model.config, "_commit_hash", None)
    dtype = str(model.dtype).removeprefix("torch.")
    attention = model.config._attn_implementation
    return ModelIdentity(f"sam3:{name}", revision, {"dtype": dtype, "attn_implementation": attention})
