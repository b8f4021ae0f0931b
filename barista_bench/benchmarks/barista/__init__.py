"""BARISTA (arXiv 2605.12074): zero-shot tasks derived from one scene graph of coffee-making videos."""

from barista_bench.benchmarks.barista.relations import Relations

TASKS = (Relations,)

__all__ = ["TASKS", "Relations"]
