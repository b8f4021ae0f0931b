"""Content distinguishes entries of the `datasets` cache; the plain name is the newest, and a line says so."""

import logging
import os
from pathlib import Path

import pytest
from datasets import DatasetDict, load_dataset

from barista_bench.data.dataset import open_examples
from barista_bench.data.dataset_cache import warn_of_other_entries
from barista_bench.data.folder import build
from barista_bench.data.rows import FramesMode
from tests.releases import document, write_release


def make(source: Path, frames: FramesMode = "frozen", step: int = 10) -> None:
    build(source, "out", configs=["relations"], frames=frames, sampling={"frame_step": step})


def columns(loaded: DatasetDict) -> set[str]:
    return {"images", "frames"} & set(loaded["test"].column_names)


def entries(cache: Path) -> list[str]:
    """Ids, with the first built at the front."""
    infos = cache.glob("barista/relations-entry=*/*/*/dataset_info.json")
    return [info.parent.name for info in sorted(infos, key=lambda info: info.stat().st_mtime)]


def test_the_plain_name_is_the_newest_and_every_entry_has_its_own_name(small_release: Path, offline: Path) -> None:
    make(small_release, "frozen")
    make(small_release, "linked")
    frozen, linked = entries(offline)
    assert (frozen.partition("-")[0], linked.partition("-")[0]) == ("frozen", "linked")
    assert columns(load_dataset("barista", "relations")) == {"frames"}
    assert columns(load_dataset("barista", "relations", entry=frozen)) == {"images"}
    assert columns(load_dataset("barista", "relations", entry=linked)) == {"frames"}


def test_the_same_examples_asked_by_another_protocol_are_another_entry(small_release: Path, offline: Path) -> None:
    asked = []
    for protocol in ("release", "paper"):
        build(small_release, "out", configs=["hand_object"], sampling={"limit": 4}, options={"protocol": protocol})
        rows = load_dataset("barista", "hand_object", split="test").sort("example_id")
        asked.append((rows["example_id"][:], rows["messages"][:]))
    assert asked[0][0] == asked[1][0]
    assert asked[0][1] != asked[1][1], "the paper asks without a text beside the frame"


def test_building_and_reading_say_which_entry_it_is_since_when_and_which_others_there_are(
    small_release: Path, offline: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def reads() -> None:
        open_examples("barista", "barista", "relations", root=small_release)

    make(small_release, "frozen")
    reads()
    assert "Others" not in caplog.text
    for once in (lambda: make(small_release, "linked"), reads):
        caplog.clear()
        once()
        frozen, linked = entries(offline)
        (line,) = [record.getMessage() for record in caplog.records if "Others" in record.getMessage()]
        assert line.startswith(f'load_dataset("barista", "relations") is the entry {linked} (built 20')
        assert f"Others: {frozen} (built 20" in line
        assert f"entry='{frozen}'" in line


@pytest.mark.full
def test_results_kept_beside_older_rows_do_not_make_them_the_newest(small_release: Path, offline: Path) -> None:
    make(small_release, step=10)
    make(small_release, step=20)
    (older, _) = entries(offline)
    for path in list(offline.glob(f"barista/*/*/{older}")):
        os.utime(path, (2**32, 2**32))  # what `map` over the older rows does, later
    assert sum(map(len, load_dataset("barista", "relations").values())) == 12


@pytest.mark.full
def test_an_entry_that_is_built_again_is_the_newest_again(
    small_release: Path, offline: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for step in (10, 20, 10):
        make(small_release, step=step)
        assert sum(map(len, load_dataset("barista", "relations").values())) == 6 * 40 // step
    assert len(entries(offline)) == 2
    caplog.clear()
    for path in list(offline.glob("barista/relations/*/frozen-*")):
        path.unlink()
    with caplog.at_level(logging.WARNING):
        warn_of_other_entries("barista", ["relations"])
    assert not caplog.records, "the plain name means nothing"


def test_a_registered_release_is_read_again_after_a_change(tmp_path: Path, offline: Path, registered: None) -> None:
    root = tmp_path / "release"
    for name in ("a", "b"):
        write_release(root, name, video=False)
    load_dataset("barista", "graph_steps", source=str(root))
    content = document()
    content["process_steps"][0]["display_name"] = "Pour milk"
    write_release(root, "a", content, video=False)
    loaded = load_dataset("barista", "graph_steps", source=str(root))
    assert {row["video_id"]: row["name"] for split in loaded.values() for row in split} == {
        "a": "Pour milk",
        "b": "Extract coffee",
    }
