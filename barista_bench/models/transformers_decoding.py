"""Decoding with transformers: seeded sampling, stop texts, and one prefill for all samples of a prompt.

Imports torch and transformers, so it is itself imported only where a model is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import torch
from transformers import (
    LogitsProcessor,
    LogitsProcessorList,
    StoppingCriteria,
    StoppingCriteriaList,
    TemperatureLogitsWarper,
    TopPLogitsWarper,
)
from transformers.generation.utils import MULTIMODAL_INPUTS_TO_DROP_OUTSIDE_PREFILL

if TYPE_CHECKING:
    from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

_SEED_RANGE = 2**63
_RANDOM_STEP = 2.0**-24  # torch.rand draws float32 in whole steps of this size


class SeededGumbel(LogitsProcessor):
    """Turn the argmax over the scores into a sample, drawn with a seed of each row's own.

    argmax(log p + Gumbel noise) is distributed as p. `do_sample=True` would draw all rows from one global
    stream, and a sample would then change with the rows beside it; here a row's noise depends on its seed and
    step alone. The generators are on the CPU, so that the noise is the same on every device.

    Args:
        seeds: one a row, in the order of the rows.
    """

    def __init__(self, seeds: Sequence[int]) -> None:
        self._generators = [torch.Generator().manual_seed(seed % _SEED_RANGE) for seed in seeds]

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Add noise to scores of shape (rows, vocabulary); masked scores (-inf) stay masked."""
        uniform = torch.empty(scores.shape, dtype=torch.float32)
        for row, generator in zip(uniform, self._generators, strict=True):
            torch.rand(row.shape, generator=generator, out=row)
        exponential = -torch.log1p(-(uniform.to(scores.device) + _RANDOM_STEP / 2).clamp_(max=1 - _RANDOM_STEP))
        return cast("torch.FloatTensor", scores.float() - exponential.log())


class StopTexts(StoppingCriteria):
    """Stop a row when the text that it generated holds a stop text, and remember after how many tokens.

    Only generated tokens are read, so that a prompt which ends like a stop text stops nothing. Special tokens
    count as text here: `<|im_end|>` may be a stop text.

    Args:
        tokenizer: decodes the tokens.
        texts: the stop texts, none of them empty.
        prompt_length: columns of the padded prompt.
        rows: rows generated.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], prompt_length: int, rows: int) -> None:
        self.lengths: list[int | None] = [None] * rows
        self._tokenizer, self._texts, self._prompt_length = tokenizer, tuple(texts), prompt_length
        # A token writes a byte or more; four tokens to spare for one that starts within a character.
        self._tail = max((len(text.encode()) for text in texts), default=0) + 4

    def __call__(self, input_ids: torch.LongTensor, scores: object, **_: object) -> torch.BoolTensor:
        """Shape (rows,): true for each row that has met a stop text."""
        if self._texts:
            start = max(self._prompt_length, input_ids.shape[1] - self._tail)
            tails = input_ids[:, start:].tolist()
            for row, tail in enumerate(tails):
                if self.lengths[row] is None and self._stops(tail):
                    self.lengths[row] = input_ids.shape[1] - self._prompt_length
        met = torch.tensor([length is not None for length in self.lengths], device=input_ids.device)
        return cast("torch.BoolTensor", met)

    def _stops(self, tail: list[int]) -> bool:
        text = self._tokenizer.decode(tail, clean_up_tokenization_spaces=False)
        return any(stop in text for stop in self._texts)


def sampling_processors(temperature: float, top_p: float, seeds: Sequence[int]) -> LogitsProcessorList:
    """Temperature, then nucleus, then noise; empty (greedy) at temperature 0."""
    processors = LogitsProcessorList()
    if temperature <= 0:
        return processors
    if temperature != 1.0:
        processors.append(TemperatureLogitsWarper(temperature))
    if top_p < 1.0:
        processors.append(TopPLogitsWarper(top_p))
    processors.append(SeededGumbel(seeds))
    return processors


def decode_after_shared_prefill(
    model: PreTrainedModel,
    input_ids: torch.LongTensor,
    logits_processor: LogitsProcessorList,
    stopping_criteria: StoppingCriteriaList,
    generation_config: GenerationConfig,
    *,
    rows: torch.Tensor,
    **model_kwargs: object,
) -> torch.LongTensor:
    """Greedy decoding for `generate(custom_generate=...)` that runs each prompt once, for all its samples.

    `num_return_sequences` does not do this: it repeats the prompts before the prefill, and it refuses
    `do_sample=False`.

    Args:
        rows: the prompt that each sample continues, shape (samples,).

    Returns:
        Prompts and continuations, shape (samples, columns).
    """
    outputs = model._prefill(input_ids, generation_config, model_kwargs)  # type: ignore[operator]
    model_kwargs = model._update_model_kwargs_for_generation(outputs, model_kwargs)  # type: ignore[operator]
    model_kwargs = _take_rows(model_kwargs, rows, prompts=input_ids.shape[0])
    _repeat_penalties(logits_processor, rows, prompts=input_ids.shape[0])
    sequences, logits = input_ids[rows], outputs.logits[:, -1].float()[rows]
    pad = torch.as_tensor(generation_config.pad_token_id, device=sequences.device)
    running = torch.ones(len(rows), dtype=torch.bool, device=sequences.device)
    while True:
        chosen = logits_processor(cast("torch.LongTensor", sequences), logits).argmax(dim=-1)
        chosen = torch.where(running, chosen, pad)
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


def _repeat_penalties(processors: LogitsProcessorList, rows: torch.Tensor, prompts: int) -> None:
    """A checkpoint's repetition penalty (Qwen has one) keeps each prompt's padding; make it each sample's."""
    for processor in processors:
        padding = getattr(processor, "prompt_ignore_length", None)
        if isinstance(padding, torch.Tensor) and padding.shape[0] == prompts:
            processor.prompt_ignore_length = padding[rows]


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
