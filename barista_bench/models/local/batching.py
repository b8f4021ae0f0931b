"""Plans how many samples to generate together; it learns from past batches that fitted or did not."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from barista_bench.errors import ConfigError
from barista_bench.models.base import Request

log = logging.getLogger(__name__)

BatchSize = int | Literal["auto"]

_START = 8  # prompts per batch where memory cannot be measured
_MAX_PROMPTS = 32  # largest batch that `auto` plans: larger batches gain little, and their images fill the memory
_SPARE = 0.8  # fraction of the free memory that `auto` uses; fragmentation needs the rest
_WINDOW = 8  # batches to have at hand
_MAX_WINDOW = 128  # limit of requests at hand, because each request holds its images


@dataclass(frozen=True, slots=True)
class QueuedRequest:
    """A request at hand; `tokens` approximates the length of its prompt, including visual tokens, for sorting."""

    index: int
    request: Request
    tokens: int
    samples: int


_Size = tuple[int, int]  # samples in a batch, and the number of prompt tokens that each sample is padded to


def _is_within(size: _Size, other: _Size) -> bool:
    return size[0] <= other[0] and size[1] <= other[1]


class BatchBudget:
    """The size of the next batch, in prompts and in padded tokens times samples.

    Memory is counted in tokens, so that one long prompt that did not fit does not shrink batches of short prompts. If a
    batch fitted, batches of at most its size are assumed to fit. If a batch failed, batches of at least its size are
    assumed to fail. Between these sizes, half of the failed number of tokens is tried.

    Args:
        batch_size: limit of prompts generated together. If memory cannot be measured, `auto` starts with 8 prompts. If
            it can, `auto` measures the generation of one prompt, and then plans up to 32 prompts.
        memory: the memory of the device; None if it cannot be measured.

    Raises:
        ConfigError: the batch size is neither `auto` nor 1 or more.
    """

    def __init__(self, batch_size: BatchSize, memory: CudaMemory | None = None) -> None:
        automatic = batch_size == "auto"
        self.memory = memory if automatic else None
        self.most = (_MAX_PROMPTS if self.memory else _START) if automatic else checked_size(batch_size)
        self._bytes_per_token: float | None = None
        self._measured: int | None = None  # number of padded tokens that fit into the free memory
        self._halved: int | None = None  # number of padded tokens to plan with after running out of memory
        self._fitted: list[_Size] = []
        self._failed: list[_Size] = []
        self._one_by_one = False

    def ask_one_by_one(self) -> None:
        self.most, self._one_by_one = 1, True

    @property
    def prompts(self) -> int:
        """The limit of prompts in the next batch."""
        return 1 if self.memory and self._bytes_per_token is None else self.most

    @property
    def window(self) -> int:
        """The number of requests to have at hand, so that each batch can combine requests of similar length."""
        return max(self.most, min(_WINDOW * self.most, _MAX_WINDOW))

    @property
    def tokens(self) -> int | None:
        """The limit of padded tokens times samples, for a batch of unknown size; None for no limit."""
        return min((limit for limit in (self._measured, self._halved) if limit is not None), default=None)

    def fits(self, prompts: int, samples: int, columns: int) -> bool:
        """Return True if a batch is worth trying; a batch of one sample always is."""
        size, limit = (samples, columns), self.tokens
        if samples == 1 or prompts > self.prompts or self._one_by_one:
            return samples == 1
        if any(_is_within(size, known) for known in self._fitted):
            return True
        if any(_is_within(known, size) for known in self._failed):
            return False
        return limit is None or samples * columns <= limit

    def take(self, queue: Sequence[QueuedRequest]) -> int:
        """Return how many requests from the front of the queue (longest first) to generate together; at least one.

        Requests with and without images are never mixed. In a mixed batch, rows without images would get padding as
        image inputs, and some models (Llama 3.2 Vision) then return other logits for these rows.
        """
        count, samples = 1, queue[0].samples
        for queued in queue[1:]:
            is_alike = bool(queued.request.images) == bool(queue[0].request.images)
            if not is_alike or not self.fits(count + 1, samples + queued.samples, queue[0].tokens):
                break
            count, samples = count + 1, samples + queued.samples
        return count

    def begin_batch(self) -> None:
        """Note that the generation of a batch begins."""
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
        """Note that a batch of that many samples did not fit. Later batches are planned with half of its tokens."""
        size = samples, columns
        # If this size fitted before, something else takes the memory now.
        self._fitted = [known for known in self._fitted if not _is_within(size, known)]
        if samples > 1:
            self._failed = [known for known in self._failed if not _is_within(size, known)] + [size]
            half = (samples + 1) // 2 * columns
            self._halved = min(self._halved or half, half)
            log.warning("out of memory with %d samples of %d tokens; going on with half of it", samples, columns)


def checked_size(batch_size: object) -> int:
    """Return a valid number of prompts. Raises ConfigError for any other value."""
    if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size < 1:
        raise ConfigError(f"batch_size is {batch_size!r}. Fix: give --batch-size auto, or a whole number of 1 or more")
    return batch_size


class CudaMemory:
    """Memory of the GPUs that hold a model. If there are several, the fullest GPU counts."""

    def __init__(self, devices: Sequence[int]) -> None:
        self._devices, self._before = tuple(devices), dict.fromkeys(devices, 0)

    def begin(self) -> None:
        """Begin to measure the peak memory of a batch."""
        import torch

        for device in self._devices:
            torch.cuda.reset_peak_memory_stats(device)
            self._before[device] = torch.cuda.memory_allocated(device)

    def peak_bytes(self) -> int:
        """Return the bytes by which the batch increased the memory at its peak."""
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
