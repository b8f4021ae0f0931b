"""The model's share of the time of `run`, in the steady state: what is left is all that a better loop could gain.

    python perf/peers/forward_share.py [--quick]      from the repository's root, where the extra `run` is installed

The model's time is that of its modules, the vision tower's included, in the thread that calls them; the rest is frames,
image processor, chat template, choice of tokens and logs. The first two batches (loading, and the check of batches) are
not counted.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import torch
from environments import BUILD
from questions import SCENARIOS, Scenario, make_data, make_model

from barista_bench.models import AnsweredRequest, GenerationConfig, Request
from barista_bench.models.local.model import TransformersModel
from barista_bench.runs.ask.runner import run

_BATCH, _NEW_TOKENS = 4, 32


class ModelClock:
    """Shares of the model in wall-clock and CPU seconds, from the third batch on, of the runs within it."""

    def __init__(self) -> None:
        self._depth, self._spent, self._begun = 0, (0.0, 0.0), (0.0, 0.0)
        self.shares = (0.0, 0.0)

    def __enter__(self) -> ModelClock:
        clock, self._call, self._stream = self, torch.nn.Module.__call__, TransformersModel.stream

        def call(module: torch.nn.Module, *inputs: object, **named: object) -> object:
            begun = time.perf_counter(), time.thread_time()
            clock._depth += 1
            try:
                return clock._call(module, *inputs, **named)
            finally:
                clock._depth -= 1
                if not clock._depth:
                    wall, cpu = clock._spent
                    clock._spent = wall + time.perf_counter() - begun[0], cpu + time.thread_time() - begun[1]

        def stream(
            model: TransformersModel, requests: Iterable[Request], config: GenerationConfig
        ) -> Iterator[AnsweredRequest]:
            for number, answered in enumerate(clock._stream(model, requests, config), start=1):
                yield answered
                if number == 2 * _BATCH:
                    clock._spent, clock._begun = (0.0, 0.0), (time.perf_counter(), time.process_time())
            ended = time.perf_counter(), time.process_time()
            wall, cpu = (
                spent / (end - begun) for spent, begun, end in zip(clock._spent, clock._begun, ended, strict=True)
            )
            clock.shares = wall, cpu

        torch.nn.Module.__call__, TransformersModel.stream = call, stream
        return self

    def __exit__(self, *_: object) -> None:
        torch.nn.Module.__call__, TransformersModel.stream = self._call, self._stream


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few prompts")
    count = 24 if parser.parse_args(arguments).quick else 200
    torch.set_num_threads(1)
    print("| asked | answers | of the wall clock | of the CPU time |\n|:--|--:|--:|--:|")
    for scenario in SCENARIOS:
        answers, wall, cpu = measure(scenario, count)
        print(f"| {scenario.name} | {answers} | {wall:.1%} | {cpu:.1%} |", flush=True)


def measure(scenario: Scenario, count: int) -> tuple[int, float, float]:
    """Answers, and the model's share of the wall clock and of the CPU time."""
    work = BUILD / "work"
    data, model = make_data(work, count), make_model(work / "model")
    with tempfile.TemporaryDirectory() as out, ModelClock() as clock:
        session = run(
            data,
            Path(out) / "run",
            task=(scenario.task,),
            model=str(model),
            device="cpu",
            dtype="float32",
            repetitions=scenario.repetitions,
            limit=-(-count // scenario.repetitions),
            temperature=scenario.temperature,
            max_new_tokens=_NEW_TOKENS,
            batch_size=_BATCH,
        )
    return session.asked, *clock.shares


if __name__ == "__main__":
    main()
