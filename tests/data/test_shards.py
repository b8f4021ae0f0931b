"""Sets in several files: the number, size and order of files, and the reader who divides them."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset, load_dataset
from torch.utils.data import DataLoader

from barista_bench.data import folder as folders
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from tests.conftest import MadeOnce

SETTINGS = {"configs": ["relations"], "sampling": {"frame_step": 10}, "cache": False}


@pytest.fixture(scope="module", autouse=True)
def _four_files() -> Iterator[None]:
    """As many as users get."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folders, "FEWEST_SHARDS", 4)
        yield


@pytest.fixture(scope="module")
def built(small_release: Path, made_once: MadeOnce) -> Path:
    return made_once("shards/barista", lambda out: build(small_release, out, **SETTINGS))


def shards(folder: Path, split: str = "test") -> list[Path]:
    return sorted((folder / "relations").glob(f"{split}-*.parquet"))


def ids(files: list[Path]) -> list[str]:
    return [name for file in files for name in pq.read_table(file, partitioning=None)["example_id"].to_pylist()]


def test_a_split_is_four_files_with_page_indices_and_no_row_is_in_two(
    built: Path, small_release: Path, tmp_path: Path
) -> None:
    files = shards(built)
    assert [file.name for file in files] == [f"test-0000{index}-of-00004.parquet" for index in range(4)]
    assert len(set(ids(files))) == len(ids(files)) == 12
    for file in files:
        group = pq.ParquetFile(file).metadata.row_group(0)
        assert all(group.column(index).has_offset_index for index in range(group.num_columns))
    few = build(small_release, tmp_path / "barista", **{**SETTINGS, "sampling": {"limit": 3}})
    assert {split: len(shards(few.folder, split)) for split in few.configs[0].rows} == few.configs[0].rows, (
        "a file a row"
    )


def test_no_file_is_larger_than_the_limit_of_uneven_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MAX_SHARD_BYTES", 400_000)
    rng = random.Random(0)
    rows = Dataset.from_dict({"picture": [rng.randbytes(size) for size in [10_000] * 30 + [150_000] * 6]})
    pieces = folders._shards(rows)
    assert [row for piece in pieces for row in piece["picture"]] == rows["picture"][:]
    for piece in pieces:
        piece.to_parquet(tmp_path / "piece.parquet")
        assert (tmp_path / "piece.parquet").stat().st_size <= 400_000


@pytest.mark.full
def test_rows_are_the_same_in_the_same_order_in_any_number_of_files(
    built: Path, small_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "MAX_SHARD_BYTES", 10_000)
    made = build(small_release, tmp_path / "barista", **SETTINGS)
    assert len(shards(made.folder)) > 4
    assert ids(shards(made.folder)) == ids(shards(built))
    before, after = (open_examples(folder, "barista", "relations") for folder in (built, made.folder))
    assert [item.media for item in before] == [item.media for item in after]
    assert before.content_hash == after.content_hash


def test_a_folder_with_one_file_a_split_is_read_as_before(built: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(built, tmp_path / "barista"))
    for split in ("train", "test"):
        tables = [pq.read_table(file, partitioning=None) for file in shards(copied, split)]
        for file in shards(copied, split):
            file.unlink()
        pq.write_table(pa.concat_tables(tables), copied / f"relations/{split}-00000-of-00001.parquet")
    before, after = (open_examples(folder, "barista", "relations") for folder in (built, copied))
    assert [item.media for item in before] == [item.media for item in after]
    assert before.examples == after.examples


@pytest.mark.full
def test_four_processes_and_four_streaming_workers_give_each_row_once(built: Path, tmp_path: Path) -> None:
    expected = ids(shards(built))
    loaded = load_dataset(str(built), "relations", split="test", num_proc=4, cache_dir=str(tmp_path))
    assert loaded["example_id"][:] == expected
    stream = load_dataset(str(built), "relations", split="test", streaming=True).select_columns(["example_id"])
    seen = [row["example_id"] for row in DataLoader(stream, batch_size=None, num_workers=4)]
    assert sorted(seen) == sorted(expected)
