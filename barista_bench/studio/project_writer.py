"""The one who writes a project while the studio is open: decisions at once, stages behind them in the background."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from barista_bench.annotate.decisions import Decisions, accept
from barista_bench.annotate.project import open_project, writing
from barista_bench.annotate.running import run_video
from barista_bench.errors import BaristaError
from barista_bench.studio.workspace import Json

log = logging.getLogger(__name__)


@dataclass
class StageRun:
    """One video's stages in the background. `waiting` is for another video's, or for a decision to be written."""

    state: Literal["none", "waiting", "running", "done", "failed"] = "none"
    stage: str = ""
    made: list[str] = field(default_factory=list)
    problem: str = ""
    number: int = 0
    since: float = field(default_factory=time.monotonic)


class ProjectWriter:
    """Takes turns, as a project has one writer at a time: a decision waits until the stages under way are made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._turn = threading.Lock()
        self._starting = threading.Lock()
        self._runs: dict[str, StageRun] = {}

    def accept(self, decisions: Decisions) -> list[str]:
        """Write decisions, and start what follows from them. Raises as `annotate.decisions.accept` does."""
        with self._turn:
            files = accept(open_project(self._folder), decisions)
        self.start(decisions.video)
        return files

    def start(self, video_id: str) -> None:
        """Make all stages of a video that have what they need, unless that is about to happen."""
        with self._starting:
            last = self._runs.get(video_id, StageRun())
            if last.state not in ("waiting", "running"):
                run = self._runs[video_id] = StageRun("waiting", number=last.number + 1)
                threading.Thread(target=self._make, args=(video_id, run), daemon=True).start()

    def progress(self, video_id: str) -> Json:
        """How far the last run is; `number` tells runs apart, `seconds` is its time so far."""
        run = self._runs.get(video_id, StageRun())
        return {
            "state": run.state,
            "stage": run.stage,
            "made": run.made,
            "problem": run.problem,
            "number": run.number,
            "seconds": round(time.monotonic() - run.since, 1),
        }

    def _make(self, video_id: str, run: StageRun) -> None:
        with self._turn:
            run.state, problem = "running", "stopped by an error that the terminal shows"
            try:
                with writing(self._folder):
                    outcome = run_video(self._folder, video_id, lambda stage: setattr(run, "stage", stage))
                run.made, problem = outcome.made, outcome.problem
            except (BaristaError, OSError) as error:
                problem = str(error)
                log.warning("%s: %s", video_id, error)
            finally:
                run.state, run.problem = "failed" if problem else "done", problem
