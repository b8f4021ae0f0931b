"""Region similarity J and contour accuracy F of masks, as DAVIS defines them."""

from .masks import as_masks, parse_counts
from .scoring import TOLERANCE, bound_pixels, boundary_f, region_boundary, region_j, sequence_statistics, track_j

__all__ = [
    "TOLERANCE",
    "as_masks",
    "bound_pixels",
    "boundary_f",
    "parse_counts",
    "region_boundary",
    "region_j",
    "sequence_statistics",
    "track_j",
]
