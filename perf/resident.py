"""Memory of a process that a measurement started."""

from pathlib import Path


def memory_of(process: int) -> str:
    """Resident memory, and the most of it so far. Linux alone."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    now, most = (int(line.split()[1]) >> 10 for name in ("VmRSS", "VmHWM") for line in lines if line.startswith(name))
    return f"server: {now} MiB, at most {most}"
