"""The taskset's id for verifiers, which takes the name of a top-level module: `vf-eval barista-bench-verifiers`."""

from barista_bench.harness.verifiers_rows import RowTaskset

__all__ = ["RowTaskset"]
