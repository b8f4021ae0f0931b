"""The command line of the dataset builder scripts in `scripts/`: one for each benchmark."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from barista_bench.benchmarks import get_benchmark
from barista_bench.data.folder import build
from barista_bench.data.origin import config_names_of
from barista_bench.files.text_out import echo


def build_from_arguments(benchmark: str, description: str | None, arguments: Sequence[str] | None = None) -> None:
    """Build the dataset folder of a benchmark, and print the rows and content hash of each config.

    Args:
        description: text of `--help`.
        arguments: by default those of the process.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", required=True, help="folder of the release, or a Hub dataset id")
    parser.add_argument("--out", default=benchmark, help="dataset folder to write")
    parser.add_argument("--revision", help="commit of a Hub dataset")
    parser.add_argument("--frames", choices=("frozen", "linked"), default="frozen")
    parser.add_argument("--configs", nargs="+", choices=config_names_of(benchmark))
    if get_benchmark(benchmark).open_release is not None:
        parser.add_argument("--videos", help="folder of the media, if they are not below the source")
    settings = vars(parser.parse_args(arguments))
    built = build(settings.pop("source"), settings.pop("out"), benchmark=benchmark, progress=True, **settings)
    for config in built.configs:
        echo(f"{config.name} {dict(config.rows)} {config.content_hash or ''}")
