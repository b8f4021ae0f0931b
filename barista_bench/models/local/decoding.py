"""How transformers' `generate` chooses tokens and stops: samples, log-probabilities, stop texts, thinking.

`decode_after_shared_prefill` generates several samples of one prompt, each from a copy of the prompt's cache. On a CPU
with three tiny architectures, `generate` takes 1.6 to 2.6 times as long for 8 or more samples, and 1.7 to 2.3 times as
long for 3 samples of each of 8 prompts. For one sample per prompt both take equally long, and `generate` is used.

This module imports torch and transformers, so import it only when a model is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

import torch
from transformers import (
    LogitsProcessor,
    LogitsProcessorList,
    RepetitionPenaltyLogitsProcessor,
    StoppingCriteria,
    StoppingCriteriaList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)
from transformers.generation.utils import MULTIMODAL_INPUTS_TO_DROP_OUTSIDE_PREFILL

from barista_bench.models.answers import TokenScores
from barista_bench.models.base import GenerationConfig

if TYPE_CHECKING:
    from transformers import GenerationConfig as DecodingConfig, PreTrainedModel, PreTrainedTokenizerBase

# SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014), as signed numbers.
_STEP = 0x9E3779B97F4A7C15 - 2**64
_FACTORS = (0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64)
_SHIFTS = (30, 27, 31)
_RANDOM_BITS = 52


class SeededGumbel(LogitsProcessor):
    """Turns the argmax over the scores into a random sample, with a separate seed for each row.

    argmax(log p + Gumbel noise) is distributed as p. `do_sample=True` would draw all rows from one global stream, so
    the other rows of a batch would change a sample. Here the noise is a hash of seed, step and token. It is the same in
    every batch and on every device. It is computed on the model's device, so no numbers are transferred. Inverting the
    cumulative distribution with one uniform number would be less work. But then rounding of the scores (batches round
    differently) would change many more samples.
    """

    def __init__(self, seeds: Sequence[int]) -> None:
        self._seeds, self._step = torch.tensor([seed % 2**63 for seed in seeds])[:, None], 0

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Add noise in float64 to scores of shape (rows, vocabulary); masked scores (-inf) stay masked."""
        if len(scores) != len(self._seeds):
            raise ValueError(f"{len(scores)} rows of scores for {len(self._seeds)} seeds")
        self._seeds, self._step = self._seeds.to(scores.device), self._step + 1
        stream = split_mix(split_mix(self._seeds) + ((self._step * _STEP + 2**63) % 2**64 - 2**63))
        tokens = torch.arange(1, scores.shape[1] + 1, device=scores.device)
        bits = _unsigned_shift(split_mix(stream + tokens * _STEP), 64 - _RANDOM_BITS)
        uniform = (bits.double() + 0.5) * 2.0**-_RANDOM_BITS
        return cast("torch.FloatTensor", scores.double() - (-uniform.log()).log())


def split_mix(values: torch.Tensor) -> torch.Tensor:
    """Apply the output function of SplitMix64 to int64 values read as unsigned."""
    for shift, factor in zip(_SHIFTS, (*_FACTORS, 1), strict=True):
        values = (values ^ _unsigned_shift(values, shift)) * factor
    return values


def _unsigned_shift(values: torch.Tensor, bits: int) -> torch.Tensor:
    return (values >> bits) & (2 ** (64 - bits) - 1)


def sampling_processors(
    config: GenerationConfig, penalty: float, padding: torch.Tensor, seeds: Sequence[int]
) -> LogitsProcessorList:
    """Return processors for repetition penalty, temperature, top-k, nucleus and draw.

    At temperature 0, only the repetition penalty applies.

    Args:
        config: the settings; `repetition_penalty` is ignored here.
        penalty: repetition penalty, 1.0 for none.
        padding: number of padding columns on the left of each row, shape (rows,). Padding does not count as repetition.
        seeds: one per row.
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


class LogprobRecorder(LogitsProcessor):
    """Records the model's log-probabilities before penalty, temperature, top-k and nucleus change them.

    So log-probabilities have the same meaning for all sampling settings, as in OpenAI's and vLLM's APIs. For an answer
    with a schema, only the allowed tokens have probabilities, and these add up to one, as in vLLM.

    Args:
        count: number of likeliest tokens to record per step, one or more.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._chosen: list[torch.Tensor] = []
        self._likeliest: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._latest: torch.Tensor | None = None  # scores of the step whose token is not chosen yet

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Record the scores, of shape (rows, vocabulary), and the last chosen token."""
        self._take(input_ids[:, -1])
        self._latest = torch.log_softmax(scores, dim=-1)
        values, ids = self._latest.topk(min(self._count, scores.shape[-1]), dim=-1)
        self._likeliest.append((ids, values))
        return scores

    def rows(self, generated: torch.Tensor) -> list[TokenScores]:
        """Return one entry per row of `generated` (rows, steps); steps that `generate` took back are left out."""
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
    """Raises ValueError if scores are NaN, since the argmax over NaN would give an answer."""

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Check scores of shape (rows, vocabulary), and return them unchanged."""
        if bool(scores.isnan().any()):
            raise ValueError("the model's scores are not numbers. Fix: load it with another dtype (bfloat16)")
        return scores


_SPARE_TOKENS = 4  # a token writes at least one byte, unless it starts within a character


class Thoughts:
    """Tracks, row by row, whether a model is thinking. Reads each generated token once, and no prompt tokens.

    Tags are searched in the text, since a tag is one token in some vocabularies and several tokens in others.

    Args:
        prompt_length: columns of the padded prompt.
        opens_thinking: for each row, True if the prompt has already opened the thinking.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        tags: tuple[str, str],
        prompt_length: int,
        opens_thinking: Sequence[bool],
    ) -> None:
        self.thinking = list(opens_thinking)
        self.thinking_tokens = [0] * len(self.thinking)
        """Number of reasoning tokens in each row."""
        self.answers_from: list[int] = [0] * len(self.thinking)
        """Number of tokens that each row had generated when its present thinking or answering began."""
        self._tokenizer, self._tags, self._prompt_length = tokenizer, tags, prompt_length
        self._tail = max(len(tag.encode()) for tag in tags) + _SPARE_TOKENS
        self._read = prompt_length

    def read(self, input_ids: torch.Tensor) -> None:
        """Read the new tokens; `input_ids` has the shape (rows, prompt and generated tokens)."""
        if input_ids.shape[1] == self._read:
            return
        generated = input_ids[:, self._prompt_length :].tolist()
        for end in range(self._read - self._prompt_length + 1, len(generated[0]) + 1):
            for row, tokens in enumerate(generated):
                self._take(row, tokens, end)
        self._read = input_ids.shape[1]

    def has_thought(self, row: int) -> bool:
        """Return True if thinking came before the present part of the answer."""
        return not self.thinking[row] and self.answers_from[row] > 0

    def _take(self, row: int, tokens: list[int], end: int) -> None:
        is_thinking = self.thinking[row]
        self.thinking_tokens[row] += is_thinking
        tail = tokens[max(self.answers_from[row], end - self._tail) : end]
        text = self._tokenizer.decode(tail, clean_up_tokenization_spaces=False)
        if self._tags[is_thinking] in text:
            self.thinking[row], self.answers_from[row] = not is_thinking, end


class ThinkingBudget(LogitsProcessor):
    """Closes the thinking of a row after `budget` tokens: it forces the tokens of the closing tag.

    Place it last, after all processors that choose among the scores.

    Args:
        budget: number of reasoning tokens, 0 or more, without the tag.
        closing: the tokens that close the thinking, one or more.
        allows: returns True if a row's answer with a schema can continue with a token. The tag cannot start within a
            character, so closing waits for the last bytes of the character.
    """

    def __init__(
        self,
        thoughts: Thoughts,
        budget: int,
        closing: Sequence[int],
        allows: Callable[[int, int], bool] = lambda row, token: True,
    ) -> None:
        self._thoughts, self._budget, self._closing, self._allows = thoughts, budget, tuple(closing), allows
        self._forced = [0] * len(thoughts.thinking)  # tokens of the closing tag that are still to be written

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Return scores of shape (rows, vocabulary).

        In rows where the closing tag is forced, all tokens but the next token of the tag are masked.
        """
        self._thoughts.read(input_ids)
        for row, is_thinking in enumerate(self._thoughts.thinking):
            is_spent = is_thinking and self._thoughts.thinking_tokens[row] >= self._budget
            if is_spent and self._forced[row] == 0 and self._allows(row, self._closing[0]):
                self._forced[row] = len(self._closing)
            if self._forced[row]:
                scores[row] = -torch.inf
                scores[row, self._closing[-self._forced[row]]] = 0.0
                self._forced[row] -= 1
        return scores


class StopTexts(StoppingCriteria):
    """Stops a row when its answer contains a stop text, and records the number of tokens generated until then.

    Only the answer is searched. Stop texts in the prompt or in the reasoning have no effect. Special tokens count as
    text here, so `<|im_end|>` may be a stop text.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], prompt_length: int, thoughts: Thoughts
    ) -> None:
        self.lengths: list[int | None] = [None] * len(thoughts.thinking)
        self._tokenizer, self._texts, self._prompt_length = tokenizer, tuple(texts), prompt_length
        self._thoughts = thoughts
        self._tail = max((len(text.encode()) for text in texts), default=0) + _SPARE_TOKENS

    def __call__(self, input_ids: torch.LongTensor, scores: object, **_: object) -> torch.BoolTensor:
        """Return True for each row that has reached a stop text, as a tensor of shape (rows,)."""
        if self._texts:
            self._thoughts.read(input_ids)
            generated = input_ids[:, self._prompt_length :].tolist()
            for row, tokens in enumerate(generated):
                if self.lengths[row] is None and self._is_stop(row, tokens):
                    self.lengths[row] = len(tokens)
        met = torch.tensor([length is not None for length in self.lengths], device=input_ids.device)
        return cast("torch.BoolTensor", met)

    def _is_stop(self, row: int, tokens: list[int]) -> bool:
        if self._thoughts.thinking[row]:
            return False
        start = self._thoughts.answers_from[row]
        tail = tokens[max(start, len(tokens) - self._tail) :]
        text = str(self._tokenizer.decode(tail, clean_up_tokenization_spaces=False))
        if len(tail) == len(tokens) - start:  # spaces before an answer do not belong to it (`split_reasoning`)
            text = text.lstrip(None if self._thoughts.has_thought(row) else " ")
        return any(stop in text for stop in self._texts)


_PRIVATE_METHODS = ("_prefill", "_update_model_kwargs_for_generation", "_optimize_model_for_decode")


def can_share_prefill(model: PreTrainedModel) -> bool:
    """Return True if the cache of a model's prompt can be copied.

    It cannot be copied for models with a running state (such as Mamba).
    """
    return all(hasattr(model, name) for name in _PRIVATE_METHODS) and not getattr(model, "_is_stateful", False)


def decode_after_shared_prefill(
    model: PreTrainedModel,
    input_ids: torch.LongTensor,
    logits_processor: LogitsProcessorList,
    stopping_criteria: StoppingCriteriaList,
    generation_config: DecodingConfig,
    *,
    rows: torch.Tensor,
    **model_kwargs: object,
) -> torch.LongTensor:
    """Decode greedily for `generate(custom_generate=...)`, running each prompt once for all its samples.

    The setting `num_return_sequences` of transformers would repeat the prompts before the prefill, and refuses
    `do_sample=False`.

    Args:
        rows: for each sample, the number of the prompt that it continues; shape (samples,), in rising order.

    Returns:
        Prompts with their continuations, shape (samples, columns).
    """
    outputs = model._prefill(input_ids, generation_config, model_kwargs)
    model_kwargs = _next_inputs(model, outputs, model_kwargs)
    model_kwargs = _take_rows(model_kwargs, rows, prompts=input_ids.shape[0])
    sequences, logits = input_ids[rows], outputs.logits[:, -1].to(rows.device, torch.float32)[rows]
    pad_id = torch.as_tensor(generation_config.pad_token_id, device=sequences.device)
    running = torch.ones(len(rows), dtype=torch.bool, device=sequences.device)
    with model._optimize_model_for_decode():
        while True:
            scores = logits_processor(cast("torch.LongTensor", sequences), cast("torch.FloatTensor", logits))
            chosen = torch.where(running, scores.argmax(dim=-1), pad_id)
            sequences = torch.cat([sequences, chosen[:, None]], dim=-1)
            running &= ~stopping_criteria(sequences, None)
            if not running.any():
                return cast("torch.LongTensor", sequences)
            del outputs  # frees the logits before the next ones are made
            step = model.prepare_inputs_for_generation(sequences, next_sequence_length=1, **model_kwargs)
            outputs = model(**step, return_dict=True)
            model_kwargs = _next_inputs(model, outputs, model_kwargs)
            logits = outputs.logits[:, -1].to(sequences.device, torch.float32, copy=True)


def _next_inputs(model: PreTrainedModel, outputs: object, kwargs: dict[str, object]) -> dict[str, object]:
    return model._update_model_kwargs_for_generation(
        outputs,
        kwargs,
        is_encoder_decoder=False,  # Llama 3.2 Vision has no default for this
    )


def _take_rows(kwargs: dict[str, object], rows: torch.Tensor, prompts: int) -> dict[str, object]:
    """Return the model's inputs with one row per sample. Pixels are left out, because they are no longer needed."""
    inputs: dict[str, object] = {}
    for name, value in kwargs.items():
        if name in MULTIMODAL_INPUTS_TO_DROP_OUTSIDE_PREFILL:
            continue
        if name == "past_key_values":
            value.reorder_cache(rows)  # type: ignore[attr-defined]  # the only call that every kind of cache has
        elif isinstance(value, torch.Tensor) and name == "position_ids" and value.ndim == 3:
            value = value[:, rows]  # Qwen has several axes of positions, so the batch is the second dimension
        elif isinstance(value, torch.Tensor) and value.ndim and value.shape[0] == prompts:
            value = value[rows]
        inputs[name] = value
    return inputs
