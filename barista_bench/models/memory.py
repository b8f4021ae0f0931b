"""Detects errors of full memory."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return True if an error means that memory ran out: on a GPU, or on the CPU, where it is a plain RuntimeError."""
    import torch

    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    messages = ("can't allocate memory", "not enough memory", "out of memory", "ALLOC_FAILED")
    return isinstance(error, RuntimeError) and any(message in str(error) for message in messages)
