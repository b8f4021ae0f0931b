"""COCO-style average precision of boxes and masks, and scores that do not depend on the order of the examples."""

from .accumulate import STATISTICS
from .scoring import Evaluated, compute_metrics, evaluate_images, mean_ap, spread_of, summarise, tables

__all__ = [
    "STATISTICS",
    "Evaluated",
    "compute_metrics",
    "evaluate_images",
    "mean_ap",
    "spread_of",
    "summarise",
    "tables",
]
