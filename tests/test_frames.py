"""Dataset columns that point at frames: lazy by every route, exact when asked, plain when published."""

import copy
import pickle
from pathlib import Path

import datasets
import numpy as np
import pytest
from datasets import Dataset, Features, IterableDataset, List, Value

from barista_bench.errors import DataError, VideoError
from barista_bench.media.frames import VideoFrames, link_frames, plain_feature
from barista_bench.media.lazy_frames import LazyFrames
from barista_bench.media.video import FrameIndexError
from tests.video_samples import Samples, painted, painted_index

ROWS = [[0, 12, 24], [5], [7, 3, 7, 119], [100, 101]]


@pytest.fixture(scope="session")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frames")
    Samples(folder)("cfr.mp4")
    return folder


@pytest.fixture(autouse=True)
def _own_cache(datasets_cache):
    datasets.disable_progress_bars()


@pytest.fixture
def plain():
    frames = [{"video": "cfr.mp4", "indices": indices} for indices in ROWS]
    features = Features({"id": Value("int64"), "frames": plain_feature()})
    return Dataset.from_dict({"id": list(range(len(ROWS))), "frames": frames}, features=features)


@pytest.fixture
def linked(plain, root):
    return link_frames(plain, root=root)


@pytest.fixture
def untouched(decode_count):
    """Fails the test where a frame is decoded in it."""
    before = decode_count()
    yield
    assert decode_count() == before


@pytest.mark.usefixtures("untouched")
def test_rows_columns_batches_and_slices_decode_nothing(linked):
    assert linked[2]["frames"].indices == (7, 3, 7, 119)
    assert [frames.indices for frames in linked["frames"]] == [tuple(row) for row in ROWS]
    assert [len(frames) for frames in linked[1:3]["frames"]] == [1, 4]
    assert all(isinstance(row["frames"], LazyFrames) for row in linked)
    assert [len(batch["frames"]) for batch in linked.iter(3)] == [3, 1]
    assert linked[0]["frames"][1:].indices == (12, 24)
    assert linked.select_columns(["id"])[0] == {"id": 0}
    assert "cfr.mp4" in repr(linked[0]["frames"])
    assert linked.sort("id", reverse=True)[0]["frames"].indices == (100, 101)
    assert linked.shuffle(seed=0).train_test_split(0.5)["test"][0]["frames"].video == "cfr.mp4"


def test_pixels_equal_the_requested_frames(linked):
    for row, indices in zip(linked, ROWS, strict=True):
        array = row["frames"].array()
        assert (array.dtype, array.shape) == (np.uint8, (len(indices), 96, 192, 3))
        assert painted(array) == painted(row["frames"]) == painted(np.asarray(row["frames"])) == indices
        assert [painted_index(np.asarray(image)) for image in row["frames"].to_pil()] == indices
    with pytest.raises(ValueError, match="copy=False"):
        np.array(linked[1]["frames"], copy=False)
    assert np.asarray(linked[1]["frames"], dtype=np.float32).dtype == np.float32
    assert (Path(linked[0]["frames"].path).is_absolute(), linked[0]["frames"].video) == (True, "cfr.mp4")


def test_one_image_decodes_one_frame(linked, decode_count):
    before = decode_count()
    frames = linked[2]["frames"]
    assert painted_index(frames[-1]) == 119
    assert frames[0].shape == (96, 192, 3)
    assert decode_count() - before == 2
    with pytest.raises(IndexError):
        frames[4]


@pytest.mark.usefixtures("untouched")
def test_map_and_files_keep_references_not_pixels(linked, tmp_path):
    mapped = linked.map(lambda row: {**row, "more": len(row["frames"])}, load_from_cache_file=False)
    assert isinstance(mapped.features["frames"], VideoFrames)
    assert mapped[2]["more"] == 4
    assert mapped.data.column("frames").to_pylist() == [{"video": "cfr.mp4", "indices": row} for row in ROWS]
    features = Features({**linked.features, "first": linked.features["frames"]})
    assert linked.map(lambda row: {"first": row["frames"][:1]}, features=features)[2]["first"].indices == (7,)
    linked.save_to_disk(tmp_path / "saved")
    assert datasets.load_from_disk(tmp_path / "saved")[2]["frames"] == linked[2]["frames"]


@pytest.mark.usefixtures("untouched")
def test_filter_and_batched_map_decode_nothing(linked):
    assert linked.filter(lambda row: len(row["frames"]) > 1)["id"][:] == [0, 2, 3]
    batched = linked.map(lambda rows: {"n": [len(f) for f in rows["frames"]]}, batched=True)
    assert batched["n"][:] == [3, 1, 4, 2]


def _mean_index(row):
    return {"mean": float(np.mean(painted(row["frames"].array())))}


@pytest.mark.full
def test_map_and_filter_in_two_processes_decode_in_the_workers(linked, decode_count):
    linked[0]["frames"].array()  # the parent holds an open reader when it forks
    before = decode_count()
    mapped = linked.map(_mean_index, num_proc=2)
    assert mapped["mean"][:] == [float(np.mean(row)) for row in ROWS]
    assert len(linked.filter(lambda row: len(row["frames"]) == 1, num_proc=2)) == 1
    assert decode_count() == before


def test_streams_are_lazy_and_exact(plain, root, decode_count):
    before = decode_count()
    stream = link_frames(plain.to_iterable_dataset(num_shards=2), root=root)
    frames = [row["frames"] for row in stream]
    kept = [row["id"] for row in stream.filter(lambda row: len(row["frames"]) > 1)]
    doubled = [row["n"] for row in stream.map(lambda row: {"n": 2 * len(row["frames"])})]
    assert (kept, doubled, decode_count()) == ([0, 2, 3], [6, 2, 8, 4], before)
    assert painted(frames[2]) == ROWS[2]


def test_a_stream_without_known_features_is_refused_with_the_remedy(plain):
    with pytest.raises(DataError, match="features="):
        link_frames(IterableDataset.from_generator(plain.__iter__))


@pytest.mark.parametrize("form", ["numpy", "torch"])
def test_array_formats_hold_the_pixels_of_the_rows_read(linked, form, decode_count):
    pytest.importorskip(form)
    before = decode_count()
    formatted = linked.with_format(form)
    assert decode_count() == before
    frames = np.asarray(formatted[2]["frames"])
    assert frames.dtype == np.uint8
    assert painted(frames.transpose(0, 2, 3, 1) if form == "torch" else frames) == ROWS[2]
    assert decode_count() - before == len(ROWS[2])


def test_torch_workers_decode_in_their_own_process(linked):
    data = pytest.importorskip("torch.utils.data")
    linked[0]["frames"].array()
    loader = data.DataLoader(linked, batch_size=2, num_workers=2, collate_fn=_collate)
    assert [row for batch in loader for row in batch] == ROWS


def _collate(rows):
    return [painted(row["frames"].array()) for row in rows]


@pytest.mark.usefixtures("untouched")
def test_frames_survive_pickling_and_copying_and_compare_by_content(linked):
    frames = linked[2]["frames"]
    assert pickle.loads(pickle.dumps(frames)) == copy.deepcopy(frames) == frames
    assert len({frames, linked[2]["frames"], linked[1]["frames"]}) == 2
    assert frames != linked[1]["frames"]
    assert dict(frames) == {"video": "cfr.mp4", "indices": [7, 3, 7, 119]}


@pytest.mark.usefixtures("untouched")
def test_references_in_lists_are_linked_and_missing_ones_stay_none(root):
    first, two = ({"video": "cfr.mp4", "indices": [k]} for k in (1, 2))
    features = Features({"clips": List(plain_feature()), "frames": plain_feature()})
    rows = Dataset.from_list([{"clips": [first, two], "frames": None}, {"clips": [], "frames": first}], features)
    linked = link_frames(link_frames(rows, "clips", root=root), root=root)
    assert [[frames.indices for frames in row["clips"]] for row in linked] == [[(1,), (2,)], []]
    assert [row["frames"] and row["frames"].indices for row in linked] == [None, (1,)]
    rows = Dataset.from_dict({"frames": [{"indices": [4, 5], "video": "cfr.mp4"}]})
    assert link_frames(rows, root=root)[0]["frames"].indices == (4, 5)
    features = Features({"frames": VideoFrames(root=str(root))})
    rows = Dataset.from_list([{"frames": LazyFrames("cfr.mp4", [3])}, {"frames": first}], features=features)
    assert [row["frames"].indices for row in rows] == [(3,), (1,)]
    with pytest.raises(DataError, match="frame numbers"):
        VideoFrames().encode_example({"path": "cfr.mp4"})


@pytest.mark.usefixtures("untouched")
def test_decode_false_leaves_the_plain_struct(plain):
    rows = plain.cast_column("frames", VideoFrames(decode=False))
    assert rows[1]["frames"] == {"video": "cfr.mp4", "indices": [5]}
    assert set(rows.flatten().column_names) == {"id", "frames.video", "frames.indices"}


@pytest.mark.parametrize(
    "rows",
    [{"other": [1]}, {"frames": [1]}, {"frames": [{"video": "a.mp4"}]}, {"frames": [{"path": "a", "indices": [1]}]}],
)
def test_a_column_that_cannot_be_linked_is_named(rows, root):
    with pytest.raises(DataError, match="frames"):
        link_frames(Dataset.from_dict(rows), root=root)


@pytest.mark.parametrize("video", ["../secret.mp4", "/etc/passwd", "a/../../x.mp4", "link.mp4", ""])
def test_a_path_that_leaves_the_root_is_refused(video, root, tmp_path):
    outside = tmp_path / "outside.mp4"
    outside.write_bytes((root / "cfr.mp4").read_bytes())
    inner = tmp_path / "root"
    inner.mkdir()
    (inner / "link.mp4").symlink_to(outside)
    (tmp_path / "secret.mp4").write_bytes(outside.read_bytes())
    with pytest.raises(VideoError, match=r"refused|outside"):
        LazyFrames(video, [1], root=str(inner)).array()


def test_a_relative_path_needs_a_root(root):
    with pytest.raises(VideoError, match=r"cfr\.mp4.*root="):
        LazyFrames("cfr.mp4", [1]).array()
    assert painted(LazyFrames(str(root / "cfr.mp4"), [9])) == [9]


def test_bad_references_fail_when_pixels_are_asked_for_not_before(plain, tmp_path, root):
    nowhere = link_frames(plain, root=tmp_path)[0]["frames"]
    with pytest.raises(VideoError, match=r"cfr\.mp4.*no such file"):
        nowhere.array()
    with pytest.raises(FrameIndexError, match=r"cfr\.mp4.*500"):
        LazyFrames("cfr.mp4", [500], root=str(root)).array()
