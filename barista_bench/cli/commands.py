"""The app with all its commands. Each module adds its own commands."""

from barista_bench.cli import (
    annotate_commands as annotate_commands,
    data_commands as data_commands,
    exchange_commands as exchange_commands,
    generate_commands as generate_commands,
    judge_commands as judge_commands,
    results_commands as results_commands,
    run_commands as run_commands,
    studio_commands as studio_commands,
)
from barista_bench.cli.app import app as app, run_command as run_command
