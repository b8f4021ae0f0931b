"""Models: each answers requests in batches or as a stream, and knows nothing of tasks."""

from barista_bench.models.base import (
    Answered,
    Completion,
    Failure,
    GenerationConfig,
    Model,
    ModelIdentity,
    Request,
    StreamingModel,
    TokenLogprob,
)

__all__ = [
    "Answered",
    "Completion",
    "Failure",
    "GenerationConfig",
    "Model",
    "ModelIdentity",
    "Request",
    "StreamingModel",
    "TokenLogprob",
]
