"""The budget of a batch: sizes that fitted are planned again, sizes that failed are not, and a single sample is always
tried."""

import pytest
from hypothesis import given, strategies as st

from barista_bench.core.prompt import Prompt
from barista_bench.errors import ConfigError
from barista_bench.models.base import Request, is_out_of_memory
from barista_bench.models.local.batching import BatchBudget, QueuedRequest

sizes = st.tuples(st.integers(1, 40), st.integers(1, 5000))


def waiting(*tokens: int, samples: int = 1) -> list[QueuedRequest]:
    return [QueuedRequest(n, Request(str(n), Prompt("", ()), ()), count, samples) for n, count in enumerate(tokens)]


class FakeMemory:
    """A device with so many bytes, on which a padded token takes a fixed number of them."""

    def __init__(self, capacity: int, bytes_per_token: int) -> None:
        self.capacity, self.bytes_per_token, self.peak, self.batches = capacity, bytes_per_token, 0, 0

    def begin(self) -> None:
        self.batches += 1

    def run(self, samples: int, columns: int) -> None:
        self.peak = samples * columns * self.bytes_per_token
        assert self.peak <= self.capacity, "out of memory"

    def peak_bytes(self) -> int:
        return self.peak

    def free_bytes(self) -> int:
        return self.capacity


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "many", None])
def test_impossible_batch_sizes_are_refused(size):
    with pytest.raises(ConfigError, match=r"batch_size is .* Fix: give --batch-size auto"):
        BatchBudget(size)


def test_a_batch_size_is_the_maximum_and_auto_starts_with_eight():
    assert (BatchBudget(3).prompts, BatchBudget("auto").prompts) == (3, 8)
    assert BatchBudget(3).take(waiting(9, 9, 9, 9)) == 3
    assert BatchBudget("auto").take(waiting(*[9] * 20)) == 8


def test_the_window_is_eight_batches_bounded_for_its_images():
    assert (BatchBudget(1).window, BatchBudget(8).window) == (8, 64)
    assert (BatchBudget(100).window, BatchBudget(500).window) == (128, 500)


@pytest.mark.parametrize("bytes_per_token", [1, 10, 100, 1000])
def test_auto_measures_one_prompt_and_then_fills_the_memory_without_overrunning_it(bytes_per_token):
    memory = FakeMemory(capacity=200_000, bytes_per_token=bytes_per_token)
    budget = BatchBudget("auto", memory)
    taken = []
    for _ in range(3):
        budget.begin_batch()
        count = budget.take(waiting(*[20] * 100))
        memory.run(count, 20)
        budget.record_fit(count, 20)
        taken.append(count)
    assert taken[0] == 1
    assert taken[1] == taken[2] == max(1, min(32, int(0.8 * 200_000) // (20 * bytes_per_token)))
    assert memory.batches == 3


def test_memory_is_not_asked_where_the_size_is_given():
    memory = FakeMemory(capacity=10, bytes_per_token=1)
    budget = BatchBudget(4, memory)
    budget.begin_batch()
    budget.record_fit(4, 100)
    assert (memory.batches, budget.take(waiting(*[100] * 9))) == (0, 4)


def test_half_of_what_failed_is_planned_and_short_prompts_keep_their_number():
    budget = BatchBudget(8)
    budget.record_out_of_memory(8, 1000)
    assert budget.take(waiting(*[1000] * 8)) == 4
    assert budget.take(waiting(*[100] * 8)) == 8
    assert budget.take(waiting(*[4000] * 8)) == 1


def test_a_batch_that_fitted_before_a_smaller_one_failed_is_planned_again():
    """Where samples weigh more than prompt tokens: 4 short ones fail, 2 long ones fit."""
    budget = BatchBudget(8)
    budget.record_out_of_memory(4, 70)
    budget.record_fit(2, 70)
    budget.record_out_of_memory(4, 34)
    assert budget.take(waiting(*[70] * 8)) == 2
    assert budget.take(waiting(*[34] * 8)) == 2


def test_a_failed_single_sample_does_not_shrink_batches():
    budget = BatchBudget(8)
    budget.record_out_of_memory(1, 9000)
    assert budget.take(waiting(*[100] * 8)) == 8


def test_samples_of_a_prompt_count():
    budget = BatchBudget(8)
    budget.record_out_of_memory(12, 100)
    assert budget.take(waiting(*[100] * 8, samples=3)) == 2


@given(st.lists(st.tuples(st.booleans(), sizes)), sizes)
def test_a_batch_no_larger_than_the_last_that_fitted_is_tried(events, last):
    budget = BatchBudget(64)
    for fitted, size in events:
        (budget.record_fit if fitted else budget.record_out_of_memory)(*size)
    budget.record_fit(*last)
    assert budget.fits(1, *last)
    assert budget.fits(1, max(1, last[0] - 1), max(1, last[1] - 1))


@given(st.lists(st.tuples(st.booleans(), sizes)), sizes)
@pytest.mark.full
def test_a_batch_that_failed_last_is_not_planned_again(events, last):
    budget = BatchBudget(64)
    for fitted, size in events:
        (budget.record_fit if fitted else budget.record_out_of_memory)(*size)
    budget.record_out_of_memory(*last)
    if last[0] > 1:
        assert not budget.fits(1, *last)
        assert not budget.fits(1, last[0] + 1, last[1] + 1)
    assert budget.fits(1, 1, 10**9)


@given(st.lists(sizes), st.lists(st.integers(1, 5000), min_size=1, max_size=40), st.integers(1, 3))
def test_a_batch_takes_one_sample_or_more_and_fits(failed, tokens, samples):
    budget = BatchBudget(8)
    for size in failed:
        budget.record_out_of_memory(*size)
    requests = waiting(*sorted(tokens, reverse=True), samples=samples)
    count = budget.take(requests)
    assert 1 <= count <= min(8, len(requests))
    assert count == 1 or budget.fits(count, count * samples, requests[0].tokens)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"), True),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes."), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)"), True),
        (RuntimeError("shapes do not match"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_errors_of_memory_are_distinguished_from_others(error, expected):
    torch = pytest.importorskip("torch")
    assert is_out_of_memory(error) is expected
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))


def test_a_real_allocation_that_fails_on_the_cpu_is_out_of_memory():
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60, dtype=torch.uint8)
    assert is_out_of_memory(caught.value)
