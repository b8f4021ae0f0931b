"""A folder of images is read like a video, and refused like one."""

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from barista_bench.data.shared_frames import FrameStore
from barista_bench.errors import ConfigError, VideoError
from barista_bench.media.lazy_frames import LazyFrames
from barista_bench.media.video import BACKENDS, FrameIndexError, open_reader, read_frames, video_facts
from barista_bench.media.video.frame_folder import frame_files, video_sha256
from barista_bench.media.video.opening import stamp_of
from tests.video_samples import HEIGHT, WIDTH, paint, painted_index, render


def save(path: Path, index: int, **options: object) -> None:
    Image.fromarray(paint(index)).save(path, **options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve painted frames `frame_0.png` .. `frame_11.png`, beside a file that is no frame."""
    made = tmp_path / "action_0001_frames"
    made.mkdir()
    for index in range(12):
        save(made / f"frame_{index}.png", index)
    (made / "notes.json").write_text("{}")
    (made / ".frame_3.png").write_bytes(b"left behind by a copier")
    (made / "masks.png").mkdir()
    return made


def test_frames_come_in_the_natural_order_of_their_names(folder: Path) -> None:
    with open_reader(folder) as reader:
        assert len(reader) == 12
        assert reader.size == (WIDTH, HEIGHT)
        assert reader.fps == 0.0
        assert np.isnan(reader.seconds).all()
        frames = reader.read([11, 0, 2, 2, 10])
    assert [painted_index(frame) for frame in frames] == [11, 0, 2, 2, 10]
    np.testing.assert_array_equal(frames[1], paint(0))


def test_a_folder_needs_no_backend_and_refuses_unknown_ones_and_indices(folder: Path) -> None:
    for backend in {"auto", "pyav"} & set(BACKENDS):
        assert painted_index(read_frames(folder, [7], backend=backend)[0]) == 7
    with pytest.raises(ConfigError, match="backend"):
        open_reader(folder, "opencv")
    with pytest.raises(FrameIndexError, match="no frame 12: the video has 12 frames"):
        read_frames(folder, [12])
    (folder / "frame_12.png").symlink_to("frame_1.png")
    assert painted_index(read_frames(folder, [12])[0]) == 1, "a link inside of the folder is a frame"


def test_images_of_every_kind_are_turned_by_their_exif_and_converted_to_rgb(tmp_path: Path) -> None:
    kinds, turned = tmp_path / "kinds", tmp_path / "turned"
    kinds.mkdir()
    turned.mkdir()
    exif = Image.Exif()
    exif[0x0112] = 6  # shown turned by 90 degrees clockwise
    for index, name in enumerate(["000000.jpg", "000001.JPEG", "000002.webp", "000003.PNG"]):
        save(kinds / name, index)
        save(turned / f"{index}.jpg", index, exif=exif)
    assert [painted_index(frame) for frame in read_frames(kinds, range(4))] == [0, 1, 2, 3]
    frames = read_frames(turned, [0, 1])
    assert frames.shape == (2, WIDTH, HEIGHT, 3)
    assert painted_index(np.rot90(frames[1], 1)) == 1
    Image.new("L", (8, 4), 200).save(tmp_path / "0.png")
    Image.new("RGBA", (8, 4), (10, 20, 30, 255)).save(tmp_path / "1.png")
    assert [frame[0, 0].tolist() for frame in read_frames(tmp_path, [0, 1])] == [[200, 200, 200], [10, 20, 30]]


REFUSED = {
    "deep pixels": (lambda path: deep().save(path), "has pixels of I;16"),
    "another size": (
        lambda path: Image.new("RGB", (20, 10)).save(path),
        r"is 20x10 px, but frame_0\.png is 192x96 px.*Fix",
    ),
    "a damaged header": (lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\nnothing"), "the image is damaged"),
    "another kind of file": (lambda path: path.write_bytes(b"#!/bin/sh\necho hello\n" * 50), "the image is damaged"),
    "a huge image": (lambda path: Image.new("1", (9000, 4)).save(path), "frames of 9000x4 px exceed"),
}


def deep() -> Image.Image:
    return Image.fromarray(np.full((HEIGHT, WIDTH), 40_000, dtype=np.uint16))


@pytest.mark.parametrize(("spoil", "said"), REFUSED.values(), ids=REFUSED)
def test_a_file_that_is_no_frame_is_named_before_it_is_decoded(
    folder: Path, spoil: Callable[[Path], object], said: str
) -> None:
    spoil(folder / "frame_4.png")
    for read in (open_reader, video_facts, lambda path: read_frames(path, [0])):
        with pytest.raises(VideoError, match=rf"frame_4\.png: {said}"):
            read(folder)


def test_a_truncated_image_is_named_when_it_is_read(folder: Path) -> None:
    data = (folder / "frame_4.png").read_bytes()
    (folder / "frame_4.png").write_bytes(data[: len(data) // 2])
    with open_reader(folder) as reader:
        assert painted_index(reader.read([3])[0]) == 3
        with pytest.raises(VideoError, match=r"frame_4\.png: the image is damaged"):
            reader.read([4])


@pytest.mark.parametrize(("most", "said"), [(11, "more than 11 images"), (12, "holds no image")])
def test_too_many_images_or_none_are_no_video(
    folder: Path, most: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barista_bench.media.video.frame_folder.MAX_FRAMES", most)
    with pytest.raises(VideoError, match=said):
        stamp_of(folder if most == 11 else folder.parent)


@pytest.mark.parametrize("name", ["frame_3.jpg", "frame_03.png"])
def test_two_images_for_one_place_are_refused(folder: Path, name: str) -> None:
    save(folder / name, 3)
    with pytest.raises(VideoError, match=r"frame_0?3.* and frame_3.* have the same position"):
        stamp_of(folder)


def test_a_link_out_of_the_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    save(tmp_path / "secret.png", 9)
    (folder / "frame_12.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(VideoError, match="leads outside the folder"):
        read_frames(folder, [0])
    (folder / "frame_12.png").unlink()
    (folder / "frame_3.png").unlink()
    (folder / "frame_3.png").symlink_to(folder / "gone.png")  # does not move the frames after it
    with pytest.raises(VideoError, match=r"frame_3\.png: not a file, or a link to a missing file"):
        read_frames(folder, [5])


def test_the_stamp_changes_with_a_file_inside_so_that_a_replaced_frame_is_seen(folder: Path) -> None:
    with pickle.loads(pickle.dumps(open_reader(folder))) as reader:
        assert painted_index(reader.read([4])[0]) == painted_index(read_frames(folder, [4])[0]) == 4
    before = stamp_of(folder)
    assert stamp_of(folder) == before
    save(folder / "frame_4.png", 99)
    os.utime(folder / "frame_4.png", ns=(0, 1))
    touched = stamp_of(folder)
    assert painted_index(read_frames(folder, [4])[0]) == 99
    (folder / "frame_7.png").rename(folder / "frame_20.png")
    renamed = stamp_of(folder)
    (folder / "notes.json").write_text("[]")
    assert len({before, touched, renamed}) == 3
    assert stamp_of(folder) == renamed


def test_the_digest_is_over_names_and_contents(folder: Path, tmp_path: Path) -> None:
    first = video_sha256(folder)
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in frame_files(folder):
        (copy / path.name).write_bytes(path.read_bytes())
    assert video_sha256(copy) == first
    (copy / "frame_0.png").rename(copy / "frame_00.png")
    renamed = video_sha256(copy)
    save(copy / "frame_00.png", 1)
    os.utime(copy / "frame_00.png", ns=(0, 3))
    assert len({first, renamed, video_sha256(copy)}) == 3


def test_a_file_name_outside_utf8_is_still_a_frame(folder: Path) -> None:
    try:
        os.rename(folder / "frame_11.png", os.fsencode(folder) + b"/frame_11\xff.png")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    assert painted_index(read_frames(folder, [11])[0]) == 11
    assert len(video_sha256(folder)) == 64


def test_lazy_frames_point_into_a_folder_and_not_out_of_the_root(folder: Path) -> None:
    lazy = LazyFrames(folder.name, [2, 9], root=str(folder.parent))
    assert [painted_index(image) for image in lazy.array()] == [2, 9]
    with pytest.raises(VideoError, match="refused"):
        LazyFrames("../" + folder.name, [0], root=str(folder)).array()


def test_the_frame_store_decodes_only_requested_images(folder: Path) -> None:
    lazy = LazyFrames(folder.name, [3, 5], root=str(folder.parent))
    with FrameStore() as store:
        frames = store.frames(lazy, "action_0001")
        assert [painted_index(frame) for frame in frames] == [3, 5]
        store.frames(lazy, "action_0001")
        assert store.cache.made_count == 2


def test_a_folder_of_frames_has_only_the_times_of_its_annotations(folder: Path) -> None:
    facts = video_facts(folder)
    assert (facts.frame_count, facts.fps, facts.width, facts.height) == (12, 0.0, WIDTH, HEIGHT)
    assert not facts.has_times
    assert np.isnan(facts.duration)
    told = video_facts(folder, fps=4.0)
    assert (told.fps, told.has_times) == (4.0, True)
    assert told.seconds.tolist() == [index / 4 for index in range(12)]
    for fps in (0.0, -1.0, float("nan")):
        with pytest.raises(ConfigError, match="fps is"):
            video_facts(folder, fps=fps)


def test_facts_of_a_video_agree_with_its_reader(tmp_path: Path) -> None:
    path = render(tmp_path / "clip.mp4", count=30)
    facts = video_facts(path)
    with open_reader(path) as reader:
        assert (facts.frame_count, facts.fps, (facts.width, facts.height)) == (30, reader.fps, reader.size)
        np.testing.assert_array_equal(facts.seconds, reader.seconds)
    assert facts.duration == pytest.approx(29 / 30)
    assert not facts.seconds.flags.writeable
    with pytest.raises(ConfigError, match="contains its times"):
        video_facts(path, fps=30.0)
    with pytest.raises(VideoError, match=r"gone\.mp4.*no such file"):
        video_facts(tmp_path / "gone.mp4")
