"""Refuses settings of loading and generation that make no sense, before anything is loaded or generated."""

from __future__ import annotations

import math

from barista_bench.errors import ConfigError
from barista_bench.models.base import GenerationConfig

_MOST_LOGPROBS = 100  # likeliest tokens a step; each is kept for every token of every answer
_MOST_STOPS = 64


def check_generation(config: GenerationConfig) -> None:
    """Raise ConfigError where a generation setting is out of range."""
    _positive("max_new_tokens", config.max_new_tokens)
    _number("temperature", config.temperature, 0 <= config.temperature < math.inf, "0 (greedy) or more")
    _number("top_p", config.top_p, 0 < config.top_p <= 1, "a share above 0 and up to 1")
    _number(
        "repetition_penalty",
        config.repetition_penalty,
        0 < config.repetition_penalty < math.inf,
        "a number above 0, 1.0 for none",
    )
    if config.top_k is not None:
        _positive("top_k", config.top_k)
    if config.thinking_budget is not None:
        _number("thinking_budget", config.thinking_budget, config.thinking_budget >= 0, "0 or more tokens")
    _number("top_logprobs", config.top_logprobs, 0 <= config.top_logprobs <= _MOST_LOGPROBS, f"0 to {_MOST_LOGPROBS}")
    if len(config.stop) > _MOST_STOPS or not all(config.stop):
        raise ConfigError(f"stop is {config.stop!r}. Remedy: give up to {_MOST_STOPS} texts, none of them empty")


def check_load(
    frames_as: str,
    video_fps: float | None,
    think_tags: tuple[str, str] | None,
    min_pixels: int | None,
    max_pixels: int | None,
) -> None:
    """Raise ConfigError where a setting of loading is unknown, out of range, or contradicts another one."""
    if frames_as not in ("images", "video"):
        raise ConfigError(f"frames_as is {frames_as!r}. Remedy: give images or video")
    if video_fps is not None:
        _number("video_fps", video_fps, 0 < video_fps < math.inf, "a number above 0")
        if frames_as != "video":
            raise ConfigError("video_fps is set, but frames are sent as images. Remedy: add frames_as='video'")
    if think_tags is not None and (len(think_tags) != 2 or not all(think_tags)):
        raise ConfigError(f"think_tags are {think_tags!r}. Remedy: give an opening and a closing tag")
    for name, value in {"min_pixels": min_pixels, "max_pixels": max_pixels}.items():
        if value is not None:
            _positive(name, value)
    if min_pixels is not None and max_pixels is not None and min_pixels > max_pixels:
        raise ConfigError(f"min_pixels is {min_pixels}, above max_pixels {max_pixels}. Remedy: exchange them")


def _positive(name: str, value: int) -> None:
    right = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    _number(name, value, right, "a whole number of 1 or more")


def _number(name: str, value: float, right: bool, wanted: str) -> None:
    if not right:
        raise ConfigError(f"{name} is {value!r}. Remedy: give {wanted}")
