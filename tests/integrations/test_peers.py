"""`perf/peers/compare.py` in its short form: other tools give the answers that we give to the same questions."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.timeout(5400)]
ROOT = Path(__file__).resolve().parents[2]


def test_peers_give_our_greedy_answers() -> None:
    command = [sys.executable, ROOT / "perf/peers/compare.py", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()[2:]]
    equal = {(asked, peer): cells[-1] for asked, peer, *cells in rows}
    greedy = {(asked, peer) for asked in ("one image", "six frames") for peer in ("lmms-eval", "vLLM")}
    assert {key for key, count in equal.items() if count == "8 of 8"} == greedy
    assert len(equal) == 6
