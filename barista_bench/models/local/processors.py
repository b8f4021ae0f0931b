"""Processors of checkpoints, with torchvision and without.

transformers builds a processor whole or not at all, and all of its video processors need torchvision. Its image
processors for PIL do not: without torchvision a processor is put together for images alone.

Imports transformers, so it is itself imported only where a model is loaded.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any, ClassVar

from transformers import AutoConfig, AutoFeatureExtractor, AutoImageProcessor, AutoProcessor, ProcessorMixin
from transformers.models.auto import auto_mappings
from transformers.models.auto.processing_auto import processor_class_from_name
from transformers.utils.hub import PushToHubMixin, cached_file
from transformers.utils.import_utils import is_torchvision_available

from barista_bench.errors import ModelError, require_extra
from barista_bench.files.reading import bounded_bytes

_MAX_SETTINGS = 16 * 2**20  # bytes of a JSON file
# Older checkpoints keep the settings of the parts in files of their own.
_FILES = ("processor_config.json", "preprocessor_config.json", "video_preprocessor_config.json")
_PIXTRAL = "transformers.models.pixtral."


def load_processor(name: str, *, wants_video: bool, **settings: Any) -> ProcessorMixin:  # noqa: ANN401
    """The processor of a checkpoint; for images alone where torchvision is missing.

    Args:
        name: path of a folder, or `org/name` on the Hub.
        wants_video: videos will be given to it.
        settings: for `from_pretrained`: `revision`, `trust_remote_code`, limits of images.

    Raises:
        ModelError: there is none for images, or it needs torchvision, which is missing.
        OSError, ValueError, TypeError, ...: transformers', of files that are missing or damaged.
    """
    needs = f"model {name}: its processor"
    try:
        kind: Any = AutoProcessor if is_torchvision_available() else _without_torchvision(name, **settings)
        if wants_video and issubclass(kind, _ImagesOnly):
            require_extra(f"{needs} of videos", "torchvision", extra="video")
        processor = kind.from_pretrained(name, **settings)
    except (ImportError, ValueError) as error:
        if "orchvision" not in str(error):
            raise
        require_extra(needs, "torchvision", extra="video")
        raise
    if getattr(processor, "image_processor", None) is None:
        raise ModelError(f"{needs} takes no images. Remedy: use a vision-language model")
    return processor


class _VideoSettings(PushToHubMixin):  # what processors ask of their parts
    """Stands for a video processor: the settings that a checkpoint has for it, None for those that it leaves out.

    Some processors read them before they are given any video; with a video they would call it, and fail.
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
        whole, images, videos = (_settings(name, file, hub) for file in _FILES)
        return cls(**{**images, **videos, **whole.get("video_processor", {})})

    def to_dict(self) -> dict[str, object]:
        return dict(self.__dict__)


class _ImagesOnly(ProcessorMixin):
    """Comes before the class of a processor, whose video processor it replaces by its settings."""

    @classmethod
    def _get_arguments_from_pretrained(
        cls, pretrained_model_name_or_path: str, processor_dict: object = None, **kwargs: object
    ) -> list[object]:
        kinds: dict[str, Any] = {
            "image_processor": AutoImageProcessor,
            "feature_extractor": AutoFeatureExtractor,
            "video_processor": _VideoSettings,
        }
        tokenizer: Any = cls._load_tokenizer_from_pretrained
        return [
            kinds[part].from_pretrained(pretrained_model_name_or_path, **kwargs)
            if part in kinds
            else tokenizer(part, pretrained_model_name_or_path, **kwargs)
            for part in _parts(cls)
        ]

    @staticmethod
    def get_possibly_dynamic_module(module_name: str) -> object:
        transformers_class: Any = ProcessorMixin.get_possibly_dynamic_module
        return _VideoSettings if module_name == "VideoProcessorMixin" else transformers_class(module_name)


def _parts(kind: Any) -> list[str]:  # noqa: ANN401
    """`image_processor`, `tokenizer`, ..., in the order in which a class of processors takes them."""
    return list(kind.get_attributes())


def _without_torchvision(name: str, *, trust_remote_code: bool, revision: str, **_: object) -> Any:  # noqa: ANN401
    """The class that reads a checkpoint's processor without torchvision, as far as there is one."""
    hub = {"revision": revision}
    files = [_settings(name, file, hub) for file in (*_FILES, "tokenizer_config.json")]
    if trust_remote_code and any("AutoProcessor" in file.get("auto_map", {}) for file in files):
        return AutoProcessor
    declared: str | None = next((file["processor_class"] for file in files if "processor_class" in file), None)
    if declared is None:
        config = AutoConfig.from_pretrained(name, trust_remote_code=trust_remote_code, **hub)
        declared = auto_mappings.PROCESSOR_MAPPING_NAMES.get(config.model_type)
    if declared == "PixtralProcessor":
        return _pixtral_processor()
    kind: Any = declared and processor_class_from_name(declared)
    if not (declared and kind) or "video_processor" not in _parts(kind):
        return kind or AutoProcessor
    if "image_processor" not in _parts(kind):
        raise ImportError(f"{declared} needs torchvision")
    return type(declared, (_ImagesOnly, kind), {})


def _pixtral_processor() -> type:
    """Pixtral's. Its module takes one function from the image processor of torchvision; that of PIL has it as well."""
    missing = f"{_PIXTRAL}image_processing_pixtral"
    sys.modules[missing] = importlib.import_module(f"{_PIXTRAL}image_processing_pil_pixtral")
    try:
        kind: type = importlib.import_module(f"{_PIXTRAL}processing_pixtral").PixtralProcessor
    finally:
        del sys.modules[missing]
    return kind


def _settings(name: str, file: str, hub: dict[str, Any]) -> dict[str, Any]:
    """A JSON file of a checkpoint; empty where it has none."""
    wanted = {key: value for key, value in hub.items() if key in ("revision", "token", "cache_dir")}
    path = cached_file(name, file, _raise_exceptions_for_missing_entries=False, **wanted)
    content = {} if path is None else json.loads(bounded_bytes(path, _MAX_SETTINGS))
    if not isinstance(content, dict):
        raise ValueError(f"{file} is no mapping")  # noqa: TRY004  (a file's content)
    return content
