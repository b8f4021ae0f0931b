"""The command `barista-bench`, a thin layer over the library. Each flag has the name of the Python keyword that it
sets.
"""

import os
import sys
from io import TextIOWrapper

EXIT_INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""
INTERRUPTED_LINE = "interrupted"


def main() -> None:
    """Run the command line. Ctrl-C ends it with one line, even while the commands are still being imported."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a Latin-1 terminal has no minus sign
    try:
        from barista_bench.cli.commands import run_command

        run_command()
    except KeyboardInterrupt:
        os.write(2, f"{INTERRUPTED_LINE}\n".encode())
        os._exit(EXIT_INTERRUPTED)
