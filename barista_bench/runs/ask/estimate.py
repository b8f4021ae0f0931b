"""An estimate of a run, before anything is asked: `barista-bench run --dry-run`."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass

from barista_bench.core.model_names import ABLATIONS, SCRIPTED
from barista_bench.models import Request
from barista_bench.models.ablations import unwrapped
from barista_bench.models.base import tells_own_times
from barista_bench.runs.ask.answered import prices_of
from barista_bench.runs.ask.asking import Asker, TaskRun
from barista_bench.runs.ask.catalog import load_model
from barista_bench.runs.ask.config import RunConfig, Shard
from barista_bench.runs.ask.opening import open_tasks
from barista_bench.runs.log.asked import asked_inputs, asks_on
from barista_bench.runs.log.sample_log import SampleLog


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """The rest to ask. Tokens and US dollars are estimates, and None where nothing says what they would be."""

    tasks: dict[str, int]
    """Examples of each task."""
    samples: int
    requests: int
    images: int
    input_tokens: int | None = None
    max_output_tokens: int | None = None
    cost: float | None = None
    asks_on: tuple[str, ...] = ()
    """Tasks that ask on after an answer: their later questions are not known yet, and not counted."""


def estimate(config: RunConfig) -> RunEstimate:
    """Count requests, images and, for a served model, tokens and cost of what the logs do not answer yet.

    No checkpoint is loaded. Without one nobody knows what it has answered already, so that all of it is counted.

    Raises:
        ConfigError, DataError, ModelError: as `run`.
    """
    opened = open_tasks(config)
    several = len({asked.task.benchmark for asked in opened}) > 1
    by_name = {f"{asked.task.benchmark}/{asked.task.name}" if several else asked.task.name: asked for asked in opened}
    tasks = {name: len(asked.examples) for name, asked in by_name.items()}
    later = tuple(name for name, asked in by_name.items() if asks_on(asked.task))
    is_served = "served:" in config.model
    is_light = is_served or config.model.rpartition(":")[2] in SCRIPTED or "predictions:" in config.model
    if not is_light:  # the same ablations of a model that needs no checkpoint: it is asked as much
        ablations = [part for part in config.model.split(":")[:-1] if part in ABLATIONS]
        config = config.model_copy(update={"model": ":".join([*ablations, "chance"])})
    model = load_model(config, [(asked.task, asked.examples) for asked in opened])
    inner, change = unwrapped(model)
    asker = Asker(model, config, Shard())
    runs = [
        TaskRun(
            asked.task,
            asked.examples,
            asked_inputs(asked.task, asked.examples, model.box_format, timed=tells_own_times(model.identity)),
            asked.folder,
            SampleLog(Shard().file(asked.folder, "samples")),
        )
        for asked in opened
    ]
    counts = Counter[str]()

    def counted_requests() -> Iterator[Request]:
        for request in asker.requests(runs, decode=is_served):
            changed = change(request)
            counts.update(samples=len(changed.seeds), requests=1, images=len(changed.images))
            yield changed

    priced: tuple[int | None, int | None, float | None] = None, None, None
    if is_served:
        from barista_bench.models.served.model import ServedModel

        assert isinstance(inner, ServedModel)
        most = inner.estimate(counted_requests(), config.generation)
        priced = *most, prices_of(config, config.model).cost(*most)
    else:
        deque(counted_requests(), maxlen=0)
    return RunEstimate(tasks, counts["samples"], counts["requests"], counts["images"], *priced, later)


def as_text(counted: RunEstimate) -> str:
    """The estimate for people: one line a fact."""
    lines = [f"{name}: {count} examples" for name, count in counted.tasks.items()]
    lines.append(f"{counted.requests} requests for {counted.samples} samples with {counted.images} images")
    if counted.asks_on:
        lines.append(f"{', '.join(counted.asks_on)}: questions that depend on answers are not counted")
    if counted.input_tokens is not None:
        lines.append(f"about {counted.input_tokens} input tokens, at most {counted.max_output_tokens} output tokens")
    if counted.cost is not None:
        lines.append(f"at most about {counted.cost:.2f} US dollars")
    lines.append("dry run: nothing was asked")
    return "\n".join(lines)
