"""Parts of the frame: whether a box lies in one, by its centre."""

from __future__ import annotations

from typing import Literal, TypeAlias

from barista_bench.benchmarks.egocot.evidence import EvidenceBox
from barista_bench.benchmarks.egocot.lexicon import Region

ClaimVerdict: TypeAlias = Literal["supported", "contradicted", "unverifiable"]

_SURE, _CLEARLY = 0.0, 0.1
_MIDDLE, _OFF_MIDDLE = 0.2, 0.3


def lies(item: EvidenceBox, region: Region) -> ClaimVerdict:
    """Whether a box lies in a part of the frame, by its centre. Near the border between two parts neither is wrong."""
    x0, y0, x1, y1 = item.box
    sides = (
        _along((x0 + x1) / 2 - 0.5, {"left": -1, "right": 1, "centre": 0}.get(region.across)),
        _along((y0 + y1) / 2 - 0.5, {"upper": -1, "lower": 1, "middle": 0}.get(region.down)),
    )
    if "contradicted" in sides:
        return "contradicted"
    return "unverifiable" if "unverifiable" in sides else "supported"


def _along(offset: float, wanted: int | None) -> ClaimVerdict:
    """One axis: `offset` is the centre's distance from the frame's middle, `wanted` -1, 0 or 1 for its thirds."""
    if wanted is None:
        return "supported"
    if wanted == 0:
        inside, outside = abs(offset) <= _MIDDLE, abs(offset) >= _OFF_MIDDLE
    else:
        inside, outside = offset * wanted >= _SURE, offset * wanted <= -_CLEARLY
    return "supported" if inside else "contradicted" if outside else "unverifiable"
