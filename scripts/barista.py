"""BARISTA: a release in, a publishable `datasets` folder out.

    python scripts/barista.py --source ramblr/BARISTA --revision <commit> --out barista
    python scripts/barista.py --source /data/BARISTA --out barista --frames linked

This is `barista-bench build --benchmark barista`, for people who look for the builder script of a dataset.
"""

import sys

from barista_bench.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["build", "--benchmark", "barista"]
    main()
