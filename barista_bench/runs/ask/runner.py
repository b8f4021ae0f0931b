"""Starts a run: data, model and run folders joined, everything asked that the logs do not answer yet."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

from barista_bench.errors import ConfigError
from barista_bench.files.writing import RUN, check_place, naming
from barista_bench.models import Model
from barista_bench.runs.ask.asking import Asker, Session, TaskRun
from barista_bench.runs.ask.catalog import load_model
from barista_bench.runs.ask.config import RunConfig, checked
from barista_bench.runs.ask.inputs import claim_inputs
from barista_bench.runs.ask.opening import OpenedTask, open_tasks
from barista_bench.runs.ask.shards import Shard
from barista_bench.runs.ask.steps import StepLog, read_steps, steps_file
from barista_bench.runs.data_location import data_location
from barista_bench.runs.log.keys import asked_inputs, asks_on, digest
from barista_bench.runs.log.sample_log import SampleLog, running_elsewhere
from barista_bench.runs.run_folder import claim, log_file, package_versions, run_description, sessions_file


def run(data: str | Path, out: str | Path, **settings: object) -> Session:
    """Run a model over one task or several and append every answer to `<out>/samples.jsonl`. Start it again to go on.

    Args:
        data: folder made by `build`, name in the `datasets` cache, Hub dataset id, or frozen JSONL file.
        out: run folder: one combination of data, task, model and generation settings. With several tasks, the folder
            of their run folders, each called as its task.
        settings: fields of `RunConfig`, which has their meanings and defaults.

    Returns:
        What this start did, over all tasks.

    Raises:
        ConfigError: a setting cannot be used, the folder belongs to another run, or another process writes to it.
        DataError, ModelError: the data or the model cannot be used.
    """
    return run_config(checked(RunConfig, {"data": str(data), "out": Path(out), **settings}))


def run_config(config: RunConfig, opened: Sequence[OpenedTask] | None = None) -> Session:
    """As `run`, of settings that are put together already; `opened` are their tasks where these are open already."""
    started = time.perf_counter()
    shard = Shard.from_environment()
    opened = open_tasks(config) if opened is None else opened
    for task in opened:
        check_place(task.folder, RUN)
    model = load_model(config, [(task.task, task.examples) for task in opened], shard)
    with ExitStack() as stack:
        runs = [stack.enter_context(_claimed(task, model, config, shard)) for task in opened]
        asker = make_asker(config, model, opened, shard)
        asker.clock.add("load", time.perf_counter() - started)
        try:
            with naming(config.out):
                asker.ask(runs)
        finally:
            asker.clock.add("total", time.perf_counter() - started)
            asker.deal_out_seconds(runs)
            for task_run in runs:
                _write_session(task_run, shard)
    total = Session()
    for task_run in runs:
        total.add(task_run.session)
    return total


def make_asker(config: RunConfig, model: Model, opened: Sequence[OpenedTask], shard: Shard) -> Asker:
    """What asks, for this process's share of the videos."""
    video_ids = (example.video_id for task in opened for example in task.examples.examples)
    return Asker(
        model,
        config.generation,
        runs=config.runs,
        videos=None if shard.alone else shard.videos(video_ids),
        workers=config.workers,
        cache_bytes=config.frame_cache_mib * 2**20,
        progress=config.progress and shard.rank == 0,
    )


@contextmanager
def _claimed(opened: OpenedTask, model: Model, config: RunConfig, shard: Shard) -> Iterator[TaskRun]:
    """A run folder with its log open: it is ours, and no start with other processes is still at work in it."""
    inputs = asked_inputs(opened.task, opened.examples, model.box_format)
    described = run_description(
        opened.task,
        split=opened.examples.split,
        content_hash=opened.examples.content_hash,
        prompts_hash=digest(sorted(asked.prompt for asked in inputs)),
        model=asdict(model.identity),
        boxes=model.box_format,
        generation=asdict(config.generation),
        versions=package_versions(),
    ) | {
        "runs": config.runs,
        "protocol": config.protocol,
        "data": data_location(opened.folder, opened.data, config.root, config.limit),
        "prices": {"input": config.price_input, "output": config.price_output},
    }
    launch = shard.launch(*config.task)
    with SampleLog(log_file(opened.folder, shard), launch) as log:
        busy = running_elsewhere(opened.folder, launch)
        if busy:
            raise ConfigError(
                f"{opened.folder}: another start still writes {busy[0]}. Remedy: wait for it, or use another --out"
            )
        claim(opened.folder, described)
        inputs = claim_inputs(opened.folder, opened.examples, inputs)
        rank = None if shard.alone else shard.rank
        task_run = TaskRun(opened.task, opened.examples, inputs, opened.folder, log, rank)
        if not asks_on(opened.task):
            yield task_run
            return
        with SampleLog(steps_file(opened.folder, shard), launch) as steps:
            task_run.steps = StepLog(steps, read_steps(opened.folder))
            yield task_run


def _write_session(run: TaskRun, shard: Shard) -> None:
    with sessions_file(run.folder, shard).open("a", encoding="utf-8") as file:
        # On a line of its own even after one that was cut off.
        file.write(("" if file.tell() == 0 else "\n") + json.dumps(asdict(run.session)))
