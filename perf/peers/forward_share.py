"""The share of the forward pass in the time of `run`, after its first batch.

    python perf/peers/forward_share.py [--quick]

What is left over is everything that a faster loop around the model could gain: frames, image processor, chat template,
choice of tokens, logs. Time on the CPU is of the thread that runs the model over that of the whole process.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import torch
from questions import SCENARIOS, Scenario, make_data, make_model
from transformers import Qwen2_5_VLForConditionalGeneration as Model

from barista_bench.runs.ask.runner import run

WORK = Path(__file__).resolve().parents[2] / "build/peers/work"
_BATCH, _NEW_TOKENS = 4, 32
_FIRST = 8  # prompts that are asked before: the first batch, and the one that is checked


class Clock:
    """Seconds in `Model.forward` and in all, by wall clock and CPU, since the last `start`."""

    def __init__(self) -> None:
        self._forward = Model.forward
        self.start()

    def start(self) -> None:
        self.inside, self._begun = [0.0, 0.0], (time.perf_counter(), time.process_time())

    def shares(self) -> tuple[float, float]:
        """Of the wall clock and of the CPU time."""
        now = time.perf_counter(), time.process_time()
        wall, cpu = (spent / (end - begun) for spent, begun, end in zip(self.inside, self._begun, now, strict=True))
        return wall, cpu

    def __enter__(self) -> Clock:
        clock, forward = self, self._forward

        def timed(model: Model, *inputs: object, **named: object) -> object:
            before = time.perf_counter(), time.thread_time()
            try:
                return forward(model, *inputs, **named)
            finally:
                clock.inside[0] += time.perf_counter() - before[0]
                clock.inside[1] += time.thread_time() - before[1]

        timed.__signature__ = __import__("inspect").signature(forward)
        Model.forward = timed
        return self

    def __exit__(self, *_: object) -> None:
        Model.forward = self._forward
