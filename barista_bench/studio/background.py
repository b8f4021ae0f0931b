"""Work that a thread does while the page asks how far it is."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Literal

from barista_bench.errors import BaristaError
from barista_bench.files.text_out import system_problem
from barista_bench.studio.workspace import Json

log = logging.getLogger(__name__)


class BackgroundWork:
    """Starts at once, or when `turn` is free. `step` says what it is at."""

    def __init__(self, work: Callable[[BackgroundWork], object], turn: threading.Lock) -> None:
        self.state: Literal["waiting", "running", "done", "failed"] = "waiting"
        self.step = self.problem = ""
        self._work, self._turn = work, turn
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def progress(self) -> Json:
        return {"state": self.state, "step": self.step, "problem": self.problem}

    def _run(self) -> None:
        problem = "stopped by an error that the terminal shows"
        with self._turn:
            self.state = "running"
            try:
                self._work(self)
                problem = ""
            except (BaristaError, OSError) as error:
                problem = system_problem(error) if isinstance(error, OSError) else str(error)
                log.warning("%s", problem)
            finally:
                self.problem, self.state = problem, "failed" if problem else "done"
