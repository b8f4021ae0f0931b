"""ToG-Bench: a release in, a publishable `datasets` folder out.

    python scripts/tog_bench.py --source /data/tog_bench --out tog_bench

The same as `barista-bench build`, for people who look for the builder script of a dataset.
"""

from __future__ import annotations

from barista_bench.data.builder_script import build_from_arguments

if __name__ == "__main__":
    build_from_arguments("tog_bench", __doc__)
