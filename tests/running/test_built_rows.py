"""A built folder is read column by column; `datasets` is called for pictures, and says the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import datasets
import pyarrow.parquet as pq
import pytest

from barista_bench.builders.card import MANIFEST
from barista_bench.errors import ConfigError, DataError
from barista_bench.running.dataset import open_examples
from barista_bench.running.runner import run
from barista_bench.running.scoring import score


def opened(folder: Path, task: str = "relations", **settings: object):
    return open_examples(folder, "barista", task, **settings)


@pytest.fixture
def copied(dataset: Path, tmp_path: Path, datasets_cache: Path) -> Path:
    return Path(shutil.copytree(dataset, tmp_path / "copied"))


@pytest.mark.parametrize("settings", [{}, {"limit": 5}, {"split": "test"}])
def test_a_folder_and_the_same_without_a_manifest_have_the_same_examples_and_pictures(
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
    with pytest.raises(ConfigError, match=r"no split 'validation'. Remedy: use one of all, "):
        opened(copied, split="validation")


def test_rows_of_another_task_are_refused(copied: Path) -> None:
    (copied / "relations").rename(copied / "activity")
    with pytest.raises(DataError, match=r"row 0 .* is of barista/relations, not of barista/activity"):
        opened(copied, "activity")


@pytest.mark.parametrize("column", ["position", "images"])
def test_a_folder_without_a_column_is_refused(copied: Path, column: str) -> None:
    for file in copied.glob("relations/*.parquet"):
        pq.write_table(pq.read_table(file, partitioning=None).drop_columns([column]), file)
    with pytest.raises(DataError, match=r"Remedy: build"):
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
