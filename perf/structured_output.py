"""What holding answers to a JSON Schema costs a token, beside the same model free, on the CPU.

    python perf/structured_output.py [--model FOLDER] [--rows 1 8] [--new-tokens 64] [--rounds 5]

Every answer takes all of its tokens: the schemas want longer texts, and the free model has no end. Printed: the
milliseconds of processor time (of one thread) that a step of the whole batch takes, free and held, the best of several
rounds each, and what that is a token.
Without --model a tiny Gemma 3 with 460 tokens is asked.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from barista_bench.core.prompt import Prompt, TextPart
from barista_bench.models.base import Completion, GenerationConfig, Request
from barista_bench.models.local.model import TransformersModel
from barista_bench.models.tiny import make_tiny_model

TEXT = {"type": "string", "minLength": 2000}
SCHEMAS = {
    "free": None,
    "a text": {"type": "object", "properties": {"reason": TEXT}, "required": ["reason"]},
    "a text of at most 4000 characters": {
        "type": "object",
        "properties": {"reason": {**TEXT, "maxLength": 4000}},
        "required": ["reason"],
    },
    "boxes": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "label": {"enum": ["cup", "jug", "portafilter", "scale"]},
                "box": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 1920}, "minItems": 4},
            },
            "required": ["label", "box"],
        },
        "minItems": 500,
    },
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a checkpoint folder")
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 8], help="answers generated together")
    parser.add_argument("--new-tokens", type=int, default=64, help="of each answer")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    config = GenerationConfig(temperature=0, max_new_tokens=options.new_tokens)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.model or str(make_tiny_model(Path(scratch) / "model"))
        model = TransformersModel.load(folder, device="cpu", structured_output=True)
    free = model._engine.reader
    print("| answers together | held to | ms a step | more than free, ms a token |\n|--:|:--|--:|--:|")
    for rows in options.rows:
        model.batch_size, seconds = rows, dict[str, float]()
        for name, schema in SCHEMAS.items():
            # A free answer has no end here, so that it takes as many tokens.
            model._engine.reader = replace(free, end_ids=frozenset()) if schema is None else free
            question = Prompt("", (TextPart("What is on the table? Say all that you know of it."),))
            requests = [Request(f"{n}", question, (), schema=schema) for n in range(rows)]
            seconds[name] = min(timed(model, requests, config) for _ in range(options.rounds)) / options.new_tokens
            more = (seconds[name] - seconds["free"]) / rows
            print(f"| {rows} | {name} | {1000 * seconds[name]:.2f} | {1000 * more:.2f} |", flush=True)


def timed(model: TransformersModel, requests: list[Request], config: GenerationConfig) -> float:
    """Processor seconds of these answers, each of which takes all of its tokens."""
    begun = time.process_time()
    answers = model.generate(requests, config)
    seconds = time.process_time() - begun
    for [answer] in answers:
        if not isinstance(answer, Completion) or answer.output_tokens != config.max_new_tokens:
            raise SystemExit(f"an answer ended early: {answer}")
    return seconds


if __name__ == "__main__":
    main()
