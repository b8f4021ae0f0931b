"""How much a release holds, in the terms in which its authors count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barista_bench.benchmarks.vista.release import VistaRelease
from barista_bench.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

GROUPS = ("environment", "level", "type", "release_level", "release_type")


def counts(release: VistaRelease, by: Sequence[str] = ("environment", "level", "type")) -> pd.DataFrame:
    """A row for each group of problem sets, sorted.

    Columns: `by` (any of `GROUPS`; none for one row over all), and how many `problem_sets`, `rows` (of metadata.csv),
    `entries` (a video in a set), `videos` (each once) and `labels` (descriptions) the group has.

    Raises:
        ConfigError: a name in `by` is none of `GROUPS`.
    """
    import pandas as pd

    for name in by:
        if name not in GROUPS:
            raise ConfigError(f"problem sets have no {name!r}. Remedy: count by {', '.join(GROUPS)}")
    table = pd.DataFrame(
        {
            **{name: getattr(found, name) for name in by},
            "problem_sets": 1,
            "rows": len(release.rows.get(found.set_id, ())),
            "entries": len(found.videos),
            "videos": {video.video_id for video in found.videos},
            "labels": len(found.descriptions),
        }
        for found in release.sets.values()
    )
    how = {**dict.fromkeys(("problem_sets", "rows", "entries", "labels"), "sum"), "videos": _together}
    grouped = table.groupby(list(by) or (lambda _: "all"), sort=True).agg(how).reset_index(drop=not by)
    return grouped[[*by, "problem_sets", "rows", "entries", "videos", "labels"]]


def _together(videos: Sequence[set[str]]) -> int:
    """Videos are shared by sets, so that their numbers do not add up."""
    return len(set().union(*videos))
