"""`load_dataset("barista", NAME)` for all six tasks, offline, beside a built folder: frozen and linked."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from barista_bench.benchmarks import task_names
from barista_bench.data.folder import build
from barista_bench.data.frozen import read_frozen
from barista_bench.data.origin import load_splits, split_videos
from barista_bench.data.rows import from_row
from barista_bench.errors import ConfigError, DataError
from barista_bench.runs.score.scoring import score
from tests.one_run import run

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
def test_frozen_rows_load_with_their_pictures_and_without_our_code(name: str, frozen: dict, six_frozen: Path) -> None:
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


def test_the_published_sizes_come_out() -> None:
    """185 videos, 148 and 37, stratified (paper, section 3.3)."""
    kinds = ["fully automatic"] * 83 + ["capsule"] * 61 + ["portafilter"] * 41
    splits = split_videos({f"v{i}": kind for i, kind in enumerate(kinds)})
    assert Counter(splits.values()) == {"train": 148, "test": 37}
    fraction = Counter(kinds[int(video[1:])] for video, split in splits.items() if split == "test")
    assert all(abs(fraction[kind] - kinds.count(kind) * 0.2) < 1 for kind in fraction)


@given(st.dictionaries(st.text(min_size=1), st.sampled_from("abc"), min_size=1))
def test_the_split_does_not_depend_on_order_and_every_larger_type_is_tested(preparations: dict[str, str]) -> None:
    splits = split_videos(preparations)
    assert splits == split_videos(dict(reversed(preparations.items())))
    for kind, size in Counter(preparations.values()).items():
        tested = sum(splits[v] == "test" for v in preparations if preparations[v] == kind)
        assert tested >= 1 or size == 1
        assert tested < size or size == 1


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("{", "no split file"),
        ('{"train": []}', "no split file"),
        ('{"train": ["a"], "test": ["a"]}', "in both"),
        ('{"train": ["a"], "test": ["b"]}', "'c' is in no split"),
    ],
)
def test_a_split_file_is_taken_unchanged_and_a_bad_one_refused(tmp_path: Path, content: str, what: str) -> None:
    path = tmp_path / "splits.json"
    path.write_text(content)
    with pytest.raises(DataError, match=what):
        load_splits(path, ("a", "c"))
    path.write_text('{"train": ["a", "b"], "test": ["c"]}')
    assert load_splits(path, ("a", "c")) == {"a": "train", "c": "test"}


@given(
    st.dictionaries(st.text(min_size=1, max_size=3), st.sampled_from("abc"), min_size=1),
    st.lists(st.lists(st.integers(0, 9), min_size=1, unique=True), max_size=4),
)
def test_a_config_about_several_videos_has_one_to_test_on(preparations: dict[str, str], picks: list[list[int]]) -> None:
    videos = sorted(preparations)
    asked = [frozenset(videos[at % len(videos)] for at in pick) for pick in picks]
    splits = split_videos(preparations, asked)
    assert splits == split_videos(preparations, asked[::-1])
    for config in asked:
        assert len(config) == 1 or any(splits[video] == "test" for video in config)


@pytest.mark.parametrize("protocol", ["release", "paper"])
def test_results_name_the_protocol_and_follow_it(protocol: str, six_frozen: Path, tmp_path: Path) -> None:
    run(six_frozen, tmp_path / "run", task="hand_object", model="oracle", repetitions=1, protocol=protocol)
    results = score(tmp_path / "run").results
    assert results.protocol == protocol
    assert json.loads((tmp_path / "run/run.json").read_text())["protocol"] == protocol
    # The oracle answers on the grid, which only the released rules call exactly right.
    assert (results.metrics["object_iou"].mean == pytest.approx(1.0, abs=1e-9)) == (protocol == "release")


def test_a_run_is_not_continued_under_other_rules(six_frozen: Path, tmp_path: Path) -> None:
    run(six_frozen, tmp_path / "run", task="grounding", model="oracle", repetitions=1)
    with pytest.raises(ConfigError, match="protocol"):
        run(six_frozen, tmp_path / "run", task="grounding", model="oracle", repetitions=1, protocol="paper")


def test_only_the_paper_runs_sets_of_the_paper(kitchen_release: Path, kitchen_split: str, tmp_path: Path) -> None:
    settings = {"configs": ["activity", "referring"], "sampling": {"limit": 4}, "split_file": kitchen_split}
    made = build(kitchen_release, tmp_path / "papers", options={"protocol": "paper"}, cache=False, **settings)
    for name in ("activity", "referring"):
        with pytest.raises(ConfigError, match="was frozen by the protocol 'paper', not 'release'"):
            run(made.folder, tmp_path / f"{name}_release", task=name, model="oracle", repetitions=1)
        run(made.folder, tmp_path / name, task=name, model="oracle", repetitions=1, protocol="paper")
        results = score(tmp_path / name).results
        assert results.metrics[results.primary].mean == pytest.approx(1.0)
