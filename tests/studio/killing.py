"""The studio as its own process, so that it can be killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.reporting.browser import Watched


@contextmanager
def killed_studio(
    *paths: Path, by: str, out: Path, folder: Path | None = None, by_signal: int = signal.SIGKILL
) -> Iterator[str]:
    """The address of a server, which ends by a signal with the block."""
    command = [sys.executable, "-m", "barista_bench.cli", "studio", *map(str, paths), "--by", by, "--out", str(out)]
    command += ["--folder", str(folder)] if folder else []
    with subprocess.Popen(
        [*command, "--no-browser"], stdout=subprocess.PIPE, env=os.environ, text=True, preexec_fn=_heed_signals
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(by_signal)


def _heed_signals() -> None:
    """Undo what `nohup` and a shell's background job hand down to the processes that they start."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def complaints(watched: Watched) -> list[str]:
    """Messages of a page that its server's death does not explain, and dialogs that a script opened."""
    return [*(text for text in watched.console if "net::ERR_" not in text), *watched.dialogs]
