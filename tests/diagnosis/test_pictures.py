"""Aids as pictures: frames that matter, parts in full size, numbered marks."""

import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from barista_bench.aids.facts import elsewhere
from barista_bench.aids.levels import Picture
from barista_bench.aids.pictures import draw_picture
from barista_bench.aids.task_aids import Aid
from barista_bench.aids.texts import AidBook
from barista_bench.core.boxes import DEFAULT_BOX_FORMAT
from barista_bench.core.example import Example
from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from barista_bench.data.dataset import BuiltExamples
from barista_bench.data.folder import build
from barista_bench.diagnosis.running import DiagnoseConfig, plan_tasks
from barista_bench.errors import ConfigError
from barista_bench.models import Completion, GenerationConfig, ModelIdentity, Request
from barista_bench.runs.ask import runner
from barista_bench.runs.ask.aiding import AIDS_FILE, insert_parts
from barista_bench.training.exporting import PARQUET, export_training_set
from tests.diagnosis.conftest import SAMPLING, Aids

FRAME = np.random.default_rng(7).integers(0, 255, (90, 160, 3), dtype=np.uint8)


class Watcher:
    """Keeps every request, and answers nothing."""

    def __init__(self) -> None:
        self.identity, self.box_format, self.batch_size = ModelIdentity("watcher"), DEFAULT_BOX_FORMAT, 4
        self.requests: list[Request] = []

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion]]:
        for request in requests:
            request.check_images()
        self.requests += requests
        return [[Completion("[]")] for _ in requests]


@pytest.fixture
def watcher(monkeypatch: pytest.MonkeyPatch) -> Watcher:
    model = Watcher()
    monkeypatch.setattr(runner, "load_model", lambda *_: model)
    return model


def test_a_part_is_cut_in_the_frames_own_resolution() -> None:
    picture = Picture(3, crop=(40.0, 22.5, 80.0, 45.0))
    cut = np.asarray(draw_picture(picture, FRAME, (160, 90)))
    assert np.array_equal(cut, FRAME[22:45, 40:80])
    assert draw_picture(picture, FRAME, (80, 45)).size == (80, 45), "boxes of a graph half as large"


def test_marks_change_only_their_boxes_and_numbers() -> None:
    marked = np.asarray(draw_picture(Picture(0, marks=((1, (10.0, 10.0, 60.0, 60.0)),)), FRAME, (160, 90)))
    changed = (marked != FRAME).any(axis=2)
    assert changed[10:60, 10:60].mean() > 0.9
    changed[10:60, 10:60] = False
    assert not changed.any()


def test_an_area_elsewhere_is_as_large_and_shows_little_of_the_evidence() -> None:
    box = (0.0, 0.0, 40.0, 30.0)
    place = elsewhere(box, [box], (160, 90), "key")
    assert place is not None
    assert (place[2] - place[0], place[3] - place[1]) == (40.0, 30.0)
    assert max(0, 40 - place[0]) * max(0, 30 - place[1]) <= 0.1 * 1200
    assert elsewhere((0, 0, 150, 80), [(0, 0, 150, 80)], (160, 90), "key") is None


PICTURES = [("temporal_vqa", "moment"), ("referring", "zoom"), ("hand_object", "marks")]


def _told(book: AidBook, example: Example, aid: Aid) -> list[Picture]:
    return [part for part in book.parts(example, [aid], DEFAULT_BOX_FORMAT) or () if isinstance(part, Picture)]


def _measure(picture: Picture) -> object:
    crop = picture.crop
    return (round(crop[2] - crop[0], 6), round(crop[3] - crop[1], 6)) if crop else len(picture.marks)


@pytest.mark.parametrize(("name", "level"), PICTURES)
def test_a_control_shows_the_same_number_of_pictures_in_the_same_size(name: str, level: str, aids_of: Aids) -> None:
    _, examples, book = aids_of(name)
    compared = 0
    for example in examples:
        if level not in book.levels(example):
            continue
        shown = [_told(book, example, Aid(level, kind)) for kind in ("true", "inert")]
        assert [_measure(each) for each in shown[0]] == [_measure(each) for each in shown[1]]
        assert shown[0] != shown[1]
        compared += 1
    assert compared


def test_the_aid_of_a_question_names_the_frames_around_an_event(aids_of: Aids) -> None:
    _, examples, book = aids_of("temporal_vqa")
    for example in examples:
        for fact in book.needed(example, "moment"):
            assert any(fact.span[0] in (change["start"], change["end"]) for change in example.evidence["changes"])


def test_parts_come_before_the_question_and_pictures_are_counted_on() -> None:
    prompt = Prompt("", (ImagePart(0), TextPart("What?")))
    told = insert_parts(prompt, [TextPart("Look:"), ImagePart(1)])
    assert told.parts == (ImagePart(0), TextPart("Look:"), ImagePart(1), TextPart("What?"))


def test_a_run_shows_the_pictures_and_keeps_their_data_with_its_hash(
    kitchen_data: Path, tmp_path: Path, watcher: Watcher
) -> None:
    runner.run(kitchen_data, tmp_path, task="hand_object", aid="marks", model="watcher", repetitions=1, limit=3)
    assert [len(request.images) for request in watcher.requests] == [2, 2, 2]
    for request in watcher.requests:
        assert request.images[0].size == request.images[1].size
        assert "Frames with numbered objects:" in request.prompt.as_text()
    content = (tmp_path / "hand_object" / AIDS_FILE).read_bytes().splitlines()
    settings = json.loads((tmp_path / "hand_object/run.json").read_text())["identity"]["model"]["settings"]
    assert settings["aid_hash"] == hashlib.sha256(b"\n".join(sorted(content))).hexdigest()
    assert len(json.loads(content[0])["parts"]) > 3


def test_a_dataset_of_pictures_has_no_picture_aids(
    kitchen_data: Path, tmp_path: Path, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BuiltExamples, "is_linked", property(lambda self: False, lambda self, value: None))
    with pytest.raises(ConfigError, match="build the dataset with --frames linked"):
        runner.run(kitchen_data, tmp_path, task="hand_object", aid="marks", model="watcher", repetitions=1, limit=2)
    settings = {"data": str(kitchen_data), "out": tmp_path, "limit": 12, "model": "chance"}
    with pytest.raises(ConfigError, match="hand_object has only aids that show other frames"):
        plan_tasks(DiagnoseConfig(task=("hand_object",), **settings))
    (planned,) = plan_tasks(DiagnoseConfig(task=("referring",), **settings))
    assert {part.level for condition in planned.conditions for part in condition} == {"relations"}


def test_an_aid_and_a_view_are_not_mixed(kitchen_data: Path, tmp_path: Path, watcher: Watcher) -> None:
    with pytest.raises(ConfigError, match="aid and view are both set"):
        runner.run(kitchen_data, tmp_path, task="hand_object", aid="marks", view="mirrored", model="watcher")
    with pytest.raises(ConfigError, match="has no such view"):
        runner.run(kitchen_data, tmp_path, task="hand_object", view="reversed", model="watcher")


@pytest.mark.full
def test_a_chat_with_aids_equals_the_request_of_an_aided_run(
    kitchen_data: Path, watcher: Watcher, tmp_path: Path
) -> None:
    videos, data = kitchen_data.parent / "kitchen", tmp_path / "data"
    split = {"train": sorted(path.parent.name for path in videos.glob("*/video.mp4")), "test": []}
    (tmp_path / "split.json").write_text(json.dumps(split))
    build(videos, data, frames="linked", sampling=SAMPLING, cache=False, split_file=tmp_path / "split.json")
    export_training_set(
        data, tmp_path / "chats", "chat", tasks=["hand_object"], box_format=DEFAULT_BOX_FORMAT, aids="inert"
    )
    runner.run(data, tmp_path / "run", task="hand_object", model="watcher", aid="marks:inert", repetitions=1)
    asked = {request.request_id: request for request in watcher.requests}
    chats = pq.read_table(tmp_path / "chats" / PARQUET).to_pylist()
    assert {chat["example_id"] for chat in chats} <= asked.keys()
    for chat in chats:
        request = asked[chat["example_id"]]
        told = request.prompt.messages()
        turns = [{**turn, "content": [{"text": None, **part} for part in turn["content"]]} for turn in told]
        assert chat["prompt"] == turns
        picture = Image.open(io.BytesIO(chat["images"][-1]["bytes"]))
        assert np.array_equal(np.asarray(picture), np.asarray(request.images[-1]))
    assert chats
