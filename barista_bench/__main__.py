"""Run `python -m barista_bench`, where the command `barista-bench` is not on the path."""

from barista_bench.cli import main

if __name__ == "__main__":
    main()
