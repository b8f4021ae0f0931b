"""What a run would ask, before anything is asked: `barista-bench run --dry-run`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from barista_bench.models import Request
from barista_bench.prompt import BoxFormat
from barista_bench.running.asking import TaskRun
from barista_bench.running.catalog import load_model
from barista_bench.running.config import RunConfig
from barista_bench.running.keys import asked_inputs
from barista_bench.running.log import SampleLog
from barista_bench.running.run_folder import log_file
from barista_bench.running.runner import Opened, make_asker, open_tasks
from barista_bench.running.shards import Shard


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """What is left to ask. Tokens and US dollars are estimates, and None where nothing says what they would be."""

    tasks: dict[str, int]
    """Examples of each task."""
    samples: int
    requests: int
    images: int
    input_tokens: int | None = None
    max_output_tokens: int | None = None
    cost: float | None = None


def estimate(config: RunConfig) -> RunEstimate:
    """Count requests, images and, for a served model, tokens and cost of what the logs do not answer yet.

    Of a local model nothing is loaded, so what it has answered already is counted as well.

    Raises:
        ConfigError, DataError, ModelError: as `run`.
    """
    opened = open_tasks(config)
    tasks = {one.task.name: len(one.examples) for one in opened}
    if not config.model.rpartition("served:")[1]:
        return _counted(config, opened, tasks)
    from barista_bench.models.served import ServedModel

    model = load_model(config, [(one.task, one.examples) for one in opened])
    if not isinstance(model, ServedModel):
        return _counted(config, opened, tasks)
    runs = [
        TaskRun(
            one.task,
            one.examples,
            asked_inputs(one.task, one.examples, model.box_format),
            one.folder,
            SampleLog(log_file(one.folder, Shard())),
        )
        for one in opened
    ]
    samples = 0

    def counted() -> Iterator[Request]:
        nonlocal samples
        for request in make_asker(config, model, opened, Shard()).requests(runs):
            samples += len(request.seeds)
            yield request

    found = model.estimate(counted(), config.generation)
    return RunEstimate(
        tasks=tasks,
        samples=samples,
        requests=found.requests,
        images=found.images,
        input_tokens=found.input_tokens,
        max_output_tokens=found.max_output_tokens,
        cost=found.cost,
    )


def _counted(config: RunConfig, opened: list[Opened], tasks: dict[str, int]) -> RunEstimate:
    boxes = config.boxes or BoxFormat()
    prompts = [one.task.prompt(e, boxes) for one in opened for e in one.examples.examples]
    examples = sum(tasks.values())
    return RunEstimate(tasks, examples * config.runs, examples, sum(prompt.image_count for prompt in prompts))


def as_text(found: RunEstimate) -> str:
    """For people: one line a fact."""
    lines = [f"{name}: {count} examples" for name, count in found.tasks.items()]
    lines.append(f"{found.requests} requests for {found.samples} samples with {found.images} images")
    if found.input_tokens is not None:
        lines.append(f"about {found.input_tokens} input tokens, at most {found.max_output_tokens} output tokens")
    if found.cost is not None:
        lines.append(f"at most about {found.cost:.2f} US dollars")
    lines.append("dry run: nothing was asked")
    return "\n".join(lines)
