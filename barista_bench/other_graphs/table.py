"""Imports annotations of other tools as graphs (docs/other_graphs.md), from exports or tables with a map."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from barista_bench.errors import ConfigError
from barista_bench.other_graphs import coco, fiftyone, label_studio, labelme, supervisely
from barista_bench.other_graphs.row_graph import graph_of_rows
from barista_bench.other_graphs.rows import Rows
from barista_bench.other_graphs.source import GraphSource, ImportedVideo, ImportTally, OpenedSource
from barista_bench.other_graphs.table_map import load_map
from barista_bench.other_graphs.table_rows import TableReader
from barista_bench.scene_graph.domain import Domain
from barista_bench.scene_graph.terms import Terms

_TOOLS: dict[str, Callable[[Rows, str | None], None]] = {
    "coco": coco.add_rows,
    "coco_video": coco.add_video_rows,
    "label_studio": label_studio.add_rows,
    "labelme": labelme.add_rows,
    "supervisely": supervisely.add_rows,
    "fiftyone": fiftyone.add_rows,
}


class TableSource(OpenedSource):
    """A folder of annotations that also contains the videos or pictures. All rows are kept in memory."""

    def __init__(self, folder: Path, domain: Domain, map_name: str) -> None:
        self._map, self._rows, self._domain = load_map(map_name), Rows(folder), domain
        if self._map.tool:
            _TOOLS[self._map.tool](self._rows, self._map.export)
        TableReader(self._map, self._rows).add_tables()
        self._rows.sha256.update(msgspec.json.encode(self._map))
        self.video_ids = sorted(self._rows.videos)
        self.terms = self._map.terms

    @property
    def tally(self) -> ImportTally:
        return self._rows.tally

    def digest(self, video_id: str) -> str:
        return hashlib.sha256(self._rows.sha256.digest() + video_id.encode()).hexdigest()

    def read(self, video_id: str) -> ImportedVideo:
        return graph_of_rows(video_id, self._rows, self._domain, fps=self._map.fps, complete=self._map.complete)


def _open_without_map(folder: Path, domain: Domain) -> OpenedSource:
    raise ConfigError(
        f"--from table: {folder} could come from any tool. Fix: add --map {', '.join(_TOOLS)}, or a map's path"
    )


SOURCE = GraphSource(
    name="table",
    terms=Terms(
        title="annotations of another tool",
        licence="other",
        licence_note="Not stated: the map of the import has no `terms`.",
        citation="",
        homepage="",
    ),
    open=_open_without_map,
    open_mapped=TableSource,
)
