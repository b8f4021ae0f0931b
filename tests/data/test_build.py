"""A dataset folder built from a release: the three ways to load it, frozen and linked, and its refusals."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets.load
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from datasets import Dataset, DatasetDict, load_dataset
from hypothesis import given, settings, strategies as st

from barista_bench.benchmarks.barista.relations import Relations
from barista_bench.data.arrow_values import json_values
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.data.frozen import content_hash, read_frozen
from barista_bench.data.manifest import BuiltConfig, BuiltDataset, read_manifest
from barista_bench.data.origin import config_names_of
from barista_bench.data.register import register, unregister
from barista_bench.data.rows import from_row
from barista_bench.errors import ConfigError, DataError
from barista_bench.media.frames import link_frames
from barista_bench.media.video import read_frames
from tests.releases import document, write_release

SAMPLING = {"frame_step": 10}


@pytest.fixture(scope="module")
def built(small_release: Path, tmp_path_factory: pytest.TempPathFactory) -> BuiltDataset:
    out = tmp_path_factory.mktemp("built") / "barista"
    return build(small_release, out, sampling=SAMPLING, cache=False)


def named(built: BuiltDataset, name: str = "relations") -> BuiltConfig:
    return next(config for config in built.configs if config.name == name)


def load(folder: Path, config: str, tmp_path: Path) -> DatasetDict:
    return load_dataset(str(folder), config, cache_dir=str(tmp_path / "cache"))


@pytest.mark.full
def test_every_config_is_written_and_counted(built: BuiltDataset, tmp_path: Path) -> None:
    assert [config.name for config in built.configs] == [
        name for name in config_names_of("barista") if name not in built.empty
    ]
    assert set(built.empty) <= {"activity", "temporal_vqa"}, "too few activities for choices, too short for clips"
    for config in built.configs:
        loaded = load(built.folder, config.name, tmp_path)
        assert {split: len(rows) for split, rows in loaded.items()} == dict(config.rows)
    assert dict(named(built).rows) == {"train": 12, "test": 12}


def test_rows_are_the_examples(built: BuiltDataset, tmp_path: Path) -> None:
    frozen = {e.example_id: e for e in read_frozen(built.folder / "frozen/relations.jsonl")}
    loaded = load(built.folder, "relations", tmp_path)
    rows = [from_row(row) for split in loaded.values() for row in split]
    assert {row.example_id: row for row in rows} == frozen
    assert content_hash(rows) == named(built).content_hash
    positions = sorted(p for split in loaded.values() for p in split["position"][:])
    assert positions == list(range(24))


def test_the_images_equal_the_images_of_the_task(built: BuiltDataset, small_release: Path, tmp_path: Path) -> None:
    row = load(built.folder, "relations", tmp_path)["test"][0]
    raw, marked = row["images"]
    frame = read_frames(small_release / row["video_id"] / "video.mp4", row["frame_indices"])[0]
    assert np.abs(np.asarray(raw, dtype=int) - frame).max() <= 8, "JPEG of a flat frame"
    expected = Relations().images(from_row(row), [frame])[1]
    assert np.array_equal(np.asarray(marked), np.asarray(expected)), "the overlay is stored without loss"


def test_the_split_is_by_video(built: BuiltDataset) -> None:
    for config in built.configs:
        files = {split: built.folder.glob(f"{config.name}/{split}-*.parquet") for split in ("train", "test")}
        train, test = ({v for file in of for v in pq.read_table(file)["video_id"].to_pylist()} for of in files.values())
        assert not train & test
        assert len(train) == len(test) == 3, config.name


def test_graph_tables_hold_the_graph_in_a_shard_a_video(built: BuiltDataset, tmp_path: Path) -> None:
    instances = load(built.folder, "graph_instances", tmp_path)["train"]
    assert len(instances) == 3 * 170
    assert instances[0]["bbox"] == [4.0, 4.0, 40.0, 50.0]
    assert instances[0]["segmentation"]["size"] == [64, 96]
    assert len(list((built.folder / "graph_instances").glob("train-*-of-00003.parquet"))) == 3
    relations = load(built.folder, "graph_relations", tmp_path)["test"]
    assert relations[0]["value"] == "part of"
    assert (relations[0]["start"], relations[0]["end"]) == (0, 40)
    frames = load(built.folder, "graph_frames", tmp_path)["train"]
    assert frames[0]["instances"] == 4


def test_the_same_release_gives_the_same_bytes_anywhere(
    built: BuiltDataset, small_release: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "moved"
    for folder in sorted(small_release.iterdir(), reverse=True):
        shutil.copytree(folder, moved / folder.name)
    again = build(moved, tmp_path / "again", configs=["relations"], sampling=SAMPLING, cache=False)
    assert named(again).content_hash == named(built).content_hash
    name = "frozen/relations.jsonl"
    assert (again.folder / name).read_bytes() == (built.folder / name).read_bytes()
    for shard in sorted((again.folder / "relations").iterdir()):
        assert shard.read_bytes() == (built.folder / "relations" / shard.name).read_bytes()


PROGRAM = """
import sys
from datasets import load_dataset
row = load_dataset("barista", "relations")["test"][0]
assert "barista_bench" not in sys.modules
print(row["example_id"], [image.size for image in row["images"]])
"""


def in_folder(folder: Path, cache: Path) -> str:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.full
def test_load_dataset_by_name_from_any_folder_after_build(small_release: Path, tmp_path: Path) -> None:
    program = (
        "import sys; from barista_bench.data.folder import build;"
        "build(sys.argv[1], sys.argv[2], configs=['relations', 'graph_steps'], sampling={'frame_step': 10})"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    subprocess.run([sys.executable, "-c", program, small_release, tmp_path / "out"], env=environment, check=True)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "relation_extraction:" in in_folder(empty, tmp_path / "home")


@pytest.mark.full
def test_registered_the_name_loads_straight_from_a_release(
    registered: object, small_release: Path, tmp_path: Path, datasets_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = str(small_release)
    loaded = load_dataset("barista", "relations", source=source, sampling=SAMPLING)
    assert (len(loaded["train"]), len(loaded["test"])) == (12, 12)
    stream = load_dataset("barista", "graph_steps", source=source, streaming=True)["test"]
    assert next(iter(stream))["name"] == "Extract coffee"
    divided = load_dataset("barista", "graph_instances", source=source, num_proc=2)
    assert len(divided["train"]) == 3 * 170
    with pytest.raises(ConfigError, match="no config 'relation'"):
        load_dataset("barista", "relation", source=source)


def test_unregistering_gives_datasets_its_own_function_back() -> None:
    before = datasets.load.load_dataset_builder
    register()
    try:
        assert datasets.load.load_dataset_builder is not before
    finally:
        unregister()
    assert datasets.load.load_dataset_builder is before


@pytest.fixture(scope="module")
def linked(small_release: Path, tmp_path_factory: pytest.TempPathFactory) -> BuiltDataset:
    out = tmp_path_factory.mktemp("linked") / "barista"
    return build(small_release, out, configs=["relations"], frames="linked", sampling=SAMPLING, cache=False)


def test_linked_rows_hold_references_decoded_on_access(
    built: BuiltDataset, linked: BuiltDataset, small_release: Path, tmp_path: Path, decode_count: Callable[[], int]
) -> None:
    assert named(linked).content_hash == named(built).content_hash
    plain: Dataset = load(linked.folder, "relations", tmp_path)["test"]
    assert plain[0]["frames"] == {"video": f"{plain[0]['video_id']}/video.mp4", "indices": plain[0]["frame_indices"]}
    rows = link_frames(plain, root=small_release)
    before = decode_count()
    assert len(rows.filter(lambda label: label != "", input_columns="label")) == 12
    lazy = rows[0]["frames"]
    assert decode_count() == before, "nothing was decoded so far"
    expected = read_frames(small_release / plain[0]["frames"]["video"], plain[0]["frames"]["indices"])
    assert np.array_equal(lazy.array(), expected)
    assert decode_count() == before + 1


@pytest.mark.parametrize("way", ["folder", "cache", "release"])
def test_registered_linked_frames_decode_when_touched_and_are_tensors_as_frozen_pictures_are(
    way: str,
    registered: object,
    built: BuiltDataset,
    small_release: Path,
    tmp_path: Path,
    offline: Path,
    decode_count: Callable[[], int],
) -> None:
    settings = {"frames": "linked", "sampling": SAMPLING}
    if way == "release":
        loaded = load_dataset("barista", "relations", source=str(small_release), **settings)
    else:
        made = build(small_release, tmp_path / "out", configs=["relations", "graph_steps"], **settings)
        name = "barista" if way == "cache" else str(made.folder)
        loaded = load_dataset(name, "relations")
        assert load_dataset(name, "graph_steps", split="test")[0]["name"] == "Extract coffee"
        assert len(open_examples(name, "barista", "relations", root=small_release)) == 24
    before = decode_count()
    lazy = loaded["test"][0]["frames"]
    assert decode_count() == before, "nothing was decoded so far"
    stored = load(built.folder, "relations", tmp_path)["test"]
    (linked,), (frozen, _) = (
        rows.with_format("torch")[0][column] for rows, column in ((loaded["test"], "frames"), (stored, "images"))
    )
    assert (linked.shape, linked.dtype) == (frozen.shape, frozen.dtype) == ((3, 64, 96), torch.uint8)
    assert np.array_equal(linked.permute(1, 2, 0).numpy(), lazy[0])


def test_linked_frames_stream_and_come_in_lists(
    registered: object, linked: BuiltDataset, small_release: Path, tmp_path: Path
) -> None:
    folder, settings = str(linked.folder), {"name": "relations", "cache_dir": str(tmp_path)}
    splits = [
        *load_dataset(folder, split=["test", "train"], **settings),
        load_dataset(folder, streaming=True, **settings)["test"],
    ]
    assert [next(iter(split))["frames"].root for split in splits] == [str(small_release)] * 3


def test_a_bad_video_costs_its_examples_and_undrawable_marks_cost_one_and_both_are_counted(tmp_path: Path) -> None:
    content = document()
    content["annotations"][0] = {**content["annotations"][0], "segmentation": {"counts": "0", "size": [64, 96]}}
    for name in ("a", "b", "c", "d"):
        write_release(tmp_path / "root", name, content if name == "a" else None)
    (tmp_path / "root/b/video.mp4").write_bytes(b"")
    (tmp_path / "root/c/video.mp4").unlink()
    made = build(tmp_path / "root", tmp_path / "out", configs=["relations"], sampling=SAMPLING, cache=False)
    config = named(made)
    assert sum(config.rows.values()) == 7
    videos = [lost.example_id.split(":")[1] for lost in config.lost]
    assert Counter(videos) == {"a": 1, "b": 4, "c": 4}
    assert made.lost_videos == ("b", "c"), "of which no example is left"
    assert "cannot be drawn: the object has no usable mask" in config.lost[videos.index("a")].reason
    assert len(read_manifest(made.folder)["configs"][0]["lost"]) == 9


def test_a_split_that_lost_all_its_examples_is_left_out_and_a_build_that_lost_all_is_an_error(tmp_path: Path) -> None:
    write_release(tmp_path / "root", "a", video=False)
    settings = {"configs": ["relations"], "sampling": SAMPLING, "cache": False}
    with pytest.raises(DataError, match=r"every example was lost, first: .*video.mp4: missing"):
        build(tmp_path / "root", tmp_path / "out", **settings)
    assert not (tmp_path / "out").exists()
    write_release(tmp_path / "root", "b")
    made = build(tmp_path / "root", tmp_path / "out", **settings)
    assert list(named(made).rows.values()) == [4]
    assert sum(map(len, load(made.folder, "relations", tmp_path).values())) == 4


def test_a_release_without_a_usable_video_is_refused_and_a_table_without_a_row_left_out(tmp_path: Path) -> None:
    write_release(tmp_path / "bad", "v1", b"{")
    for configs in ((), ["graph_frames"], ["relations", "graph_steps"]):
        with pytest.raises(DataError, match=r"none of its 1 videos can be used. First: .*v1.*not valid JSON.*Fix"):
            build(tmp_path / "bad", tmp_path / "out", configs=configs, cache=False)
    content = document()
    content["process_steps"] = []
    write_release(tmp_path / "root", "v1", content)
    settings = {"sampling": SAMPLING, "cache": False}
    made = build(tmp_path / "root", tmp_path / "out", configs=["relations", "graph_steps"], **settings)
    assert ([config.name for config in made.configs], made.empty) == (["relations"], ("graph_steps",))
    assert not (made.folder / "graph_steps").exists()
    with pytest.raises(DataError, match="graph_steps: the release has none"):
        build(tmp_path / "root", tmp_path / "out", configs=["graph_steps"], **settings)


def test_overrides_hold_for_all_tasks_or_for_one(small_release: Path, tmp_path: Path) -> None:
    for sampling, rows in (({"limit": 5}, 5), ({"relations": {"limit": 7, "frame_step": 10}, "limit": 5}, 7)):
        made = build(small_release, tmp_path / "out", configs=["relations"], sampling=sampling, dry_run=True)
        assert sum(named(made).rows.values()) == rows


def test_settings_that_cannot_be_meant_are_refused(small_release: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no config 'relation'"):
        build(small_release, tmp_path / "out", configs=["relation"])
    with pytest.raises(ConfigError, match=r"num_proc: .* 1, got 0"):
        build(small_release, tmp_path / "out", configs=["relations"], cache=False, num_proc=0)


def test_a_dry_run_counts_the_examples_of_a_build_and_writes_nothing(
    built: BuiltDataset, small_release: Path, tmp_path: Path
) -> None:
    drawn = named(build(small_release, tmp_path / "out", sampling=SAMPLING, dry_run=True))
    assert (drawn.content_hash, drawn.rows) == (named(built).content_hash, named(built).rows)
    assert drawn.groups["preparation"] == {"capsule": 8, "portafilter": 8, "fully automatic": 8}
    assert sum(drawn.labels.values()) == 24
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
def test_only_our_dataset_without_other_files_is_replaced(small_release: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for _ in range(2):
        build(small_release, out, configs=["relations"], sampling=SAMPLING, cache=False)
    (out / "log.jsonl").write_text("hours of work")
    with pytest.raises(ConfigError, match=r"holds 'log\.jsonl', which is not ours"):
        build(small_release, out, configs=["relations"], sampling=SAMPLING, cache=False)
    (out / "barista_bench.json").unlink()
    with pytest.raises(ConfigError, match="is not a dataset of ours"):
        build(small_release, out)
    assert (out / "log.jsonl").read_text() == "hours of work"


@pytest.mark.parametrize(
    "sampling",
    [
        {"seed": "1"}, {"seed": [1]}, {"frame_range": [0]}, {"frame_range": [-5, 3]}, {"frame_range": ["a", 3]},
        {"videos": "v0"}, {"splits": "test"}, {"limit": True}, {"frame_step": 0.5}, {"frame_step": None},
        {"step": 5}, {"relations": {"step": 5}}, {"relations": 5},
    ],
)  # fmt: skip
def test_wrong_overrides_are_refused(small_release: Path, tmp_path: Path, sampling: dict) -> None:
    with pytest.raises(ConfigError, match="Fix"):
        build(small_release, tmp_path / "out", configs=["relations"], sampling=sampling, dry_run=True)


def test_the_card_describes_the_folder_and_no_file_names_this_machine(built: BuiltDataset, small_release: Path) -> None:
    card = (built.folder / "README.md").read_text()
    assert str(named(built).content_hash) in card
    assert "license: cc-by-nc-4.0" in card
    assert "{" not in card.split("## How it was made")[1].split("## Protocols")[0]
    assert all(f"`{config.name}`" in card for config in built.configs)
    for path in [built.folder / "README.md", built.folder / "barista_bench.json", *built.folder.glob("frozen/*")]:
        assert str(small_release) not in path.read_text()


def test_real_clips_build(real_release: Path, tmp_path: Path) -> None:
    made = build(real_release, tmp_path / "barista", configs=["relations", "graph_steps"], cache=False)
    assert sum(named(made).rows.values()) == 5
    problems = json.loads((made.folder / "barista_bench.json").read_text())["problems"]
    assert problems == {"errors": 0, "warnings": 0, "lost_videos": 0}


KIND = pa.struct(
    {
        "name": pa.string(),
        "count": pa.int64(),
        "share": pa.float64(),
        "known": pa.bool_(),
        "box": pa.list_(pa.float64(), 2),
        "parts": pa.list_(pa.struct({"label": pa.string(), "at": pa.list_(pa.int32())})),
    }
)
TEXTS = st.sampled_from(["", "cup", "über", "coffee machine"])
NUMBERS = st.floats(-1e6, 1e6)
PARTS = st.fixed_dictionaries({"label": st.none() | TEXTS, "at": st.none() | st.lists(st.integers(0, 9), max_size=3)})
ROWS = st.fixed_dictionaries(
    {
        "name": st.none() | TEXTS,
        "count": st.none() | st.integers(-(2**63), 2**63 - 1),
        "share": st.none() | NUMBERS,
        "known": st.none() | st.booleans(),
        "box": st.none() | st.lists(NUMBERS, min_size=2, max_size=2),
        "parts": st.none() | st.lists(st.none() | PARTS, max_size=3),
    }
)


@settings(max_examples=200)
@given(st.lists(st.none() | ROWS, max_size=8), st.integers(0, 4), st.integers(0, 8))
def test_values_equal_to_pylist(rows: list[Any], start: int, count: int) -> None:
    array = pa.array(rows, KIND).slice(min(start, len(rows)), count)
    assert json_values(array, {}) == array.to_pylist()


def test_equal_texts_of_all_rows_are_one_object() -> None:
    texts: dict[str, str] = {}
    first, second = (json_values(pa.array([{"name": "a cup"}] * 2), texts) for _ in range(2))
    assert len({id(row["name"]) for row in (*first, *second)}) == 1


@pytest.mark.parametrize(
    "array",
    [pa.array([1.0, float("nan")]), pa.array([[float("inf")]]), pa.array([b"\xff"]), pa.array([1], pa.timestamp("s"))],
    ids=str,
)
def test_values_outside_json_are_refused(array: pa.Array) -> None:
    with pytest.raises((TypeError, ValueError)):
        json_values(array, {})
