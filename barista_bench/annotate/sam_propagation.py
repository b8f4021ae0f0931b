"""Propagates masks by the trackers of SAM 2 (Ravi et al., 2024; arXiv 2408.00714) and SAM 3, through transformers.

Two passes follow the objects: backward from the last keyframe, and forward from the first. Both passes are conditioned
on all keyframes. For each object and frame, the surer and nearer side counts. Frames are streamed, and only the parts
of the tracker's memory that it reads again are kept. torchvision is not needed: this module resizes frames itself. It
uses floating point throughout, while transformers' processors round to bytes in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from barista_bench.annotate.propagation import (
    FrameMasks,
    Keyframes,
    PropagatedMask,
    check_keyframes,
    decoded_frames,
    given_masks,
    is_empty,
)
from barista_bench.errors import ModelError
from barista_bench.files.checkpoints import Pretrained, load_pretrained, loading_of, require_libraries, revision_of
from barista_bench.media.video import FrameReader
from barista_bench.models.base import ModelIdentity
from barista_bench.scene_graph.masks import Rle, decode_mask, encode_mask, mask_ious

if TYPE_CHECKING:
    import torch

_REACH = 500  # distance between keyframes in frames, as in the paper
_TRACKERS = {
    "sam2_video": "Sam2VideoModel",
    "sam3_tracker_video": "Sam3TrackerVideoModel",
    "sam3_video": "Sam3TrackerVideoModel",  # the tracker in a checkpoint that also detects
}
"""transformers' classes by the `model_type` in a checkpoint's configuration."""


@dataclass(frozen=True, slots=True)
class PixelScale:
    """A checkpoint's scale of pixels: `(value * factor - mean) / std` for red, green and blue."""

    factor: float
    mean: tuple[float, float, float]
    std: tuple[float, float, float]

    @classmethod
    def read(cls, name: str, **source: object) -> PixelScale:
        """Read the scale from a checkpoint's settings of its image processor.

        Raises OSError, KeyError or ValueError.
        """
        from transformers import ImageProcessingMixin

        settings, _ = ImageProcessingMixin.get_image_processor_dict(name, **source)
        (r, g, b), (std_r, std_g, std_b) = settings["image_mean"], settings["image_std"]
        return cls(float(settings["rescale_factor"]), (r, g, b), (std_r, std_g, std_b))

    def pixels(self, image: NDArray[np.uint8], side: int, device: torch.device) -> torch.Tensor:
        """Return an RGB image (height, width, 3) as input for a model, resized to (3, side, side)."""
        import torch

        planes = torch.from_numpy(image).permute(2, 0, 1).to(device, torch.float32)
        mean, std = (planes.new_tensor(values)[:, None, None] for values in (self.mean, self.std))
        return (_squeeze(planes[None], side)[0] * self.factor - mean) / std


def _squeeze(planes: torch.Tensor, side: int) -> torch.Tensor:
    """Resize planes (n, channels, height, width) to squares, without keeping the aspect ratio."""
    import torch

    return torch.nn.functional.interpolate(
        planes, size=(side, side), mode="bilinear", antialias=True, align_corners=False
    )


def enlarged_mask(logits: torch.Tensor, height: int, width: int) -> NDArray[np.bool_]:
    """Return a mask of (height, width) from a model's logits (1, 1, side, side)."""
    import torch

    enlarged = torch.nn.functional.interpolate(
        logits.float(), size=(height, width), mode="bilinear", align_corners=False
    )
    return (enlarged[0, 0] > 0).cpu().numpy()


class _Tracked(NamedTuple):
    """An object on a frame in one pass: its mask, and the tracker's confidence that the object is there, 0..1."""

    rle: Rle
    presence: float

    @property
    def sureness(self) -> float:
        """Confidence in the decision that the object is present or absent, 0.5..1."""
        return max(self.presence, 1 - self.presence)


class SamPropagator:
    """Propagates masks by the tracker of a checkpoint.

    Args:
        model: a `Sam2VideoModel` or `Sam3TrackerVideoModel` on its device.
        scale: the scale of the model's pixels.
        identity: name, revision and settings.
    """

    def __init__(self, model: Pretrained, scale: PixelScale, identity: ModelIdentity) -> None:
        self._model = model
        self._scale = scale
        self.identity = identity

    @classmethod
    def load(cls, name: str) -> Self:
        """Load a checkpoint by local folder or Hub id, such as `facebook/sam2.1-hiera-large` or `facebook/sam3`.

        Raises:
            ModelError: the checkpoint has no such tracker, cannot be read or lacks weights, or torch or transformers is
                missing.
        """
        return cls(*load_sam(name, _TRACKERS, "tracker of SAM 2 or SAM 3"))

    def reach(self, fps: float) -> int:
        return _REACH

    def propagate(self, frames: FrameReader, keyframes: Keyframes, span: range) -> Iterator[FrameMasks]:
        """Return masks as in `Propagator.propagate`. Also raises ModelError if the tracker rejects a keyframe."""
        check_keyframes(frames, keyframes, span)
        tracking = _Tracking(self._model, self._scale, frames, keyframes)
        first, last = min(keyframes), max(keyframes)
        backward = dict(tracking.follow(range(last, span.start - 1, -1)))
        forward = tracking.follow(range(first, span.stop))
        mentions = {name: [k for k in sorted(keyframes) if name in keyframes[k]] for name in tracking.names}
        for frame in span:
            after = backward.pop(frame, {})
            before = next(forward)[1] if frame >= first else {}
            given = keyframes.get(frame, {})
            masks = given_masks(given)
            for name in set(tracking.names).difference(given):
                mask = _fuse_sides(frame, mentions[name], before.get(name), after.get(name))
                if mask is not None:
                    masks[name] = mask
            yield FrameMasks(frame, dict(sorted(masks.items())))


def load_sam(
    name: str, classes: Mapping[str, str], what: str, key_mapping: Mapping[str, str] | None = None
) -> tuple[Pretrained, PixelScale, ModelIdentity]:
    """Load a SAM model, its scale of pixels and its identity.

    Args:
        name: local folder or Hub id.
        classes: transformers' classes by `model_type`; checkpoints of other types are refused.
        what: the name of the model's part, for error messages.
        key_mapping: replacements for names of weights, by pattern.

    Raises:
        ModelError: see `load_pretrained`.
    """
    require_libraries()

    def read_model(source: str, **settings: object) -> object:
        import transformers

        origin = {key: settings[key] for key in ("revision", "trust_remote_code")}
        kind = transformers.AutoConfig.from_pretrained(source, **origin).model_type
        if kind not in classes:
            remedy = f"give a checkpoint of one of {', '.join(classes)}"
            raise ModelError(f"model {source}: its type is {kind}, which is no {what}. Fix: {remedy}")
        return getattr(transformers, classes[kind]).from_pretrained(source, **settings)

    model, scale = load_pretrained(
        name, PixelScale.read, read_model, kind=f"a {what}", dtype="auto", key_mapping=key_mapping
    )
    return model, scale, ModelIdentity(f"sam:{name}", revision_of(name, model.config), loading_of(model))


def _fuse_sides(
    frame: int, mentions: list[int], before: _Tracked | None, after: _Tracked | None
) -> PropagatedMask | None:
    """Return the side that counts, by nearness and by the tracker's certainty that the object is present or absent.

    A side counts only if it has a keyframe that mentions the object. The confidence is the presence on this side times
    the agreement (IoU) of both sides.
    """
    earlier = max((k for k in mentions if k < frame), default=None)
    later = min((k for k in mentions if k > frame), default=None)
    side, agreement = before if later is None else after, 1.0
    if earlier is not None and later is not None:
        assert before is not None
        assert after is not None
        fraction = (frame - earlier) / (later - earlier)
        side = after if fraction * after.sureness > (1 - fraction) * before.sureness else before
        agreement = float(mask_ious([before.rle], [after.rle])[0, 0])
    assert side is not None
    return None if is_empty(side.rle) else PropagatedMask(side.rle, side.presence * agreement)


class _Tracking:
    """One session of the tracker: first conditioned on all keyframes, then run over frames in either direction.

    Raises ModelError if the session does not hold every mask of every keyframe as a condition.
    """

    def __init__(self, model: Pretrained, scale: PixelScale, frames: FrameReader, keyframes: Keyframes) -> None:
        import transformers

        self.names = sorted({name for masks in keyframes.values() for name in masks})
        self._model, self._scale, self._frames = model, scale, frames
        width, height = frames.size
        session_class = getattr(transformers, type(model).__name__.replace("Model", "InferenceSession"))
        self._session = session_class(
            video_height=height, video_width=width, inference_device=model.device, dtype=model.dtype
        )
        for frame, image in decoded_frames(frames, [k for k in sorted(keyframes) if keyframes[k]]):
            # This runs before the next object is added: if several objects are added together, the tracker silently
            # ignores all but one.
            self._add_masks(frame, keyframes[frame])
            self._run(frame, image, reverse=False)
            self._forget(kept=range(0))
        self._check(keyframes)

    def follow(self, order: range) -> Iterator[tuple[int, dict[str, _Tracked]]]:
        """Yield all objects on consecutive frames, forward or backward."""
        if not self.names:  # without objects, the tracker refuses to run
            yield from ((frame, {}) for frame in order)
            return
        self._forget(kept=range(0))
        config = self._model.config
        memory = max(config.num_maskmem, config.max_object_pointers_in_encoder)
        for frame, image in decoded_frames(self._frames, order):
            yield frame, self._run(frame, image, reverse=order.step < 0)
            self._forget(kept=range(frame - memory, frame + memory + 1))

    def _add_masks(self, frame: int, masks: Mapping[str, Rle]) -> None:
        import torch

        numbers = [self.names.index(name) for name in masks]
        for number, rle in zip(numbers, masks.values(), strict=True):
            mask = torch.from_numpy(decode_mask(rle)).to(torch.float32)
            resized = _squeeze(mask[None, None], self._model.image_size) >= 0.5
            self._session.add_mask_inputs(self._session.obj_id_to_idx(number), frame, resized)
        self._session.obj_with_new_inputs = numbers

    def _run(self, frame: int, image: NDArray[np.uint8], *, reverse: bool) -> dict[str, _Tracked]:
        import torch

        with torch.inference_mode():
            pixels = self._scale.pixels(image, self._model.image_size, self._model.device)
            outputs = self._model(self._session, frame_idx=frame, frame=pixels, reverse=reverse)
            presence = torch.sigmoid(outputs.object_score_logits.float()).flatten().tolist()
            height, width = image.shape[:2]
            tracked = {}
            for number, score, logits in zip(outputs.object_ids, presence, outputs.pred_masks, strict=True):
                # One object at a time: many masks of the video's size would take hundreds of megabytes.
                tracked[self.names[number]] = _Tracked(encode_mask(enlarged_mask(logits[None], height, width)), score)
        self._session.processed_frames.clear()
        return tracked

    def _forget(self, kept: range) -> None:
        """Drop data that tracking does not read again: large masks (4 MB each), and tracked frames except `kept`."""
        for outputs in self._session.output_dict_per_obj.values():
            tracked = outputs["non_cond_frame_outputs"]
            for frame in set(tracked).difference(kept):
                del tracked[frame]
            for output in (*outputs["cond_frame_outputs"].values(), *tracked.values()):
                output.pop("high_res_masks", None)
        for frames in self._session.frames_tracked_per_obj.values():
            frames.clear()

    def _check(self, keyframes: Keyframes) -> None:
        for frame, masks in keyframes.items():
            for name in masks:
                outputs = self._session.output_dict_per_obj[self._session.obj_id_to_idx(self.names.index(name))]
                if frame not in outputs["cond_frame_outputs"]:
                    what = f"keyframe {frame}: the tracker did not take in the mask of {name!r}"
                    remedy = "use a version of transformers that this package allows"
                    raise ModelError(f"{self._frames.path}: {what}. Fix: {remedy}")
