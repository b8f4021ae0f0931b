"""ToG-Bench: a release in, a publishable `datasets` folder out.

    python scripts/tog_bench.py --source /data/tog_bench --out tog_bench

This is `barista-bench build --benchmark tog_bench`, for people who look for the builder script of a dataset.
"""

import sys

from barista_bench.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["build", "--benchmark", "tog_bench"]
    main()
