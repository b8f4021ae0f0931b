"""scripts/install.sh, which make calls: which Python and which installer it takes. Stand-ins play both."""

import configparser
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
INSTALL = ROOT / "scripts" / "install.sh"
TOOLS = ("dirname", "mkdir", "cp")

# `-c` asks a Python whether it will do, then where it is; `-m` is venv or pip.
PYTHON = """#!/bin/sh
case "$1 $2" in
  "-c "*sys.exit*) exit {status} ;;
  "-c "*) echo "$0" ;;
  "-V "*) echo "Python {version}" ;;
  "-m venv") mkdir -p "$3/bin" && cp -n "$0" "$3/bin/python" ;;
esac
echo "python{version} $*" >> "$NOTES"
"""
UV = """#!/bin/sh
[ "$1" != venv ] || { for folder in "$@"; do :; done; mkdir -p "$folder/bin"; }
echo "uv $*" >> "$NOTES"
"""


class Machine:
    """A PATH of stand-ins."""

    def __init__(self, folder: Path) -> None:
        self.programs, self.notes = folder / "programs", folder / "notes"
        self.programs.mkdir()
        for tool in TOOLS:
            self.add(tool, f'#!/bin/sh\nexec /usr/bin/env -i PATH=/usr/bin:/bin {tool} "$@"\n')

    def add(self, name: str, text: str) -> Path:
        program = self.programs / name
        program.write_text(text)
        program.chmod(0o755)
        return program

    def python(self, version: str, *, status: int = 0) -> Path:
        return self.add(f"python{version}", PYTHON.format(version=version, status=status))

    def install(self, folder: Path, *packages: str, **variables: str) -> tuple[int, str, list[str]]:
        """The exit status, the output, and the programs that were called to change something."""
        self.notes.write_text("")
        done = subprocess.run(
            ["/bin/sh", INSTALL, folder, *packages],
            env={"PATH": str(self.programs), "NOTES": str(self.notes), **variables},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        called = [line for line in self.notes.read_text().splitlines() if " -c" not in line and " -V" not in line]
        return done.returncode, done.stdout + done.stderr, called


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_it_takes_the_newest_python_that_starts(machine: Machine, tmp_path: Path) -> None:
    machine.add("python3.14", "#!/bin/sh\necho 'pyenv: python3.14: command not found'\nexit 127\n")
    machine.python("3.13", status=1)  # no venv
    machine.python("3.12")
    machine.python("3.11")
    status, said, called = machine.install(tmp_path / "new env", "here")
    assert status == 0, said
    assert "Python 3.12, packages by pip" in said
    pip = f"python3.12 -m pip install --quiet --constraint {ROOT}/scripts/../constraints.txt here"
    assert called == [f"python3.12 -m venv {tmp_path}/new env", pip]


def test_without_a_python_it_says_what_to_install_and_how_to_name_one(machine: Machine, tmp_path: Path) -> None:
    status, said, called = machine.install(tmp_path / "env", "here")
    assert (status, called) == (1, [])
    assert "a Python 3.11 to 3.14 with venv" in said
    assert re.search(r"Fix: install one .*make run PYTHON=/path/to/python", said)


def test_only_the_named_python_is_tried(machine: Machine, tmp_path: Path) -> None:
    machine.python("3.13")
    named = machine.python("3.11")
    assert machine.install(tmp_path / "env", "here", PYTHON=str(named))[2][0].startswith("python3.11 -m venv")
    status, said, called = machine.install(tmp_path / "env", "here", PYTHON="/no/python")
    assert (status, called) == (1, [])
    assert "/no/python" in said


def test_an_existing_environment_keeps_its_python(machine: Machine, tmp_path: Path) -> None:
    machine.python("3.11")
    machine.install(tmp_path / "env", "here")
    machine.python("3.13")
    assert all(line.startswith("python3.11 ") for line in machine.install(tmp_path / "env", "here")[2])


def test_only_torch_uses_the_index_of_torch(machine: Machine, tmp_path: Path) -> None:
    machine.python("3.13")
    _, said, called = machine.install(
        tmp_path / "env", "torch", "--editable", ".[run]", TORCH_INDEX="https://of.torch/cpu"
    )
    assert "to download: 0.5 GB, and torch: https://of.torch/cpu" in said
    assert [line.partition("constraints.txt ")[2] for line in called[1:]] == [
        "--no-deps --index-url https://of.torch/cpu torch",
        "--editable .[run]",
    ]
    _, said, called = machine.install(tmp_path / "env", "torch", "--editable", ".[run]")
    assert "2.7 GB with CUDA libraries; TORCH_INDEX=" in said
    assert called[1].endswith("constraints.txt --no-deps torch")
    assert "to download" not in machine.install(tmp_path / "env", "here")[1]


def test_uv_installs_if_it_is_present_and_not_turned_off(machine: Machine, tmp_path: Path) -> None:
    python, uv = machine.python("3.13"), machine.add("uv", UV)
    folder = tmp_path / "env"
    status, said, called = machine.install(folder, "here")
    assert status == 0, said
    assert f"packages by {uv}" in said
    assert called == [
        f"uv venv --quiet --seed --allow-existing --python {python} {folder}",
        f"uv pip install --python {folder}/bin/python --constraint {ROOT}/scripts/../constraints.txt here",
    ]
    assert "packages by pip" in machine.install(folder, "here", UV="")[1]


def test_it_tries_the_versions_that_the_package_names() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    named = re.findall(r"Python :: (3\.\d+)", config["metadata"]["classifiers"])
    tried = re.findall(r"python(3\.\d+)", INSTALL.read_text(encoding="utf-8"))
    assert tried == named[::-1]
    assert os.access(INSTALL, os.X_OK)
