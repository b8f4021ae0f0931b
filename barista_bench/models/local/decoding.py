"""Decoding with transformers: seeded sampling, log-probabilities, and one prefill for all samples of a prompt.

Imports torch and transformers, so it is itself imported only where a model is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch
from transformers import (
    LogitsProcessor,
    LogitsProcessorList,
    RepetitionPenaltyLogitsProcessor,
    StoppingCriteriaList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)
from transformers.generation.utils import MULTIMODAL_INPUTS_TO_DROP_OUTSIDE_PREFILL

from barista_bench.models.base import GenerationConfig as Settings

if TYPE_CHECKING:
    from transformers import GenerationConfig, PreTrainedModel

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
    config: Settings, penalty: float, padding: torch.Tensor, seeds: Sequence[int]
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


class LogprobRecorder:
    """Remembers log-probabilities as the model itself gives them, before penalty, temperature and cuts.

    So that they mean the same whatever the sampling settings are (OpenAI's and vLLM's do as well).

    Args:
        count: likeliest tokens to remember of each step, one or more.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._steps: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []

    def add(self, logits: torch.Tensor, chosen: torch.Tensor) -> None:
        """One step: logits of shape (rows, vocabulary) in float32, the tokens taken of shape (rows,)."""
        scores = torch.log_softmax(logits, dim=-1)
        values, ids = scores.topk(min(self._count, scores.shape[-1]), dim=-1)
        self._steps.append((scores.gather(1, chosen[:, None])[:, 0], ids, values))

    def rows(self) -> list[TokenScores]:
        """One entry a row, with one step for each column that was generated."""
        chosen, ids, values = (torch.stack(column, dim=1).tolist() for column in zip(*self._steps, strict=True))
        return [TokenScores(*row) for row in zip(chosen, ids, values, strict=True)]


def decode_after_shared_prefill(
    model: PreTrainedModel,
    input_ids: torch.LongTensor,
    logits_processor: LogitsProcessorList,
    stopping_criteria: StoppingCriteriaList,
    generation_config: GenerationConfig,
    *,
    rows: torch.Tensor,
    recorder: LogprobRecorder | None = None,
    **model_kwargs: object,
) -> torch.LongTensor:
    """Greedy decoding for `generate(custom_generate=...)` that runs each prompt once, for all its samples.

    `num_return_sequences` does not do this: it repeats the prompts before the prefill, and it refuses
    `do_sample=False`.

    Args:
        rows: the prompt that each sample continues, shape (samples,), in rising order.
        recorder: is told of every step.

    Returns:
        Prompts and continuations, shape (samples, columns).

    Raises:
        ValueError: the model's scores are not numbers.
    """
    outputs = model._prefill(input_ids, generation_config, model_kwargs)  # type: ignore[operator]
    model_kwargs = model._update_model_kwargs_for_generation(outputs, model_kwargs)  # type: ignore[operator]
    if len(rows) > input_ids.shape[0]:
        model_kwargs = _take_rows(model_kwargs, rows, prompts=input_ids.shape[0])
    sequences, logits = input_ids[rows], outputs.logits[:, -1].to(rows.device, torch.float32)[rows]
    pad = torch.as_tensor(generation_config.pad_token_id, device=sequences.device)
    running = torch.ones(len(rows), dtype=torch.bool, device=sequences.device)
    with model._optimize_model_for_decode():  # type: ignore[operator]
        while True:
            if bool(logits.isnan().any()):
                raise ValueError("the model's scores are not numbers. Remedy: load it with another dtype (bfloat16)")
            # The processors may write into what they are given, and the recorder wants the logits as they were.
            scores = logits_processor(cast("torch.LongTensor", sequences), cast("torch.FloatTensor", logits.clone()))
            chosen = torch.where(running, scores.argmax(dim=-1), pad)
            if recorder is not None:
                recorder.add(logits, chosen)
            sequences = torch.cat([sequences, chosen[:, None]], dim=-1)
            running &= ~stopping_criteria(sequences, None)
            if not running.any():
                return cast("torch.LongTensor", sequences)
            del outputs  # frees the logits before the next ones are made
            step = model.prepare_inputs_for_generation(  # type: ignore[operator]
                sequences, next_sequence_length=1, **model_kwargs
            )
            outputs = model(**step, return_dict=True)
            model_kwargs = model._update_model_kwargs_for_generation(outputs, model_kwargs)  # type: ignore[operator]
            logits = outputs.logits[:, -1].to(dtype=torch.float32, device=sequences.device)


def _take_rows(kwargs: dict[str, object], rows: torch.Tensor, prompts: int) -> dict[str, object]:
    """The model's inputs for the samples instead of the prompts; without pixels, which are used up."""
    taken: dict[str, object] = {}
    for name, value in kwargs.items():
        if name in MULTIMODAL_INPUTS_TO_DROP_OUTSIDE_PREFILL:
            continue
        if name == "past_key_values":
            value.reorder_cache(rows)  # type: ignore[attr-defined]  # the one call that every kind of cache has
        elif isinstance(value, torch.Tensor) and name == "position_ids" and value.ndim == 3:
            value = value[:, rows]  # several axes of positions (Qwen), the batch in the second dimension
        elif isinstance(value, torch.Tensor) and value.ndim and value.shape[0] == prompts:
            value = value[rows]
        taken[name] = value
    return taken
