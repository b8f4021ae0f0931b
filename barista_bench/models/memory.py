"""Detects errors that mean that memory ran out."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return True if memory ran out, on a GPU or on the CPU; on the CPU, the error is a plain RuntimeError."""
    import torch

    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    messages = ("can't allocate memory", "not enough memory", "out of memory", "ALLOC_FAILED")
    return isinstance(error, RuntimeError) and any(message in str(error) for message in messages)
