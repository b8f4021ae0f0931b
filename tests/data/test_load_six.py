"""`load_dataset("barista", NAME)` for all six tasks, offline, beside a built folder: frozen and linked."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from barista_bench.benchmarks import task_names
from barista_bench.data.frozen import read_frozen
from barista_bench.data.rows import from_row

# All names in one process: importing `datasets` is what takes the time.
PROGRAM = """
import json, sys
from datasets import load_dataset
out = {}
for name in sys.argv[1].split(","):
    loaded = load_dataset("barista", name)
    rows = [row for split in loaded.values() for row in split]
    pictures = [[image.size for image in row.pop("images", [])] for row in rows]
    out[name] = {"splits": sorted(loaded), "rows": rows, "pictures": pictures}
assert "barista_bench" not in sys.modules
print(json.dumps(out))
"""


def loaded(folder: Path, home: Path) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, ",".join(task_names("barista"))],
        cwd=folder.parent,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def frozen(six_frozen: Path, tmp_path_factory: pytest.TempPathFactory) -> dict:
    return loaded(six_frozen, tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def linked(six_linked: Path, tmp_path_factory: pytest.TempPathFactory) -> dict:
    return loaded(six_linked, tmp_path_factory.mktemp("home_linked"))


@pytest.mark.parametrize("name", task_names("barista"))
def test_frozen_rows_load_with_their_pictures_and_no_code_of_ours(name: str, frozen: dict, six_frozen: Path) -> None:
    expected = {example.example_id: example for example in read_frozen(six_frozen / f"frozen/{name}.jsonl")}
    assert {row["example_id"]: from_row(row) for row in frozen[name]["rows"]} == expected
    shown = {"activity": 4, "temporal_vqa": 6, "relations": 2}.get(name, 1)
    assert frozen[name]["pictures"] == [[[128, 64]] * shown] * len(expected)
    assert set(frozen[name]["splits"]) <= {"train", "test"} == set().union(*(c["splits"] for c in frozen.values()))


@pytest.mark.full
@pytest.mark.parametrize("name", task_names("barista"))
def test_linked_rows_are_the_same_examples_with_references_to_frames(name: str, frozen: dict, linked: dict) -> None:
    both = [{row["example_id"]: from_row(row) for row in side[name]["rows"]} for side in (frozen, linked)]
    assert both[0] == both[1]
    for row in linked[name]["rows"]:
        assert row["frames"] == {"video": f"{row['video_id']}/video.mp4", "indices": row["frame_indices"]}
