"""Concurrency against a server that can bear only so much: the adaptive limit beside fixed numbers of calls.

    python perf/served_concurrency.py [--quick] [--plot FILE.png]

A local server answers in 0.1 s what it has room for and everything else with 429. The same requests go to it with the
adaptive limit and with fixed ones; all answers must come, and be right. Printed are the seconds of each over those of
the best fixed limit, which nobody knows beforehand, the calls for one answer, and the trace of the adaptive limit.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from barista_bench.models import Completion, GenerationConfig, Request
from barista_bench.models.served import client as served_client
from barista_bench.models.served.model import ServedModel
from barista_bench.models.served.state import AdaptiveLimit, LimitChange

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.served_standin import ServedStandIn

CAPACITY, SECONDS, CEILING = 8, 0.1, 64
GREEDY = GenerationConfig(temperature=0.0)


class FixedLimit(AdaptiveLimit):
    """What most harnesses do: one number, whatever the server says; 429s are still waited for."""

    def __init__(self, calls: int) -> None:
        super().__init__(calls)
        self._limit = float(calls)

    def succeeded(self, began: float, in_flight: int) -> None:
        """Nothing changes."""

    def congested(self, began: float, reason: str) -> None:
        """Nothing changes."""


def requests(count: int) -> list[Request]:
    image = Image.new("RGB", (64, 48), (120, 80, 40))
    return [Request(f"r{n}", Prompt("", (ImagePart(0), TextPart(f"{n}?"))), (image,), (1,)) for n in range(count)]


def measure(limit: AdaptiveLimit | None, count: int) -> tuple[float, float, int, Sequence[LimitChange]]:
    """Seconds, calls for one answer, failures, trace."""
    with ServedStandIn(capacity=CAPACITY, seconds=SECONDS) as server:
        model = ServedModel.load("m", base_url=server.url, api_key_env=None, max_concurrency=CEILING, max_attempts=20)
        if limit is not None:
            model.state.limit = limit
        begun = time.perf_counter()
        answers = model.generate(requests(count), GREEDY)
        seconds = time.perf_counter() - begun
    failed = sum(not isinstance(entries[0], Completion) for entries in answers)
    return seconds, len(server.calls) / count, failed, tuple(model.state.limit.trace)


def steps(trace: Sequence[LimitChange]) -> list[tuple[float, float]]:
    """(seconds since the start, limit), at each change of the limit."""
    return [(change.seconds - trace[0].seconds, change.limit) for change in trace]


def plot(trace: Sequence[LimitChange], file: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3))
    axes.step(*zip(*steps(trace), strict=True), where="post", label="adaptive limit")
    axes.axhline(CAPACITY, color="grey", linestyle=":", label="what the server can bear")
    axes.set(xlabel="seconds", ylabel="calls under way")
    axes.legend()
    figure.tight_layout()
    figure.savefig(file, dpi=120)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="80 requests instead of 160")
    parser.add_argument("--plot", type=Path, help="draw the trace of the adaptive limit")
    options = parser.parse_args()
    served_client._FIRST_BACKOFF = 0.1  # in proportion to the server's 0.1 s
    count = 80 if options.quick else 160
    runs = {f"fixed {calls}": measure(FixedLimit(calls), count) for calls in (1, 4, 8, 16, 64)}
    runs["adaptive"] = measure(None, count)
    best = min(seconds for seconds, *_ in runs.values())
    print(f"{count} requests, a server for {CAPACITY} calls at once\n")
    print("| calls at once | time over the best | calls for one answer | failures |\n|:--|--:|--:|--:|")
    for name, (seconds, calls, failed, _) in runs.items():
        print(f"| {name} | {seconds / best:.2f}x | {calls:.2f} | {failed} |")
    trace = runs["adaptive"][3]
    print("\ntrace of the adaptive limit (seconds: calls)")
    shown = steps(trace)
    for seconds, limit in shown[:: max(1, len(shown) // 20)]:
        print(f"{seconds:7.2f}: {'#' * int(limit)} {limit:.1f}")
    if options.plot:
        plot(trace, options.plot)


if __name__ == "__main__":
    main()
