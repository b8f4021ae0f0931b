"""Several samples of one prompt: the prompt is run once, and each sample goes on from a copy of its cache.

Measured (perf/shared_prefill.py, CPU, three tiny families): `generate` takes 1.6 to 2.6 times as long for 8 or more
samples, 1.7 to 2.3 times for 3 samples of each of 8 prompts, and as long with one sample each: it is used there.

It calls private methods of transformers, so `suits` says where it can be used; everything else is `generate`'s work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch
from transformers import LogitsProcessorList, StoppingCriteriaList
from transformers.generation.utils import MULTIMODAL_INPUTS_TO_DROP_OUTSIDE_PREFILL

if TYPE_CHECKING:
    from transformers import GenerationConfig, PreTrainedModel

_PRIVATE_METHODS = ("_prefill", "_update_model_kwargs_for_generation", "_optimize_model_for_decode")


def suits(model: PreTrainedModel) -> bool:
    """Whether the cache of a model's prompt can be copied: not where it keeps a running state (Mamba and its kin)."""
    return all(hasattr(model, name) for name in _PRIVATE_METHODS) and not getattr(model, "_is_stateful", False)


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
        rows: the prompt that each sample continues, shape (samples,), in rising order.

    Returns:
        Prompts and continuations, shape (samples, columns).
    """
    outputs = model._prefill(input_ids, generation_config, model_kwargs)  # type: ignore[operator]
    model_kwargs = model._update_model_kwargs_for_generation(outputs, model_kwargs)  # type: ignore[operator]
    model_kwargs = _take_rows(model_kwargs, rows, prompts=input_ids.shape[0])
    sequences, logits = input_ids[rows], outputs.logits[:, -1].to(rows.device, torch.float32)[rows]
    pad = torch.as_tensor(generation_config.pad_token_id, device=sequences.device)
    running = torch.ones(len(rows), dtype=torch.bool, device=sequences.device)
    with model._optimize_model_for_decode():  # type: ignore[operator]
        while True:
            scores = logits_processor(cast("torch.LongTensor", sequences), cast("torch.FloatTensor", logits))
            chosen = torch.where(running, scores.argmax(dim=-1), pad)
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
            logits = outputs.logits[:, -1].to(sequences.device, torch.float32, copy=True)


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
