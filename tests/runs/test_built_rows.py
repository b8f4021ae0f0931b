"""A built folder is read column by column; `datasets` is called for pictures, and says the same."""

import shutil
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from barista_bench.data import rows
from barista_bench.data.dataset import open_examples
from barista_bench.data.manifest import MANIFEST
from barista_bench.errors import ConfigError, DataError
from barista_bench.runs.score.scoring import score
from tests.one_run import run


def opened(folder: Path, task: str = "relations", **settings: object):
    return open_examples(folder, "barista", task, **settings)


@pytest.fixture
def copied(dataset: Path, tmp_path: Path, datasets_cache: Path) -> Path:
    return Path(shutil.copytree(dataset, tmp_path / "copied"))


def with_column(folder: Path, name: str, value: object) -> None:
    """Put one value into every row of a column of relations."""
    for file in folder.glob("relations/*.parquet"):
        table = pq.read_table(file, partitioning=None)
        pq.write_table(table.set_column(table.column_names.index(name), name, pa.array([value] * len(table))), file)


@pytest.mark.parametrize("settings", [{}, {"limit": 5}, {"split": "test"}])
def test_a_folder_without_its_manifest_has_the_same_examples_and_pictures(
    copied: Path, settings: dict[str, object]
) -> None:
    ours = opened(copied, **settings)
    (copied / MANIFEST).unlink()
    theirs = opened(copied, **settings)
    assert ours.examples == theirs.examples
    assert ours.content_hash == theirs.content_hash
    assert [item.media for item in ours] == [item.media for item in theirs]
    assert len(ours) > 0


def test_scoring_copies_no_picture_into_the_cache(dataset: Path, tmp_path: Path, datasets_cache: Path) -> None:
    run(dataset, tmp_path / "run", model="oracle")
    shutil.rmtree(datasets.config.HF_DATASETS_CACHE)
    score(tmp_path / "run")
    assert not datasets_cache.exists()


def test_a_broken_file_is_named(copied: Path) -> None:
    file = next(copied.glob("relations/*.parquet"))
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(DataError, match=rf"{file.name}: cannot be read"):
        opened(copied)


def test_an_unknown_config_and_an_unknown_split_are_refused(copied: Path) -> None:
    with pytest.raises(DataError, match="no config 'referring'"):
        opened(copied, "referring")
    with pytest.raises(ConfigError, match=r"no split 'validation'. Fix: use --split all, or one of "):
        opened(copied, split="validation")


def test_rows_of_another_task_are_refused(copied: Path) -> None:
    (copied / "relations").rename(copied / "activity")
    with pytest.raises(DataError, match=r"row 0 .* is of barista/relations, not of barista/activity"):
        opened(copied, "activity")


@pytest.mark.parametrize("column", ["position", "images"])
def test_a_folder_without_a_column_is_refused(copied: Path, column: str) -> None:
    for file in copied.glob("relations/*.parquet"):
        pq.write_table(pq.read_table(file, partitioning=None).drop_columns([column]), file)
    with pytest.raises(DataError, match=r"Fix: (build|name a dataset that `build` wrote)"):
        opened(copied)[0]


def test_a_folder_that_changes_while_it_is_read_is_noticed(copied: Path) -> None:
    examples = opened(copied)
    for file in copied.glob("relations/*.parquet"):
        table = pq.read_table(file, partitioning=None)
        names = table["example_id"].to_pylist()
        index = table.column_names.index("example_id")
        pq.write_table(table.set_column(index, "example_id", [[f"{name}x" for name in names]]), file)
    with pytest.raises(DataError, match="was changed while it was read"):
        examples[0]


def test_pictures_come_from_the_file_and_not_from_another_that_looks_the_same(copied: Path, tmp_path: Path) -> None:
    genuine = [item.media for item in opened(copied)]
    other = Path(shutil.copytree(copied, tmp_path / "elsewhere" / copied.name))
    file = max(other.glob("relations/test-*.parquet"))
    table = pq.read_table(file, partitioning=None)
    swapped = table["images"].take(list(reversed(range(len(table)))))
    pq.write_table(table.set_column(table.column_names.index("images"), "images", swapped), file)
    assert [item.media for item in opened(other)] != genuine
    assert [item.media for item in opened(copied)] == genuine
    shutil.copyfile(file, copied / "relations" / file.name)  # replaced in place
    assert [item.media for item in opened(copied)] == [item.media for item in opened(other)]


def test_a_folder_may_be_called_as_patterns_are(copied: Path, tmp_path: Path) -> None:
    moved = copied.rename(tmp_path / "data [a-z]*")
    assert len([item.media for item in opened(moved)]) > 0


def test_a_missing_file_of_a_split_is_noticed(copied: Path) -> None:
    (copied / "relations/test-00001-of-00002.parquet").unlink()
    with pytest.raises(DataError, match="1 of 2 files of test are here"):
        opened(copied)


def test_columns_of_any_size_are_not_read(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MAX_COLUMNS", 1000)
    with pytest.raises(DataError, match="over 1000 bytes without pictures"):
        opened(copied)


def test_columns_that_no_example_has_are_not_looked_at(copied: Path) -> None:
    file = min(copied.glob("relations/*.parquet"))
    table = pq.read_table(file, partitioning=None)
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    pq.write_table(table.append_column("foreign", pa.concat_arrays([broken] * len(table))), file)
    assert len(opened(copied)) > 0


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *[("position", value) for value in (None, [1], 1.5, "1")],
        *[(name, value) for name in ("example_id", "video_id", "label") for value in (None, 1, ["x"], {"a": 1})],
        *[("frame_indices", value) for value in (None, 3, [float("inf")], ["a"], [])],
        *[(name, value) for name in ("inputs", "target", "metadata") for value in (None, 1, "x")],
    ],
)
def test_a_column_of_another_kind_is_refused_in_words(copied: Path, column: str, value: object) -> None:
    with_column(copied, column, value)
    with pytest.raises(DataError, match="Fix: build"):
        opened(copied)


@pytest.mark.parametrize("value", [None, 1, "x", [b"x"], {"bytes": b"x"}, [{"path": "x"}], [{"bytes": 5}], [None], []])
def test_a_missing_picture_costs_its_example(copied: Path, value: object) -> None:
    with_column(copied, "images", value)
    examples = opened(copied)
    with pytest.raises(DataError, match="a picture is missing"):
        examples[0]


@pytest.mark.parametrize(
    "frames",
    [
        *(None, "x", [1], {"video": "v0/video.mp4"}, {"video": None, "indices": [0]}, {"video": 1, "indices": [0]}),
        *({"video": "v0/video.mp4", "indices": wrong} for wrong in (None, [None], ["a"], [float("inf")], [10**6])),
        {"video": "v0/video.mp4", "indices": [0], "backend": "decord"},
    ],
)
def test_bad_references_to_frames_cost_their_example(
    linked_dataset: Path, small_release: Path, tmp_path: Path, frames: object
) -> None:
    copied = Path(shutil.copytree(linked_dataset, tmp_path / "copied"))
    with_column(copied, "frames", frames)
    examples = opened(copied, root=small_release)
    with pytest.raises(DataError, match="Fix: build the dataset again"):
        examples[0]
