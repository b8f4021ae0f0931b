"""SettingsTable of checkpoints that are loaded on this machine."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from barista_bench.models.settings import Count, GeneratorSettings, SettingsTable


class CheckpointSettings(SettingsTable):
    """What every kind of local checkpoint takes."""

    device: str = Field("auto", description="auto (a CUDA GPU if there is one), cpu, cuda, split (over all GPUs), ...")
    dtype: str = Field("auto", description="auto (the checkpoint's own), float32, bfloat16, ...")
    attn_implementation: str | None = Field(None, description="sdpa, flash_attention_2, ...")
    trust_remote_code: bool = Field(False, description="Run code that the checkpoint brings.")


class TransformersSettings(CheckpointSettings, GeneratorSettings):
    """What a vision-language model takes: the keywords of `TransformersModel.load`."""

    batch_size: Count | Literal["auto"] = Field(8, description="The most prompts generated together, or auto.")
    quantization: Literal["4bit", "8bit"] | None = Field(
        None, description="4bit (NF4) or 8bit (LLM.int8) through bitsandbytes, on a CUDA GPU."
    )
    adapter: str | None = Field(None, description="LoRA adapter: a folder or a Hub id; needs peft.")
    adapter_revision: str | None = Field(None, description="Commit of a Hub adapter.")
    min_pixels: Count | None = Field(None, description="Of an image, where the processor takes a limit.")
    max_pixels: Count | None = Field(None, description="Of an image, where the processor takes a limit.")
    frames_as: Literal["images", "video"] = Field("images", description="How frames of one clip reach the processor.")
    video_fps: float | None = Field(None, gt=0, description="Frames a second given to a processor of videos.")

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.video_fps is not None and self.frames_as != "video":
            raise ValueError("video_fps is set, but frames are sent as images: add frames_as=video")
        if self.min_pixels is not None and self.max_pixels is not None and self.min_pixels > self.max_pixels:
            raise ValueError(f"min_pixels is {self.min_pixels}, above max_pixels {self.max_pixels}: exchange them")
        return self
