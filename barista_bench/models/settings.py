"""The tables of the models' settings; see `core/settings.py`.

`CheckpointSettings`, `TransformersSettings`, `VllmSettings` and `ServedSettings` (`models/served/settings.py`) define
the settings for loading one kind of model. `runs.ask.config` combines these tables into the settings of a run, and the
settings of a run define the command line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.settings import Count, JsonObject, Names, SettingsTable, json_object
from barista_bench.models.answers import Reasoning
from barista_bench.models.base import FramesAs

BoxFormatSetting = Annotated[
    BoxFormat | None, BeforeValidator(lambda value: BoxFormat.parse(value) if isinstance(value, str) else value)
]


class RevisionSettings(SettingsTable):
    """The revision of a model."""

    revision: str | None = Field(
        None,
        description=(
            "Commit of a Hub checkpoint; for a served model, the revision that the server runs, if you know it."
        ),
    )


class GeneratorSettings(RevisionSettings):
    """Settings of every model that generates text."""

    think_tags: Names | None = Field(
        None,
        description=(
            "Opening and closing tag of reasoning, separated by a comma; by default the tags of common models."
        ),
        min_length=2,
        max_length=2,
    )
    reasoning: Reasoning | None = Field(
        None,
        description=(
            "Whether, or how hard, the model reasons first, if it has such a switch; by default the model decides."
        ),
    )
    box_format: BoxFormatSetting = Field(
        None,
        description=(
            "How the model writes boxes, e.g. yxyx/1000, xyxy/1 or xyxy/pixels; by default as its architecture does."
        ),
    )
    frames_as: FramesAs = Field(
        "images", description="How to send consecutive images: as images, or as one video with the times of its frames."
    )
    video_fps: float | None = Field(
        None,
        gt=0,
        description="Frames per second to state for a video, instead of the times at which the frames were filmed.",
    )
    structured_output: bool = Field(
        False,
        description=(
            "Constrain answers to their JSON Schema while they are written: a local model token by token,"
            " a server by response_format (strict)."
        ),
    )

    @model_validator(mode="after")
    def _check_video_settings(self) -> Self:
        if self.video_fps is not None and self.frames_as != "video":
            raise ValueError("video_fps is set, but frames are sent as images: add frames_as=video")
        return self

    @property
    def tags(self) -> tuple[str, str] | None:
        """The think tags that were set."""
        return (self.think_tags[0], self.think_tags[1]) if self.think_tags else None

    def identity_of_answers(self) -> dict[str, str | bool | None]:
        """The requested form of a local model's answers, for its identity; None if answers are free text."""
        return {
            "box_format": str(self.box_format) if self.box_format else None,
            "think_tags": " ".join(self.think_tags) if self.think_tags else None,
            "reasoning": self.reasoning,
            "structured_output": self.structured_output or None,
        }


class WeightSettings(RevisionSettings):
    """Settings for a checkpoint, however it is run."""

    device: str = Field(
        "auto", description=("Device: auto (a CUDA GPU if there is one), cpu, cuda, split (over all GPUs), ...")
    )
    dtype: str = Field("auto", description="Precision: auto (of the checkpoint), float32, bfloat16, ...")
    trust_remote_code: bool = Field(False, description="Run the code that comes with the checkpoint.")


class CheckpointSettings(WeightSettings):
    """Settings for all checkpoints that transformers runs."""

    attn_implementation: str | None = Field(
        None, description="Implementation of attention: sdpa, flash_attention_2, ..."
    )


_RESERVED_ARGUMENTS = frozenset(
    {"model", "tokenizer", "revision", "dtype", "trust_remote_code", "tensor_parallel_size", "data_parallel_size"}
    | {"load_format", "max_logprobs", "skip_tokenizer_init", "logits_processors", "worker_cls", "seed"}
    | {"structured_outputs_config"}
)
_MEMORY_ARGUMENTS = frozenset(
    {"gpu_memory_utilization", "kv_cache_memory_bytes", "cpu_offload_gb", "max_num_seqs", "max_num_batched_tokens"}
    | {"enforce_eager", "mm_processor_cache_gb"}
)


class VllmSettings(WeightSettings, GeneratorSettings):
    """Settings of `--engine vllm`: the keyword arguments of `VllmModel.load`."""

    engine_python: Path | None = Field(
        None, description="Python of the environment that has vllm, if it is another environment."
    )
    engine_args: JsonObject = Field(
        default_factory=dict, description='Further arguments of vLLM\'s `LLM`, as JSON: {"max_model_len": 32768}.'
    )
    engine_requests: Count = Field(
        64, description="Maximum number of prompts in vLLM at the same time; their images are in memory."
    )
    engine_timeout: float = Field(
        1800.0, gt=0, description="Seconds without a sign of life after which vLLM is restarted."
    )
    tensor_parallel: Count = Field(1, description="Number of GPUs on which vLLM shares one copy of the weights.")

    @field_validator("engine_args")
    @classmethod
    def _check_engine_args(cls, arguments: dict[str, Any]) -> dict[str, Any]:
        if reserved := sorted(_RESERVED_ARGUMENTS & set(arguments)):
            raise ValueError(f"sets {reserved}, which other settings decide, or nothing may")
        return json_object("engine_args", arguments)

    @property
    def answer_args(self) -> dict[str, Any]:
        """The `engine_args` that may change answers."""
        return {name: value for name, value in self.engine_args.items() if name not in _MEMORY_ARGUMENTS}


class TransformersSettings(CheckpointSettings, GeneratorSettings):
    """Settings of a vision-language model: the keyword arguments of `TransformersModel.load`."""

    batch_size: Count | Literal["auto"] = Field(8, description="Maximum number of prompts in a batch, or auto.")
    quantization: Literal["4bit", "8bit"] | None = Field(
        None, description="Quantise with bitsandbytes on a CUDA GPU: 4bit (NF4) or 8bit (LLM.int8)."
    )
    adapter: str | None = Field(None, description="LoRA adapter: a folder or a Hub id; needs peft.")
    adapter_revision: str | None = Field(None, description="Commit of a Hub adapter.")
    min_pixels: Count | None = Field(None, description="Minimum pixels per image, if the processor has this limit.")
    max_pixels: Count | None = Field(None, description="Maximum pixels per image, if the processor has this limit.")
    chat_template: Path | None = Field(None, description="Chat template (a Jinja file) that replaces the checkpoint's.")
    template_kwargs: JsonObject = Field(
        default_factory=dict,
        description=('Variables of the chat template, as JSON: {"enable_thinking": false}. Do not put secrets here.'),
    )

    @field_validator("template_kwargs")
    @classmethod
    def _check_template_kwargs(cls, variables: dict[str, Any]) -> dict[str, Any]:
        return json_object("template_kwargs", variables)

    @model_validator(mode="after")
    def _check_pixels(self) -> Self:
        if self.min_pixels is not None and self.max_pixels is not None and self.min_pixels > self.max_pixels:
            raise ValueError(f"min_pixels is {self.min_pixels}, above max_pixels {self.max_pixels}: exchange them")
        return self
