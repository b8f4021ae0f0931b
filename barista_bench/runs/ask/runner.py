"""Start a run: ask for all samples that the logs of its tasks lack, or estimate their cost (`run --dry-run`)."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.model_names import ABLATIONS, SCRIPTED
from barista_bench.core.settings import check_settings
from barista_bench.errors import ConfigError
from barista_bench.files.owned_folders import RUN, check_output_path
from barista_bench.files.writing import name_full_disk
from barista_bench.models import Model, ModelIdentity, Request
from barista_bench.models.ablations import shown_less, unwrap_ablations, with_changed_requests
from barista_bench.models.base import tells_own_times
from barista_bench.runs.ask.aiding import with_aids, write_aids
from barista_bench.runs.ask.answers import Spending, logged_tokens, prices_of
from barista_bench.runs.ask.asking import Asker, TaskRun
from barista_bench.runs.ask.catalog import (
    SERVED,
    TaskExamples,
    kind_of,
    load_model,
    refuse_mistyped,
    training_records,
    without_ablations,
)
from barista_bench.runs.ask.config import ModelSettings, RunConfig
from barista_bench.runs.ask.opening import open_tasks
from barista_bench.runs.ask.shard import Shard
from barista_bench.runs.ask.shots import fingerprinted, with_shots
from barista_bench.runs.data_location import data_location
from barista_bench.runs.decide.contest import Contest
from barista_bench.runs.decide.opening import WatchedRun, open_contest
from barista_bench.runs.decide.stopping import Stopping
from barista_bench.runs.log.inputs import AskedInput, asked_inputs, asks_in_steps, claim_inputs, prompts_digest
from barista_bench.runs.log.sample_log import SampleLog, find_running_elsewhere, log_files
from barista_bench.runs.log.sessions import Session
from barista_bench.runs.log_reader import StepLog, answers_only, read_steps, step_files
from barista_bench.runs.run_folder import OpenedTask, claim, package_versions, run_description


def run(data: str | Path, out: str | Path, **settings: object) -> Session:
    """Run a model on one or several tasks and append every answer to `samples.jsonl`. A second call resumes the run.

    Args:
        data: a folder written by `build`, a name in the `datasets` cache, a Hub dataset id, or a frozen JSONL file.
        out: folder of the run folders. Each is named after its task and holds one combination of data, task, model and
            generation settings. If `out` is itself a run folder, that run is resumed.
        settings: fields of `RunConfig`. That class defines their meanings and defaults.

    Returns:
        The counts of this start, summed over all tasks.

    Raises:
        ConfigError: a setting cannot be used, the folder belongs to another run, or another process writes to it.
        DataError, ModelError: the data or the model cannot be used.
        BudgetError: the remaining requests do not fit `max_cost` or `max_tokens_total`. All answers so far are logged.
    """
    return run_config(check_settings(RunConfig, {"data": str(data), "out": Path(out), **settings}))


def run_config(
    config: RunConfig, opened_tasks: Sequence[OpenedTask] | None = None, model: Model | None = None
) -> Session:
    """Run as `run` does, with resolved settings. Pass the tasks and the model if they are already open."""
    if config.sweep:
        raise ConfigError("a sweep is several runs. Fix: use the command `run`, or `run_sweep` of runs/ask/sweep.py")
    started = time.perf_counter()
    shard = Shard.from_environment()
    prices = prices_of(config, config.model)
    if config.is_bounded and not shard.is_alone:
        raise ConfigError("max_cost and max_tokens_total need a single process. Fix: leave them out, or start one")
    opened_tasks = open_tasks(config) if opened_tasks is None else opened_tasks
    for opened_task in opened_tasks:
        check_output_path(opened_task.folder, RUN)
    contests = open_contests(config, opened_tasks)  # before the model is loaded
    launch = shard.launch(*config.task)
    with ExitStack() as stack:
        # Before the model is loaded, which may take many minutes.
        logs = [stack.enter_context(locked_log(opened_task.folder, shard, launch)) for opened_task in opened_tasks]
        model = model or open_model(config, shard, opened_tasks)
        model, opened_tasks, inputs_by_task = prepare(model, config, opened_tasks)
        task_runs = []
        how = (model.identity, model.box_format, config, shard, getattr(model, "versions", {}))
        for opened_task, inputs, sample_log in zip(opened_tasks, inputs_by_task, logs, strict=True):
            task_runs.append(stack.enter_context(claimed_run(opened_task, inputs, sample_log, *how)))
        # Only limits and progress bars need the spending. Without either, the logs are not read again.
        folders = [opened_task.folder for opened_task in opened_tasks] if config.is_bounded or config.progress else []
        spent = logged_tokens(
            (file for folder in folders for file in log_files(folder)),
            (file for folder in folders for file in step_files(folder)),
        )
        spending = Spending(config, prices, config.generation, spent)
        asker = Asker(model, config, shard, decodes=config.cluster is None, spending=spending)
        asker.clock.add("load", time.perf_counter() - started)
        stopping = _watch(contests, task_runs, config, model.box_format) if contests else None
        try:
            with name_full_disk(config.out):
                asker.ask(task_runs, stopping)
                for place, sentence in (stopping.record() if stopping else {}).items():
                    task_runs[place].session.decision = sentence
        finally:
            asker.clock.add("total", time.perf_counter() - started)
            asker.distribute_seconds(task_runs)
            for task_run in task_runs:
                task_run.session.batch_check = getattr(model, "batch_check", None)
                task_run.session.append_to(shard.file(task_run.folder, "sessions"))
    total = Session()
    for task_run in task_runs:
        total.add(task_run.session)
    return total


def prepare(
    model: Model, config: RunConfig, opened_tasks: Sequence[OpenedTask]
) -> tuple[Model, Sequence[OpenedTask], list[list[AskedInput]]]:
    """Add what the settings add to requests: aids, worked examples, fewer or smaller images.

    Returns:
        The model, its tasks, and the inputs of each task.
    """
    model, opened_tasks = with_aids(model, config, opened_tasks)
    model, shots = with_shots(model, config, opened_tasks)
    model = with_less_shown(model, config)
    tells_times = tells_own_times(model.identity)
    inputs_by_task = [
        fingerprinted(
            asked_inputs(opened.task, opened.examples, model.box_format, timed=tells_times), opened.examples, shots
        )
        for opened in opened_tasks
    ]
    return model, opened_tasks, inputs_by_task


def open_contests(config: RunConfig, opened_tasks: Sequence[OpenedTask]) -> list[Contest]:
    """Return one contest per task if the run may stop early, and no contest if it asks every example.

    Raises:
        ConfigError, DataError: a task cannot be decided early, or the run to compare with cannot be used.
    """
    if config.goal is None:
        return []
    if config.aid or config.view:
        name = "aid" if config.aid else "view"
        raise ConfigError(f"until and {name}: a diagnosis needs every answer. Fix: leave until or {name} out")
    opener = partial(
        open_contest, repetitions=config.repetitions, max_new_tokens=config.max_new_tokens, root=config.root
    )
    return [opener(opened, config.goal, config.against) for opened in opened_tasks]


def _watch(
    contests: Sequence[Contest], task_runs: Sequence[TaskRun], config: RunConfig, box_format: BoxFormat
) -> Stopping:
    watched = [
        WatchedRun(contest, run.folder, run.task, run.examples, config.repetitions, box_format)
        for contest, run in zip(contests, task_runs, strict=True)
    ]
    return Stopping(watched, config.alpha)


def open_model(config: RunConfig, shard: Shard, opened_tasks: Sequence[OpenedTask]) -> Model:
    """Load the model of a run."""
    tasks: TaskExamples = [(opened.task, opened.examples) for opened in opened_tasks]
    if config.cluster is None:
        return load_model(config.model_copy(update={"device": shard.device(config.device)}), tasks)
    from barista_bench.runs.ask.cluster_model import ClusterModel  # imported on demand: few users have a cluster

    if not shard.is_alone:
        raise ConfigError("a cluster needs a single driver process. Fix: leave cluster out, or start one process")
    return ClusterModel(config, config.cluster, tasks)


def with_less_shown(model: Model, config: RunConfig) -> Model:
    """Wrap the model so that it is shown fewer or smaller images, as `frames` and `max_side` set.

    Raises:
        ConfigError: the setting cannot be used with this engine or box format.
    """
    settings = {name: value for name in ("frames", "max_side") if (value := getattr(config, name)) is not None}
    if not settings:
        return model
    if config.cluster is not None or (config.max_side is not None and model.box_format.scale is None):
        raise ConfigError("frames and max_side fit no cluster, and max_side no boxes in pixels. Fix: leave them out")
    return with_changed_requests(model, settings, partial(shown_less, frames=config.frames, max_side=config.max_side))


@contextmanager
def locked_log(folder: Path, shard: Shard, launch: str) -> Iterator[SampleLog]:
    """Open this process's log in a run folder. Raises ConfigError if another start of the run still writes to it."""
    with SampleLog(shard.file(folder, "samples"), launch, hint=shard.sharing_hint) as log:
        if busy := find_running_elsewhere(folder, launch):
            raise ConfigError(f"{folder}: another start still writes {busy[0]}. Fix: wait for it, or use another --out")
        yield log


@contextmanager
def claimed_run(
    opened: OpenedTask,
    inputs: Sequence[AskedInput],
    sample_log: SampleLog,
    model: ModelIdentity,
    box_format: BoxFormat,
    config: RunConfig,
    shard: Shard,
    versions: Mapping[str, str] | None = None,
) -> Iterator[TaskRun]:
    """Claim a run folder for this run, and yield its task with an open log.

    Args:
        inputs: `asked_inputs` of the task.
        versions: package versions by name, if the engine runs in its own environment.

    Raises:
        ConfigError: the folder belongs to another run.
    """
    training = trained_videos(config, box_format)
    description = run_description(
        opened.folder,
        opened.task,
        split=opened.examples.split,
        content_hash=opened.examples.content_hash,
        prompts_hash=prompts_digest(inputs),
        model=model,
        box_format=box_format,
        generation=asdict(config.generation),
        repetitions=config.repetitions,
        name=config.name,
        data=data_location(opened.folder, opened.data, config.root, None if opened.part else config.limit).model_copy(
            update={"part": opened.part}
        ),
        versions={**package_versions(), **(versions or {})},
        prices=prices_of(config, config.model).model_dump(),
        training_videos=sorted(training),
        trained_on=sorted(training.intersection(opened.examples.video_hashes().values())) if training else [],
    )
    asked = {example.example_id: own.fingerprint for example, own in zip(opened.examples.examples, inputs, strict=True)}
    claim(opened.folder, description, lambda: answers_only(opened.folder, description, asked))
    inputs = claim_inputs(opened.folder, opened.examples, inputs)
    rank = None if shard.is_alone else shard.rank
    write_aids(opened)
    task_run = TaskRun(opened.task, opened.examples, inputs, opened.folder, sample_log, rank, only=opened.only)
    task_run.change = opened.change
    if not asks_in_steps(opened.task):
        yield task_run
        return
    with SampleLog(shard.file(opened.folder, "steps"), sample_log.launch) as steps:
        task_run.steps = StepLog(steps, read_steps(opened.folder))
        yield task_run


def trained_videos(config: ModelSettings, box_format: BoxFormat) -> frozenset[str]:
    """Return the SHA-256 of each recorded training video of the checkpoint and the adapter.

    Raises ConfigError if the checkpoint or the adapter was trained with another box format.
    """
    trainings = training_records(config)
    for name, training in trainings.items():
        if training.box_format not in (None, str(box_format)):
            raise ConfigError(
                f"{name}: was trained to write boxes as {training.box_format}, but the run asks for {box_format}. "
                f"Fix: say --box-format {training.box_format}"
            )
    return frozenset[str]().union(*(training.videos for training in trainings.values()))


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """The remaining requests. Tokens and US dollars are estimates, or None if no estimate is possible."""

    tasks: dict[str, int]
    """Number of examples of each task."""
    samples: int
    requests: int
    images: int
    input_tokens: int | None = None
    max_output_tokens: int | None = None
    cost: float | None = None
    asks_in_steps: tuple[str, ...] = ()
    """Tasks that ask in several steps. Their later questions are not known yet, so they are not counted."""


def estimate(config: RunConfig, opened_tasks: Sequence[OpenedTask] | None = None) -> RunEstimate:
    """Count the requests and images for all samples that the logs lack, and the tokens and cost if the model is served.

    No checkpoint is loaded. An unloaded checkpoint's earlier answers cannot be identified, so all its samples count.

    Raises:
        ConfigError, DataError, ModelError: the same as `run`.
    """
    opened_tasks = open_tasks(config) if opened_tasks is None else opened_tasks
    has_several = len({opened.task.benchmark for opened in opened_tasks}) > 1
    by_name = {f"{one.task.benchmark}/{one.task.name}" if has_several else one.task.name: one for one in opened_tasks}
    tasks = {name: len(opened.examples) for name, opened in by_name.items()}
    in_steps = tuple(name for name, opened in by_name.items() if asks_in_steps(opened.task))
    kind = kind_of(config.model)
    is_served = kind is SERVED
    needs_weights = kind.needs_weights if kind else without_ablations(config.model) not in SCRIPTED
    if needs_weights:  # a model without a checkpoint, under the same ablations, gets as many requests
        refuse_mistyped(without_ablations(config.model))
        ablations = [part for part in config.model.split(":")[:-1] if part in ABLATIONS]
        config = config.model_copy(update={"model": ":".join([*ablations, "chance"])})
    model = load_model(config, [(opened.task, opened.examples) for opened in opened_tasks])
    model, opened_tasks, inputs_by_task = prepare(model, config, opened_tasks)
    inner, change = unwrap_ablations(model)
    asker = Asker(model, config, Shard())
    task_runs = [
        TaskRun(
            opened.task,
            opened.examples,
            inputs,
            opened.folder,
            SampleLog(Shard().file(opened.folder, "samples")),
            only=opened.only,
            change=opened.change,
        )
        for opened, inputs in zip(opened_tasks, inputs_by_task, strict=True)
    ]
    counts = Counter[str]()

    def counted_requests() -> Iterator[Request]:
        for request in asker.requests(task_runs, decode=is_served):
            changed = change(request)
            counts.update(samples=len(changed.seeds), requests=1, images=len(changed.images))
            yield changed

    tokens_and_cost: tuple[int | None, int | None, float | None] = None, None, None
    if is_served:
        from barista_bench.models.served.model import ServedModel

        assert isinstance(inner, ServedModel)
        tokens = inner.estimate(counted_requests(), config.generation)
        tokens_and_cost = *tokens, prices_of(config, config.model).cost(*tokens)
    else:
        deque(counted_requests(), maxlen=0)
    return RunEstimate(tasks, counts["samples"], counts["requests"], counts["images"], *tokens_and_cost, in_steps)


def estimate_text(totals: RunEstimate) -> str:
    """Return the estimate as readable text, one fact per line."""
    lines = [f"{name}: {count} examples" for name, count in totals.tasks.items()]
    lines.append(f"{totals.requests} requests for {totals.samples} samples with {totals.images} images")
    if totals.asks_in_steps:
        lines.append(f"{', '.join(totals.asks_in_steps)}: questions that depend on answers are not counted")
    if totals.input_tokens is not None:
        lines.append(f"about {totals.input_tokens} input tokens, at most {totals.max_output_tokens} output tokens")
    if totals.cost is not None:
        lines.append(f"at most about {totals.cost:.2f} US dollars")
    lines.append("dry run: nothing was asked")
    return "\n".join(lines)
