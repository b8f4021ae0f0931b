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


def survived_kills(video: Path, whole: Callable[[], object], files: dict[str, bytes], *, before: bool) -> int:
    """How many kills the work survives: at each of its writes once, and then it ends with the same files.

    Args:
        video: the folder that the work fills; emptied each time, so that every write is the fatal one once.
        files: what it ends with when nobody kills it, by path.
    """
    for kills in range(100):
        for path in sorted(video.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        status = killed_at(kills + 1, before=before, work=whole)
        if status == 0:
            return kills
        assert status == -signal.SIGKILL
        whole()
        left = {path.relative_to(video).as_posix(): path for path in video.rglob("*") if path.is_file()}
        assert {name: path.read_bytes() for name, path in left.items() if "partial" not in name} == files
    raise AssertionError("it does not end")
