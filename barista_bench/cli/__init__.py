"""The command `barista-bench`, a thin layer over the library.

Each flag has the name of the Python keyword that it sets.
"""

import os
import signal
import sys
from functools import partial

EXIT_INTERRUPTED = 130
"""Exit code after Ctrl-C, as in shells."""
INTERRUPTED_LINE = "interrupted"
_NO_UTF8 = b"warning: this locale is not UTF-8, and Arrow opens only ASCII paths in it. Fix: set PYTHONUTF8=1\n"


def main() -> None:
    """Run the command line. Ctrl-C ends it with a one-line message, even while commands are still being imported."""
    # A terminal sends Ctrl-C to every process. Workers that libraries fork ignore it, and this process ends them.
    os.register_at_fork(after_in_child=partial(signal.signal, signal.SIGINT, signal.SIG_IGN))
    paths = os.environ.get("PWD", ""), *sys.argv[1:]
    if sys.getfilesystemencoding() != "utf-8" and not all(map(str.isascii, paths)):
        os.write(2, _NO_UTF8)
    try:
        from barista_bench.cli.commands import run_command

        run_command()
    except KeyboardInterrupt:
        os.write(2, f"{INTERRUPTED_LINE}\n".encode())
        os._exit(EXIT_INTERRUPTED)
