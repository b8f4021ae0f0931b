"""Run `python -m barista_bench.cli`, for launchers of modules: `accelerate launch -m barista_bench.cli run ...`."""

from barista_bench.cli import main

if __name__ == "__main__":
    main()
