"""Ctrl-C as a terminal sends it, to a command and all of its processes: one line, no traceback, no process left."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from barista_bench.cli import EXIT_INTERRUPTED, INTERRUPTED_LINE

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")

MINI = ["mini", "kitchen", "--videos", "6", "--num-proc", "2", "--no-progress"]


def group(leader: int) -> list[int]:
    """The living processes of a terminal's job: what its leader started, and itself."""
    names = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, number = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(number) == leader and state != "Z":
            names.append(int(folder.name))
    return names


def until(seen: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 300
    while not seen():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.02)


def has_imported(name: str) -> Callable[[int, Path], bool]:
    """Whether a library of that name is in a process: C extensions show while they are used."""
    return lambda leader, _: name in Path(f"/proc/{leader}/maps").read_text(encoding="utf-8")


@pytest.mark.full
@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(has_imported("_pydantic_core"), id="while the commands are imported"),
        pytest.param(has_imported("libav"), id="while a command imports what it needs"),
        pytest.param(lambda leader, _: len(group(leader)) >= 3, id="while workers start"),
        pytest.param(lambda _, folder: any(folder.rglob(".video.mp4.*")), id="while workers work"),
    ],
)
def test_ctrl_c_is_one_line_and_leaves_no_process_and_no_file(
    moment: Callable[[int, Path], bool], tmp_path: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "barista_bench.cli", *MINI],
        cwd=tmp_path, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
    )  # fmt: skip
    until(lambda: moment(process.pid, tmp_path), process)
    os.killpg(process.pid, signal.SIGINT)
    out, error = process.communicate(timeout=300)
    assert (out, error) == ("", f"{INTERRUPTED_LINE}\n")
    assert process.returncode in (EXIT_INTERRUPTED, -signal.SIGINT)
    end = time.monotonic() + 60
    while group(process.pid) and time.monotonic() < end:
        time.sleep(0.02)
    assert group(process.pid) == []
    assert list(tmp_path.iterdir()) == []
