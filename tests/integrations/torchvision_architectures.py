"""Run where torchvision is: `python -m tests.integrations.torchvision_architectures FOLDER` prints a JSON document.

It says what architectures do with videos (of 2, 4 and 8 frames), what Molmo 2 does with images, and which frame times
the processor of each type keeps.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

from transformers import AutoProcessor
from transformers.models.auto.processing_auto import PROCESSOR_MAPPING_NAMES, processor_class_from_name

from barista_bench.core.frame_times import FrameTimes
from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from barista_bench.core.settings import check_settings
from barista_bench.errors import ModelError
from barista_bench.models.base import Completion, Request
from barista_bench.models.local.inputs import MODEL_ERRORS, PromptEncoder
from barista_bench.models.local.model import TransformersModel
from barista_bench.models.local.processors import load_processor
from barista_bench.models.settings import GeneratorSettings
from tests import checkpoint_zoo
from tests.checkpoint_architectures import FAMILIES, Family
from tests.checkpoint_zoo import TYPES
from tests.models.local_conformance import requests_with
from tests.models.transformers_kit import GREEDY, picture

VIDEOS = (
    *("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5", "internvl", "video_llama_3"),
    *("llava_onevision", "smolvlm", "video_llava", "minicpmv4_6"),
)


def clip(number: int, frames: int, text: str) -> Request:
    pictures = tuple(picture(50 * number + frame, (64, 64)) for frame in range(frames))
    parts, times = (
        (*map(ImagePart, range(frames)), TextPart(text)),
        FrameTimes(30.0, tuple(range(0, 15 * frames, 15))),
    )
    return Request(f"clip-{number}", Prompt("", parts), pictures, times=times)


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


TIMES = {
    "even": FrameTimes(30.0, (1200, 1224, 1248, 1272, 1296, 1320), 9000),
    "uneven": FrameTimes(29.97, (30, 45, 90, 300), 1000),
}


def beside_stock(checkpoint: Path, requests: list[Request]) -> dict[str, object]:
    """How many of our answers equal transformers' own pipeline, with the times of frames, and without."""
    model = TransformersModel.load(str(checkpoint), batch_size=1, frames_as="video")
    ours = [getattr(answer, "text", None) for [answer] in model.generate(requests, GREEDY)]
    processor, network = AutoProcessor.from_pretrained(checkpoint), model._engine.model

    def stock(request: Request, *, told: bool) -> str:
        texts = [{"type": "text", "text": part.text} for part in request.prompt.parts if isinstance(part, TextPart)]
        turn = {"role": "user", "content": [{"type": "video", "video": list(request.images)}, *texts]}
        assert request.times is not None
        said = {"video_metadata": [request.times.metadata()]} if told else {}
        inputs = processor.apply_chat_template(
            [turn],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            processor_kwargs={"do_sample_frames": False, **said},
        )
        made = network.generate(**inputs, max_new_tokens=GREEDY.max_new_tokens, do_sample=False)
        text: str = processor.tokenizer.decode(made[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
        return text.lstrip(" ")

    pairs = list(zip(requests, ours, strict=True))
    return {
        "told": sum(stock(request, told=True) == answer for request, answer in pairs),
        "not_told": sum(stock(request, told=False) == answer for request, answer in pairs),
    }


def refusal(checkpoint: Path) -> str:
    try:
        TransformersModel.load(str(checkpoint), frames_as="video")
    except ModelError as error:
        return str(error)
    return ""


def taking_videos() -> list[str]:
    """The types with a video part in their processor."""
    names = {name: PROCESSOR_MAPPING_NAMES.get(name) or FAMILIES.get(name, Family()).kind for name in TYPES}
    kinds = {name: kind and processor_class_from_name(kind) for name, kind in names.items()}
    return [name for name, kind in kinds.items() if kind and "video_processor" in kind.get_attributes()]


def kept_times(model_type: str, folder: Path) -> dict[str, object]:
    """A processor's traces of `TIMES`: its own record, rates among its outputs, and its prompt as text."""
    try:
        checkpoint = checkpoint_zoo.build(model_type, folder)
        processor = load_processor(str(checkpoint), wants_video=True, trust_remote_code=False, revision="main")
        encoder = PromptEncoder(processor, model_type, check_settings(GeneratorSettings, {"frames_as": "video"}))
    except (ValueError, ModelError, *MODEL_ERRORS) as error:
        return {"refused": str(error)}
    kind, records = type(processor.video_processor), []
    plain = kind.__call__

    def watched(self: object, *args: object, **settings: object) -> object:
        made = plain(self, *args, **settings)
        records.append([[each.fps, list(each.frames_indices)] for each in made["video_metadata"]])
        return made

    kind.__call__ = watched
    seen: dict[str, object] = {}
    for name, times in TIMES.items():
        request = replace(clip(0, len(times.indices), "What is done?"), times=times)
        try:
            tensors = encoder.encode(request).tensors
        except MODEL_ERRORS as error:
            return {"refused": f"{type(error).__name__}: {error}"}
        rates = {output: value.tolist() for output, value in tensors.items() if "second" in output}
        written = encoder.tokenizer.decode(tensors["input_ids"][0])
        seen[name] = {"record": records.pop(), "rates": rates, "written": written}
    kind.__call__ = plain
    return seen


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    clips = [clip(0, 4, "What is done?"), clip(1, 2, "left or right"), clip(2, 8, "milk " * 10), clip(3, 4, "a jug")]
    outcomes = {
        name: outcome(checkpoint_zoo.build(name, folder / name), clips, frames_as="video") for name in VIDEOS
    } | {"molmo2": outcome(checkpoint_zoo.build("molmo2", folder / "molmo2"), requests_with(1, 2, 1, 2))}
    times = {name: kept_times(name, folder / "times" / name) for name in taking_videos()}
    frames = enumerate((4, 2, 8, 4, 6, 3, 5, 7))
    stock = beside_stock(folder / "smolvlm", [clip(n, count, f"What is done, {n}?") for n, count in frames])
    kimi = refusal(folder / "times" / "kimi_k25")
    print(json.dumps({"outcomes": outcomes, "times": times, "smolvlm": stock, "kimi": kimi}))
