"""Loads a checkpoint and its adapter for `TransformersModel`, and records exactly which versions were loaded."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barista_bench.core.model_names import EMBEDDED
from barista_bench.core.training_videos import VIDEOS_FILE, TrainingVideos
from barista_bench.errors import ModelError, require_extra
from barista_bench.files.checkpoints import GGUF, device_of, load_pretrained, loading_of, revision_of
from barista_bench.files.hashes import file_sha256
from barista_bench.files.reading import read_bounded_text
from barista_bench.files.text_out import first_line
from barista_bench.models.answer_schemas import require_llguidance
from barista_bench.models.answers import AnswerReader
from barista_bench.models.base import ModelIdentity, video_settings
from barista_bench.models.settings import TransformersSettings

if TYPE_CHECKING:
    from transformers import BitsAndBytesConfig, PreTrainedModel, ProcessorMixin

    from barista_bench.models.local.holding import AnswerHolder
    from barista_bench.models.local.inputs import PromptEncoder
    from barista_bench.models.local.processors import TextProcessor

_MAX_TEMPLATE = 2**20  # bytes


def checkpoint_of(name: str) -> str:
    """Return the folder of our checkpoint with this name (see `scripts/train_kitchen.py`); keep any other name."""
    return str(Path(__file__).parents[1] / "checkpoints" / name) if name in EMBEDDED else name


def load_checkpoint(
    name: str, settings: TransformersSettings
) -> tuple[PreTrainedModel, ProcessorMixin | TextProcessor]:
    """Load the model onto its device, ready to generate, and load its processor.

    Raises:
        ModelError: the checkpoint is missing, is incomplete, is of an unknown kind, or needs a missing library.
    """
    adapter = fetch_adapter(settings.adapter, settings.adapter_revision) if settings.adapter else None
    is_placed_on_reading = settings.device == "split" or bool(settings.quantization)
    path, folder, file = Path(name).expanduser(), name, dict[str, str]()
    if name.endswith(GGUF):  # the name of a file in the folder
        if not path.is_file():
            raise ModelError(f"model {name}: there is no such file. Fix: check the path")
        require_extra(f"reading {path.name}", "gguf", extra="gguf")
        folder, file = str(path.parent), {"gguf_file": path.name}
    model, processor = load_pretrained(
        folder,
        partial(_processor, settings=settings, **file),
        partial(_model, settings=settings, **file),
        kind="a model that answers in text",
        revision=settings.revision,
        device=None if is_placed_on_reading else settings.device,
        trust_remote_code=settings.trust_remote_code,
        dtype=settings.dtype,
        attn_implementation=settings.attn_implementation,
    )
    if settings.adapter and adapter:
        add_adapter(model, adapter, settings.adapter)
        model.eval()
    return model, processor


def identity_of(
    name: str, model: PreTrainedModel, processor: ProcessorMixin | TextProcessor, settings: TransformersSettings
) -> ModelIdentity:
    """Return the model's name and revision, and the settings that change its answers and are not left at defaults.

    Device and library versions are not included, so you can resume a run on another machine. The run's description
    holds the versions. An adapter is identified by its content, since its path differs between machines.
    """
    settings_set: dict[str, str | int | float | bool | None] = {
        "quantization": settings.quantization,
        "adapter": settings.adapter and adapter_hash(fetch_adapter(settings.adapter, settings.adapter_revision)),
        "min_pixels": settings.min_pixels,
        "max_pixels": settings.max_pixels,
        "image_processor": type(processor.image_processor).__name__ if processor.image_processor else None,
        "chat_template": template_hash(processor),
        **video_settings(settings.frames_as, settings.video_fps, processor.model_input_names),
        "template_kwargs": json.dumps(settings.template_kwargs, sort_keys=True) if settings.template_kwargs else None,
        **settings.identity_of_answers(),
    }
    return ModelIdentity(
        name=name,
        revision=revision_of(name, model.config),
        settings={
            **loading_of(model),
            "repetition_penalty": model.generation_config.repetition_penalty,
            **{setting: value for setting, value in settings_set.items() if value is not None},
        },
    )


def answer_holder(encoder: PromptEncoder, reader: AnswerReader, vocabulary: int) -> AnswerHolder:
    """Return an object that constrains the model's answers; `vocabulary` is the number of tokens that the model scores.

    Raises:
        ModelError: llguidance is missing, or cannot constrain answers of this tokenizer.
    """
    require_llguidance(f"model {encoder.name}: structured_output")
    from barista_bench.models.local.holding import AnswerHolder

    tags = encoder.tags if encoder.thinks else None
    return AnswerHolder(encoder.name, encoder.tokenizer, vocabulary, reader.end_ids, tags)


def template_hash(processor: ProcessorMixin | TextProcessor) -> str:
    """Return 12 hex digits that identify a chat template, since another template changes the prompts."""
    template = processor.chat_template or processor.tokenizer.chat_template
    return hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:12]


def _model(name: str, settings: TransformersSettings, gguf_file: str | None = None, **shared: Any) -> object:  # noqa: ANN401
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    from barista_bench.models.local.processors import reads_text_alone

    source = {setting: shared[setting] for setting in ("revision", "trust_remote_code")}
    if gguf_file:
        del shared["use_safetensors"]  # a GGUF file contains no pickles either
        shared["gguf_file"] = gguf_file
    reads_text = reads_text_alone(name, gguf_file, **source)
    quantized = quantization_config(name, settings) if settings.quantization else None
    split = settings.device == "split"
    return (AutoModelForCausalLM if reads_text else AutoModelForImageTextToText).from_pretrained(
        name,
        device_map="auto" if split else {"": device_of(settings.device)} if quantized else None,
        quantization_config=quantized,
        **shared,
    )


def _processor(
    name: str,
    settings: TransformersSettings,
    gguf_file: str | None = None,
    **shared: Any,  # noqa: ANN401
) -> ProcessorMixin | TextProcessor:
    from barista_bench.models.local.processors import load_processor, text_processor

    limits_set = {"min_pixels": settings.min_pixels, "max_pixels": settings.max_pixels}
    limits = {limit: value for limit, value in limits_set.items() if value is not None}
    processor: ProcessorMixin | TextProcessor | None = text_processor(name, gguf_file, **shared)
    if processor is None:
        processor = load_processor(name, wants_video=settings.frames_as == "video", **limits, **shared)
        check_limits(name, processor.image_processor, limits)
    elif limits:
        raise ModelError(f"model {name}: reads no images. Fix: leave {', '.join(limits)} out")
    if settings.chat_template:
        remedy = "name a file that holds a Jinja template"
        template = read_bounded_text(settings.chat_template, _MAX_TEMPLATE, remedy=remedy)
        processor.chat_template = template
        # SmolVLM's processor has a built-in template for videos; pass ours to override it.
        processor.apply_chat_template = partial(processor.apply_chat_template, chat_template=template)  # type: ignore[method-assign]
    return processor


def check_limits(name: str, image_processor: object, limits: dict[str, int]) -> None:
    """Raise ModelError unless an image processor supports `min_pixels` and `max_pixels`.

    Many processors have no such limits, and silently ignore them.
    """
    processor_class, class_name = type(image_processor), type(image_processor).__name__
    kwargs = getattr(processor_class, "valid_kwargs", None)
    parameters = set(inspect.signature(processor_class.__init__).parameters)
    parameters.update(inspect.get_annotations(kwargs) if kwargs else ())
    for limit, value in limits.items():
        if limit not in parameters:
            remedy = "leave it out; this processor sets image sizes itself"
            raise ModelError(f"model {name}: {class_name} has no {limit}. Fix: {remedy}")
        size = getattr(image_processor, "size", None) or {}
        edge = {"min_pixels": "shortest_edge", "max_pixels": "longest_edge"}[limit]
        if value not in (size.get(edge), getattr(image_processor, limit, None)):
            raise ModelError(f"model {name}: {class_name} did not take {limit}={value}. Fix: leave it out")


def quantization_config(name: str, settings: TransformersSettings) -> BitsAndBytesConfig:
    """Return the settings with which bitsandbytes quantizes the weights: NF4 with bfloat16 arithmetic, or LLM.int8.

    Raises:
        ModelError: bitsandbytes or a CUDA GPU is missing, or the checkpoint is already quantized.
    """
    import torch
    from transformers import AutoConfig, BitsAndBytesConfig

    subject = f"model {name}: {settings.quantization} quantisation"
    require_extra(subject, "bitsandbytes", extra="quantization")
    if not torch.cuda.is_available() or settings.device == "cpu":
        raise ModelError(f"{subject} needs a CUDA GPU. Fix: run it on one, or leave quantization out")
    config = AutoConfig.from_pretrained(
        name, revision=settings.revision or "main", trust_remote_code=settings.trust_remote_code
    )
    if getattr(config, "quantization_config", None) is not None:
        # transformers would keep the checkpoint's own quantization, and results would name the wrong one.
        raise ModelError(f"{subject} of a checkpoint that is quantised already. Fix: leave quantization out")
    if settings.quantization == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16)


_CONFIG, _WEIGHTS = "adapter_config.json", "adapter_model.safetensors"


def fetch_adapter(adapter: str, revision: str | None = None) -> Path:
    """Return the folder of an adapter; an adapter on the Hub is downloaded first.

    Args:
        adapter: folder with adapter_config.json and adapter_model.safetensors, or Hub id.
        revision: commit, branch or tag of a Hub id.

    Raises:
        ModelError: the adapter cannot be found, or its weights are not a safetensors file.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    folder = Path(adapter).expanduser()
    if not folder.is_dir():
        try:
            files = [_CONFIG, _WEIGHTS, VIDEOS_FILE]
            folder = Path(snapshot_download(adapter, revision=revision, allow_patterns=files))
        except (OSError, HfHubHTTPError, HFValidationError) as error:
            raise ModelError(
                f"adapter {adapter}: is not a folder and cannot be fetched ({type(error).__name__}). "
                "Fix: give a folder, or a Hub id that this machine can reach"
            ) from error
    elif revision is not None:
        raise ModelError(f"adapter {adapter}: a folder has no revisions. Fix: leave adapter_revision out")
    for name in (_CONFIG, _WEIGHTS):
        if not (folder / name).is_file():
            # Other weight files are pickles, which run code when they are read.
            raise ModelError(f"adapter {adapter}: holds no {name}. Fix: save it with peft, as safetensors")
    return folder


def adapter_videos(adapter: str, revision: str | None = None) -> TrainingVideos | None:
    """Return the videos that an adapter was trained on; None if the adapter does not list its videos.

    Raises the errors of `fetch_adapter`, and DataError for a broken list.
    """
    folder = fetch_adapter(adapter, revision)
    return TrainingVideos.read(folder) if (folder / VIDEOS_FILE).exists() else None


def adapter_hash(folder: Path) -> str:
    """Return the SHA-256 of the configuration and weights of a fetched adapter."""
    total = hashlib.sha256()
    for name in (_CONFIG, _WEIGHTS):
        total.update(f"{name}\0{file_sha256(folder / name)}\n".encode())
    return total.hexdigest()


def add_adapter(model: PreTrainedModel, folder: Path, adapter: str) -> None:
    """Add a fetched adapter to a loaded model, which keeps its class; every weight of the adapter must fit.

    Raises:
        ModelError: peft is missing, or the adapter is for another model or of an unsupported kind.
    """
    from safetensors import SafetensorError

    require_extra(f"adapter {adapter}:", "peft", extra="peft")
    remedy = "Fix: give the model that the adapter was trained on"
    try:
        report = model.load_adapter(str(folder), use_safetensors=True)
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, OSError, SafetensorError) as error:
        raise ModelError(f"adapter {adapter}: cannot be added: {first_line(error)}. {remedy}") from error
    problems: dict[str, Collection[object]] = {
        "missing": report.missing_keys,
        "unknown": report.unexpected_keys,
        "of other shape": report.mismatched_keys,
    }
    for problem, keys in problems.items():
        if keys:
            # transformers only warns here, and the model would answer without the adapter.
            raise ModelError(f"adapter {adapter}: weights are {problem} ({sorted(map(str, keys))[0]}, ...). {remedy}")
