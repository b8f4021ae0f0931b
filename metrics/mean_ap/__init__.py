"""COCO-style average precision of boxes and masks, with figures that do not depend on the order of the examples."""

from .accumulate import STATISTICS
from .scoring import Evaluated, evaluate_images, figures, mean_ap, summarise, tables
from .spread import bootstrap_map, percentile_interval, resample, spread_of, tie_spread

__all__ = [
    "STATISTICS",
    "Evaluated",
    "bootstrap_map",
    "evaluate_images",
    "figures",
    "mean_ap",
    "percentile_interval",
    "resample",
    "spread_of",
    "summarise",
    "tables",
    "tie_spread",
]
