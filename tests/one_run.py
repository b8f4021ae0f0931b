"""A run of one task in a folder that the test names, for tests of the files in such a folder."""

from dataclasses import replace
from pathlib import Path

from barista_bench.core.settings import check_settings
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.opening import open_tasks
from barista_bench.runs.ask.runner import run_config
from barista_bench.runs.log.sessions import Session


def run(data: str | Path, folder: str | Path, **settings: object) -> Session:
    """Run one task, `relations` by the oracle where the test names no other, with `folder` itself as the run folder."""
    defaults = {"task": "relations", "model": "oracle"}
    config = check_settings(RunConfig, {**defaults, "data": str(data), "out": Path(folder), **settings})
    (opened,) = open_tasks(config)
    return run_config(config, [replace(opened, folder=config.out)])
