"""`barista-bench`: one command, thin. Every flag is named as the Python keyword that it sets."""

from barista_bench.cli.interruption import ending_at_once

with ending_at_once():
    from barista_bench.cli import (
        analysis_commands,
        data_commands,
        generate_commands,
        hub_commands,
        import_commands,
        judge_commands,
        result_commands,
        run_commands,
    )
    from barista_bench.cli.app import app, main

__all__ = [
    "analysis_commands",
    "app",
    "data_commands",
    "generate_commands",
    "hub_commands",
    "import_commands",
    "judge_commands",
    "main",
    "result_commands",
    "run_commands",
]
