"""Requests for masks, for segmenters that read phrases and no prompt.

`Request.inputs` has these fields:

    answer: "masks"
    phrases: the things to find; all instances of all phrases form one region
    frames: the images to segment, by index from 0; all images if missing
    mode: "sequential" for one pass over the clip, else each image separately

For each selected image with a result, the answer has a compressed COCO run-length encoding, as large as the image:

    {"masks": [{"frame": 3, "rle": {"size": [height, width], "counts": "..."}}]}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco_mask

from barista_bench.models.base import Request

Mask = NDArray[np.bool_]


def wants_masks(request: Request) -> bool:
    """Return True if a request asks for masks."""
    return request.inputs.get("answer") == "masks"


def is_sequential(request: Request) -> bool:
    """Return True if the images of a request form one clip."""
    return wants_masks(request) and request.inputs.get("mode") == "sequential"


def problem_with(request: Request) -> str | None:
    """Return why a request for masks is invalid; None for a valid request."""
    phrases, frames = request.inputs.get("phrases"), request.inputs.get("frames", [])
    if not isinstance(phrases, list | tuple) or not phrases:
        return "there are no phrases to segment"
    if not all(isinstance(phrase, str) and phrase.strip() for phrase in phrases):
        return "its phrases are not all texts"
    if not isinstance(frames, list | tuple) or not all(type(frame) is int for frame in frames):
        return "its frames are no list of indices"
    if not request.images:
        return "there are no images to segment"
    missing = [frame for frame in frames if not 0 <= frame < len(request.images)]
    return f"there is no image {missing[0]} among {len(request.images)}" if missing else None


def phrases_of(request: Request) -> tuple[str, ...]:
    """Return the distinct phrases of a valid request, in order."""
    return tuple(dict.fromkeys(cast("Sequence[str]", request.inputs["phrases"])))


def images_to_segment(request: Request) -> tuple[int, ...]:
    """Return the indices of the images to segment, in order."""
    frames = cast("Sequence[int]", request.inputs.get("frames", range(len(request.images))))
    return tuple(sorted(set(frames)))


def write_masks(masks: Mapping[int, Mask]) -> str:
    """Write the answer from masks (height, width) by the indices of their images. Empty masks are left out."""
    entries = []
    for index, mask in sorted(masks.items()):
        if mask.any():
            rle = coco_mask.encode(np.asfortranarray(mask, dtype=np.uint8))
            entries.append({"frame": index, "rle": {"size": list(mask.shape), "counts": rle["counts"].decode()}})
    return json.dumps({"masks": entries})
