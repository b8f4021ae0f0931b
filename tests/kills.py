"""Work in a process of its own, which may be killed at any of its writes."""

import os
import signal
from collections.abc import Callable
from pathlib import Path


def in_child(work: Callable[[], object]) -> int:
    """The status of a forked process that does the work."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001  (the child must not return into pytest)
            os._exit(3)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_at(write: int, *, before: bool, work: Callable[[], object]) -> int:
    """The work in a process that is killed at its n-th write, just before or after the file is in place."""

    def child() -> None:
        count, replace = 0, Path.replace

        def counted(self: Path, target: Path) -> Path:
            nonlocal count
            count += 1
            if count == write and before:
                os.kill(os.getpid(), signal.SIGKILL)
            result = replace(self, target)
            if count == write:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        Path.replace = counted  # type: ignore[method-assign, assignment]
        work()

    return in_child(child)
