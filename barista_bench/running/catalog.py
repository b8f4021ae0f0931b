"""From a name to a model: embedded ones (`oracle`, `chance`, `tiny`), and any checkpoint for transformers."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Mapping
from pathlib import Path

from huggingface_hub.constants import HF_HOME

from barista_bench.models import Model
from barista_bench.models.scripted import ScriptedModel
from barista_bench.prompt import BoxFormat
from barista_bench.task import Example, Task, content_seed

EMBEDDED = ("oracle", "chance", "tiny")


def load_model(
    name: str,
    task: Task,
    examples: Mapping[str, Example],
    *,
    revision: str | None = None,
    batch_size: int = 8,
    device: str = "auto",
    dtype: str = "auto",
    trust_remote_code: bool = False,
) -> Model:
    """The model called `name`.

    Args:
        name: `oracle` (the ground truth as a model would write it), `chance` (valid random answers), `tiny` (a small
            randomly initialised checkpoint, made on this machine), a local folder, or a Hub id.
        examples: by id; only the two scripted models use them.

    Raises:
        ModelError: it cannot be loaded.
    """
    if name == "oracle":
        return ScriptedModel(name, _oracle(task, examples))
    if name == "chance":
        return ScriptedModel(name, _chance(task, examples))
    from barista_bench.models.transformers_model import TransformersModel

    path = name
    if name == "tiny":
        from barista_bench.models.tiny import make_tiny_model

        path = str(make_tiny_model(Path(HF_HOME) / "barista_bench" / "tiny"))
    model = TransformersModel.load(
        path,
        revision=revision,
        batch_size=batch_size,
        device=device,
        dtype=dtype,
        trust_remote_code=trust_remote_code,
    )
    # The folder of the embedded model differs between machines; its content hash stands in the revision.
    model.identity = dataclasses.replace(model.identity, name=name)
    return model


def _oracle(task: Task, examples: Mapping[str, Example]) -> Callable[[str, int], str]:
    return lambda example_id, _seed: task.reference_answer(examples[example_id], BoxFormat())


def _chance(task: Task, examples: Mapping[str, Example]) -> Callable[[str, int], str]:
    return lambda example_id, seed: task.random_answer(examples[example_id], random.Random(seed), BoxFormat())  # noqa: S311


def sample_seed(task: Task, example_id: str, run: int) -> int:
    """The seed of one sample: made from content, so that order, batches and processes do not change it."""
    return content_seed("sample", task.benchmark, task.name, example_id, run)
