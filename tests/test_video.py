"""Exact frames by index: the right frame on awkward files, clear errors on bad ones, safety over forks and threads.

The reference is a sequential decode; on top of it, the index painted in the pixels (see video_samples).
"""

import io
import multiprocessing
import os
import pickle
import re
import resource
import shutil
import struct
import subprocess
import sys
import threading
import zlib
from fractions import Fraction
from functools import cache
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from barista_bench.errors import ConfigError, VideoError
from barista_bench.media.video import FrameIndexError, close_readers, open_reader, pyav_reader, read_frames, readers
from tests.measuring import measured
from tests.video_samples import CUT, RECIPES, VARIABLE, Samples, copy_into, decode_in_order, painted, render


@pytest.fixture(scope="session")
def sample(tmp_path_factory):
    return Samples(tmp_path_factory.mktemp("videos"))


@pytest.fixture(autouse=True)
def _fresh_cache():
    yield
    close_readers()


def need(backend: str) -> str:
    try:
        readers.reader_class(backend)
    except ConfigError as error:
        pytest.skip(str(error))
    return backend


@pytest.mark.full
@pytest.mark.parametrize("name", RECIPES)
def test_every_frame_asked_for_in_any_order_is_the_frame_of_a_sequential_decode(sample, name):
    path = sample(name)
    with open_reader(path) as reader:
        reference = [reader.index.orientation.apply(image) for image in decode_in_order(path)]
        assert len(reader) == len(reference)
        rng = np.random.default_rng(1)
        requests = [rng.integers(0, len(reference), rng.integers(1, 7)).tolist() for _ in range(12)]
        requests += [[0], [len(reference) - 1], list(range(20, 0, -1)), list(range(len(reference)))]
        for asked in requests:
            for image, index in zip(reader.read(asked), asked, strict=True):
                np.testing.assert_array_equal(image, reference[index], err_msg=f"{name} frame {index}")


@pytest.mark.parametrize("name", [name for name in RECIPES if "rot" not in name and "mirrored" not in name])
def test_frame_i_shows_the_painted_index_i(sample, name):
    asked = [7, 0, 29, 23, 24, 25, 7]
    hidden = 30 if name in CUT else 0  # by the edit list
    assert painted(read_frames(sample(name), asked)) == [index + hidden for index in asked]


def test_a_frame_decoded_on_its_own_equals_the_frame_decoded_with_others(sample):
    path = sample("pyramid.mp4")
    every = read_frames(path, range(120))
    for index in range(0, 120, 7):
        np.testing.assert_array_equal(read_frames(path, [index])[0], every[index])


def test_seeking_files_are_never_decoded_whole(sample, monkeypatch):
    def refuse(*_):
        raise AssertionError("a sequential decode was used")

    monkeypatch.setattr(pyav_reader.PyavReader, "_find_by_time", refuse)
    for name in ("cfr.mp4", "hevc_open_gop.mp4", "edit_list_open_gop.mp4", "matroska.mkv", "fragmented.mp4"):
        read_frames(sample(name), [60, 3, 31])


def test_a_frame_missed_after_a_seek_is_found_by_the_fallbacks(sample, monkeypatch):
    monkeypatch.setattr(pyav_reader._Decoder, "run", lambda *_: iter(()))
    assert painted(read_frames(sample("cfr.mp4"), [50, 3])) == [50, 3]


@pytest.mark.parametrize("name", ["transport.ts", "mpeg4.avi"])
def test_streams_that_cannot_seek_read_forward_and_start_again_for_earlier_frames(sample, name):
    with open_reader(sample(name)) as reader:
        assert not reader.index.seekable
        assert painted(reader.read([5])) == [5]
        first = reader._decoders[0]
        assert painted(reader.read([6, 40])) == [6, 40]
        assert reader._decoders[0] is first
        assert painted(reader.read([2])) == [2]


def test_hevc_with_temporal_layers_is_decoded_without_skipping(sample):
    assert not open_reader(sample("hevc_layers.mp4")).index.droppable
    assert open_reader(sample("hevc_open_gop.mp4")).index.droppable


TURNS = {"rotated_90.mp4": 1, "rotated_180.mp4": 2, "rotated_270.mp4": 3, "rotated_90.mkv": 1}


@pytest.mark.parametrize("name", [*TURNS, "mirrored.mp4"])
def test_frames_stand_as_players_show_them(sample, name):
    stored = decode_in_order(sample(name))[12]
    with open_reader(sample(name)) as reader:
        image = reader.read([12])[0]
        assert reader.size == (image.shape[1], image.shape[0])
    np.testing.assert_array_equal(image, np.rot90(stored, TURNS[name]) if name in TURNS else stored[:, ::-1])


def test_a_display_matrix_that_is_no_right_angle_is_refused(sample, tmp_path):
    data = sample("rotated_90.mp4").read_bytes()
    turned = struct.pack(">9i", 0, -65536, 0, 65536, 0, 0, 0, 0, 1 << 30)
    other = struct.pack(">9i", 46341, 46341, 0, -46341, 46341, 0, 0, 0, 1 << 30)
    offset = data.find(b"tkhd") + 44  # version 0: the matrix follows 40 bytes of fields
    changed = tmp_path / "skewed.mp4"
    changed.write_bytes(data[:offset] + other + data[offset + len(turned) :])
    with pytest.raises(VideoError, match=r"skewed\.mp4.*right angles.*re-encode"):
        open_reader(changed)


@pytest.mark.parametrize("name", ["cfr.mp4", "variable_rate.mp4", "rotated_90.mp4", "rotated_180.mp4"])
def test_decord_agrees_with_the_default_backend(sample, name):
    asked = [9, 0, 9, 29, 14]
    images = read_frames(sample(name), asked, backend=need("decord"))
    default = read_frames(sample(name), asked)
    assert (images.dtype, images.shape) == (np.uint8, default.shape)
    assert np.abs(images.astype(int) - default).mean() < 3


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("edit_list.mp4", "edit list.*pyav"),
        ("hevc_open_gop.mp4", "open GOPs.*pyav"),
        ("transport.ts", "seeking.*pyav"),
        ("mirrored.mp4", "mirrored.*pyav"),
        ("rotated_90.mkv", "another container than MP4.*pyav"),
        ("av1.mp4", "decord"),
    ],
)
def test_decord_refuses_a_file_that_it_cannot_open_or_returns_wrong_frames_of(sample, name, said):
    with pytest.raises(VideoError, match=f"{name}.*{said}"):
        read_frames(sample(name), [3], backend=need("decord"))


def test_a_backend_that_is_not_installed_or_known_is_refused_with_the_remedy(sample, monkeypatch):
    monkeypatch.setitem(sys.modules, "decord", None)
    with pytest.raises(ConfigError, match=r"pip install '?barista_bench\[run\]"):
        open_reader(sample("cfr.mp4"), "decord")
    with pytest.raises(ConfigError, match=r"opencv.*pyav, decord"):
        open_reader(sample("cfr.mp4"), "opencv")


def test_length_size_rate_and_times_come_without_reading_and_indices_may_be_any_integers(sample):
    with open_reader(sample("cfr.mp4")) as reader:
        assert (len(reader), reader.size) == (120, (192, 96))
        assert reader.fps == pytest.approx(30)
        assert reader.seconds[30] == pytest.approx(1.0)
        assert reader.seconds.shape == (120,)
        frames = reader.read(np.array([8, 3, 8], dtype=np.int32))
        other = pickle.loads(pickle.dumps(reader))
    assert painted(other.read([9])) == [9], "is opened anew"
    assert (frames.shape, frames.dtype, painted(frames)) == ((3, 96, 192, 3), np.uint8, [8, 3, 8])
    assert read_frames(sample("cfr.mp4"), []).shape == (0, 96, 192, 3)
    with open_reader(sample("variable_rate.mp4")) as reader:
        assert reader.seconds[50] == pytest.approx((VARIABLE[50] - VARIABLE[0]) / 600, abs=1e-3)


@pytest.mark.parametrize("index", [-1, 120, 10**12, 1.0, True, "3", None])
@pytest.mark.parametrize("backend", ["pyav", "decord"])
def test_a_bad_index_names_video_and_index(sample, backend, index):
    with pytest.raises(FrameIndexError, match=rf"cfr\.mp4.*{index!r}") as caught:
        read_frames(sample("cfr.mp4"), [0, index], backend=need(backend))
    assert isinstance(caught.value, VideoError)
    assert isinstance(caught.value, IndexError)


def bad_files(sample, folder: Path) -> dict[str, Path]:
    good = sample("cfr.mp4").read_bytes()
    fast = copy_into(sample("cfr.mp4"), folder / "fast.mp4", {"movflags": "faststart"}).read_bytes()
    playlist = f"#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:4,\n{sample('transport.ts')}\n#EXT-X-ENDLIST\n"
    contents = {
        "empty.mp4": b"",
        "garbage.mp4": np.random.default_rng(0).bytes(20_000),
        "text.mp4": b"not a video\n" * 100,
        "playlist.mp4": playlist.encode(),
        "without_header.mp4": good[: len(good) // 2],
        "half.mp4": fast[: len(fast) // 2],
        "header_only.mp4": fast[: fast.find(b"mdat") + 4],
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    (folder / "folder.mp4").mkdir()
    return {name: folder / name for name in [*contents, "folder.mp4", "missing.mp4"]}


@pytest.mark.parametrize("backend", ["pyav", "decord"])
def test_a_file_that_is_no_usable_video_is_refused_by_name(sample, tmp_path, backend, capfd):
    need(backend)
    files = bad_files(sample, tmp_path)
    for name, path in files.items():
        with pytest.raises(VideoError, match=name.replace(".", r"\.")) as caught:
            read_frames(path, [100], backend=backend)
        assert re.search(r";|Fix:", str(caught.value)), f"{name}: no remedy in {caught.value}"
    if backend == "pyav":
        assert capfd.readouterr() == ("", "")
        with pytest.raises(VideoError, match=r"half\.mp4.*frame \d+ of 120.*truncated"):
            open_reader(files["half.mp4"])


def test_a_video_without_picture_is_refused(tmp_path):
    path = tmp_path / "sound.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=48000)
        samples = av.AudioFrame.from_ndarray(np.zeros((1, 4096), np.float32), format="fltp", layout="mono")
        samples.sample_rate = 48000
        container.mux([*stream.encode(samples), *stream.encode(None)])
    with pytest.raises(VideoError, match=r"sound\.mp4.*no video stream"):
        open_reader(path)


def test_an_absurd_frame_size_is_refused_before_decoding(sample, tmp_path):
    path = render(tmp_path / "wide.mp4", 2, options={"preset": "ultrafast"}, size=(8194, 16))
    with pytest.raises(VideoError, match=r"wide\.mp4.*8194x16.*8192"):
        open_reader(path)


@cache
def png_of(side):
    """A whole PNG of one grey; decoding it takes a byte a pixel."""
    packer = zlib.compressobj(1)
    pixels = b"".join([*(packer.compress(bytes(side + 1)) for _ in range(side)), packer.flush()])
    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in ((b"IHDR", head), (b"IDAT", pixels), (b"IEND", b""))
    )


def jpeg_of(side):
    """The head of a JPEG that claims this size."""
    content = io.BytesIO()
    Image.new("L", (64, 64)).save(content, "JPEG")
    data = bytearray(content.getvalue())
    place = data.index(b"\xff\xc0")
    data[place + 5 : place + 9] = struct.pack(">HH", side, side)
    return bytes(data)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="looks for its memory in /proc")
@pytest.mark.parametrize("declared", [96, 16_000])
@pytest.mark.parametrize(
    ("codec", "suffix"),
    [
        *(pytest.param("png", suffix, marks=pytest.mark.full) for suffix in ("avi", "mov", "mp4")),
        *(("mjpeg", suffix) for suffix in ("avi", "mkv", "mp4")),
    ],
)
def test_a_huge_picture_is_refused_before_it_is_decoded_with_any_header(tmp_path, codec, suffix, declared):
    path, picture = tmp_path / f"huge.{suffix}", {"png": png_of, "mjpeg": jpeg_of}[codec](16_000)
    with av.open(str(path), "w") as container:
        stream = container.add_mux_stream(codec, rate=30, width=declared, height=declared)
        for number in range(2):
            packet = av.Packet(picture)
            packet.stream, packet.pts, packet.dts, packet.time_base = stream, number, number, Fraction(1, 30)
            packet.is_keyframe = True
            container.mux(packet)

    def refusal():
        with pytest.raises(VideoError, match=rf"huge\.{suffix}: .* 32 Mpx") as caught:
            open_reader(path)
        return str(caught.value)

    before = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * resource.getpagesize() / 2**20
    told = measured(refusal)
    assert told["outcome"].startswith(str(path))
    assert told["mib"] - before < 100, "a picture of 16,000 x 16,000 takes at least 244 MiB"


def test_a_changed_file_is_opened_again(sample, tmp_path):
    path = tmp_path / "video.mp4"
    shutil.copy(sample("cfr.mp4"), path)
    assert painted(read_frames(path, [10])) == [10]
    shutil.copy(sample("edit_list.mp4"), path)
    assert painted(read_frames(path, [10])) == [40]


def test_the_cache_keeps_the_readers_used_last_and_closes_the_others(sample, monkeypatch):
    monkeypatch.setattr(readers, "_MOST_OPEN", 2)
    names = ["cfr.mp4", "no_b_frames.mp4", "open_gop.mp4"]
    read_frames(sample(names[0]), [0])
    first = next(iter(readers._cache.readers.values()))
    for name in names[1:]:
        read_frames(sample(name), [0])
    assert [Path(stamp.path).name for stamp, _ in readers._cache.readers] == names[1:]
    with pytest.raises(VideoError, match=r"cfr\.mp4.*closed"):
        first.read([0])
    close_readers()
    assert not readers._cache.readers


def test_threads_read_their_own_and_shared_readers_without_mixing_frames(sample):
    path, checks, errors = sample("cfr.mp4"), {}, []
    shared = open_reader(path)

    def work(number: int) -> None:
        try:
            asked = [(number * 17 + 13 * k) % 120 for k in range(8)]
            own = [painted(read_frames(path, [index])) for index in asked]
            checks[number] = own == [[index] for index in asked] and painted(shared.read(asked)) == asked
        except VideoError as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)
    assert not errors
    assert checks == dict.fromkeys(range(6), True)


def _read_in_child(reader, path, results):
    results.put((painted(read_frames(path, [33, 2])), painted(reader.read([44]))))


@pytest.mark.timeout(600)
def test_a_forked_child_reads_without_touching_its_parents_readers(sample):
    path = sample("cfr.mp4")
    reader = open_reader(path)
    reader.read([5])
    read_frames(path, [6])
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    children = [context.Process(target=_read_in_child, args=(reader, path, results)) for _ in range(2)]
    for child in children:
        child.start()
    assert [results.get(timeout=300) for _ in children] == [([33, 2], [44])] * 2
    for child in children:
        child.join(timeout=300)
        assert child.exitcode == 0
    assert painted(reader.read([7])) == [7]
    assert painted(read_frames(path, [8])) == [8]


FORK_SCRIPT = """
import os, sys
from barista_bench.media.video import close_readers, open_reader, read_frames
path, backend = sys.argv[1:]
reader = open_reader(path, backend)
reader.read([50])
read_frames(path, [40])
child = os.fork()
if child == 0:
    reader.close()
    close_readers()
    read_frames(path, [30])
    del reader
    sys.exit(7)  # an ordinary end, with all its clean-up
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 7, status
reader.read([51])
"""


@pytest.mark.parametrize("backend", ["pyav", "decord"])
def test_a_forked_child_that_closes_everything_ends_without_hanging(sample, backend):
    need(backend)
    # From Python 3.12 on a fork beside other threads is warned of.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK_SCRIPT, str(sample("cfr.mp4")), backend]
    done = subprocess.run(command, timeout=300, capture_output=True, text=True, env=os.environ.copy())
    assert (done.returncode, done.stderr) == (0, "")


def test_frames_that_rest_on_damaged_data_are_refused_where_the_decoder_tells(tmp_path):
    # Without B-frames: with them, decoding threads lose the decoder's mark more often than not.
    source = render(tmp_path / "whole.mp4", codec="mpeg4", options={"g": "24"})
    with av.open(str(source)) as container:
        packet = [packet for packet in container.demux(video=0) if packet.size][31]
    data = bytearray(source.read_bytes())
    first, last = packet.pos + packet.size // 3, packet.pos + packet.size * 2 // 3
    data[first:last] = np.random.default_rng(31).integers(0, 256, last - first, dtype=np.uint8).tobytes()
    path = tmp_path / "damaged.mp4"
    path.write_bytes(data)
    assert painted(read_frames(path, [3])) == [3]
    with pytest.raises(VideoError, match=r"damaged\.mp4: frame 33 cannot be decoded"):
        read_frames(path, [33])
    assert painted(read_frames(path, [60])) == [60]
