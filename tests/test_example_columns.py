"""Typed columns of examples under threads."""

import subprocess
import sys

import pytest

# Of a process of its own, which a crash ends alone. Types are new each time, since only the first use of one is unsafe.
PROGRAM = """
import sys, threading
from barista_bench.core.example import TypedFields

def read_at_once(kind, barrier):
    barrier.wait()
    assert kind.read({"part": {"row": 1}, "parts": [{"row": 2}]}).parts[0].row == 2

sys.setswitchinterval(1e-6)
for _ in range(1000):
    part = type("Part", (TypedFields,), {"__annotations__": {"row": int}})
    kind = type("Kind", (TypedFields,), {"__annotations__": {"part": part, "parts": list[part]}})
    barrier = threading.Barrier(4)
    threads = [threading.Thread(target=read_at_once, args=(kind, barrier)) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
print("read")
"""


@pytest.mark.full
def test_threads_may_be_the_first_to_read_a_column_at_the_same_time() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.stdout == "read\n", (done.returncode, done.stderr[-500:])
