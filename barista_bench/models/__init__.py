"""Models: each answers requests in batches or as a stream, and knows nothing of tasks."""

from barista_bench.models.base import Answered as Answered
from barista_bench.models.base import Completion as Completion
from barista_bench.models.base import Failure as Failure
from barista_bench.models.base import GenerationConfig as GenerationConfig
from barista_bench.models.base import Model as Model
from barista_bench.models.base import ModelIdentity as ModelIdentity
from barista_bench.models.base import Request as Request
from barista_bench.models.base import StreamingModel as StreamingModel
from barista_bench.models.base import TokenLogprob as TokenLogprob
