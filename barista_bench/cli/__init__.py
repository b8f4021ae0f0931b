"""`barista-bench`: one command, thin. Every flag is named as the Python keyword that it sets."""

import os

EXIT_INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""
INTERRUPTED_LINE = "interrupted"


def main() -> None:
    """The entry point. Ctrl-C ends it with one line, while the commands are still imported too."""
    try:
        from barista_bench.cli.commands import run_command

        run_command()
    except KeyboardInterrupt:
        os.write(2, f"{INTERRUPTED_LINE}\n".encode())
        os._exit(EXIT_INTERRUPTED)
