"""Checks once, before the first batch, that a model gives the same results for two examples together and separately.

Some processors and models give wrong answers in batches without an error: they do not shift indices into the patches of
a batch, or attend to padding. Answers cannot show whether such a fault or rounding caused a difference, since batches
round differently and can break a near tie in another way. Logits can. The differences were measured over 50 tiny
architectures on a CPU (two examples of unequal length, eight greedy steps), as a fraction of the logits' spread.
Correct batches differ by up to 0.000002 in float32, 0.002 in float16 and 0.016 in bfloat16. Batches of four faulty
architectures differ by 0.0015 to 1.2. Batches with exchanged images differ by 0.14 or more, with three exceptions. Real
models are deeper and round more often, so the tolerance is larger than these differences by rounding.

This module imports torch, so import it only when a model runs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

_STEPS = 8  # number of tokens of each answer that are compared
_LEAST_TOLERANCE = 0.001
_ROUNDINGS = 12  # times the smallest step of the number type at 1, which is 0.0078 in bfloat16


@dataclass(frozen=True, slots=True)
class BatchCheck:
    """The distance between the logits of a batch of two and the logits of separate answers.

    Args:
        distance: the length of the difference divided by the length of the logits, after subtracting the mean from
            both. It is the largest value over examples and steps, and None if the batch failed.
        tolerance: the largest distance that rounding may cause, by the model's number type.
        has_images: the examples had images.
        error: the error of a failed batch.
    """

    distance: float | None
    tolerance: float
    has_images: bool
    error: str | None = None

    @property
    def agrees(self) -> bool:
        """True if the model may run in batches."""
        return self.distance is not None and self.distance <= self.tolerance

    @property
    def finding(self) -> str:
        """The outcome as text for the log."""
        if self.distance is None:
            return f"two examples that succeed alone fail together: {self.error}"
        far = f"{self.distance:.2g} from those alone (rounding: up to {self.tolerance:.2g})"
        return f"logits of two examples together are {far}"


Steps = list[tuple[int, torch.Tensor]]
"""One greedy answer: each token, and the logits, of shape (vocabulary,), from which it was chosen."""


def tolerance_of(dtype: torch.dtype) -> float:
    """Return the largest distance that counts as rounding."""
    return max(_LEAST_TOLERANCE, _ROUNDINGS * torch.finfo(dtype).eps)


def first_steps(
    model: PreTrainedModel, inputs: Mapping[str, torch.Tensor], *, pad_id: int, end_ids: Collection[int]
) -> list[Steps]:
    """Return the first steps of each row's greedy answer, up to its end."""
    outputs = model.generate(
        **inputs,
        max_new_tokens=_STEPS,
        do_sample=False,
        num_beams=1,
        cache_implementation="dynamic",
        repetition_penalty=1.0,
        pad_token_id=pad_id,
        eos_token_id=sorted(end_ids) or None,
        return_dict_in_generate=True,
        output_logits=True,
    )
    prompt_length = inputs["input_ids"].shape[1]
    masked = torch.finfo(model.dtype).min  # models that exclude some tokens write this number; others write -inf
    logits = [torch.where(step <= masked, -torch.inf, step.float()) for step in outputs.logits]
    rows: list[Steps] = []
    for row, tokens in enumerate(outputs.sequences[:, prompt_length:].tolist()):
        end = next((n for n, token in enumerate(tokens) if token in end_ids), len(tokens))
        rows.append([(token, step[row]) for token, step in zip(tokens[: end + 1], logits, strict=False)])
    return rows


def largest_distance(alone: Sequence[Steps], together: Sequence[Steps]) -> float:
    """Return the largest distance over all rows, up to the first token that differs: later logits follow other text."""
    largest = 0.0
    for row, other_row in zip(alone, together, strict=True):
        for (token, logits), (other_token, other_logits) in zip(row, other_row, strict=False):
            largest = max(largest, _distance(logits, other_logits))
            if token != other_token:
                break
    return largest


def _distance(alone: torch.Tensor, together: torch.Tensor) -> float:
    if bool(alone.isnan().any() or together.isnan().any()):
        return math.inf
    both_finite = alone.isfinite() & together.isfinite()
    first, second = (logits[both_finite] - logits[both_finite].mean() for logits in (alone, together))
    length = float(first.norm())
    return float((first - second).norm()) / length if length else 0.0
