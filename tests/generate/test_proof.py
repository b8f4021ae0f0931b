"""Every generated item proved from the raw annotation file, by an evaluator that the generator knows nothing of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barista_bench.generate.generator import generate
from tests.generate.raw_proof import proved
from tests.generate.raw_video import RawVideo

FAMILIES = ("vista", "handyvqa", "tog_bench", "egocot")

Line = dict[str, Any]


def lines_of(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def faults(source: Path, folder: Path, families: tuple[str, ...]) -> Iterator[str]:
    """What the raw files do not prove of the items in a generated folder."""
    videos: dict[str, RawVideo] = {}
    for family in families:
        for item in lines_of(folder / f"{family}.items.jsonl"):
            video_id = item["video_id"]
            if video_id not in videos:
                videos[video_id] = RawVideo(source / video_id / "coco_annotation.json")
            for said, expected in said_of(item):
                truth = proved(videos[video_id], said)
                if truth is not expected:
                    yield f"{family}/{item['id']}: {json.dumps(said)} should be {expected}, is {truth}"


def said_of(item: Line) -> Iterator[tuple[Line, bool]]:
    """(statement, what it must be) of all that is given and chosen from."""
    yield from ((said, True) for said in item["given"])
    yield from ((choice["statement"], at in item["correct"]) for at, choice in enumerate(item["choices"]))


@pytest.fixture(scope="module")
def kitchen_sample(tmp_path_factory: pytest.TempPathFactory, small_kitchen: Path) -> Path:
    out = tmp_path_factory.mktemp("proof") / "sample"
    generate(small_kitchen, out, ("tog_bench", "egocot"), per_subtask=4)
    return out


def test_a_sample_of_the_kitchen_is_proved(small_kitchen: Path, kitchen_sample: Path) -> None:
    assert not list(faults(small_kitchen, kitchen_sample, ("tog_bench", "egocot")))


def test_a_wrong_choice_that_is_called_right_is_no_proof(small_kitchen: Path, kitchen_sample: Path) -> None:
    items = lines_of(kitchen_sample / "egocot.items.jsonl")
    videos = {item["video_id"]: RawVideo(small_kitchen / item["video_id"] / "coco_annotation.json") for item in items}
    for item in items:
        for at, choice in enumerate(item["choices"]):
            assert proved(videos[item["video_id"]], choice["statement"]) is (at in item["correct"])


@pytest.mark.full
def test_all_of_the_kitchen_is_proved(small_kitchen: Path, tmp_path: Path) -> None:
    generate(small_kitchen, tmp_path / "all", FAMILIES)
    assert not list(faults(small_kitchen, tmp_path / "all", FAMILIES))


@pytest.mark.full
def test_all_of_the_real_clips_is_proved(real_release: Path, tmp_path: Path) -> None:
    generate(real_release, tmp_path / "all", FAMILIES)
    assert not list(faults(real_release, tmp_path / "all", FAMILIES))


@pytest.mark.full
def test_generating_again_on_two_processes_gives_the_same_bytes(small_kitchen: Path, tmp_path: Path) -> None:
    for name, processes in (("once", 1), ("again", 1), ("two", 2)):
        generate(small_kitchen, tmp_path / name, FAMILIES, per_subtask=10, num_proc=processes)
    contents = [
        {
            str(path.relative_to(tmp_path / name)): path.read_bytes()
            for path in (tmp_path / name).rglob("*.*")
            if path.is_file()
        }
        for name in ("once", "again", "two")
    ]
    assert contents[0]
    assert contents[0] == contents[1] == contents[2]
