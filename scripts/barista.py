"""BARISTA: a release in, a publishable `datasets` folder out.

    python scripts/barista.py --source ramblr/BARISTA --revision <commit> --out barista
    python scripts/barista.py --source /data/BARISTA --out barista --frames linked

The same as `barista-bench build`, for people who look for the builder script of a dataset.
"""

from __future__ import annotations

import argparse

from barista_bench.data.folder import build
from barista_bench.data.origin import config_names_of


def main() -> None:
    configs = config_names_of("barista")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", required=True, help="data root, or a Hub dataset id")
    parser.add_argument("--out", default="barista", help="dataset folder to write")
    parser.add_argument("--revision", help="commit of a Hub dataset")
    parser.add_argument("--frames", choices=("frozen", "linked"), default="frozen")
    parser.add_argument("--configs", nargs="+", choices=configs, default=configs)
    options = parser.parse_args()
    built = build(
        options.source,
        options.out,
        configs=tuple(options.configs),
        frames=options.frames,
        revision=options.revision,
        progress=True,
    )
    for config in built.configs:
        print(config.name, dict(config.rows), config.content_hash or "")


if __name__ == "__main__":
    main()
