"""Two encoders ("towers") whose embeddings a `DualEncoder` compares: one for images or videos, one for texts.

torch is imported when towers are loaded, not when this module is imported.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from PIL import Image

from barista_bench.errors import ModelError
from barista_bench.files.checkpoints import Pretrained, device_of, load_pretrained, on_device, require_libraries
from barista_bench.models.settings import CheckpointSettings

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

Images = Sequence[Image.Image]
Encoded = dict[str, "torch.Tensor"]

_PADDED = frozenset({"siglip", "siglip2"})
"""Architectures that were trained on texts padded to the full length. These models read the last token of a text."""
_PADDED_TOKENS = 64
_NO_LIMIT = 1_000_000  # a tokenizer without a limit reports a far larger number


class Towers(ABC):
    """Two towers that embed units (one frame or one clip each) and texts, and compare their embeddings."""

    sees: ClassVar[str]
    """`frames` or `video`."""
    pooling: str
    frames: int | None = None
    """Number of frames in a unit; None for any number."""

    def __init__(self, name: str, model: Pretrained, processor: Pretrained) -> None:
        self.name, self.model, self.processor = name, model, processor
        tokenizer = processor.tokenizer
        self._padding = "max_length" if model.config.model_type in _PADDED else True
        limits = [
            tokenizer.model_max_length if tokenizer.model_max_length < _NO_LIMIT else None,
            getattr(model.config.get_text_config(), "max_position_embeddings", None),
        ]
        usual = _PADDED_TOKENS if self._padding == "max_length" else 77
        self.text_tokens: int = min([limit for limit in limits if limit] or [usual])
        """Limit of tokens per text; longer texts are cut, as in CLIP."""

    @abstractmethod
    def split(self, images: Images) -> list[tuple[Image.Image, ...]]:
        """Split a request's images into units, in order."""

    @abstractmethod
    def embed(self, units: Sequence[Images]) -> list[torch.Tensor]:
        """Return one float32 tensor per unit, on the CPU: of shape (1, d), or of any shape that `cosines` can read."""

    @abstractmethod
    def pool(self, units: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the embedding of all units together, shape (d,), float64. The order of the units has no effect."""

    def embed_texts(self, texts: Sequence[str]) -> list[torch.Tensor]:
        """Return one vector of shape (d,) per text, in float32 on the CPU."""
        tokens = self.processor.tokenizer(
            list(texts), padding=self._padding, truncation=True, max_length=self.text_tokens, return_tensors="pt"
        )
        return list(self._vectors(self.model.get_text_features, dict(tokens), "text"))

    def cosines(self, units: Sequence[torch.Tensor], texts: Sequence[torch.Tensor]) -> list[float]:
        """Return the cosine of the images with each text; NaN if an embedding is undefined."""
        import torch

        pooled, stacked = self.pool(units), torch.stack(list(texts)).double()
        if pooled.shape[0] != stacked.shape[1]:
            sizes = f"images are embedded in {pooled.shape[0]} dimensions and texts in {stacked.shape[1]}"
            raise ModelError(f"model {self.name}: {sizes}. Fix: use a model with one space for both, like CLIP")
        return (_unit(stacked) @ _unit(pooled)).tolist()

    def too_long(self, texts: Sequence[str]) -> list[str]:
        """Return the texts that are too long and lose their ends."""
        tokens = self.processor.tokenizer(list(texts), verbose=False)["input_ids"]
        return [text for text, ids in zip(texts, tokens, strict=True) if len(ids) > self.text_tokens]

    def _vectors(self, embed: Callable[..., object], inputs: Encoded, noun: str) -> torch.Tensor:
        """Return vectors, shape (n, d), float32, on the CPU: older models return a tensor, newer models wrap it."""
        import torch

        output = embed(**self._on_device(inputs))
        vectors = output if isinstance(output, torch.Tensor) else getattr(output, "pooler_output", None)
        if not isinstance(vectors, torch.Tensor) or vectors.ndim != 2:
            remedy = "use a model like CLIP"
            raise ModelError(f"model {self.name}: gives no single vector for each {noun}. Fix: {remedy}")
        return vectors.float().cpu()

    def _on_device(self, inputs: Encoded) -> Encoded:
        return on_device(inputs, self.model.device, self.model.dtype)


class FrameTowers(Towers):
    """An image model: each frame is embedded separately, and a video's vector is the mean of its frames' vectors.

    Frame vectors are first scaled to length 1. If `unit_frames` is False, they are not, and longer vectors have more
    weight.
    """

    sees = "frames"
    pooling = "mean of unit vectors"
    unit_frames = True

    def split(self, images: Images) -> list[tuple[Image.Image, ...]]:
        return [(image,) for image in images]

    def embed(self, units: Sequence[Images]) -> list[torch.Tensor]:
        inputs = dict(self.processor.image_processor(images=[image for (image,) in units], return_tensors="pt"))
        return list(self._vectors(self.model.get_image_features, inputs, "image").unsqueeze(1))

    def pool(self, units: Sequence[torch.Tensor]) -> torch.Tensor:
        import torch

        frames = torch.cat(list(units)).double()
        return _mean(_unit(frames) if self.unit_frames else frames)


class VideoTowers(Towers):
    """A video model: it embeds all frames together; if it takes a fixed number, it receives evenly spaced frames."""

    sees = "video"
    pooling = "the model's own"

    def __init__(self, name: str, model: Pretrained, processor: Pretrained) -> None:
        super().__init__(name, model, processor)
        vision = getattr(model.config, "vision_config", model.config)
        self.frames = getattr(vision, "num_frames", None)
        self._input_names = frozenset(inspect.signature(model.get_video_features).parameters)

    def split(self, images: Images) -> list[tuple[Image.Image, ...]]:
        return [tuple(images[index] for index in spread_indices(len(images), self.frames or len(images)))]

    def embed(self, units: Sequence[Images]) -> list[torch.Tensor]:
        if len({len(unit) for unit in units}) > 1:
            return [embedding for unit in units for embedding in self.embed([unit])]
        inputs = dict(self.processor.video_processor(videos=[list(unit) for unit in units], return_tensors="pt"))
        known_inputs = {name: value for name, value in inputs.items() if name in self._input_names}
        return list(self._vectors(self.model.get_video_features, known_inputs, "video").unsqueeze(1))

    def pool(self, units: Sequence[torch.Tensor]) -> torch.Tensor:
        (unit,) = units
        return unit[0].double()


class XClipTowers(VideoTowers):
    """X-CLIP, which adds its prompt generator's output for the video to each text (Ni et al., 2022, section 3.3).

    A unit has the shape (1 + t, d): the video's embedding, then t patch tokens for the generator, averaged over time.
    """

    def embed(self, units: Sequence[Images]) -> list[torch.Tensor]:
        import torch

        frames = [image for unit in units for image in unit]
        pixels = self.processor.image_processor(images=frames, return_tensors="pt")["pixel_values"]
        count = len(frames) // len(units)
        pixels = pixels.reshape(len(units), count, *pixels.shape[-3:])
        model = self.model
        video = model.get_video_features(**self._on_device({"pixel_values": pixels}))
        patches = model.prompts_visual_layernorm(video.last_hidden_state[:, 1:])  # without the class token
        patches = patches @ model.prompts_visual_projection
        patches = patches.reshape(len(units), count, *patches.shape[1:]).mean(dim=1)
        return list(torch.cat([video.pooler_output.unsqueeze(1), patches], dim=1).float().cpu())

    def cosines(self, units: Sequence[torch.Tensor], texts: Sequence[torch.Tensor]) -> list[float]:
        import torch

        (unit,) = units
        model = self.model
        inputs = self._on_device({"texts": torch.stack(list(texts)).unsqueeze(0), "patches": unit[1:].unsqueeze(0)})
        prompted_texts = inputs["texts"] + model.prompts_generator(inputs["texts"], inputs["patches"])
        return super().cosines(units, list(prompted_texts[0].float().cpu()))


def spread_indices(total: int, count: int) -> tuple[int, ...]:
    """Return `count` indices below `total` in equal steps from first to last; indices repeat if `total` is small.

    >>> spread_indices(32, 4), spread_indices(2, 4), spread_indices(3, 1)
    ((0, 10, 20, 31), (0, 0, 0, 1), (0,))
    """
    return tuple(step * (total - 1) // max(1, count - 1) for step in range(count))


def load_towers(name: str, settings: CheckpointSettings, *, unit_frames: bool = True) -> Towers:
    """Load the towers of a local folder or a Hub id onto their device. The default type on a CPU is float32.

    Args:
        unit_frames: scale the frame vectors of an image model to length 1 before averaging them.

    Raises:
        ModelError: the checkpoint cannot be read, is incomplete, or is not a dual encoder.
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
        check=lambda model: _towers_class(name, model),
        dtype="float32" if settings.dtype == "auto" and on_cpu else settings.dtype,
        attn_implementation=settings.attn_implementation,
    )
    towers = _towers_class(name, model)(name, model, processor)
    if isinstance(towers, FrameTowers) and not unit_frames:
        towers.unit_frames, towers.pooling = False, "mean"
    return towers


def _towers_class(name: str, model: PreTrainedModel) -> type[Towers]:
    if not hasattr(model, "get_text_features"):
        raise ModelError(
            f"model {name}: {type(model).__name__} has no tower of texts. Fix: name a dual encoder (CLIP, SigLIP, "
            "X-CLIP, ...), or leave out `dual:`"
        )
    if hasattr(model, "get_video_features"):
        return XClipTowers if model.config.model_type == "xclip" else VideoTowers
    if hasattr(model, "get_image_features"):
        return FrameTowers
    raise ModelError(f"model {name}: {type(model).__name__} sees neither images nor videos. Fix: name another")


def _mean(vectors: torch.Tensor) -> torch.Tensor:
    """Return the mean of rows, exactly equal for any order of rows: unordered frames must not reveal an order."""
    order = sorted(range(len(vectors)), key=lambda row: vectors[row].tolist())
    return vectors[order].mean(dim=0)


def _unit(vectors: torch.Tensor) -> torch.Tensor:
    return vectors / vectors.norm(dim=-1, keepdim=True)
