"""What transformers' `generate` chooses tokens by: seeded sampling, and log-probabilities taken on the way.

Imports torch and transformers, so it is itself imported only where a model is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from transformers import (
    LogitsProcessor,
    LogitsProcessorList,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from barista_bench.models.base import GenerationConfig

# SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014), as signed numbers.
_STEP = 0x9E3779B97F4A7C15 - 2**64
_FACTORS = (0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64)
_SHIFTS = (30, 27, 31)
_RANDOM_BITS = 52


class SeededGumbel(LogitsProcessor):
    """Turn the argmax over the scores into a sample, drawn with a seed of each row's own.

    argmax(log p + Gumbel noise) is distributed as p. `do_sample=True` would draw all rows from one global stream,
    and a sample would then change with the rows beside it. Here the noise is a hash of seed, step and token, made on
    the model's device: the same in every batch and on every device, without a number that travels. Looking one
    uniform number up in the cumulative distribution would be less work, but rounding of the scores (batches round
    differently) would then change many more samples.

    Args:
        seeds: one a row, in the order of the rows.
    """

    def __init__(self, seeds: Sequence[int]) -> None:
        self._seeds, self._step = torch.tensor([seed % 2**63 for seed in seeds])[:, None], 0

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Add noise to scores of shape (rows, vocabulary), in float64; masked scores (-inf) stay masked."""
        if len(scores) != len(self._seeds):
            raise ValueError(f"{len(scores)} rows of scores for {len(self._seeds)} seeds")
        self._seeds, self._step = self._seeds.to(scores.device), self._step + 1
        stream = split_mix(split_mix(self._seeds) + _wrapped(self._step * _STEP))
        tokens = torch.arange(1, scores.shape[1] + 1, device=scores.device)
        bits = _unsigned_shift(split_mix(stream + tokens * _STEP), 64 - _RANDOM_BITS)
        uniform = (bits.double() + 0.5) * 2.0**-_RANDOM_BITS
        return cast("torch.FloatTensor", scores.double() - (-uniform.log()).log())


def split_mix(values: torch.Tensor) -> torch.Tensor:
    """The output function of SplitMix64, on int64 values read as unsigned ones."""
    for shift, factor in zip(_SHIFTS, (*_FACTORS, 1), strict=True):
        values = (values ^ _unsigned_shift(values, shift)) * factor
    return values


def _unsigned_shift(values: torch.Tensor, bits: int) -> torch.Tensor:
    return (values >> bits) & (2 ** (64 - bits) - 1)


def _wrapped(value: int) -> int:
    """As a signed number of 64 bits."""
    return (value + 2**63) % 2**64 - 2**63


def sampling_processors(
    config: GenerationConfig, penalty: float, padding: torch.Tensor, seeds: Sequence[int]
) -> LogitsProcessorList:
    """Repetition penalty, temperature, top-k, nucleus, then the draw; at temperature 0 the penalty alone.

    Args:
        config: the settings; their repetition penalty is not read.
        penalty: of repetition, 1.0 for none.
        padding: columns of padding on the left of each row, shape (rows,); padding repeats nothing.
        seeds: one a row.
    """
    processors = LogitsProcessorList()
    if penalty != 1.0:
        processors.append(RepetitionPenaltyLogitsProcessor(float(penalty), prompt_ignore_length=padding))
    if config.temperature <= 0:
        return processors
    if config.temperature != 1.0:
        processors.append(TemperatureLogitsWarper(float(config.temperature)))
    if config.top_k is not None:
        processors.append(TopKLogitsWarper(config.top_k))
    if config.top_p < 1.0:
        processors.append(TopPLogitsWarper(config.top_p))
    processors.append(SeededGumbel(seeds))
    return processors


@dataclass(frozen=True, slots=True)
class TokenScores:
    """Natural log-probabilities of one row, a step each: of the token taken, and of the likeliest ones."""

    chosen: list[float]
    ids: list[list[int]]
    values: list[list[float]]


class LogprobRecorder(LogitsProcessor):
    """Remembers log-probabilities as the model itself gives them; comes before penalty, temperature and cuts.

    So that they mean the same whatever the sampling settings are (OpenAI's and vLLM's do as well).

    Args:
        count: likeliest tokens to remember of each step, one or more.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._chosen: list[torch.Tensor] = []
        self._likeliest: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._latest: torch.Tensor | None = None  # of the step whose token is not chosen yet

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Take note of scores of shape (rows, vocabulary), and of the token that was chosen last."""
        self._take(input_ids[:, -1])
        self._latest = torch.log_softmax(scores, dim=-1)
        values, ids = self._latest.topk(min(self._count, scores.shape[-1]), dim=-1)
        self._likeliest.append((ids, values))
        return scores

    def rows(self, generated: torch.Tensor) -> list[TokenScores]:
        """One entry a row of `generated`, shape (rows, steps); steps that `generate` took back are left out."""
        steps = generated.shape[1]
        if len(self._chosen) < steps:
            self._take(generated[:, -1])
        ids, values = zip(*self._likeliest[:steps], strict=True)
        columns = (torch.stack(column, dim=1).tolist() for column in (self._chosen[:steps], ids, values))
        return [TokenScores(*row) for row in zip(*columns, strict=True)]

    def _take(self, tokens: torch.Tensor) -> None:
        if self._latest is not None:
            self._chosen.append(self._latest.gather(1, tokens[:, None])[:, 0])


class NanCheck(LogitsProcessor):
    """Raises ValueError for scores that are not numbers: the argmax over them would be an answer."""

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Scores of shape (rows, vocabulary), as they are."""
        if bool(scores.isnan().any()):
            raise ValueError("the model's scores are not numbers. Remedy: load it with another dtype (bfloat16)")
        return scores
