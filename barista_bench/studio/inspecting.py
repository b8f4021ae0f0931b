"""Runs: their report as a page of the studio, and the way from any sample to its moment of the video."""

from __future__ import annotations

import logging
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from barista_bench.api import load_results
from barista_bench.errors import BaristaError, DataError
from barista_bench.reporting import write_report
from barista_bench.studio.workspace import Json, Workspace

log = logging.getLogger(__name__)


class Inspecting:
    """The examples that reports name."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    @property
    def reads(self) -> Mapping[str, Callable[[Mapping[str, str]], Json]]:
        return {"/api/example": lambda query: where(self._workspace, query["id"])}

    @property
    def writes(self) -> Mapping[str, Callable[[bytes], Json]]:
        return {}


def where(workspace: Workspace, example_id: str) -> Json:
    """Video and frames of an example of any open dataset or run. Raises DataError for an unknown one."""
    for example in workspace.all_examples():
        if example.example_id == example_id:
            frames = [reference.frame_index for reference in example.frames]
            return {"video": example.video_id, "frames": frames, "task": example.task, "label": example.label}
    raise DataError(f"{example_id!r}: no such example is open. Remedy: name its dataset when starting the studio")


class LiveReport:
    """The report over all open runs, made when first asked for, in a folder that ends with the studio."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._lock = threading.Lock()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._problem = ""
        self.page: Path | None = None

    @property
    def reads(self) -> Mapping[str, Callable[[Mapping[str, str]], Json]]:
        return {"/api/report": lambda query: self.state()}

    @property
    def writes(self) -> Mapping[str, Callable[[bytes], Json]]:
        return {}

    def state(self) -> Json:
        """`none`, `making`, `ready` or `failed`; the first call starts it."""
        if not self._workspace.runs:
            return {"state": "none"}
        with self._lock:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="barista_bench-studio-")
                threading.Thread(target=self._make, args=(Path(self._folder.name) / "report",), daemon=True).start()
        if self._problem:
            return {"state": "failed", "problem": self._problem}
        return {"state": "ready" if self.page else "making", "runs": len(self._workspace.runs)}

    def _make(self, out: Path) -> None:
        try:
            self.page, _ = write_report(load_results(self._workspace.runs).runs, out, studio=True)
        except (BaristaError, OSError) as error:
            self._problem = str(error)
            log.warning("no report: %s", error)
