"""Region similarity J and contour accuracy F of masks, as DAVIS defines them."""

from .masks import as_masks as as_masks, parse_counts as parse_counts
from .scoring import (
    TOLERANCE as TOLERANCE,
    bound_pixels as bound_pixels,
    boundary_f as boundary_f,
    region_boundary as region_boundary,
    region_j as region_j,
    sequence_statistics as sequence_statistics,
    track_j as track_j,
)
