"""EgoCoT-Bench: a release in, a publishable `datasets` folder out.

    python scripts/egocot.py --source /data/egocot --out egocot

This is `barista-bench build --benchmark egocot`, for people who look for the builder script of a dataset.
"""

import sys

from barista_bench.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["build", "--benchmark", "egocot"]
    main()
