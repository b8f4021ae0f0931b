"""Two towers, one of images or videos and one of texts, whose embeddings are compared: what a `DualEncoder` runs.

torch is imported when towers are loaded, never when this module is.
"""

from __future__ import annotations

import inspect
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol, cast

from PIL import Image

from barista_bench.errors import ModelError
from barista_bench.files.checkpoints import device_of, load_pretrained, require_libraries
from barista_bench.models.local.settings import CheckpointSettings

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedTokenizerBase

log = logging.getLogger(__name__)

Images = Sequence[Image.Image]
Encoded = dict[str, "torch.Tensor"]

_PADDED = frozenset({"siglip", "siglip2"})
"""Families that were trained on texts padded to their full length, and read their last token."""
_PADDED_TOKENS = 64
_NO_LIMIT = 1_000_000  # a tokenizer without a limit claims a far larger one


class EncoderModel(Protocol):
    """What is used of a model; which features it has decides its kind, and the last three are X-CLIP's."""

    config: PreTrainedConfig
    device: torch.device
    dtype: torch.dtype
    get_text_features: Callable[..., object]
    get_image_features: Callable[..., object]
    get_video_features: Callable[..., object]
    prompts_visual_layernorm: Callable[[torch.Tensor], torch.Tensor]
    prompts_visual_projection: torch.Tensor
    prompts_generator: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class _Seen(Protocol):
    """What an X-CLIP's video tower gives: tokens of each frame, and the video's embedding."""

    last_hidden_state: torch.Tensor
    pooler_output: torch.Tensor


class Processing(Protocol):
    """What is used of a processor."""

    tokenizer: PreTrainedTokenizerBase

    def image_processor(self, *, images: list[Image.Image], return_tensors: str) -> Encoded: ...

    def video_processor(self, *, videos: list[list[Image.Image]], return_tensors: str) -> Encoded: ...


class Towers(ABC):
    """Embeds units (one frame each, or one clip each) and texts, and compares them.

    Args:
        name: of the model, for errors.
        model: loaded, on its device.
        processor: its processor.
    """

    sees: ClassVar[str]
    """`frames` or `video`."""
    pooling: ClassVar[str]
    frames: int | None = None
    """Frames that a unit is made of; None where any number is taken."""

    def __init__(self, name: str, model: EncoderModel, processor: Processing) -> None:
        self.name, self.model, self.processor = name, model, processor
        tokenizer = processor.tokenizer
        self._padding = "max_length" if model.config.model_type in _PADDED else True
        told = tokenizer.model_max_length
        read = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        limits = [limit for limit in (told if told < _NO_LIMIT else None, read) if limit]
        fixed = _PADDED_TOKENS if self._padding == "max_length" else None
        self.text_tokens: int = min(limits or [fixed or 77])
        """Tokens of a text that are read; what follows is cut off, as CLIP does."""

    @abstractmethod
    def split(self, images: Images) -> list[tuple[Image.Image, ...]]:
        """The units that a request's images, in order, are embedded as."""

    @abstractmethod
    def embed(self, units: Sequence[Images]) -> list[torch.Tensor]:
        """One float32 tensor a unit, on the CPU: (1, d), or what `cosines` further needs."""

    @abstractmethod
    def pooled(self, units: Sequence[torch.Tensor]) -> torch.Tensor:
        """(d,) float64: the embedding of all units together. Their order changes nothing."""

    def embed_texts(self, texts: Sequence[str]) -> list[torch.Tensor]:
        """(d,) float32 on the CPU for each text."""
        tokens = self.processor.tokenizer(
            list(texts), padding=self._padding, truncation=True, max_length=self.text_tokens, return_tensors="pt"
        )
        found = _vectors(self.model.get_text_features(**self._placed(dict(tokens))), self.name, "text")
        return list(found.float().cpu())

    def cosines(self, units: Sequence[torch.Tensor], texts: Sequence[torch.Tensor]) -> list[float]:
        """The cosine of the images with each of the texts; NaN where an embedding is none."""
        import torch

        seen, read = self.pooled(units), torch.stack(list(texts)).double()
        if seen.shape[0] != read.shape[1]:
            sizes = f"images are embedded in {seen.shape[0]} dimensions and texts in {read.shape[1]}"
            raise ModelError(f"model {self.name}: {sizes}. Remedy: use a model with one space for both, like CLIP")
        return (_unit(read) @ _unit(seen)).tolist()

    def too_long(self, texts: Sequence[str]) -> list[str]:
        """The texts whose ends are cut off."""
        found = self.processor.tokenizer(list(texts), verbose=False)["input_ids"]
        return [text for text, ids in zip(texts, found, strict=True) if len(ids) > self.text_tokens]

    def _placed(self, inputs: Encoded) -> Encoded:
        """On the model's device, numbers with a fraction in its precision."""
        device, dtype = self.model.device, self.model.dtype
        return {
            name: value.to(device, dtype) if value.is_floating_point() else value.to(device)
            for name, value in inputs.items()
        }


class FrameTowers(Towers):
    """An image model: each frame is embedded alone, and a video is the mean of its frames' unit vectors."""

    sees = "frames"
    pooling = "mean of unit vectors"

    def split(self, images: Images) -> list[tuple[Image.Image, ...]]:
        return [(image,) for image in images]

    def embed(self, units: Sequence[Images]) -> list[torch.Tensor]:
        inputs = dict(self.processor.image_processor(images=[image for (image,) in units], return_tensors="pt"))
        found = _vectors(self.model.get_image_features(**self._placed(inputs)), self.name, "image")
        return list(found.float().cpu().unsqueeze(1))

    def pooled(self, units: Sequence[torch.Tensor]) -> torch.Tensor:
        import torch

        return _mean(_unit(torch.cat(list(units)).double()))


class PlainFrameTowers(FrameTowers):
    """The same, but with the mean of the embeddings as they are: longer ones count for more."""

    pooling = "mean"

    def pooled(self, units: Sequence[torch.Tensor]) -> torch.Tensor:
        import torch

        return _mean(torch.cat(list(units)).double())


class VideoTowers(Towers):
    """A video model: all frames are embedded together, evenly spaced ones of them where it takes a certain number."""

    sees = "video"
    pooling = "the model's own"

    def __init__(self, name: str, model: EncoderModel, processor: Processing) -> None:
        super().__init__(name, model, processor)
        vision = getattr(model.config, "vision_config", model.config)
        self.frames = getattr(vision, "num_frames", None)
        self._takes = frozenset(inspect.signature(model.get_video_features).parameters)

    def split(self, images: Images) -> list[tuple[Image.Image, ...]]:
        return [tuple(images[place] for place in spread(len(images), self.frames or len(images)))]

    def embed(self, units: Sequence[Images]) -> list[torch.Tensor]:
        if len({len(unit) for unit in units}) > 1:
            return [embedding for unit in units for embedding in self.embed([unit])]
        inputs = dict(self.processor.video_processor(videos=[list(unit) for unit in units], return_tensors="pt"))
        taken = {name: value for name, value in inputs.items() if name in self._takes}
        found = _vectors(self.model.get_video_features(**self._placed(taken)), self.name, "video")
        return list(found.float().cpu().unsqueeze(1))

    def pooled(self, units: Sequence[torch.Tensor]) -> torch.Tensor:
        (unit,) = units
        return unit[0].double()


class XClipTowers(VideoTowers):
    """X-CLIP, which adds to each text what its prompt generator makes of the video (Ni et al., 2022, section 3.3).

    A unit is (1 + t, d): the video's embedding, and the t patch tokens, averaged over time, that the generator reads.
    """

    def embed(self, units: Sequence[Images]) -> list[torch.Tensor]:
        import torch

        frames = [image for unit in units for image in unit]
        pixels = self.processor.image_processor(images=frames, return_tensors="pt")["pixel_values"]
        count = len(frames) // len(units)
        pixels = pixels.reshape(len(units), count, *pixels.shape[-3:])
        model = self.model
        seen = cast("_Seen", model.get_video_features(**self._placed({"pixel_values": pixels})))
        patches = model.prompts_visual_layernorm(seen.last_hidden_state[:, 1:])  # without the class token
        patches = patches @ model.prompts_visual_projection
        patches = patches.reshape(len(units), count, *patches.shape[1:]).mean(dim=1)
        return list(torch.cat([seen.pooler_output.unsqueeze(1), patches], dim=1).float().cpu())

    def cosines(self, units: Sequence[torch.Tensor], texts: Sequence[torch.Tensor]) -> list[float]:
        import torch

        (unit,) = units
        model = self.model
        given = self._placed({"texts": torch.stack(list(texts)).unsqueeze(0), "patches": unit[1:].unsqueeze(0)})
        prompted = given["texts"] + model.prompts_generator(given["texts"], given["patches"])
        return super().cosines(units, list(prompted[0].float().cpu()))


def spread(total: int, count: int) -> tuple[int, ...]:
    """`count` places among `total` in equal steps, the first and the last among them; repeated where there are fewer.

    >>> spread(32, 4), spread(2, 4), spread(3, 1)
    ((0, 10, 20, 31), (0, 0, 0, 1), (0,))
    """
    return tuple(place * (total - 1) // max(1, count - 1) for place in range(count))


def load_towers(name: str, settings: CheckpointSettings, *, unit_frames: bool = True) -> Towers:
    """The towers of a local folder or a Hub id, ready on their device; on a CPU in float32, unless said otherwise.

    Args:
        unit_frames: whether an image model's frames are brought to length 1 before their mean.

    Raises:
        ModelError: the checkpoint cannot be read, is incomplete, or is no dual encoder.
    """
    require_libraries()
    from transformers import AutoModel, AutoProcessor

    on_cpu = device_of(settings.device).type == "cpu"
    model, processor = load_pretrained(
        name,
        AutoProcessor.from_pretrained,
        AutoModel.from_pretrained,
        kind="a dual encoder",
        revision=settings.revision,
        device=settings.device,
        trust_remote_code=settings.trust_remote_code,
        check=lambda model: _kind(name, cast("EncoderModel", model)),
        dtype="float32" if settings.dtype == "auto" and on_cpu else settings.dtype,
        attn_implementation=settings.attn_implementation,
    )
    encoder = cast("EncoderModel", model)
    kind = _kind(name, encoder)
    if kind is FrameTowers and not unit_frames:
        kind = PlainFrameTowers
    return kind(name, encoder, processor)


def _kind(name: str, model: EncoderModel) -> type[Towers]:
    if not hasattr(model, "get_text_features"):
        raise ModelError(
            f"model {name}: {type(model).__name__} has no tower of texts. Remedy: name a dual encoder (CLIP, SigLIP, "
            "X-CLIP, ...), or leave out `dual:`"
        )
    if hasattr(model, "get_video_features"):
        return XClipTowers if model.config.model_type == "xclip" else VideoTowers
    if hasattr(model, "get_image_features"):
        return FrameTowers
    raise ModelError(f"model {name}: {type(model).__name__} sees neither images nor videos. Remedy: name another")


def _vectors(output: object, name: str, what: str) -> torch.Tensor:
    """(n, d) of what `get_..._features` returned: older models give the tensor, newer ones an output that holds it."""
    import torch

    found = output if isinstance(output, torch.Tensor) else getattr(output, "pooler_output", None)
    if not isinstance(found, torch.Tensor) or found.ndim != 2:
        raise ModelError(f"model {name}: gives no single vector for each {what}. Remedy: use a model like CLIP")
    return found


def _mean(vectors: torch.Tensor) -> torch.Tensor:
    """The mean of rows, to the last bit the same in any order of them: a bag of frames must not know their order."""
    order = sorted(range(len(vectors)), key=lambda row: vectors[row].tolist())
    return vectors[order].mean(dim=0)


def _unit(vectors: torch.Tensor) -> torch.Tensor:
    return vectors / vectors.norm(dim=-1, keepdim=True)
