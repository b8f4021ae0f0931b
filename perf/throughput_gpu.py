"""Batch sizes beside each other, on a vision-language model of random weights: no download is needed.

Weights do not change the work, so random ones of a real size measure what a checkpoint would. Each request holds one
1280 x 720 image of noise and a hundred words, and wants three samples, as the protocol does; answers never end early.
Printed for each batch size: samples and tokens a second as times those of batch size 1, the fraction of time in which
the GPU was busy (nvidia-smi, sampled), and the peak of its memory.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from PIL import Image
from transformers import PreTrainedModel, ProcessorMixin

from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from barista_bench.core.settings import check_settings
from barista_bench.models import tiny
from barista_bench.models.base import Completion, GenerationConfig, ModelIdentity, Request
from barista_bench.models.local.model import TransformersModel
from barista_bench.models.settings import TransformersSettings

IMAGE = (1280, 720)


@dataclass(frozen=True)
class Size:
    """Layers of a text and a vision model."""

    text: dict[str, object]
    vision: dict[str, object]
    image: dict[str, object] = field(default_factory=dict)


QWEN3_VL = {
    "4b": Size(
        {"vocab_size": 151_936, "hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36}
        | {"num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 65_536},
        {"depth": 24, "hidden_size": 1024, "intermediate_size": 4096, "num_heads": 16, "out_hidden_size": 2560}
        | {"deepstack_visual_indexes": [5, 11, 17], "num_position_embeddings": 2304},
        {"shortest_edge": 65_536, "longest_edge": 16_777_216},
    ),
    "tiny": Size(
        {"vocab_size": 600, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
        | {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 8192},
        {"depth": 2, "hidden_size": 64, "intermediate_size": 128, "num_heads": 4, "out_hidden_size": 64}
        | {"deepstack_visual_indexes": [0], "num_position_embeddings": 64},
        {"shortest_edge": 64 * 64, "longest_edge": 128 * 128},
    ),
}
GEMMA3 = {
    "4b": Size(
        {"vocab_size": 262_208, "hidden_size": 2560, "intermediate_size": 10_240, "num_hidden_layers": 34}
        | {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "sliding_window": 1024},
        {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16}
        | {"image_size": 896, "patch_size": 14},
        {"size": 896, "tokens": 256},
    ),
    "tiny": Size(
        {"vocab_size": 600, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
        | {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "sliding_window": 64},
        {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
        | {"image_size": 64, "patch_size": 16},
        {"size": 64, "tokens": 4},
    ),
}


def _qwen3_vl(size: str, dtype: torch.dtype) -> tuple[PreTrainedModel, ProcessorMixin]:
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration, Qwen3VLProcessor, Qwen3VLVideoProcessor
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    dims = QWEN3_VL[size]
    marks = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
    tokenizer = tiny.train_tokenizer(["<|endoftext|>", "<|im_end|>", "<|im_start|>", *marks])
    start, end, image, video = (tiny.token_id(tokenizer, mark) for mark in marks)
    head = dims.text["head_dim"]
    sections = [24, 20, 20] if head == 128 else [2, 3, 3]
    rope = {"rope_type": "default", "rope_theta": 5e6, "mrope_section": sections, "mrope_interleaved": True}
    config = Qwen3VLConfig(
        text_config={**dims.text, "rope_parameters": rope, "pad_token_id": 0, "eos_token_id": 1},
        vision_config={**dims.vision, "patch_size": 16},
        image_token_id=image,
        video_token_id=video,
        vision_start_token_id=start,
        vision_end_token_id=end,
        tie_word_embeddings=True,
    )
    pictures = Qwen2VLImageProcessorPil(patch_size=16, size=dict(dims.image))
    chat = tiny.TURN.replace("IMAGE", "<|vision_start|><|image_pad|><|vision_end|>")
    processor = Qwen3VLProcessor(pictures, tokenizer, Qwen3VLVideoProcessor(patch_size=16), chat_template=chat)
    return Qwen3VLForConditionalGeneration._from_config(config, dtype=dtype), processor


def _gemma3(size: str, dtype: torch.dtype) -> tuple[PreTrainedModel, ProcessorMixin]:
    from transformers import Gemma3Config, Gemma3ForConditionalGeneration, Gemma3Processor
    from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil

    dims = GEMMA3[size]
    side, tokens = dims.image["size"], dims.image["tokens"]
    names = {"boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>"}
    tokenizer = tiny.train_tokenizer(["<pad>", "<eos>", "<bos>", "<|im_start|>", "<|im_end|>", *names.values()], names)
    ids = {name: tiny.token_id(tokenizer, token) for name, token in names.items()}
    config = Gemma3Config(
        text_config={**dims.text, "pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 2},
        vision_config=dims.vision,
        mm_tokens_per_image=tokens,
        boi_token_index=ids["boi_token"],
        eoi_token_index=ids["eoi_token"],
        image_token_index=ids["image_token"],
    )
    pictures = Gemma3ImageProcessorPil(size={"height": side, "width": side})
    chat = tiny.TURN.replace("IMAGE", "<start_of_image>")
    processor = Gemma3Processor(pictures, tokenizer, image_seq_length=tokens, chat_template=chat)
    return Gemma3ForConditionalGeneration._from_config(config, dtype=dtype), processor


ARCHITECTURES: dict[str, Callable[[str, torch.dtype], tuple[PreTrainedModel, ProcessorMixin]]] = {
    "gemma3": _gemma3,
    "qwen3_vl": _qwen3_vl,
}


class BusyGpu:
    """Samples how busy the GPU is while it is open; `fraction` is None where nvidia-smi is missing."""

    fraction: float | None = None

    def __enter__(self) -> BusyGpu:
        self._stop, self._seen = threading.Event(), list[float]()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.fraction = float(np.mean(self._seen)) if self._seen else None

    def _watch(self) -> None:
        command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "--id=0"]
        while shutil.which("nvidia-smi") and not self._stop.wait(0.5):
            reading = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
            if reading.isdecimal():
                self._seen.append(int(reading) / 100)


def measure_batches(
    architecture: str, size: str, *, device: str, batch_sizes: Sequence[int | str], examples: int, new_tokens: int
) -> dict[str, float]:
    """Print the table, and give samples a second for each batch size."""
    on_gpu = device.startswith("cuda")
    with torch.device(device):
        weights, processor = ARCHITECTURES[architecture](size, torch.bfloat16 if on_gpu else torch.float32)
    weights.eval()
    weights.generation_config.eos_token_id = [2**31 - 1]  # never drawn: every answer has its full length
    requests = [request(number) for number in range(examples)]
    config = GenerationConfig(temperature=0.7, max_new_tokens=new_tokens)
    print(f"{architecture} {size}, {sum(p.numel() for p in weights.parameters()) / 1e9:.2f}e9 weights on {device}")
    print("| batch size | samples/s | x batch 1 | tokens/s | GPU busy | peak GB |\n|:--|--:|--:|--:|--:|--:|")
    rates: dict[str, float] = {}
    for batch_size in batch_sizes:
        settings = check_settings(TransformersSettings, {"batch_size": batch_size})
        model = TransformersModel(weights, processor, ModelIdentity(architecture), settings)
        model.generate(requests[:1], GenerationConfig(temperature=0.7, max_new_tokens=4))  # warms up
        if on_gpu:
            torch.cuda.reset_peak_memory_stats()
        begun = time.perf_counter()
        with BusyGpu() as busy:
            answers = [completion for each in model.stream(requests, config) for completion in each.completions]
        seconds = time.perf_counter() - begun
        made = [completion for completion in answers if isinstance(completion, Completion)]
        tokens = sum(completion.output_tokens or 0 for completion in made)
        rates[str(batch_size)] = len(made) / seconds
        row = (
            f"{batch_size}" + (f" ({len(answers) - len(made)} failed)" if len(made) < len(answers) else ""),
            f"{len(made) / seconds:.2f}",
            f"{rates[str(batch_size)] / next(iter(rates.values())):.2f}",
            f"{tokens / seconds:.0f}",
            "not measured" if busy.fraction is None else f"{busy.fraction:.0%}",
            f"{torch.cuda.max_memory_allocated() / 2**30:.1f}" if on_gpu else "not measured",
        )
        print(f"| {' | '.join(row)} |", flush=True)
    print(f"best batch size: {max(rates, key=rates.__getitem__)}")
    return rates


def request(number: int) -> Request:
    """One image of noise, a hundred words, three samples."""
    pixels = np.random.default_rng(number).integers(0, 256, (IMAGE[1], IMAGE[0], 3), dtype=np.uint8)
    parts = (ImagePart(0), TextPart("the cup is on the scale " * 17))
    return Request(str(number), Prompt("", parts), (Image.fromarray(pixels),), seeds=(1, 2, 3))
