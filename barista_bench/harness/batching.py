"""Collects single requests from separate threads into batches for a model."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from barista_bench.errors import ModelError
from barista_bench.models import Completion, Failure, GenerationConfig, Model, Request


@dataclass(slots=True, eq=False)
class WaitingRequest:
    """A waiting request and its outcome."""

    request: Request
    config: GenerationConfig
    completion: Completion | Failure | None = None


class Batcher:
    """Asks one model in batches: a batch has the requests that wait at the same time and have the same settings."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._queue: list[WaitingRequest] = []
        self._changing = threading.Lock()
        self._generating = threading.Lock()

    def put(self, request: Request, config: GenerationConfig) -> WaitingRequest:
        """Queue a request with one seed and return at once. Pass the returned value to `answer`."""
        waiting_request = WaitingRequest(request, config)
        with self._changing:
            self._queue.append(waiting_request)
        return waiting_request

    def answer(self, waiting_request: WaitingRequest) -> Completion:
        """Wait for the running batch, and return the answer if the batch had the request; else generate the next batch.

        Raises:
            ModelError: the model failed on the request, or on its batch; the message gives the reason.
        """
        with self._generating:
            if waiting_request.completion is None:
                with self._changing:
                    alike = [queued for queued in self._queue if queued.config == waiting_request.config]
                    batch = alike[: self._model.batch_size]
                    batch = batch if waiting_request in batch else [waiting_request, *batch[1:]]
                    self._queue = [queued for queued in self._queue if queued not in batch]
                self._generate(batch)
        if not isinstance(waiting_request.completion, Completion):
            raise ModelError(
                waiting_request.completion.error if waiting_request.completion else "the model returned no answer"
            )
        return waiting_request.completion

    def _generate(self, batch: list[WaitingRequest]) -> None:
        try:
            completions = self._model.generate([queued.request for queued in batch], batch[0].config)
        except Exception as error:  # any class: it is raised again, also in the other requests' threads
            for queued in batch:
                queued.completion = Failure(f"its batch failed: {type(error).__name__}: {error}")
            raise
        for queued, [completion] in zip(batch, completions, strict=True):
            queued.completion = completion
