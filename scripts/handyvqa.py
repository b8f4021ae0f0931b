"""HanDyVQA: a release in, a publishable `datasets` folder out.

    python scripts/handyvqa.py --source /data/handyvqa --out handyvqa

The same as `barista-bench build`, for people who look for the builder script of a dataset.
"""

from __future__ import annotations

from barista_bench.data.builder_script import build_from_arguments

if __name__ == "__main__":
    build_from_arguments("handyvqa", __doc__)
