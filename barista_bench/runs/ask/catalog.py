"""Load models by name. `AskingSettings.model` describes the names and their prefixes."""

from __future__ import annotations

import dataclasses
import difflib
import json
import logging
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from huggingface_hub.constants import HF_HOME

from barista_bench.core.boxes import DEFAULT_BOX_FORMAT, BoxFormat
from barista_bench.core.example import Example
from barista_bench.core.guarding import Method, guard
from barista_bench.core.model_names import ABLATIONS, BASELINES, HUMAN, SCRIPTED
from barista_bench.core.plugins import load_plugin, plugin_entries
from barista_bench.core.settings import part_of
from barista_bench.core.task import Task
from barista_bench.core.training_videos import TrainingVideos, videos_digest
from barista_bench.data.dataset import ExampleSet
from barista_bench.errors import ConfigError, DataError, TaskError
from barista_bench.files.checkpoints import GGUF
from barista_bench.models import Model
from barista_bench.models.answer_schemas import complaint, require_llguidance
from barista_bench.models.base import ScriptedModel, reads_text_alone
from barista_bench.models.box_formats import checkpoint_videos
from barista_bench.models.local.loading import adapter_videos, checkpoint_of
from barista_bench.models.served.settings import ServedSettings
from barista_bench.models.settings import CheckpointSettings, TransformersSettings, VllmSettings
from barista_bench.runs.ask.config import ModelSettings
from barista_bench.runs.log.inputs import sample_seeds

log = logging.getLogger(__name__)

TaskExamples = Sequence[tuple[Task, ExampleSet]]


@dataclasses.dataclass(frozen=True, slots=True)
class ModelKind:
    """A kind of model: NAME in `--model NAME:REST`. It is an entry of the group `models` (`core/plugins.py`).

    Args:
        load: makes the model from the settings, REST and the tasks. It raises ModelError or ConfigError.
        writes_text: whether the model writes free text. Only such models can judge and describe.
        scores_choices: whether the model reads no prompt, and scores the texts of a question's choices.
        reads_masks: whether the model can answer tasks that text does not answer (`Task.answered_by_text`).
        needs_weights: whether `load` loads weights on this machine. A forecast does not load them.
    """

    load: Callable[[ModelSettings, str, TaskExamples], Model]
    writes_text: bool = True
    scores_choices: bool = False
    reads_masks: bool = False
    needs_weights: bool = True


def load_model(config: ModelSettings, tasks: TaskExamples) -> Model:
    """Load the model that `config.model` names.

    Args:
        config: all settings that a model may read.
        tasks: the tasks to ask. The scripted models compute their answers from these tasks.

    Raises:
        ModelError, ConfigError: the model cannot be loaded, or cannot do what the settings or tasks require.
    """
    name, model = config.model, _load(config, tasks)
    if config.reasoning is not None and "reasoning" not in model.identity.settings:
        raise ConfigError(f"{name}: has no switch for reasoning. Fix: leave reasoning out")
    if reads_text_alone(model) and "text_only" not in str(model.identity.settings.get("ablation", "")):
        for task, examples in tasks:
            if any(example.frames for example in examples.examples):
                raise ConfigError(
                    f"{name}: reads text alone, and {task.benchmark}/{task.name} shows images. "
                    f"Fix: text_only:{name} asks it without them"
                )
    return model


def _load(config: ModelSettings, tasks: TaskExamples) -> Model:
    prefix, _, name = config.model.partition(":")
    if prefix in ABLATIONS:
        if not name:
            raise ConfigError(f"{config.model!r} names no model. Fix: write {prefix}:MODEL")
        from barista_bench.models.ablations import ablate

        return ablate(_load(config.model_copy(update={"model": name}), tasks), prefix)
    scripted = _scripted_model(config.model, tasks)
    if scripted is not None:
        return scripted
    if name and prefix in plugin_entries("models"):
        if config.engine == "vllm":
            raise ConfigError(f"--engine vllm runs local checkpoints, not {config.model}. Fix: leave engine out")
        return model_kind(prefix).load(config, name, tasks)
    refuse_mistyped(config.model)
    return _load_checkpoint(config)


def model_kind(name: str) -> ModelKind:
    """Return the kind that is registered for a prefix. Raises ConfigError for an unknown prefix."""
    kind = load_plugin("models", name)
    if not isinstance(kind, ModelKind):
        raise ConfigError(f"models: {name!r} is not a ModelKind. Fix: correct its entry point")
    return kind


def kind_of(name: str) -> ModelKind | None:
    """Return the kind of a model `NAME:REST`, under any ablations; None for scripted models and checkpoints."""
    prefix, colon, _ = without_ablations(name).partition(":")
    return model_kind(prefix) if colon and prefix in plugin_entries("models") else None


def specialists() -> frozenset[str]:
    """Return the kinds of models that write no free text. They rank texts, look up answers or detect objects."""
    return frozenset(name for name in plugin_entries("models") if not model_kind(name).writes_text)


def refuse_mistyped(name: str) -> None:
    """Refuse a mistyped built-in name, a file of answers or a prefix without a model, before any request to the Hub."""
    if Path(name).is_file() and not name.endswith(GGUF):
        raise ConfigError(f"{name}: is a file, not a checkpoint. Fix: write predictions:{name} for a file of answers")
    if name.partition(":")[0] == HUMAN and not Path(name).exists():
        raise ConfigError(f"{name!r}: people cannot be run. Fix: let them answer in `barista-bench studio`")
    if name.rstrip(":") in plugin_entries("models") and not Path(name).exists():
        kind = name.rstrip(":")
        raise ConfigError(f"{name!r} names no model. Fix: say which after a colon, {kind}:NAME")
    prefix, colon, _ = name.partition(":")
    if colon and "/" not in prefix and prefix not in plugin_entries("models") and not Path(name).exists():
        kinds = ", ".join(sorted(plugin_entries("models")))
        raise ConfigError(
            f"{name!r}: no package here registers models {prefix}:. Fix: install it, or use one of {kinds}"
        )
    near = difflib.get_close_matches(name, BASELINES, n=1, cutoff=0.8)
    if near and near[0] != name and not Path(name).exists():
        raise ConfigError(f"no model {name!r}. Fix: did you mean {near[0]}? Else give a folder or an id as org/name")


_METHODS: Mapping[str, Method] = {
    "oracle": "reference_answer",
    "chance": "random_answer",
    "prior": "prior_answer",
    "centre_box": "centre_answer",
    "copy_first_mask": "first_mask_answer",
}
"""Each scripted model and the task method that computes its answers."""


def _scripted_model(name: str, tasks: TaskExamples) -> ScriptedModel | None:
    if name not in SCRIPTED:
        return None
    box_format = DEFAULT_BOX_FORMAT
    other_videos = _OtherVideos(tasks)
    method = _METHODS[name]

    def answer(task: Task, example: Example, seed: int) -> str:
        with guard(task, method, example):
            if name == "chance":
                return task.random_answer(example, random.Random(seed), box_format)  # noqa: S311
            if name == "prior":
                return task.prior_answer(example, other_videos.of(task, example), box_format)
            answer_by: Callable[[Example, BoxFormat], str] = getattr(task, method)
            return answer_by(example, box_format)

    examples_by_id = {example.example_id: (task, example) for task, examples in tasks for example in examples.examples}
    if name == "oracle":
        for task, example in examples_by_id.values():
            if not task.has_answer(example):
                raise ConfigError(
                    f"oracle: the answer of {example.example_id} is hidden (split {example.metadata.get('split')}). "
                    "Fix: name a --split whose answers are known"
                )
    elif name != "chance":
        for task, examples in tasks:  # raises an error for a task without this baseline, before anything is asked
            if len(examples):
                with suppress(TaskError):  # this example fails when it is asked, and affects no other
                    answer(task, examples.examples[0], 0)
    return ScriptedModel(name, lambda example_id, seed: answer(*examples_by_id[example_id], seed))


def check_fit(name: str, task: Task, examples: ExampleSet) -> None:
    """Check that the model can answer a task, by names only and before anything is asked.

    Raises:
        ConfigError: the task lacks this baseline, cannot be answered by text, or offers no texts to a model that scores
            texts.
    """
    prefix, _, rest = name.partition(":")
    kind = kind_of(name)
    scores_choices = kind is not None and kind.scores_choices
    if prefix in ABLATIONS and rest:
        if prefix == "text_only" and scores_choices:
            raise ConfigError(f"{name} compares texts with no image. Fix: use another ablation, or none")
        check_fit(rest, task, examples)
        return
    _scripted_model(name, [(task, examples)])
    if not task.answered_by_text and name not in SCRIPTED and not (kind and kind.reads_masks):
        raise ConfigError(
            f"{task.benchmark}/{task.name} follows given masks, which {name} does not read. "
            "Fix: leave the task out, or write the model's masks to a file (docs/predictions.md): predictions:FILE"
        )
    if scores_choices and len(examples) and not task.choices(examples.examples[0]):
        raise ConfigError(
            f"{task.benchmark}/{task.name} gives no texts to choose from, which {name} would score. "
            "Fix: ask a model that generates"
        )


def check_schemas(config: ModelSettings, task: Task, examples: ExampleSet) -> None:
    """Check that a checkpoint's answers can be constrained to the task's schemas, before anything is asked.

    Raises:
        ConfigError: llguidance does not support a schema. The message names the unsupported part.
        ModelError: llguidance is missing.
    """
    if not config.structured_output or not is_checkpoint(config.model):
        return
    require_llguidance(f"model {config.model}: structured_output")
    schemas: dict[str, str] = {}
    for example in examples.examples:
        with suppress(TaskError), guard(task, "answer_schema", example):  # this example fails when it is asked
            schemas.setdefault(json.dumps(task.answer_schema(example)), example.example_id)
    for schema, example_id in schemas.items():
        if problem := complaint(json.loads(schema)):
            raise ConfigError(
                f"{task.benchmark}/{task.name}: answers cannot be held to the schema of {example_id}: {problem}. "
                "Fix: leave structured_output or the task out"
            )


def is_checkpoint(name: str) -> bool:
    """Return whether the name means weights that run on this machine, with transformers or vLLM."""
    bare = without_ablations(name)
    return bare not in SCRIPTED and bare.partition(":")[0] not in plugin_entries("models")


def without_ablations(name: str) -> str:
    """Return the name without prefixes such as `text_only:`."""
    prefix, _, rest = name.partition(":")
    return without_ablations(rest) if prefix in ABLATIONS and rest else name


class _OtherVideos:
    """Gives each example the examples of all other videos, as one tuple per video. Tasks cache values for these tuples.

    A video may have several ids. All ids with the content of the example's own video are excluded.
    """

    def __init__(self, tasks: TaskExamples) -> None:
        self._examples = {(task.benchmark, task.name): examples for task, examples in tasks}
        self._hashes: dict[tuple[str, str], Mapping[str, str]] = {}
        self._others: dict[tuple[str, str, str], tuple[Example, ...]] = {}

    def of(self, task: Task, example: Example) -> tuple[Example, ...]:
        task_key = (task.benchmark, task.name)
        if task_key not in self._hashes:
            try:
                self._hashes[task_key] = self._examples[task_key].video_hashes()
            except DataError as error:
                log.warning(
                    "prior distinguishes videos only by their ids, so it misses one video with two names: %s", error
                )
                self._hashes[task_key] = {}
        hashes = self._hashes[task_key]
        own_video = hashes.get(example.video_id, example.video_id)
        key = (*task_key, own_video)
        if key not in self._others:
            examples = self._examples[task_key].examples
            self._others[key] = tuple(one for one in examples if hashes.get(one.video_id, one.video_id) != own_video)
        return self._others[key]


def _load_predictions(config: ModelSettings, name: str, tasks: TaskExamples) -> Model:
    from barista_bench.models.predictions_file import PredictionsModel

    task_of = {example.example_id: task for task, examples in tasks for example in examples.examples}
    return PredictionsModel.load(
        name,
        example_ids=task_of,
        box_format=config.box_format,
        has_boxes=lambda: any(asks_for_boxes(task, examples.examples) for task, examples in tasks),
        seeds_of=lambda example_id, repetition: sample_seeds(task_of[example_id], example_id, repetition),
    )


def asks_for_boxes(task: Task, examples: Iterable[Example]) -> bool:
    """Return whether answers hold boxes.

    They do if the reference depends on the box format. If the reference is hidden, the prompt is tested instead.
    """
    formats = (BoxFormat("xyxy", None), BoxFormat("yxyx", 1000))

    def texts(example: Example) -> set[str]:
        with guard(task, "reference_answer", example):
            if task.has_answer(example):
                return {task.reference_answer(example, box_format) for box_format in formats}
        with guard(task, "prompt", example):
            return {task.prompt(example, box_format).as_text() for box_format in formats}

    return any(len(texts(example)) > 1 for example in examples)


def _load_sam3(config: ModelSettings, name: str, tasks: TaskExamples) -> Model:
    from barista_bench.models.specialists.sam3 import Sam3Grounder

    return Sam3Grounder.load(
        name,
        revision=config.revision,
        device=config.device,
        dtype=config.dtype,
        threshold=config.threshold,
        mask_threshold=config.mask_threshold,
        batch_size=4 if config.batch_size == "auto" else config.batch_size,
    )


def _load_served(config: ModelSettings, name: str, tasks: TaskExamples) -> Model:
    from barista_bench.models.served.model import ServedModel

    model = ServedModel.load(name, **part_of(config, ServedSettings))
    model.check(config.generation)
    if (out := getattr(config, "out", None)) is not None:  # judges and preflights have no `out`
        model.batches = Path(out) / "batches"
    return model


def _load_dual(config: ModelSettings, name: str, tasks: TaskExamples) -> Model:
    from barista_bench.models.dual_encoders.model import DualEncoder

    path = name
    if name == "tiny":
        from barista_bench.models.tiny import make_tiny_clip

        path = str(make_tiny_clip(Path(HF_HOME) / "barista_bench" / "tiny_clip"))
    settings = part_of(config, CheckpointSettings)
    model = DualEncoder.load(path, batch_size=8 if config.batch_size == "auto" else config.batch_size, **settings)
    model.identity = dataclasses.replace(model.identity, name=config.model)
    return model


SERVED = ModelKind(_load_served, needs_weights=False)
DUAL = ModelKind(_load_dual, writes_text=False, scores_choices=True)
SAM3 = ModelKind(_load_sam3, writes_text=False)
PREDICTIONS = ModelKind(_load_predictions, writes_text=False, reads_masks=True, needs_weights=False)


def _load_checkpoint(config: ModelSettings) -> Model:
    path = checkpoint_of(config.model)
    if config.model == "tiny":
        from barista_bench.models.tiny import make_tiny_model

        path = str(make_tiny_model(Path(HF_HOME) / "barista_bench" / "tiny"))
    if config.engine == "vllm":
        from barista_bench.models.vllm.model import VllmModel

        _refuse_unsupported(config)
        model: Model = VllmModel.load(path, **part_of(config, VllmSettings))
    else:
        from barista_bench.models.local.model import TransformersModel

        model = TransformersModel.load(path, **part_of(config, TransformersSettings))
    settings = dict(model.identity.settings)
    if videos := frozenset[str]().union(*(record.videos for record in training_records(config).values())):
        settings["training_videos"] = videos_digest(videos)
    # The folder of the embedded model differs between machines; its revision is a content hash.
    model.identity = dataclasses.replace(model.identity, name=config.model, settings=settings)
    return model


def training_records(config: ModelSettings) -> dict[str, TrainingVideos]:
    """Return the recorded training videos of the checkpoint and of the adapter, by their names in error messages."""
    records = {f"model {config.model}": checkpoint_videos(checkpoint_of(without_ablations(config.model)))}
    if config.adapter:
        records[f"adapter {config.adapter}"] = adapter_videos(config.adapter, config.adapter_revision)
    return {name: record for name, record in records.items() if record}


def _refuse_unsupported(config: ModelSettings) -> None:
    """Raise ConfigError for a setting that only transformers supports, if the engine is vLLM."""
    for name in TransformersSettings.model_fields.keys() - VllmSettings.model_fields.keys():
        if getattr(config, name) != TransformersSettings.model_fields[name].get_default(call_default_factory=True):
            remedy = "leave it out (engine_args holds what vLLM calls it), or leave engine out"
            raise ConfigError(f"{name} is not for --engine vllm. Fix: {remedy}")
