"""Models answer requests, in batches or as a stream, and know nothing about tasks."""

from barista_bench.models.base import (
    AnsweredRequest as AnsweredRequest,
    Completion as Completion,
    Failure as Failure,
    GenerationConfig as GenerationConfig,
    Model as Model,
    ModelIdentity as ModelIdentity,
    Request as Request,
    StreamingModel as StreamingModel,
    TokenLogprob as TokenLogprob,
    reads_text_alone as reads_text_alone,
)
