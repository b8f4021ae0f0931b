"""Entry point for launchers that start modules, such as `accelerate launch -m barista_bench.cli run ...`."""

from barista_bench.cli import main

if __name__ == "__main__":
    main()
