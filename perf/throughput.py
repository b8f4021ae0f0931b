"""Throughput of the transformers runner.

    python perf/throughput.py [--quick]                    a tiny model on the CPU, beside plainer ways

The same examples are asked in three ways, in turn: by `run` (batches, frames decoded ahead), one at a time
(decode, generate, next), and without overlap (decode everything, then generate in batches). Answers must be equal, the
best of the rounds counts, and the table is of ratios. The videos are the real clips beside the repository where there
are any, else a mini kitchen.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from barista_bench.benchmarks import get_task
from barista_bench.core.task import Task
from barista_bench.data.dataset import ExampleSet, open_examples
from barista_bench.data.folder import build
from barista_bench.mini import write_kitchen
from barista_bench.models.base import GenerationConfig, Request
from barista_bench.models.local.model import TransformersModel
from barista_bench.models.tiny import make_tiny_model
from barista_bench.runs.ask.runner import run

REAL = Path(os.environ.get("BARISTA_SHARED") or Path(__file__).resolve().parents[2] / "shared") / "real"
TASK, BATCH, NEW_TOKENS = "relations", 8, 32
Answers = dict[str, str]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few examples, one round")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        count, rounds = (12, 1) if options.quick else (48, 3)
        compare(Path(scratch), count, rounds)


def compare(scratch: Path, count: int, rounds: int) -> None:
    """The tiny model on the CPU: `run` beside plainer ways."""
    torch.set_num_threads(1)  # tiny tensors gain nothing from more, and decoding needs a core
    release, data = REAL, scratch / "data"
    if not REAL.is_dir():
        release = scratch / "kitchen"
        write_kitchen(release)
    build(release, data, configs=(TASK,), frames="linked", sampling={"limit": count, "frame_step": 3})
    folder = make_tiny_model(scratch / "model")
    task = get_task("barista", TASK)
    examples = open_examples(data, "barista", TASK, root=release)
    model = TransformersModel.load(str(folder), device="cpu", batch_size=BATCH)
    config = GenerationConfig(temperature=0, max_new_tokens=NEW_TOKENS)
    runs: list[dict[str, float]] = []

    def ours() -> tuple[float, Answers]:
        out = scratch / f"run-{len(runs)}"
        session = run(
            data, out, task=(TASK,), model=str(folder), device="cpu", root=release, repetitions=1, batch_size=BATCH,
            temperature=0.0, max_new_tokens=NEW_TOKENS,
        )  # fmt: skip
        runs.append(session.seconds)
        return session.seconds["total"] - session.seconds["load"], _read_log(out / TASK / "samples.jsonl")

    ways: dict[str, Callable[[], tuple[float, Answers]]] = {
        "run: batches, frames ahead": ours,
        "decode all, then batches": lambda: _time(lambda: _answer_in_batches(model, task, examples, config)),
        "one at a time": lambda: _time(lambda: _one_at_a_time(model, task, examples, config)),
    }
    best: dict[str, float] = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        answers: dict[str, Answers] = {}
        for name, way in ways.items():
            seconds, answers[name] = way()
            best[name] = min(best[name], seconds)
        if len({json.dumps(answer, sort_keys=True) for answer in answers.values()}) != 1:
            raise SystemExit("the ways gave different answers")
    base = best["run: batches, frames ahead"]
    waiting = min(times["wait"] / (times["wait"] + times["generate"]) for times in runs)
    videos = "real clips" if release == REAL else "a mini kitchen"
    print(f"{len(examples)} examples of {TASK} from {videos}, {NEW_TOKENS} tokens each")
    print("| way | x the time of `run` |\n|:--|--:|")
    print("\n".join(f"| {name} | {seconds / base:.2f} |" for name, seconds in best.items()))
    print(f"the model waits for frames {waiting:.0%} of the time of `run`")


def _time(work: Callable[[], Answers]) -> tuple[float, Answers]:
    begun = time.perf_counter()
    answers = work()
    return time.perf_counter() - begun, answers


def _read_log(log: Path) -> Answers:
    records = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    return {record["example_id"]: record["text"] for record in records}


def _request(model: TransformersModel, task: Task, examples: ExampleSet, index: int) -> Request:
    item = examples[index]
    prompt = task.prompt(item.example, model.box_format)
    return Request(item.example.example_id, prompt, item.images(task))


def _one_at_a_time(model: TransformersModel, task: Task, examples: ExampleSet, config: GenerationConfig) -> Answers:
    answers = {}
    for index in range(len(examples)):
        request = _request(model, task, examples, index)
        [[answer]] = model.generate([request], config)
        answers[request.request_id] = answer.text
    return answers


def _answer_in_batches(model: TransformersModel, task: Task, examples: ExampleSet, config: GenerationConfig) -> Answers:
    requests = [_request(model, task, examples, index) for index in range(len(examples))]
    answers = model.generate(requests, config)
    return {request.request_id: answer.text for request, [answer] in zip(requests, answers, strict=True)}


if __name__ == "__main__":
    main()
