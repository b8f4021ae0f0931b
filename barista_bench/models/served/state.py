"""What is learned about a server while it is asked: what it can bear, whether it takes `n`, what it has cost."""

from __future__ import annotations

import logging

import msgspec

from barista_bench.errors import ModelError
from barista_bench.models.base import Completion
from barista_bench.models.served.concurrency import AdaptiveLimit
from barista_bench.models.served.errors import Endpoint, TransientError
from barista_bench.models.served.replies import Reply

log = logging.getLogger(__name__)

_MAX_NAMES = 16


class ServerState:
    """Lives as long as its model. Changed by the event loop's thread alone.

    Attributes:
        takes_n: whether several choices are asked for with one call; until it turns out that they do not come.
        proven_n: the most choices that came with one call.
        calls, input_tokens, output_tokens: of all readable answers, as the server counts them.
        served_as: the names under which the server answered, in the order of their first answers.
    """

    def __init__(self, max_concurrency: int) -> None:
        self.limit = AdaptiveLimit(max_concurrency)
        self.takes_n, self.proven_n = True, 1
        self.calls, self.input_tokens, self.output_tokens = 0, 0, 0
        self.served_as: list[str] = []
        self._warned_of_schema = False
        self._failures_in_a_row = 0
        self._max_failures = max(20, 2 * max_concurrency)

    def count_reply(self, reply: Reply) -> None:
        """Count one readable answer."""
        self._failures_in_a_row = 0
        self.calls += 1
        self.input_tokens += reply.input_tokens or 0
        self.output_tokens += reply.output_tokens or 0
        if reply.served_as and reply.served_as not in self.served_as and len(self.served_as) < _MAX_NAMES:
            if self.served_as:
                log.warning("the server now answers as %s, before as %s", reply.served_as, self.served_as[-1])
            self.served_as.append(reply.served_as)

    def count_failure(self, error: TransientError, endpoint: Endpoint) -> None:
        """Count one call that failed at every attempt.

        Raises:
            ModelError: so many in a row failed that the server must be down; going on would fail all the rest.
        """
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= self._max_failures:
            raise ModelError(
                f"{endpoint}: {self._failures_in_a_row} requests in a row failed at every attempt, the last with: "
                f"{error}. Remedy: see to the server, then start the run again; it goes on where it stopped"
            )

    def check_json(self, reply: Reply, endpoint: Endpoint) -> None:
        """Warn, once, where answers that were to be held to a schema are no JSON: some servers ignore it in silence."""
        for choice in reply.choices:
            if self._warned_of_schema or not isinstance(choice, Completion) or choice.finish_reason != "stop":
                continue
            try:
                msgspec.json.decode(choice.text)
            except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
                log.warning("%s: asked for JSON by a schema, the server answered with none: it ignores it", endpoint)
                self._warned_of_schema = True

    def give_up_n(self, why: str, endpoint: Endpoint) -> None:
        """Ask for one choice a call from now on."""
        if self.takes_n:
            log.warning("%s: %s; going on with a call for each sample", endpoint, why)
        self.takes_n = False
