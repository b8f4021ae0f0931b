"""Run where torchvision is: `python -m tests.integrations.torchvision_families FOLDER` prints what families do with
videos (of 2, 4 and 8 frames), and Molmo 2 with images, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from barista_bench.models.base import Completion, Request
from barista_bench.models.local.model import TransformersModel
from tests import checkpoint_zoo
from tests.models.local_conformance import requests_with
from tests.models.transformers_kit import GREEDY, picture

VIDEOS = (
    *("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5", "internvl", "video_llama_3"),
    *("llava_onevision", "smolvlm", "video_llava", "minicpmv4_6"),
)


def clip(number: int, frames: int, text: str) -> Request:
    pictures = tuple(picture(50 * number + frame, (64, 64)) for frame in range(frames))
    return Request(f"clip-{number}", Prompt("", (*map(ImagePart, range(frames)), TextPart(text))), pictures)


def outcome(checkpoint: Path, requests: list[Request], **settings: str) -> dict[str, object]:
    model = TransformersModel.load(str(checkpoint), batch_size=4, **settings)
    in_batch = [answer for [answer] in model.generate(requests, GREEDY)]
    check, together = model.batch_check, model.batch_size == 4
    model.batch_size = 1
    alone = [answer for [answer] in model.generate(requests, GREEDY)]
    given = [answer for answer in alone if isinstance(answer, Completion)]
    return {
        "answered": len(given),
        "different": len({answer.text for answer in given}),
        "equal": [answer.text for answer in given] == [getattr(answer, "text", None) for answer in in_batch],
        "together": together,
        "check": check,
        "image_processor": model.identity.settings["image_processor"],
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    clips = [clip(0, 4, "What is done?"), clip(1, 2, "left or right"), clip(2, 8, "milk " * 10), clip(3, 4, "a jug")]
    outcomes = {
        name: outcome(checkpoint_zoo.build(name, folder / name), clips, frames_as="video") for name in VIDEOS
    } | {"molmo2": outcome(checkpoint_zoo.build("molmo2", folder / "molmo2"), requests_with(1, 2, 1, 2))}
    print(json.dumps(outcomes))
