"""Models answer requests, in batches or as a stream, and know nothing about tasks."""

from barista_bench.models.base import (
    AnsweredRequest,
    Completion,
    Failure,
    GenerationConfig,
    Model,
    ModelIdentity,
    Request,
    StreamingModel,
    TokenLogprob,
    reads_text_alone,
)

__all__ = ["AnsweredRequest", "Completion", "Failure", "GenerationConfig", "Model", "ModelIdentity", "Request"]
__all__ += ["StreamingModel", "TokenLogprob", "reads_text_alone"]
