"""Models: each answers requests in batches and knows nothing of tasks."""

from barista_bench.models.base import (
    Completion,
    Failure,
    GenerationConfig,
    Model,
    ModelIdentity,
    Request,
)

__all__ = ["Completion", "Failure", "GenerationConfig", "Model", "ModelIdentity", "Request"]
