"""Run a tier of the tests as on another machine, and print the result as a row of a table.

    python scripts/any_machine.py quick aten-default threads-2
    python scripts/any_machine.py full c-locale kathmandu spaces --processes 2 -- tests/studio

Several names give one run with all of these conditions. The output of the run is written to build/any_machine. `spaces`
and `user` run in a clone of the last commit, with a separate environment made from this environment's files. `user`
needs root, and with --python an interpreter that the user may start. `german` and `latin-1` need their locales
(localedef -i de_DE -f UTF-8 de_DE.UTF-8; localedef -i de_DE -f ISO-8859-1 de_DE).
"""

from __future__ import annotations

import argparse
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parents[1]
VARIABLES = {
    "aten-default": {"ATEN_CPU_CAPABILITY": "default"},
    "aten-avx2": {"ATEN_CPU_CAPABILITY": "avx2"},
    "onednn-sse41": {"ONEDNN_MAX_CPU_ISA": "SSE41"},
    "numpy-sse": {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"},
    "threads-1": {"OMP_NUM_THREADS": "1"},
    "threads-2": {"OMP_NUM_THREADS": "2"},
    "c-locale": {"LC_ALL": "C"},
    "german": {"LC_ALL": "de_DE.UTF-8", "LANGUAGE": "de"},
    "latin-1": {"LC_ALL": "de_DE.ISO-8859-1", "LANGUAGE": "de"},
    "kathmandu": {"TZ": "Asia/Kathmandu"},
}
OTHERS = ("spaces", "user", "one-core", "busy")
TIERS = {"quick": "not full and not integration", "full": "full"}
USER = "any_machine"
OUTCOMES = ("passed", "failed", "skipped")


def main() -> None:
    """Run the tests, and print the row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tier", choices=TIERS)
    parser.add_argument("names", nargs="+", metavar="NAME", choices=[*VARIABLES, *OTHERS], help="%(choices)s")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="of the clone's environment")
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options, more = parser.parse_args(sys.argv[1:end]), sys.argv[end + 1 :]
    names: Sequence[str] = options.names
    command = ["-m", "pytest", "--numprocesses", str(options.processes), "-m", TIERS[options.tier], "-rfE", *more]
    log = ROOT / "build" / "any_machine" / f"{options.tier}-{'-'.join(names)}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with place(names, options.python) as (root, python), load(names), log.open("w", encoding="utf-8") as file:
        status = run([python, *command], root, names, file)
    output = log.read_text(encoding="utf-8", errors="replace")
    print(*re.findall(r"^(?:FAILED|ERROR) .*$", output, re.MULTILINE), sep="\n")
    if status not in (0, 1):
        print(f"pytest ended with {status}: {log}")
    print("|", options.tier, "|", ", ".join(names), "|", " | ".join(counts(output)), "|")


def counts(output: str) -> list[str]:
    """Return the numbers of passed, failed and skipped tests and the time, from pytest's last line."""
    lines = re.findall(r"^=* ?(\d+ (?:passed|failed|skipped|error).* in .*s\b.*?)=*$", output, re.MULTILINE)
    last = lines[-1] if lines else ""
    found = {name: int(number) for number, name in re.findall(r"(\d+) (\w+?)s?\b", last)}
    found["failed"] = found.get("failed", 0) + found.get("error", 0)
    return [*(str(found.get(name, 0)) for name in OUTCOMES), last.rpartition(" in ")[2].strip()]


def run(command: Sequence[str | Path], root: Path, names: Sequence[str], log: TextIO) -> int:
    """Run pytest in this environment, and return its exit status."""
    shared = os.environ.get("BARISTA_SHARED", str(ROOT.parent / "shared"))
    variables = os.environ | {"OMP_NUM_THREADS": "1", "HF_HOME": str(root / "build" / "hf"), "BARISTA_SHARED": shared}
    for name in names:
        variables |= VARIABLES.get(name, {})
    if root != ROOT:
        variables |= {"TMPDIR": str(root.parent), "PATH": f"{root}/.venv/bin:{os.environ['PATH']}"}
    person, mask = None, -1
    if "user" in names:
        person, mask = pwd.getpwnam(USER), 0o077
        variables |= {"HOME": person.pw_dir, "USER": USER, "LOGNAME": USER}
    return subprocess.run(
        command,
        cwd=root,
        env=variables,
        stdout=log,
        stderr=subprocess.STDOUT,
        check=False,
        user=person and person.pw_uid,
        group=person and person.pw_gid,
        extra_groups=[] if person else None,
        umask=mask,
    ).returncode


@contextmanager
def load(names: Sequence[str]) -> Iterator[None]:
    """Leave only one core in the block, or run other programs on all cores."""
    if "one-core" in names:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    count = 2 * (os.cpu_count() or 1) if "busy" in names else 0
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


@contextmanager
def place(names: Sequence[str], python: Path) -> Iterator[tuple[Path, Path]]:
    """Return the folder to run in and its interpreter: this folder, or a clone of the last commit."""
    if not {"spaces", "user"} & set(names):
        yield ROOT, Path(sys.executable)
        return
    with tempfile.TemporaryDirectory(prefix="any machine " if "spaces" in names else "any_machine_") as scratch:
        clone = Path(scratch) / ("a clone" if "spaces" in names else "clone")
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        copy_environment(clone, python)
        if "user" in names:
            if not any(person.pw_name == USER for person in pwd.getpwall()):
                subprocess.run(["useradd", "--create-home", USER], check=True)
            # What lies in the environment are other names of this one's files, whose owner stays.
            for path in (Path(scratch), clone, *clone.rglob("*")):
                if not {".venv", "node_modules"} & set(path.relative_to(scratch).parts):
                    os.chown(path, pwd.getpwnam(USER).pw_uid, pwd.getpwnam(USER).pw_gid, follow_symlinks=False)
        yield clone, clone / ".venv" / "bin" / "python"


def copy_environment(clone: Path, python: Path) -> None:
    """Make a virtual environment for the clone. Its files are hard links to the files of this environment."""
    environment, theirs = clone / ".venv", Path(sys.prefix)
    base = subprocess.run([python, "-c", "import sys; print(sys._base_executable)"], capture_output=True, text=True)
    subprocess.run([base.stdout.strip(), "-m", "venv", "--without-pip", environment], check=True)
    (packages,) = (environment / "lib").glob("python*/site-packages")
    shutil.copytree(theirs / packages.relative_to(environment), packages, copy_function=os.link, dirs_exist_ok=True)
    if (ROOT / "node_modules").is_dir():
        shutil.copytree(ROOT / "node_modules", clone / "node_modules", copy_function=os.link, symlinks=True)
    interpreter = environment / "bin" / "python"
    for script in (theirs / "bin").iterdir():
        content = script.read_bytes() if script.is_file() else b""
        if content.startswith(b"#!") and b"python" in content.partition(b"\n")[0]:
            body = content.partition(b"\n")[2]
            start = f"#!/bin/sh\n'''exec' \"{interpreter}\" \"$0\" \"$@\"\n' '''\n"
            (environment / "bin" / script.name).write_bytes(start.encode() + body)
            (environment / "bin" / script.name).chmod(0o755)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--editable", str(clone)]
    subprocess.run([interpreter, "-m", "pip", "install", *options], check=True)


if __name__ == "__main__":
    main()
