"""Masks to other tools' formats and back."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from PIL import Image

from barista_bench.errors import ConfigError, DataError
from barista_bench.interchange.mask_formats import read_mask_tracks, write_mask_tracks
from barista_bench.scene_graph import Rle, decode_mask, encode_mask
from barista_bench.scene_graph.masks import MaskTracks

WIDTH, HEIGHT = 24, 16
CATEGORIES = {"cup-1": "coffee cup", "cup-2": "coffee cup", 'handle <&> "é': "handle"}


def box(x: int, y: int, width: int, height: int) -> Rle:
    mask = np.zeros((HEIGHT, WIDTH), dtype=np.bool_)
    mask[y : y + height, x : x + width] = True
    return encode_mask(mask)


def scene() -> MaskTracks:
    """A handle that overlaps a cup, a frame without any object, and a frame that is not annotated."""
    names = list(CATEGORIES)
    masks = {
        0: {names[0]: box(2, 2, 8, 8), names[2]: box(8, 4, 5, 3)},
        1: {},
        3: {names[0]: box(0, 0, WIDTH, HEIGHT), names[1]: box(23, 15, 1, 1)},
    }
    return MaskTracks("clip", WIDTH, HEIGHT, CATEGORIES, masks, 5)


def round_trip(tracks: MaskTracks, folder: Path, name: str) -> MaskTracks:
    write_mask_tracks([tracks], folder, name)
    (again,) = read_mask_tracks(folder, name)
    return again


@pytest.mark.parametrize("name", ["coco_video", "cvat"])
def test_masks_identities_categories_and_frames_come_back(name: str, tmp_path: Path) -> None:
    again = round_trip(scene(), tmp_path / "out", name)
    assert again.masks == scene().masks
    assert dict(again.categories) == CATEGORIES
    assert (again.video_id, again.width, again.height) == ("clip", WIDTH, HEIGHT)


masks = st.lists(st.booleans(), min_size=WIDTH * HEIGHT, max_size=WIDTH * HEIGHT).map(
    lambda bits: encode_mask(np.array(bits).reshape(HEIGHT, WIDTH))
)


@given(masks.filter(lambda rle: bool(decode_mask(rle).any())))
def test_any_mask_comes_back_from_cvat(tmp_path_factory: pytest.TempPathFactory, rle: Rle) -> None:
    tracks = MaskTracks("clip", WIDTH, HEIGHT, {"a": "cup"}, {0: {"a": rle}})
    assert round_trip(tracks, tmp_path_factory.mktemp("cvat") / "out", "cvat").masks == tracks.masks


def test_davis_draws_the_smaller_object_on_top_and_says_what_it_cuts(tmp_path: Path) -> None:
    lines = write_mask_tracks([scene()], tmp_path / "out", "davis")
    overlap = 2 * 3 + 1  # the handle over the cup; a pixel of the second cup over the first
    assert lines == [f"clip: 3 frames, 3 objects; {overlap} pixels of overlapping objects were cut"]
    (again,) = read_mask_tracks(tmp_path / "out", "davis")
    handle = list(CATEGORIES)[2]
    assert again.masks[0][handle] == scene().masks[0][handle]
    cut = decode_mask(scene().masks[0]["cup-1"]) & ~decode_mask(scene().masks[0][handle])
    assert (decode_mask(again.masks[0]["cup-1"]) == cut).all()
    assert again.masks[1] == {}
    with Image.open(tmp_path / "out" / "clip" / "00000.png") as image:
        assert image.mode == "P"
        assert image.getpalette()[:12] == [0, 0, 0, 128, 0, 0, 0, 128, 0, 128, 128, 0]  # type: ignore[index]
    (tmp_path / "out" / "objects.json").unlink()  # without names there are numbers
    (again,) = read_mask_tracks(tmp_path / "out", "davis")
    assert dict(again.categories) == {"1": "unknown", "2": "unknown", "3": "unknown"}


def test_runs_that_are_numbers_are_read_as_youtube_vis_writes_them(tmp_path: Path) -> None:
    mask = np.zeros((HEIGHT, WIDTH), dtype=np.bool_)
    mask[:, 3] = True
    content = {
        "videos": [
            {"id": 7, "width": WIDTH, "height": HEIGHT, "length": 2, "file_names": ["take/0.jpg", "take/1.jpg"]}
        ],
        "categories": [{"id": 4, "name": "cup"}],
        "annotations": [
            {
                "id": 1,
                "video_id": 7,
                "category_id": 4,
                "iscrowd": 0,
                "segmentations": [None, {"size": [HEIGHT, WIDTH], "counts": [3 * HEIGHT, HEIGHT, 20 * HEIGHT]}],
            }
        ],
    }
    path = tmp_path / "vis.json"
    path.write_text(json.dumps(content))
    (tracks,) = read_mask_tracks(path, "coco_video")
    assert tracks.video_id == "take"
    assert tracks.masks == {1: {"1": encode_mask(mask)}}


def test_tracks_of_cvat_video_are_read(tmp_path: Path) -> None:
    (tmp_path / "job.xml").write_text(
        "<annotations><meta><task><name>take</name><original_size><width>24</width><height>16</height></original_size>"
        '</task></meta><track id="3" label="cup">'
        '<mask frame="5" outside="0" rle="1, 2, 1" left="4" top="3" width="2" height="2"/>'
        '<mask frame="6" outside="1" rle="0, 4" left="4" top="3" width="2" height="2"/></track></annotations>'
    )
    (tracks,) = read_mask_tracks(tmp_path / "job.xml", "cvat")
    expected = np.zeros((HEIGHT, WIDTH), dtype=np.bool_)
    expected[3, 5] = expected[4, 4] = True
    assert tracks.masks == {5: {"cup 3": encode_mask(expected)}}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (('width="8"', 'width="900"'), "leaves the"),
        (('rle="0, 64"', 'rle="0, 65"'), "runs sum to"),
        (('rle="0, 64"', 'rle="-1, 65"'), "runs sum to"),
        (('rle="0, 64"', 'rle="0, sixty"'), "invalid literal"),
        (('<image id="0"', '<image id="-1"'), "negative"),
        (("<annotations>", '<!DOCTYPE a [<!ENTITY x "y">]><annotations>'), "DOCTYPE"),
        (("</annotations>", ""), "not XML"),
    ],
    ids=["box", "sum", "negative run", "word", "frame", "entities", "cut"],
)
def test_damaged_cvat_files_are_refused(change: tuple[str, str], what: str, tmp_path: Path) -> None:
    write_mask_tracks([scene()], tmp_path / "out", "cvat")
    path = tmp_path / "out" / "clip.xml"
    text = path.read_text()
    assert change[0] in text
    path.write_text(text.replace(*change, 1))
    with pytest.raises(DataError, match=what) as caught:
        list(read_mask_tracks(path, "cvat"))
    assert "Remedy: " in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["annotations"][0].update(category_id=99),
        lambda content: content["annotations"][0]["segmentations"].pop(),
        lambda content: content["annotations"][1].update(object_id="cup-1"),
        lambda content: content["annotations"][0]["segmentations"][0].update(counts="zzzz"),
        lambda content: content["annotations"][0]["segmentations"][0].update(counts=[1, 2**40]),
        lambda content: content["videos"][0].update(width=10**9),
    ],
    ids=["category", "length", "identity", "runs", "long runs", "size"],
)
def test_damaged_coco_files_are_refused(change, tmp_path: Path) -> None:
    write_mask_tracks([scene()], tmp_path / "out", "coco_video")
    path = tmp_path / "out" / "annotations.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match="Remedy: "):
        list(read_mask_tracks(path, "coco_video"))


def test_pictures_that_are_no_palettes_and_unknown_formats_are_refused(tmp_path: Path) -> None:
    write_mask_tracks([scene()], tmp_path / "out", "davis")
    for name, image in (("00001.png", Image.new("RGB", (WIDTH, HEIGHT))), ("00002.png", Image.new("P", (3, 3)))):
        path = tmp_path / "out" / "clip" / name
        image.save(path)
        with pytest.raises(DataError, match=name):
            list(read_mask_tracks(tmp_path / "out", "davis"))
        path.unlink()
    for ask in (lambda: list(read_mask_tracks(tmp_path, "paper")), lambda: write_mask_tracks([], tmp_path, "paper")):
        with pytest.raises(ConfigError, match="coco_video"):
            ask()
