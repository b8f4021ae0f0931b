"""`barista-bench`: one command, thin. Every flag is named as the Python keyword that it sets."""

import os
import signal

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""
LINE = "interrupted"


class ending_at_once:
    """Ctrl-C ends the process with one line: an import that is broken off would show its insides."""

    def __enter__(self) -> None:
        self._is_set = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._is_set:
            try:
                signal.signal(signal.SIGINT, _end)
            except ValueError:  # of a thread: Ctrl-C goes to the main one
                self._is_set = False

    def __exit__(self, *error: object) -> None:
        if self._is_set:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: object) -> None:
    os.write(2, f"{LINE}\n".encode())
    os._exit(INTERRUPTED)


with ending_at_once():  # little is imported above: nothing is understood before
    from barista_bench.cli import (
        annotate_commands,
        data_commands,
        exchange_commands,
        generate_commands,
        judge_commands,
        run_commands,
    )
    from barista_bench.cli.app import app, main

__all__ = [
    "annotate_commands",
    "app",
    "data_commands",
    "exchange_commands",
    "generate_commands",
    "judge_commands",
    "main",
    "run_commands",
]
