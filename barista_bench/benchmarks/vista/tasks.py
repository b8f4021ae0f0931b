"""One task an environment, and one over all of them. What they ask and how is said in `matching.py`."""

from __future__ import annotations

from barista_bench.benchmarks.vista.matching import Matching


class VirtualHome(Matching):
    """Videos of a simulated household, most of them stitched together from ALFRED."""

    name = upstream_name = environment = "virtual_home"


class RealWorld(Matching):
    """Filmed videos; its level 1 has object tracking, interactions and doors besides."""

    name = upstream_name = environment = "real_world"


class Minecraft(Matching):
    """Recorded play. A video of its level 1 may fit several descriptions."""

    name = upstream_name = environment = "minecraft"


class All(Matching):
    """All environments together: every problem set counts the same."""

    name = upstream_name = "all"
    environment = None
