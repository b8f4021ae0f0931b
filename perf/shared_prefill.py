"""Our decode loop (`models/local/decoding.py`) beside transformers' `generate`, on a tiny checkpoint on the CPU.

    python perf/shared_prefill.py [--family gemma3|llava|idefics3] [--new-tokens 32] [--quick]

The same prompts, processors and seeds go through both, in turn, in one process; tokens must be equal. Prompts have six
images and about 600 tokens. Printed: the time of `generate`, which repeats each prompt for each of its samples, over
the time of the loop, which runs each prompt once (the best of several rounds each).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from barista_bench.models.base import GenerationConfig, Request
from barista_bench.models.local.decoding import decode_after_shared_prefill, sampling_processors
from barista_bench.models.local.model import TransformersModel

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # tests are not installed

from tests.tiny_families import make_tiny_model

IMAGES = 6
CASES = (
    ("greedy, 8 prompts", 8, 1, 0.0),
    ("1 sample of each of 8 prompts", 8, 1, 0.7),
    ("2 samples of one prompt", 1, 2, 0.7),
    ("3 samples of one prompt", 1, 3, 0.7),
    ("8 samples of one prompt", 1, 8, 0.7),
    ("16 samples of one prompt", 1, 16, 0.7),
    ("3 samples of each of 8 prompts", 8, 3, 0.7),
)
"""Name, prompts, samples of each, temperature."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", choices=("gemma3", "llava", "idefics3"), default="gemma3")
    parser.add_argument("--new-tokens", type=int, default=32, help="of each answer")
    parser.add_argument("--quick", action="store_true", help="one round")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # tiny tensors gain nothing from more
    with tempfile.TemporaryDirectory() as scratch:
        folder = make_tiny_model(Path(scratch) / "model", options.family)
        model = TransformersModel.load(str(folder), device="cpu")
    print("| case | time of generate / time of the loop |\n|:--|--:|")
    for name, prompts, samples, temperature in CASES:
        config = GenerationConfig(temperature=temperature, max_new_tokens=options.new_tokens)
        print(f"| {name} | {ratio(model, prompts, samples, config, 1 if options.quick else 5):.2f} |", flush=True)


def ratio(model: TransformersModel, prompts: int, samples: int, config: GenerationConfig, rounds: int) -> float:
    """The time of `generate` over the time of the loop, for the same tokens."""
    encoded = [model._engine.encoder.encode(request(number)) for number in range(prompts)]
    once = model._engine.encoder.batch(encoded)
    repeated = model._engine.encoder.batch([encoding for encoding in encoded for _ in range(samples)])
    rows = torch.arange(prompts).repeat_interleave(samples)
    padding = (repeated["attention_mask"] != 0).int().argmax(dim=1)

    def generate(inputs: dict[str, torch.Tensor], **extra: object) -> torch.Tensor:
        return model._engine.model.generate(
            **inputs,
            max_new_tokens=config.max_new_tokens,
            do_sample=False,
            cache_implementation="dynamic",
            eos_token_id=2**31 - 1,  # never chosen: every answer has its full length
            pad_token_id=model._engine.encoder.tokenizer.pad_token_id,
            logits_processor=sampling_processors(config, 1.0, padding, range(len(rows))),
            **extra,
        )

    ways: tuple[Callable[[], torch.Tensor], ...] = (
        lambda: generate(repeated),
        lambda: generate(once, custom_generate=partial(decode_after_shared_prefill, rows=rows)),
    )
    best = [float("inf")] * 2
    for _ in range(rounds):
        tokens = []
        for index, way in enumerate(ways):
            begun = time.perf_counter()
            tokens.append(way())
            best[index] = min(best[index], time.perf_counter() - begun)
        if not torch.equal(*tokens):
            raise SystemExit("the two ways chose different tokens")
    return best[0] / best[1]


def request(number: int) -> Request:
    """Six images of noise and five hundred words."""
    pixels = np.random.default_rng(number).integers(0, 256, (IMAGES, 90, 160, 3), dtype=np.uint8)
    parts = (*map(ImagePart, range(IMAGES)), TextPart("the cup is on the scale " * (80 + number)))
    return Request(str(number), Prompt("", parts), tuple(map(Image.fromarray, pixels)))


if __name__ == "__main__":
    main()
