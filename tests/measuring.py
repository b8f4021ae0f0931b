"""The time and memory of a step: it runs in a forked process, whose memory the system counts."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable
from typing import Any

MEMORY = 6 * 2**30
"""Bytes of address space: a step that runs wild fails here, and not the machine."""


def measured(step: Callable[[], Any]) -> dict[str, Any]:
    """The outcome of a step, and the most MiB that its process held."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            outcome = step()
        except BaseException as error:  # noqa: BLE001  (the test reports any error)
            outcome = f"{type(error).__name__}: {error}"[:500]
        with os.fdopen(writing, "w") as out:
            json.dump(outcome, out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        text = told.read()
    _, status, usage = os.wait4(pid, 0)
    return {"outcome": json.loads(text) if text else f"died with status {status}", "mib": usage.ru_maxrss // 1024}
