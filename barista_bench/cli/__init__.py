"""`barista-bench`: one command, thin. Every flag is named as the Python keyword that it sets."""

from barista_bench.cli.app import app, ending_at_once, main

with ending_at_once():
    from barista_bench.cli import (
        annotate_commands,
        data_commands,
        exchange_commands,
        generate_commands,
        judge_commands,
        run_commands,
        studio_commands,
    )

__all__ = [
    "annotate_commands",
    "app",
    "data_commands",
    "exchange_commands",
    "generate_commands",
    "judge_commands",
    "main",
    "run_commands",
    "studio_commands",
]
