"""Masks to other tools' formats and back."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Literal, get_args

import numpy as np
import pytest
from hypothesis import given, strategies as st
from PIL import Image
from typer.testing import CliRunner

from barista_bench.cli.commands import app
from barista_bench.errors import ConfigError, DataError
from barista_bench.interchange import mask_formats
from barista_bench.interchange.mask_formats import (
    RELEASE,
    ReadFormat,
    WrittenFormat,
    read_mask_tracks,
    write_mask_tracks,
)
from barista_bench.scene_graph import Rle, decode_mask, encode_mask
from barista_bench.scene_graph.masks import MaskTracks
from tests.other_graphs.sample import samples_of

WIDTH, HEIGHT = 24, 16
LOSSLESS = [
    name
    for name in get_args(WrittenFormat)
    if name != RELEASE and all(sample.is_lossless for sample in samples_of(name))
]
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


@pytest.mark.parametrize("name", LOSSLESS)
def test_masks_identities_categories_and_frames_come_back(name: str, tmp_path: Path) -> None:
    again = round_trip(scene(), tmp_path / "out", name)
    assert again.masks == scene().masks
    assert dict(again.categories) == CATEGORIES
    assert (again.video_id, again.width, again.height) == ("clip", WIDTH, HEIGHT)


masks = st.lists(st.booleans(), min_size=WIDTH * HEIGHT, max_size=WIDTH * HEIGHT).map(
    lambda bits: encode_mask(np.array(bits).reshape(HEIGHT, WIDTH))
)


@pytest.mark.parametrize("name", [name for name in get_args(WrittenFormat) if name != RELEASE])
@given(rle=masks.filter(lambda rle: bool(decode_mask(rle).any())))
def test_any_mask_comes_back(tmp_path_factory: pytest.TempPathFactory, name: str, rle: Rle) -> None:
    tracks = MaskTracks("clip", WIDTH, HEIGHT, {"a": "cup"}, {0: {"a": rle}})
    assert round_trip(tracks, tmp_path_factory.mktemp(name) / "out", name).masks == tracks.masks


def test_davis_draws_the_smaller_object_on_top_and_names_the_cut_objects(tmp_path: Path) -> None:
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


CVAT_CHANGES = {
    "box": (('width="8"', 'width="900"'), "mask: at N,N of NxN px leaves the NxN picture"),
    "sum": (('rle="0, 64"', 'rle="0, 65"'), "mask: runs sum to N, not to the N pixels of their box"),
    "negative run": (('rle="0, 64"', 'rle="-1, 65"'), "mask: runs sum to N, not to the N pixels of their box"),
    "word": (('rle="0, 64"', 'rle="0, sixty"'), "mask: a number is missing or wrong"),
    "missing": (('rle="0, 64"', ""), "mask: a number is missing or wrong"),
    "frame": (('<image id="0"', '<image id="-1"'), "images whose frame is no number from 0"),
    "frame in words": (('<image id="0"', '<image id="first"'), "images whose frame is no number from 0"),
    "size": (('height="16"', 'height="17"'), "images that are not 24x16 px"),
    "no label": (('label="coffee cup"', 'label=" "'), "shapes without a label: mask"),
    "line": (("<mask rle", '<polyline points="1,1;2,2" rle'), "shapes without an area: polyline"),
}


@pytest.mark.parametrize(("change", "reason"), CVAT_CHANGES.values(), ids=CVAT_CHANGES)
def test_a_damaged_record_of_cvat_costs_itself_and_its_frame_is_incomplete(
    change: tuple[str, str], reason: str, tmp_path: Path
) -> None:
    write_mask_tracks([scene()], tmp_path / "out", "cvat")
    path = tmp_path / "out" / "clip.xml"
    old, new = change
    text = path.read_text()
    assert old in text
    start = text.index('<image id="3"') if old == 'height="16"' else 0  # the first image says the size of the video
    text = text[:start] + text[start:].replace(old, new, 1)
    path.write_text(text.replace("</mask>", "</polyline>", 1) if "polyline" in new else text)
    tracks = one_of(read_mask_tracks(path, "cvat"))
    assert reason in tracks.left_out
    if "images whose" not in reason:
        frame = 3 if old == 'height="16"' else 0
        assert tracks.incomplete == {frame}
        whole = scene().masks[frame]
        assert tracks.masks[frame].items() < whole.items(), "the others are there"
    assert tracks.masks[1] == {}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (("<annotations>", '<!DOCTYPE a [<!ENTITY x "y">]><annotations>'), "DOCTYPE"),
        (("</annotations>", ""), "not XML"),
    ],
    ids=["entities", "cut"],
)
def test_a_cvat_file_that_cannot_be_read_costs_its_video_and_no_other(
    change: tuple[str, str], what: str, tmp_path: Path
) -> None:
    write_mask_tracks([scene(), replace(scene(), video_id="later")], tmp_path / "out", "cvat")
    path = tmp_path / "out" / "clip.xml"
    path.write_text(path.read_text().replace(*change, 1))
    refused, later = read_mask_tracks(tmp_path / "out", "cvat")
    assert isinstance(refused, DataError)
    assert re.search(f"clip.xml: .*{what}.*Fix: ", str(refused))
    assert isinstance(later, MaskTracks)
    assert later.masks == scene().masks


CVAT_SHAPES = {
    "polygon": ('<polygon label="cup" points="5,5;15,5;15,13;5,13"/>', 80),
    "box": ('<box label="cup" xtl="5" ytl="5" xbr="15" ybr="13"/>', 80),
    "turned box": ('<box label="cup" xtl="5" ytl="5" xbr="15" ybr="13" rotation="90"/>', 80),
    "ellipse": ('<ellipse label="cup" cx="10" cy="8" rx="6" ry="5"/>', 94),
}


@pytest.mark.parametrize(("shape", "area"), CVAT_SHAPES.values(), ids=CVAT_SHAPES)
@pytest.mark.parametrize("form", ["image", "track"])
def test_every_shape_of_cvat_with_an_area_becomes_a_mask(shape: str, area: int, form: str, tmp_path: Path) -> None:
    size = "<meta><original_size><width>24</width><height>16</height></original_size></meta>"
    inside = f'<image id="2" name="f" width="24" height="16">{shape}</image>'
    if form == "track":
        shown = shape.replace("/>", ' frame="2" outside="0"/>')
        inside = f'<track id="0" label="cup">{shown}</track>'
    path = tmp_path / "clip.xml"
    path.write_text(f"<annotations>{size}{inside}</annotations>")
    tracks = one_of(read_mask_tracks(path, "cvat"))
    ((_, mask),) = tracks.masks[2].items()
    assert abs(int(decode_mask(mask).sum()) - area) <= 2
    assert (tracks.incomplete, tracks.left_out) == (frozenset(), {})


def one_of(read: Iterator[MaskTracks | DataError]) -> MaskTracks:
    (tracks,) = read
    assert isinstance(tracks, MaskTracks), tracks
    return tracks


COCO_CHANGES = {
    "category": (lambda content: content["annotations"][0].update(category_id=99), "tracks: their category"),
    "length": (lambda content: content["annotations"][0]["segmentations"].pop(), "tracks: they have not one"),
    "identity": (lambda content: content["annotations"][1].update(object_id="cup-1"), "tracks: their id is"),
    "no track": (lambda content: content["annotations"].insert(0, {"video_id": 1}), "tracks: Object missing"),
    "runs": (lambda content: content["annotations"][0]["segmentations"][0].update(counts="zzzz"), "masks: "),
    "long runs": (lambda content: content["annotations"][0]["segmentations"][0].update(counts=[1, 2**40]), "masks: "),
}


@pytest.mark.parametrize(("change", "reason"), COCO_CHANGES.values(), ids=COCO_CHANGES)
def test_a_damaged_record_of_coco_costs_itself_and_its_frames_are_incomplete(change, reason, tmp_path: Path) -> None:
    tracks = one_of(read_mask_tracks(changed_coco(tmp_path, change), "coco_video"))
    assert [text.startswith(reason) for text in tracks.left_out] == [True]
    assert tracks.incomplete == {0} if reason == "masks: " else set(range(5))
    assert 'handle <&> "é' in tracks.categories


def changed_coco(folder: Path, change: Callable[[dict], object], *more: MaskTracks) -> Path:
    write_mask_tracks([scene(), *more], folder / "out", "coco_video")
    path = folder / "out" / "annotations.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda content: content["videos"][0].update(width=10**9), r"videos\[0\]: .*width"),
        (lambda content: content["videos"][0].update(annotated=[-1, 0]), r"videos\[0\]: .*>= 0"),
        (lambda content: content["videos"].insert(0, []), r"videos\[0\]: Expected `object`"),
    ],
    ids=["size", "negative frame", "no record"],
)
def test_a_damaged_video_of_coco_costs_no_other(change, what: str, tmp_path: Path) -> None:
    read = list(read_mask_tracks(changed_coco(tmp_path, change, replace(scene(), video_id="later")), "coco_video"))
    (refused,) = (video for video in read if isinstance(video, DataError))
    assert re.search(what, str(refused))
    tracks = [video for video in read if isinstance(video, MaskTracks)]
    assert tracks[-1].video_id == "later"
    assert tracks[-1].masks == scene().masks


def test_tracks_of_a_video_that_is_not_in_the_file_are_named(tmp_path: Path) -> None:
    path = changed_coco(tmp_path, lambda content: content["annotations"][0].update(video_id=99))
    tracks, refused = read_mask_tracks(path, "coco_video")
    assert isinstance(tracks, MaskTracks)
    assert "1 annotations are of no video" in str(refused)


def test_sampled_frames_of_youtube_vis_follow_the_file_names(tmp_path: Path) -> None:
    def sample(content: dict) -> None:
        content["videos"][0].update(file_names=[f"clip/{5 * n:05d}.jpg" for n in range(5)], annotated=None)

    tracks = one_of(read_mask_tracks(changed_coco(tmp_path, sample), "coco_video"))
    assert sorted(tracks.masks) == [0, 15]
    assert tracks.frame_count is None


def test_a_damaged_picture_of_davis_costs_itself(tmp_path: Path) -> None:
    write_mask_tracks([scene()], tmp_path / "out", "davis")
    clip = tmp_path / "out" / "clip"
    Image.new("RGB", (WIDTH, HEIGHT)).save(clip / "00001.png")
    Image.new("P", (3, 3)).save(clip / "00002.png")
    (clip / "cover.png").write_bytes(b"")
    tracks = one_of(read_mask_tracks(tmp_path / "out", "davis"))
    assert sorted(tracks.masks) == [0, 3]
    assert sum(tracks.left_out.values()) == 3


def test_void_is_no_object_and_one_bit_is_an_object(tmp_path: Path) -> None:
    clip = tmp_path / "masks" / "clip"
    clip.mkdir(parents=True)
    labels = np.zeros((HEIGHT, WIDTH), np.uint8)
    labels[2:4], labels[8] = 1, 255
    Image.fromarray(labels, mode="L").save(clip / "00000.png")
    Image.fromarray(labels == 1).save(clip / "00001.png")
    tracks = one_of(read_mask_tracks(tmp_path / "masks", "davis"))
    assert [list(masks) for masks in tracks.masks.values()] == [["1"], ["1"]]
    assert tracks.masks[0] == tracks.masks[1]
    assert tracks.incomplete == {0}


def test_unknown_formats_are_refused(tmp_path: Path) -> None:
    for ask in (lambda: list(read_mask_tracks(tmp_path, "paper")), lambda: write_mask_tracks([], tmp_path, "paper")):
        with pytest.raises(ConfigError, match="coco_video"):
            ask()


def test_a_format_that_is_only_read_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = ModuleType("barista_bench.interchange.reels")
    reader.read = lambda source: iter([scene()])  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, reader.__name__, reader)
    monkeypatch.setattr(mask_formats, "ReadFormat", Literal[WrittenFormat, "reels"])
    assert one_of(read_mask_tracks(tmp_path, "reels")) == scene()
    with pytest.raises(ConfigError, match=r"'reels' is not written\. Fix: give --format coco_video"):
        write_mask_tracks([scene()], tmp_path / "out", "reels")


@pytest.mark.parametrize(("command", "formats"), [("import", ReadFormat), ("export", WrittenFormat)])
def test_an_unknown_format_on_the_command_line_is_an_error_that_lists_the_formats(
    command: str, formats: object, tmp_path: Path
) -> None:
    done = CliRunner().invoke(app, ["annotate", command, str(tmp_path), "--format", "paper"])
    assert done.exit_code == 2
    assert not [name for name in get_args(formats) if f"'{name}'" not in done.output]
