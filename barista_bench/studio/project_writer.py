"""The one who writes a project while the studio is open: decisions at once, stages behind them in the background."""

from __future__ import annotations

import threading
from pathlib import Path

from barista_bench.annotate.decisions import Decisions, accept
from barista_bench.annotate.project import open_project, writing
from barista_bench.annotate.running import run_video
from barista_bench.errors import DataError
from barista_bench.studio.background import BackgroundWork
from barista_bench.studio.workspace import Json


class ProjectWriter:
    """Takes turns, as a project has one writer at a time: a decision waits until the stages under way are made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._turn = threading.Lock()
        self._starting = threading.Lock()
        self._runs: dict[str, BackgroundWork] = {}

    def accept(self, decisions: Decisions) -> list[str]:
        """Write decisions, and start what follows from them. Raises as `annotate.decisions.accept` does."""
        with self._turn:
            files = accept(open_project(self._folder), decisions)
        self.start(decisions.video)
        return files

    def start(self, video_id: str) -> None:
        """Make all stages of a video that have what they need, unless that is about to happen."""
        with self._starting:
            last = self._runs.get(video_id)
            if last is None or last.state not in ("waiting", "running"):
                self._runs[video_id] = BackgroundWork(lambda run: self._make(video_id, run), self._turn)

    def progress(self, video_id: str) -> Json:
        """How far the last run is."""
        run = self._runs.get(video_id)
        return run.progress if run else {"state": "none"}

    def _make(self, video_id: str, run: BackgroundWork) -> None:
        with writing(self._folder):
            outcome = run_video(self._folder, video_id, lambda stage: setattr(run, "step", stage))
        if outcome.problem:
            raise DataError(outcome.problem)
