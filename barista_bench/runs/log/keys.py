"""Identities: of what an example asks, and of one sample of a run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass

from barista_bench.core.options import OptionValue
from barista_bench.core.prompt import BoxFormat
from barista_bench.core.task import Task, content_seed
from barista_bench.data.dataset import ExampleSet
from barista_bench.errors import DataError

UNREADABLE = "unreadable"
MAX_STEPS = 16
"""Questions of one sample that a file of answers is asked at the most."""


@dataclass(frozen=True, slots=True)
class AskedInput:
    """What one example asks, by digests: `fingerprint` covers task version, prompt and media.

    `media` is `UNREADABLE` where they cannot be read: the example fails when it is asked, and costs no other.
    """

    fingerprint: str
    prompt: str
    media: str


def asked_inputs(task: Task, examples: ExampleSet, boxes: BoxFormat) -> list[AskedInput]:
    """One entry an example. Decodes nothing."""
    inputs = []
    # What the first prompt does not say: pictures that options change, and questions that depend on answers.
    further: list[object] = [options] if (options := prompt_options(task)) else []
    further += [task.prompts.sha256] if asks_on(task) else []
    for index, example in enumerate(examples.examples):
        try:
            media = examples[index].media_digest
        except DataError:
            media = UNREADABLE
        prompt = task.prompt(example, boxes).as_text()
        fingerprint = digest(task.benchmark, task.name, task.version, prompt, media, *further)
        inputs.append(AskedInput(fingerprint, digest(prompt), media))
    return inputs


def asks_on(task: Task) -> bool:
    """Whether a task may ask in several steps."""
    return type(task).follow_up is not Task.follow_up


def prompt_options(task: Task) -> dict[str, OptionValue]:
    """The options of a task that belong to the run: those that change what is asked."""
    return {name: task.chosen[name] for name, option in task.options.items() if option.changes == "prompt"}


def sample_key(example_id: str, fingerprint: str, model: object, config: object, run_index: int) -> str:
    """Identity of one sample. Batch size, device and process count are not part of it.

    The example's id is, since two examples may ask the same of the same pixels, and each is sampled with its own seed.
    """
    return digest(example_id, fingerprint, model, config, run_index)


def sample_keys(model: object, config: object) -> Callable[[str, str, int], str]:
    """`sample_key` of (example id, fingerprint, run) for one model and its settings, which are encoded once.

    Five times faster than `sample_key`, of which a million take longer than reading their log.
    """
    encode = json.JSONEncoder(sort_keys=True, ensure_ascii=True).encode
    settings = f"{encode(model)}, {encode(config)}"

    def key(example_id: str, fingerprint: str, run_index: int) -> str:
        text = f"[{encode(example_id)}, {encode(fingerprint)}, {settings}, {run_index:d}]"
        return hashlib.sha256(text.encode()).hexdigest()

    return key


def sample_seed(task: Task, example_id: str, run: int, step: int = 0) -> int:
    """The seed of one sample: made from content, so that order, batches and processes do not change it."""
    later = (step,) if step else ()
    return content_seed("sample", task.benchmark, task.name, example_id, run, *later)


def sample_seeds(task: Task, example_id: str, run: int) -> frozenset[int]:
    """The seeds of one sample: of its first question, and of those that may follow."""
    return frozenset(sample_seed(task, example_id, run, step) for step in range(MAX_STEPS if asks_on(task) else 1))


def digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=True).encode()).hexdigest()
