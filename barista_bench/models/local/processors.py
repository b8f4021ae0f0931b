"""Loads the processors of checkpoints, with or without torchvision, and of text-only language models.

transformers builds a complete processor or none. All of its video processors need torchvision, but its image processors
for PIL do not. Without torchvision, this module builds a processor for images only. A text-only model has a tokenizer
instead of a processor. `template_variables` returns the variables of its chat template.

This module imports transformers, so import it only when a model is loaded.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from jinja2 import meta
from transformers import (
    AutoConfig,
    AutoFeatureExtractor,
    AutoImageProcessor,
    AutoProcessor,
    AutoTokenizer,
    PreTrainedConfig,
    ProcessorMixin,
)
from transformers.models.auto import auto_mappings
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
)
from transformers.models.auto.processing_auto import processor_class_from_name
from transformers.utils.chat_template_utils import _compile_jinja_template
from transformers.utils.hub import PushToHubMixin, cached_file
from transformers.utils.import_utils import is_torchvision_available

from barista_bench.errors import ModelError, require_extra
from barista_bench.files.reading import bounded_bytes
from barista_bench.models.answers import REASONING, Reasoning, switch_value

_MAX_SETTINGS = 16 * 2**20  # bytes of a JSON file
# Older checkpoints have a separate settings file for each part of the processor.
_FILES = ("processor_config.json", "preprocessor_config.json", "video_preprocessor_config.json")
_PIXTRAL = "transformers.models.pixtral."


def load_processor(name: str, *, wants_video: bool, **settings: Any) -> ProcessorMixin:  # noqa: ANN401
    """Load the processor of a checkpoint; without torchvision, it supports only images.

    Args:
        name: path of a folder, or `org/name` on the Hub.
        wants_video: the processor will receive videos.
        settings: arguments of `from_pretrained`: `revision`, `trust_remote_code`, limits of image sizes.

    Raises:
        ModelError: the checkpoint has no processor for images, or its processor needs torchvision, which is missing.
        OSError, ValueError, TypeError, ...: raised by transformers for files that are missing or damaged.
    """
    subject = f"model {name}: its processor"
    try:
        has_torchvision = is_torchvision_available()
        processor_class: Any = AutoProcessor if has_torchvision else _class_without_torchvision(name, **settings)
        if wants_video and issubclass(processor_class, _ImagesOnly):
            require_extra(f"{subject} of videos", "torchvision", extra="video")
        processor = processor_class.from_pretrained(name, **settings)
    except (ImportError, ValueError) as error:
        if "orchvision" not in str(error):
            raise
        require_extra(subject, "torchvision", extra="video")
        raise
    if getattr(processor, "image_processor", None) is None:
        raise ModelError(f"{subject} takes no images. Fix: use a vision-language model")
    return processor


class _VideoSettings(PushToHubMixin):  # attributes that processors read from their parts
    """Replaces a video processor: holds its settings from the checkpoint, and None for missing settings.

    Some processors read these settings even without a video. With a video they would call this object, and fail.
    """

    model_input_names: ClassVar[list[str]] = []
    valid_kwargs = None

    def __init__(self, **settings: object) -> None:
        self.__dict__.update(settings)

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)

    @classmethod
    def from_pretrained(cls, name: str, **hub: object) -> _VideoSettings:
        whole, images, videos = (_read_settings(name, file, hub) for file in _FILES)
        return cls(**{**images, **videos, **whole.get("video_processor", {})})

    def to_dict(self) -> dict[str, object]:
        return dict(self.__dict__)


class _ImagesOnly(ProcessorMixin):
    """Base class to place before a processor's class, so that settings replace its video processor."""

    @classmethod
    def _get_arguments_from_pretrained(
        cls, pretrained_model_name_or_path: str, processor_dict: object = None, **kwargs: object
    ) -> list[object]:
        part_classes: dict[str, Any] = {
            "image_processor": AutoImageProcessor,
            "feature_extractor": AutoFeatureExtractor,
            "video_processor": _VideoSettings,
        }
        tokenizer: Any = cls._load_tokenizer_from_pretrained
        return [
            part_classes[part].from_pretrained(pretrained_model_name_or_path, **kwargs)
            if part in part_classes
            else tokenizer(part, pretrained_model_name_or_path, **kwargs)
            for part in _part_names(cls)
        ]

    @staticmethod
    def get_possibly_dynamic_module(module_name: str) -> object:
        transformers_class: Any = ProcessorMixin.get_possibly_dynamic_module
        return _VideoSettings if module_name == "VideoProcessorMixin" else transformers_class(module_name)


def _part_names(processor_class: Any) -> list[str]:  # noqa: ANN401
    """Return names such as `image_processor` and `tokenizer`, in the order of the processor class's arguments."""
    return list(processor_class.get_attributes())


def _class_without_torchvision(name: str, *, trust_remote_code: bool, revision: str, **_: object) -> Any:  # noqa: ANN401
    """Return the class that reads a checkpoint's processor without torchvision; None if no class does."""
    hub = {"revision": revision}
    files = [_read_settings(name, file, hub) for file in (*_FILES, "tokenizer_config.json")]
    if trust_remote_code and any("AutoProcessor" in file.get("auto_map", {}) for file in files):
        return AutoProcessor
    class_name: str | None = next((file["processor_class"] for file in files if "processor_class" in file), None)
    if class_name is None:
        config = AutoConfig.from_pretrained(name, trust_remote_code=trust_remote_code, **hub)
        class_name = auto_mappings.PROCESSOR_MAPPING_NAMES.get(config.model_type)
    if class_name == "PixtralProcessor":
        return _pixtral_processor()
    processor_class: Any = class_name and processor_class_from_name(class_name)
    if not (class_name and processor_class) or "video_processor" not in _part_names(processor_class):
        return processor_class or AutoProcessor
    if "image_processor" not in _part_names(processor_class):
        raise ImportError(f"{class_name} needs torchvision")
    return type(class_name, (_ImagesOnly, processor_class), {})


def _pixtral_processor() -> type:
    """Return Pixtral's processor.

    Its module imports one function from the image processor for torchvision; the image processor for PIL has the same
    function.
    """
    torchvision_module = f"{_PIXTRAL}image_processing_pixtral"
    sys.modules[torchvision_module] = importlib.import_module(f"{_PIXTRAL}image_processing_pil_pixtral")
    try:
        processor_class: type = importlib.import_module(f"{_PIXTRAL}processing_pixtral").PixtralProcessor
    finally:
        del sys.modules[torchvision_module]
    return processor_class


def _read_settings(name: str, file: str, hub: dict[str, Any]) -> dict[str, Any]:
    """Read a JSON file of a checkpoint; the result is empty if the file is missing."""
    hub_options = {key: value for key, value in hub.items() if key in ("revision", "token", "cache_dir")}
    path = cached_file(name, file, _raise_exceptions_for_missing_entries=False, **hub_options)
    content = {} if path is None else json.loads(bounded_bytes(path, _MAX_SETTINGS))
    if not isinstance(content, dict):
        raise ValueError(f"{file} is not a mapping")  # noqa: TRY004  (a file's content)
    return content


Message = dict[str, Any]


class TextProcessor:
    """A processor for text-only prompts; images are refused.

    Args:
        tokenizer: with or without a chat template.
    """

    image_processor: ClassVar[None] = None
    video_processor: ClassVar[None] = None
    model_input_names: ClassVar[list[str]] = ["input_ids", "attention_mask"]

    def __init__(self, tokenizer: Any) -> None:  # noqa: ANN401  (a tokenizer of transformers)
        self.tokenizer = tokenizer
        self.chat_template = tokenizer.chat_template

    def apply_chat_template(
        self,
        conversations: Sequence[Message] | Sequence[Sequence[Message]],
        *,
        processor_kwargs: dict[str, Any] | None = None,
        **settings: Any,  # noqa: ANN401  (of the tokenizer, and variables of the template)
    ) -> Any:  # noqa: ANN401  (a text, or tensors by name)
        """Apply the template like a processor. Raises ValueError for an image, which the model cannot read."""
        is_single = isinstance(conversations[0], dict)
        all_conversations: Any = [conversations] if is_single else conversations
        texts = [[_as_text(message) for message in conversation] for conversation in all_conversations]
        options = {"chat_template": self.chat_template, **settings, **(processor_kwargs or {})}
        return self.tokenizer.apply_chat_template(texts[0] if is_single else texts, **options)


def _as_text(message: Message) -> Message:
    """Return a message with its parts joined to one text, since templates of language models take a text."""
    content = message["content"]
    if isinstance(content, str):
        return message
    if any(part["type"] != "text" for part in content):
        raise ValueError("the model reads only text, but got an image")
    return {**message, "content": "".join(part["text"] for part in content)}


def reads_text_alone(name: str, gguf_file: str | None = None, *, revision: str, trust_remote_code: bool) -> bool:
    """Return True if transformers loads a checkpoint as a language model that reads no images.

    Checkpoints in GGUF count as text-only: transformers reads only text models from such a file.
    """
    if gguf_file:
        return True
    config: PreTrainedConfig = AutoConfig.from_pretrained(name, revision=revision, trust_remote_code=trust_remote_code)
    if trust_remote_code and "AutoModelForCausalLM" in (auto_map := getattr(config, "auto_map", None) or {}):
        return "AutoModelForImageTextToText" not in auto_map and not hasattr(config, "vision_config")
    model_type = config.model_type
    return (
        model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and model_type not in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES
    )


def text_processor(
    name: str, gguf_file: str | None = None, *, revision: str, trust_remote_code: bool
) -> TextProcessor | None:
    """Return a checkpoint's tokenizer as a processor; None if the checkpoint also reads images."""
    if not reads_text_alone(name, gguf_file, revision=revision, trust_remote_code=trust_remote_code):
        return None
    options = {"gguf_file": gguf_file} if gguf_file else {}
    tokenizer = AutoTokenizer.from_pretrained(name, revision=revision, trust_remote_code=trust_remote_code, **options)
    return TextProcessor(tokenizer)


Template = str | Mapping[str, str]
"""A chat template, or several chat templates by name."""
_SWITCHES, _EFFORT = ("enable_thinking", "thinking"), "reasoning_effort"
# These names can be given like variables of a template, but are not variables of a template.
_RESERVED_NAMES = frozenset(inspect.signature(ProcessorMixin.apply_chat_template).parameters) | {"messages"}


def template_variables(
    name: str, template: Template, template_kwargs: Mapping[str, object], reasoning: Reasoning | None
) -> dict[str, object]:
    """Return the variables to fill in a template: the given variables, and the switches of reasoning.

    Args:
        name: the model's name, for error messages.

    Raises:
        ModelError: the template does not read a given variable, has no switch for `reasoning`, or would receive both a
            switch and `reasoning`.
        TemplateError: the template is invalid.
    """
    variables = _variables(template) if template_kwargs else frozenset()
    for variable in template_kwargs:
        # The processor would receive the value, or it would have no effect.
        if variable in _RESERVED_NAMES or variable not in variables:
            remedy = "leave it out of template_kwargs"
            raise ModelError(f"model {name}: its chat template reads no {variable!r}. Fix: {remedy}")
    switches = reasoning_switches(template, reasoning) if reasoning else {}
    if reasoning and not switches:
        levels = [level for level in REASONING if reasoning_switches(template, level)]
        problem = f"its chat template has no switch for reasoning {reasoning}"
        remedy = f"say --reasoning {', '.join(levels)}" if levels else "leave reasoning out"
        raise ModelError(f"model {name}: {problem}. Fix: {remedy}")
    if doubled := sorted(switches.keys() & template_kwargs.keys()):
        raise ModelError(f"model {name}: template_kwargs sets {doubled}, as reasoning does. Fix: leave one out")
    return {**template_kwargs, **switches}


def reasoning_switches(template: Template, reasoning: Reasoning) -> dict[str, bool | str]:
    """Return template variables and their values for this reasoning; empty if the template has none.

    Setting an effort also turns reasoning on. `reasoning_effort` turns reasoning off only if the template has the word
    "none".
    """
    variables = _variables(template)
    switches: dict[str, bool | str] = {name: reasoning != "off" for name in _SWITCHES if name in variables}
    effort = switch_value(_EFFORT, reasoning) if _EFFORT in variables else None
    if reasoning in ("off", "on"):
        knows_none = any(f"{quote}none{quote}" in str(template) for quote in "'\"")
        return switches or ({_EFFORT: effort} if effort is not None and knows_none else {})
    return {} if effort is None else {**switches, _EFFORT: effort}


def _variables(template: Template) -> frozenset[str]:
    """Return the variables that a template reads and does not set itself."""
    texts = [template] if isinstance(template, str) else template.values()
    trees = (_compile_jinja_template(text).environment.parse(text) for text in texts)
    return frozenset(name for tree in trees for name in meta.find_undeclared_variables(tree))
