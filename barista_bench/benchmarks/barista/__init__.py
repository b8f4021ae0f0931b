"""BARISTA (arXiv 2605.12074): zero-shot tasks derived from one scene graph of coffee-making videos."""

from barista_bench.benchmarks.barista.activity import Activity
from barista_bench.benchmarks.barista.grounding import Grounding
from barista_bench.benchmarks.barista.hand_object import HandObject
from barista_bench.benchmarks.barista.referring import Referring
from barista_bench.benchmarks.barista.relations import Relations
from barista_bench.benchmarks.barista.temporal_vqa import TemporalVQA

TASKS = (Grounding, HandObject, Referring, Activity, Relations, TemporalVQA)
"""In the order of the paper."""

__all__ = ["TASKS", "Activity", "Grounding", "HandObject", "Referring", "Relations", "TemporalVQA"]
