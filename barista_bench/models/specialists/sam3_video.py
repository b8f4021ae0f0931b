"""SAM 3 over a clip: phrases are found and followed from image to image in one pass, through transformers.

Detection and tracking keep to the thresholds of the checkpoint. Needs torchvision, as `sam3` does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image

from barista_bench.errors import ModelError
from barista_bench.files.checkpoints import Pretrained, load_pretrained
from barista_bench.models.specialists.sam3_masks import Mask


class Sam3Video:
    """Follows phrases through a clip.

    Args:
        model: `Sam3VideoModel` on its device.
        processor: `Sam3VideoProcessor`.
    """

    def __init__(self, model: Pretrained, processor: Pretrained) -> None:
        self._model = model
        self._processor = processor

    @classmethod
    def load(cls, name: str, *, revision: str | None = None, device: str = "auto", dtype: str = "auto") -> Sam3Video:
        """The detector and the tracker of a checkpoint by local folder or Hub id.

        Raises:
            ModelError: it has no tracker, or cannot be read.
        """
        from transformers import Sam3VideoModel, Sam3VideoProcessor

        model, processor = load_pretrained(
            name,
            Sam3VideoProcessor.from_pretrained,
            Sam3VideoModel.from_pretrained,
            kind="SAM 3 for clips",
            revision=revision,
            device=device,
            dtype=dtype,
        )
        return cls(model, processor)

    def segment(self, images: Sequence[Image.Image], phrases: Sequence[str], wanted: Sequence[int]) -> dict[int, Mask]:
        """The region of all instances of all phrases, (height, width), in each of the wanted images.

        Args:
            images: the clip in order, of one size; all of them are seen.
            phrases: what to find.
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
