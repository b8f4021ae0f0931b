"""Run several commands of `barista-bench` in one process, so that torch and other imports are loaded only once.

    python scripts/together.py 'validate build/graphs' 'build --source build/graphs --out build/data/barista'

Each argument is one command. The script stops at the first command that fails, with its exit code.
"""

from __future__ import annotations

import shlex
import sys

from barista_bench.cli import main


def run_commands(commands: list[str]) -> int:
    for command in commands:
        print(f"barista-bench {command}", flush=True)
        sys.argv = ["barista-bench", *shlex.split(command)]
        try:
            main()
        except SystemExit as end:
            if end.code:
                return end.code if isinstance(end.code, int) else 1
    return 0


if __name__ == "__main__":
    sys.exit(run_commands(sys.argv[1:]))
