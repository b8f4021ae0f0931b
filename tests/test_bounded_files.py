"""Files of others are read within bounds, and errors in them are named."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given, strategies as st
from pydantic import Field

from barista_bench.errors import ConfigError, DataError
from barista_bench.files import reading, writing
from barista_bench.files.reading import (
    Strict,
    bounded_lines,
    read_bounded,
    read_bounded_json,
    read_bounded_text,
    read_json_lines,
    read_model,
)
from barista_bench.files.writing import atomic_write, place_file, write_whole
from barista_bench.media.encoding import encode_video, join_videos
from barista_bench.media.video import video_facts

MOST = 20
READERS: list[Callable[[Path], object]] = [
    lambda path: read_bounded(path, MOST, what="no list", remedy="write one"),
    lambda path: read_bounded_text(path, MOST, what="no list", remedy="write one"),
    lambda path: read_bounded_json(path, MOST, what="no list", remedy="write one"),
    lambda path: list(read_json_lines(path, MOST, json.loads, what="no list", remedy="write one")),
]


@pytest.mark.parametrize("read", READERS)
def test_a_missing_file_a_folder_and_a_file_too_large_are_named(read: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    with pytest.raises(DataError, match=r"list\.json: no list \(No such file.*\)\. Fix: write one$"):
        read(path)
    with pytest.raises(DataError, match=rf"{tmp_path.name}: no list \(Is a directory\)\. Fix: write one$"):
        read(tmp_path)
    path.write_bytes(b"1" * MOST)
    read(path)
    path.write_bytes(b"1" * (MOST + 1))
    with pytest.raises(DataError, match=r"list\.json: no list \(.*er than 20 bytes\)\. Fix: write one$"):
        read(path)


@pytest.mark.parametrize("read", READERS[1:])
def test_bytes_that_are_no_utf8_are_named(read: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_bytes(b'"a\xff\xfe"')
    with pytest.raises(DataError, match=r"list\.json: .*no list \(.*invalid start byte.*\)\. Fix: write one$"):
        read(path)
    with pytest.raises(ConfigError, match=r"cannot be read \(No such file"):  # as the caller says
        read_bounded(tmp_path / "x", MOST, remedy="write one", error=ConfigError)


@pytest.mark.parametrize("text", ["{", "", "[" * 50_000, "1" * 5_000])
def test_a_file_that_is_no_json_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"list\.json: no list \(.+\)\. Fix: write one$"):
        read_bounded_json(path, 10**5, what="no list", remedy="write one")


@given(st.lists(st.text(st.characters(blacklist_characters="\n", blacklist_categories=["Cs"]), max_size=30)))
def test_lines_keep_their_numbers_when_others_are_damaged(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    path = tmp_path_factory.mktemp("lines") / "x.jsonl"
    written = [(text + "\n").encode() for text in texts]
    path.write_bytes(b"".join(written))
    expected = [(number, line) for number, line in enumerate(written, start=1) if line.strip()]
    cut = [(number, line[: MOST + 1]) for number, line in expected]
    assert list(bounded_lines(path, MOST, overlong="cut")) == cut
    assert list(bounded_lines(path, max(map(len, written), default=0))) == expected


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("2" * 50, r"no number \(line 3 is longer than 20 bytes\)"),
        ("{", r"line 3: no number \(Expecting property name"),
    ],
)
def test_a_line_that_is_no_record_or_too_long_is_refused_by_its_number(line: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(f"1\n\n{line}\n3\n")
    records = read_json_lines(path, MOST, json.loads, what="no number", remedy="write shorter ones")
    assert next(records) == (1, 1)
    with pytest.raises(DataError, match=rf"x\.jsonl: {said}.*\. Fix: write shorter ones$"):
        next(records)


def test_a_file_of_lines_can_be_bounded_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("1\n2\n")
    assert len(list(bounded_lines(path, MOST, max_file=4))) == 2
    with pytest.raises(OSError, match="is larger than 3 bytes"):
        next(bounded_lines(path, MOST, max_file=3))


def test_a_file_is_replaced_at_the_end_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write_whole(path, "old")
    with atomic_write(path) as partial:
        partial.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_durable_file_is_on_disk_before_it_takes_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.jsonl"
    synced = []
    monkeypatch.setattr(writing, "sync", lambda what: synced.append((what.name, path.exists())))
    with atomic_write(path, durable=True) as partial:
        partial.write_text("new")
    assert synced == [(partial.name, False), (tmp_path.name, True)]


def test_an_error_leaves_the_file_as_it_was_and_no_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write_whole(path, b"old")
    with pytest.raises(ZeroDivisionError), atomic_write(path) as partial:
        1 / partial.write_text("")
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "missing" / "results.json", "text")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "\ud800")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_placed_file_is_a_link_or_copy_and_replaces_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    origin, linked, copied = (tmp_path / name for name in ("origin", "linked", "copied"))
    origin.write_bytes(b"frames")
    place_file(origin, linked)
    assert linked.samefile(origin)

    def no_links(*_: object) -> None:
        raise OSError("no hard links here")

    monkeypatch.setattr("os.link", no_links)
    place_file(origin, copied)
    assert copied.read_bytes() == b"frames"
    assert not copied.samefile(origin)
    monkeypatch.undo()
    with pytest.raises(FileExistsError):
        place_file(origin, copied)
    assert sorted(tmp_path.iterdir()) == [copied, linked, origin]


def test_threads_that_write_one_file_leave_it_whole(tmp_path: Path) -> None:
    path = tmp_path / "draft.json"
    contents = [json.dumps([number] * 20_000 * (number + 1)) for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda turn: write_whole(path, contents[turn % 4]), range(80)))
    assert path.read_text() in contents
    assert list(tmp_path.iterdir()) == [path]


class Cup(Strict):
    volume: float
    beans: dict[str, int] = Field(default_factory=dict)


def read(path: Path) -> Cup:
    return read_model(path, Cup, what="no cup", remedy="pour again")


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ('{"volume": "SECRET"}', "volume: Input should be a valid number"),
        ('{"volume": NaN}', "volume: Input should be a finite number"),
        ('{"volume": 1, "beans": {"arabica": 1.5}}', r"beans\.arabica: Input should be a valid integer"),
        ('{"volume": 1, "colour": "SECRET"}', "colour: Extra inputs are not permitted"),
        ('{"volume": 1, "%s": 1}' % ("x" * 10_000), "x{200}: Extra inputs"),
        ("[]", "the whole: Input should be an object"),
        ("", "the whole: Invalid JSON"),
        ("[" * 100_000, "the whole: Invalid JSON"),
        ("\xff", "the whole: Invalid JSON"),
    ],
)
def test_an_error_names_the_first_fault_and_does_not_quote_the_file(content: str, named: str, tmp_path: Path) -> None:
    path = tmp_path / "cup.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(DataError, match=rf"cup\.json: {named}.*\. Fix: pour again") as error:
        read(path)
    assert "SECRET" not in str(error.value)


def test_a_file_is_read_as_its_schema_or_refused_where_missing_or_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cup.json"
    with pytest.raises(DataError, match=r"cup\.json: no cup .*No such file.*Fix: pour again"):
        read(path)
    path.write_text('{"volume": 0.2, "beans": {"arabica": 30}}')
    assert read(path) == Cup(volume=0.2, beans={"arabica": 30})
    monkeypatch.setattr(reading, "MAX_JSON", 10)
    with pytest.raises(DataError, match=r"cup\.json: no cup .*10 bytes.*Fix: pour again"):
        read(path)


@pytest.mark.parametrize(("size", "fps"), [((63, 32), 30), ((0, 2), 30), ((64, 32), 0), ((64, 32), -1)])
def test_sizes_and_rates_that_cannot_be_encoded_are_refused(tmp_path: Path, size: tuple[int, int], fps: int) -> None:
    with pytest.raises(ConfigError, match="Fix"):
        encode_video(tmp_path / "clip.mp4", iter(()), size=size, fps=fps)


def test_a_failed_encoding_leaves_no_file(tmp_path: Path) -> None:
    pictures = [np.zeros((32, 64, 3), np.uint8), np.zeros((30, 64, 3), np.uint8)]
    with pytest.raises(DataError, match="frame 1 is "):
        encode_video(tmp_path / "clip.mp4", pictures, size=(64, 32), fps=5)
    with pytest.raises(DataError, match="no frame to write"):
        encode_video(tmp_path / "clip.mp4", [], size=(64, 32), fps=5)
    assert not list(tmp_path.iterdir())


def test_the_same_pictures_give_the_same_bytes_at_the_wanted_size_and_rate(tmp_path: Path) -> None:
    pictures = [np.full((32, 64, 3), 8 * index, np.uint8) for index in range(30)]
    first, second = (
        encode_video(tmp_path / f"{name}.mp4", pictures, size=(64, 32), fps=Fraction(15, 2)) for name in "ab"
    )
    assert first.read_bytes() == second.read_bytes()
    facts = video_facts(first)
    assert (facts.frame_count, facts.width, facts.height) == (30, 64, 32)
    assert facts.fps == pytest.approx(7.5)


def test_joined_videos_have_the_frames_and_times_of_their_parts(tmp_path: Path) -> None:
    parts = []
    for number, count in enumerate((7, 30, 1)):
        pictures = [np.full((48, 64, 3), 20 * number + at, np.uint8) for at in range(count)]
        parts.append(encode_video(tmp_path / f"{number}.mp4", pictures, size=(64, 48), fps=25))
    joined = decoded(join_videos(tmp_path / "all.mp4", parts, fps=25))
    alone = [picture for part in parts for _, picture in decoded(part)]
    assert [time for time, _ in joined] == [Fraction(at, 25) for at in range(38)]
    assert all((one == other).all() for (_, one), other in zip(joined, alone, strict=True))
    with pytest.raises(DataError, match="no clip"):
        join_videos(tmp_path / "none.mp4", [], fps=25)


def decoded(path: Path) -> list[tuple[Fraction, np.ndarray]]:
    with av.open(str(path)) as container:
        frames = list(container.decode(video=0))
    return [(frame.pts * frame.time_base, frame.to_ndarray(format="rgb24")) for frame in frames]
