"""ViSTa: a release in, a publishable `datasets` folder out.

    python scripts/vista.py --source /data/vista --out vista

The same as `barista-bench build`, for people who look for the builder script of a dataset.
"""

from __future__ import annotations

from barista_bench.data.builder_script import build_from_arguments

if __name__ == "__main__":
    build_from_arguments("vista", __doc__)
