"""Work that is killed at any of its writes."""

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest


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


def survived_kills(video: Path, whole: Callable[[], object], *, before: bool) -> tuple[int, dict[str, bytes]]:
    """The number of kills that the work survives, one at each of its writes, and the final files each time.

    The folder is copied at each write, just before or after the file is in place: the state that a kill there would
    leave. The work then continues from each copy.

    Args:
        video: the folder that the work fills.
    """
    states: list[Path] = []
    replace = Path.replace

    def copy() -> None:
        states.append(video.parents[1] / "states" / str(len(states)))
        shutil.copytree(video, states[-1])

    def copied(self: Path, target: Path) -> Path:
        if before:
            copy()
        result = replace(self, target)
        if not before:
            copy()
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", copied)
        whole()
    files = _files(video)
    for state in states:
        shutil.rmtree(video)
        shutil.copytree(state, video)
        whole()
        assert _files(video) == files
    return len(states), files


def _files(video: Path) -> dict[str, bytes]:
    files = (path for path in video.rglob("*") if path.is_file() and "partial" not in path.name)
    return {path.relative_to(video).as_posix(): path.read_bytes() for path in files}
