"""ViSTa: a release in, a publishable `datasets` folder out.

    python scripts/vista.py --source /data/vista --out vista

This is `barista-bench build --benchmark vista`, for people who look for the builder script of a dataset.
"""

import sys

from barista_bench.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["build", "--benchmark", "vista"]
    main()
