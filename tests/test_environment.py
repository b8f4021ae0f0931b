"""Tests do not depend on the variables that the user of the machine exports."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import pytest_terminal_summary

EXPORTED = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_ENDPOINT": "http://127.0.0.1:9",
    "HF_TOKEN": "hf_of_the_user",
    "HUGGING_FACE_HUB_TOKEN": "hf_of_the_user",
    "OPENAI_BASE_URL": "http://127.0.0.1:9",
    "OPENAI_API_KEY": "sk-of-the-user",
    "BARISTA_BENCH_REPETITIONS": "7",
    "RANK": "1",
    "WORLD_SIZE": "2",
    "http_proxy": "http://127.0.0.1:9",
    "ALL_PROXY": "http://127.0.0.1:9",
}
_PRINT = """
import tests, os
from huggingface_hub import constants, get_token
from barista_bench.models.served.settings import ServedSettings
from barista_bench.runs.ask.shard import Shard
print(constants.HF_HUB_OFFLINE, constants.ENDPOINT, get_token(), ServedSettings().url,
      Shard.from_environment().is_alone)
print(*sorted(os.environ.keys() & set(os.environ["EXPORTED"].split())), os.environ["HF_HOME"])
"""
ROOT = Path(__file__).resolve().parents[1]


def _with_exports(*command: str, home: Path) -> subprocess.CompletedProcess[str]:
    # A separate run: as a worker of this one it would share a folder with every such run of the machine.
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    variables = {**ours, **EXPORTED, "EXPORTED": " ".join(EXPORTED), "HF_HOME": str(home)}
    return subprocess.run(
        [sys.executable, *command], env=variables, cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_exported_variables_are_gone_before_a_library_reads_them(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hf_of_a_login")
    done = _with_exports("-c", _PRINT, home=tmp_path)
    assert done.stdout.splitlines() == [
        "False https://huggingface.co None https://api.openai.com/v1 True",
        str(tmp_path),
    ], done.stderr


@pytest.mark.full
def test_tests_against_a_stand_in_pass_with_any_exported_variables(tmp_path: Path) -> None:
    files = ("tests/hub/test_pushing.py", "tests/test_archives.py", "tests/test_sources.py", "tests/test_cli.py")
    chosen = ("-p", "no:cacheprovider", "-m", "not full and not integration", "-x")
    done = _with_exports("-m", "pytest", *chosen, *files, home=tmp_path)
    assert done.returncode == 0, done.stdout[-3000:]


def test_a_run_ends_with_a_line_of_skipped_tests_and_reasons() -> None:
    skipped = [SimpleNamespace(longrepr=("a.py", 1, f"Skipped: {why}")) for why in ("no data", "no GPU", "no data")]
    lines: list[str] = []
    pytest_terminal_summary(SimpleNamespace(stats={"skipped": skipped}, write_line=lines.append))  # type: ignore[arg-type]
    assert lines == ["3 skipped: 2 x no data; 1 x no GPU"]
    pytest_terminal_summary(SimpleNamespace(stats={}, write_line=lines.append))  # type: ignore[arg-type]
    assert len(lines) == 1
