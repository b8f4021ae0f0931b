"""Number of samples to generate together, learned from past batches that fitted or did not. Pure arithmetic."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from barista_bench.errors import ConfigError
from barista_bench.models.base import Request

log = logging.getLogger(__name__)

BatchSize = int | Literal["auto"]

_START = 8  # prompts a batch where nothing can be measured
_MAX_PROMPTS = 32  # of a batch that `auto` plans: more gains little, and their images fill the memory
_SPARE = 0.8  # fraction of the free memory that `auto` plans with; fragments take the rest
_WINDOW = 8  # batches at hand
_MAX_WINDOW = 128  # limit of requests at hand, since each holds its images


@dataclass(frozen=True, slots=True)
class QueuedRequest:
    """A request at hand: `tokens` of its prompt, visual tokens included, approximate but good enough to sort by."""

    index: int
    request: Request
    tokens: int
    samples: int


_Size = tuple[int, int]  # samples of a batch, and the prompt tokens that each is padded to


def _is_within(size: _Size, other: _Size) -> bool:
    """Return True if a batch is no larger than another in both dimensions."""
    return size[0] <= other[0] and size[1] <= other[1]


class BatchBudget:
    """The size of the next batch, in prompts and in padded tokens times samples.

    Memory is counted in tokens, so that one long prompt that did not fit does not shrink batches of short prompts. A
    batch no larger than one that fitted is assumed to fit, and a batch no smaller than one that failed to fail. Between
    the two, half of the failed number of tokens is tried.

    Args:
        batch_size: limit of prompts generated together. `auto` starts with 8 if memory cannot be measured; if it can,
            one prompt is generated and measured, and up to 32 are planned from there.
        memory: of a device that can be measured; None elsewhere.

    Raises:
        ConfigError: the batch size is neither `auto` nor 1 or more.
    """

    def __init__(self, batch_size: BatchSize, memory: CudaMemory | None = None) -> None:
        automatic = batch_size == "auto"
        self.memory = memory if automatic else None
        self.most = (_MAX_PROMPTS if self.memory else _START) if automatic else checked_size(batch_size)
        self._bytes_per_token: float | None = None
        self._measured: int | None = None  # padded tokens that the free memory holds
        self._halved: int | None = None  # padded tokens that are planned after running out of memory
        self._fitted: list[_Size] = []
        self._failed: list[_Size] = []
        self._one_by_one = False

    def ask_one_by_one(self) -> None:
        """Generate samples one by one from now on."""
        self.most, self._one_by_one = 1, True

    @property
    def prompts(self) -> int:
        """The limit of prompts in the next batch."""
        return 1 if self.memory and self._bytes_per_token is None else self.most

    @property
    def window(self) -> int:
        """The number of requests to have at hand, so that requests of similar length are batched together."""
        return max(self.most, min(_WINDOW * self.most, _MAX_WINDOW))

    @property
    def tokens(self) -> int | None:
        """The limit of padded tokens times samples for a batch of unknown size; None for no limit."""
        return min((limit for limit in (self._measured, self._halved) if limit is not None), default=None)

    def fits(self, prompts: int, samples: int, columns: int) -> bool:
        """Return True if a batch is worth trying; one sample always is."""
        size, limit = (samples, columns), self.tokens
        if samples == 1 or prompts > self.prompts or self._one_by_one:
            return samples == 1
        if any(_is_within(size, known) for known in self._fitted):
            return True
        if any(_is_within(known, size) for known in self._failed):
            return False
        return limit is None or samples * columns <= limit

    def take(self, queue: Sequence[QueuedRequest]) -> int:
        """Return how many first requests of the queue, longest first, to generate together; at least one.

        Requests with and without images are never mixed. Otherwise the inputs of images would be padded for rows
        without images, and some models (Llama 3.2 Vision) then return other logits for these rows.
        """
        count, samples = 1, queue[0].samples
        for queued in queue[1:]:
            is_alike = bool(queued.request.images) == bool(queue[0].request.images)
            if not is_alike or not self.fits(count + 1, samples + queued.samples, queue[0].tokens):
                break
            count, samples = count + 1, samples + queued.samples
        return count

    def begin_batch(self) -> None:
        """Note that a batch is about to be generated."""
        if self.memory:
            self.memory.begin()

    def record_fit(self, samples: int, columns: int) -> None:
        """Note that a batch of that many samples, padded to `columns` prompt tokens, was generated."""
        size = samples, columns
        self._fitted = [known for known in self._fitted if not _is_within(known, size)] + [size]
        if self.memory:
            self._bytes_per_token = max(self._bytes_per_token or 0.0, self.memory.peak_bytes() / (samples * columns))
            if self._bytes_per_token:
                self._measured = int(_SPARE * self.memory.free_bytes() / self._bytes_per_token)

    def record_out_of_memory(self, samples: int, columns: int) -> None:
        """Note that a batch of that many samples did not fit: plan with half of its tokens."""
        size = samples, columns
        # If it did fit once, something else takes the memory now.
        self._fitted = [known for known in self._fitted if not _is_within(size, known)]
        if samples > 1:
            self._failed = [known for known in self._failed if not _is_within(size, known)] + [size]
            half = (samples + 1) // 2 * columns
            self._halved = min(self._halved or half, half)
            log.warning("out of memory with %d samples of %d tokens; going on with half of it", samples, columns)


def checked_size(batch_size: object) -> int:
    """Return a valid number of prompts; raise ConfigError for anything else."""
    if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size < 1:
        raise ConfigError(f"batch_size is {batch_size!r}. Fix: give --batch-size auto, or a whole number of 1 or more")
    return batch_size


class CudaMemory:
    """Memory of the GPUs that hold a model; with several GPUs the fullest counts."""

    def __init__(self, devices: Sequence[int]) -> None:
        self._devices, self._before = tuple(devices), dict.fromkeys(devices, 0)

    def begin(self) -> None:
        """Start to measure the peak of a batch."""
        import torch

        for device in self._devices:
            torch.cuda.reset_peak_memory_stats(device)
            self._before[device] = torch.cuda.memory_allocated(device)

    def peak_bytes(self) -> int:
        """Return the bytes that the batch added at its peak."""
        import torch

        return max(torch.cuda.max_memory_allocated(device) - self._before[device] for device in self._devices)

    def free_bytes(self) -> int:
        """Return the bytes that a batch may take now."""
        import torch

        return min(
            torch.cuda.mem_get_info(device)[0]
            + torch.cuda.memory_reserved(device)
            - torch.cuda.memory_allocated(device)
            for device in self._devices
        )
