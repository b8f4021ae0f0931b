"""Runs: their report as a page of the studio, and the way from any sample to its moment of the video."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

from barista_bench.api import load_results
from barista_bench.errors import DataError
from barista_bench.reporting import write_report
from barista_bench.studio.background import BackgroundWork
from barista_bench.studio.workspace import Json, View, Workspace


class Inspecting(View):
    """The report over all open runs, made when first asked for, and the examples that it names."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._folder = tempfile.TemporaryDirectory(prefix="barista_bench-studio-")  # ends with the studio
        self._lock = threading.Lock()
        self._work: BackgroundWork | None = None
        self.page: Path | None = None
        self.reads = {"/api/report": self._state, "/api/example": self._where}

    def _state(self, query: Mapping[str, str]) -> Json:
        """How far the report is; the first call starts it."""
        runs = self._workspace.runs
        if not runs:
            raise DataError("no run is open. Remedy: name run folders when starting the studio")
        with self._lock:
            if self._work is None:
                self._work = BackgroundWork(self._make, threading.Lock())
        return {"runs": len(runs), **self._work.progress}

    def _make(self, work: BackgroundWork) -> None:
        out = Path(self._folder.name) / "report"
        self.page, _ = write_report(load_results(self._workspace.runs).runs, out, studio=True)

    def _where(self, query: Mapping[str, str]) -> Json:
        """Video and frames of an example. Raises DataError for an unknown one."""
        example_id = query["id"]
        for examples in self._workspace.examples().values():
            for example in examples:
                if example.example_id == example_id:
                    frames = [reference.frame_index for reference in example.frames]
                    return {"video": example.video_id, "frames": frames}
        raise DataError(f"{example_id!r}: no such example is open. Remedy: name its dataset when starting the studio")
