"""What the prior knows: the references of other videos, whatever their ids."""

from pathlib import Path

import pytest

from barista_bench.benchmarks import get_task
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.runs.ask.catalog import _OtherVideos
from tests.releases import document, write_release

TASK = get_task("barista", "relations")


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """`again` is the video of `first` under another id; `other` has bytes of its own."""
    for name in ("again", "first", "other"):
        write_release(tmp_path / "release", name, document())
    with (tmp_path / "release/other/video.mp4").open("ab") as file:
        file.write(b"\0\0\0\x08free")
    return tmp_path / "release"


def others_of_first(data: Path, root: Path | None = None) -> set[str]:
    examples = open_examples(data, "barista", "relations", root=root)
    asked = next(example for example in examples.examples if example.video_id == "first")
    return {example.video_id for example in _OtherVideos([(TASK, examples)]).of(TASK, asked)}


def test_a_video_under_another_id_is_no_other_video(release: Path, tmp_path: Path) -> None:
    built = build(release, tmp_path / "data", configs=["relations"], sampling={"frame_step": 20}, cache=False).folder
    assert others_of_first(built) == {"other"}
    assert others_of_first(built / "frozen/relations.jsonl", root=release) == {"other"}


def test_where_a_video_is_missing_ids_tell_them_apart_with_a_warning(release, tmp_path, caplog):
    built = build(release, tmp_path / "data", configs=["relations"], sampling={"frame_step": 20}, cache=False).folder
    (release / "other/video.mp4").unlink()
    assert others_of_first(built / "frozen/relations.jsonl", root=release) == {"again", "other"}
    assert "by their ids alone" in caplog.text
