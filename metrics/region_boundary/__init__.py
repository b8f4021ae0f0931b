"""Region similarity J and contour accuracy F of masks, as DAVIS defines them."""

from .masks import as_masks as as_masks
from .masks import parse_counts as parse_counts
from .scoring import TOLERANCE as TOLERANCE
from .scoring import bound_pixels as bound_pixels
from .scoring import boundary_f as boundary_f
from .scoring import region_boundary as region_boundary
from .scoring import region_j as region_j
from .scoring import sequence_statistics as sequence_statistics
from .scoring import track_j as track_j
