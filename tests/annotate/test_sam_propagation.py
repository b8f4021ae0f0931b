"""The trackers of SAM 2 and SAM 3 with random weights: the masks mean nothing; the calls matter."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="SAM runs on torch")
pytest.importorskip("transformers", reason="SAM is loaded through transformers")

from barista_bench.annotate.propagation import FrameMasks  # noqa: E402
from barista_bench.annotate.sam_propagation import SamPropagator, _fuse_sides, _Tracked, _Tracking  # noqa: E402
from barista_bench.errors import ModelError  # noqa: E402
from barista_bench.media.video import FrameReader  # noqa: E402
from tests.annotate.sam_checkpoints import write_checkpoint  # noqa: E402
from tests.annotate.scenes import HEIGHT, NOTHING, WIDTH, keyframes, rectangle, reference  # noqa: E402

TRACKERS = ["sam2_video", pytest.param("sam3_tracker_video", marks=pytest.mark.full)]


@pytest.fixture(scope="module", params=TRACKERS)
def propagator(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SamPropagator:
    folder = write_checkpoint(tmp_path_factory.mktemp(request.param) / "checkpoint", request.param)
    return SamPropagator.load(str(folder))


def run(propagator: SamPropagator, scene: FrameReader, given: Any, span: range) -> list[FrameMasks]:
    return list(propagator.propagate(scene, given, span))


def test_every_frame_comes_once_with_masks_of_the_videos_size(propagator: SamPropagator, scene: FrameReader) -> None:
    results = run(propagator, scene, keyframes(5, 12), range(2, 16))
    assert [result.frame for result in results] == list(range(2, 16))
    assert {name: mask.rle for name, mask in results[3].masks.items()} == reference(5)
    assert all(set(result.masks) == {"box", "lid"} for result in results)
    assert {mask.rle.size for result in results for mask in result.masks.values()} == {(HEIGHT, WIDTH)}
    assert all(0 <= mask.confidence <= 1 for result in results for mask in result.masks.values())


@pytest.mark.full
@pytest.mark.parametrize("changed", [2, 8])
def test_each_keyframe_changes_the_masks_of_every_other_frame(
    propagator: SamPropagator, scene: FrameReader, changed: int
) -> None:
    given = {2: reference(2), 8: reference(8)}
    other = given | {changed: reference(changed) | {"lid": rectangle(60, 2, 70, 80)}}
    before, after = (run(propagator, scene, masks, range(11)) for masks in (given, other))
    for first, second in zip(before, after, strict=True):
        if first.frame not in given:
            assert first.masks["lid"] != second.masks["lid"], first.frame
            assert first.masks["box"] == second.masks["box"], first.frame  # objects do not compete


def test_an_object_need_not_be_on_every_keyframe_and_may_be_absent_on_one(
    propagator: SamPropagator, scene: FrameReader
) -> None:
    later = {0: {"box": reference(0)["box"]}, 6: reference(6), 9: reference(9) | {"lid": NOTHING}}
    shown = {result.frame: set(result.masks) for result in run(propagator, scene, later, range(12))}
    assert shown[0] == shown[6] == {"box", "lid"}
    assert shown[9] == {"box"}


def test_keyframes_without_objects_give_frames_without_masks(propagator: SamPropagator, scene: FrameReader) -> None:
    assert run(propagator, scene, {2: {}}, range(4)) == [FrameMasks(frame, {}) for frame in range(4)]


def held_bytes(value: object) -> int:
    """Bytes of all tensors within dicts and lists."""
    if isinstance(value, torch.Tensor):
        return value.element_size() * value.nelement()
    if isinstance(value, dict):
        return sum(map(held_bytes, value.values()))
    return sum(map(held_bytes, value)) if isinstance(value, list | tuple) else 0


@pytest.mark.full
def test_the_session_does_not_grow_with_the_frames(
    propagator: SamPropagator, scene: FrameReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def held(at: int) -> int:
        tracking = _Tracking(propagator._model, propagator._scale, scene, keyframes(0, 10))
        session = tracking._session
        for frame, _ in tracking.follow(range(at + 1)):
            if frame == at:
                return held_bytes([*vars(session).values(), vars(session.cache)])
        raise AssertionError

    assert held(20) <= 1.02 * held(8)
    monkeypatch.setattr(_Tracking, "_forget", lambda self, kept: None)
    assert held(20) > 1.5 * held(8)  # the purpose of the bound


def test_a_keyframe_that_the_tracker_ignores_is_an_error(
    propagator: SamPropagator, scene: FrameReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_frame = _Tracking._run

    def skips_the_second(self: _Tracking, frame: int, image: Any, *, reverse: bool) -> Any:
        return {} if frame == 8 else run_frame(self, frame, image, reverse=reverse)

    monkeypatch.setattr(_Tracking, "_run", skips_the_second)
    with pytest.raises(ModelError, match="keyframe 8: the tracker did not take in the mask of 'box'"):
        run(propagator, scene, {2: reference(2), 8: reference(8)}, range(10))


def test_pixels_are_scaled_as_the_checkpoint_says(propagator: SamPropagator, scene: FrameReader) -> None:
    grey = scene.read([0])[0] * 0 + 51
    side = propagator._model.image_size
    pixels = propagator._scale.pixels(grey, side, torch.device("cpu"))
    expected = [(0.2 - mean) / std for mean, std in ((0.5, 0.5), (0.4, 0.25), (0.3, 0.2))]
    assert pixels.shape == (3, side, side)
    assert torch.allclose(pixels, torch.tensor(expected)[:, None, None].expand(3, side, side), atol=1e-5)


BOX, LID = reference(0)["box"], reference(0)["lid"]


@pytest.mark.parametrize(
    ("frame", "presence", "chosen"),
    [(2, (0.9, 0.9), BOX), (8, (0.9, 0.9), LID), (5, (0.9, 0.9), BOX), (5, (0.6, 0.9), LID), (1, (0.6, 0.9), BOX)],
)
def test_the_nearer_and_surer_side_counts(frame: int, presence: tuple[float, float], chosen: Any) -> None:
    mask = _fuse_sides(frame, [0, 10], _Tracked(BOX, presence[0]), _Tracked(LID, presence[1]))
    assert mask is not None
    assert mask.rle == chosen
    assert mask.confidence == pytest.approx((presence[1] if chosen is LID else presence[0]) * 16 * 12 / (40 * 30))


def test_a_side_that_is_sure_of_an_absence_hides_the_object() -> None:
    assert _fuse_sides(5, [0, 10], _Tracked(BOX, 0.7), _Tracked(NOTHING, 0.05)) is None
    shown = _fuse_sides(5, [0, 10], _Tracked(BOX, 0.97), _Tracked(NOTHING, 0.05))
    assert shown is not None
    assert shown.confidence == 0  # the sides do not agree at all


def test_a_side_without_a_keyframe_of_the_object_does_not_count() -> None:
    unrelated = _Tracked(LID, 1.0)
    for mentions, before, after in ([8], unrelated, _Tracked(BOX, 0.6)), ([2], _Tracked(BOX, 0.6), unrelated):
        mask = _fuse_sides(5, mentions, before, after)
        assert mask is not None
        assert mask == (BOX, 0.6)


def test_a_checkpoint_is_identified_by_its_content(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "sam", "sam2_video")
    identity = SamPropagator.load(str(folder)).identity
    assert (identity.name, identity.settings["dtype"]) == (f"sam:{folder}", "float32")
    (folder / "preprocessor_config.json").write_text(
        (folder / "preprocessor_config.json").read_text().replace("0.3", "0.31")
    )
    assert SamPropagator.load(str(folder)).identity.revision != identity.revision


def test_the_tracker_of_a_checkpoint_that_also_detects_is_taken(tmp_path: Path, scene: FrameReader) -> None:
    folder = write_checkpoint(tmp_path / "sam", "sam3_video")
    assert len(run(SamPropagator.load(str(folder)), scene, keyframes(0, 3), range(4))) == 4


@pytest.mark.parametrize(
    ("file", "old", "new", "named"),
    [
        ("config.json", '"sam2_video"', '"sam2"', "its type is sam2, which is no tracker"),
        ("preprocessor_config.json", "image_mean", "mean", "KeyError: 'image_mean'"),
        ("preprocessor_config.json", "0.3]", "0.3, 1]", "too many values"),
    ],
)
def test_a_folder_without_a_tracker_is_refused(tmp_path: Path, file: str, old: str, new: str, named: str) -> None:
    folder = write_checkpoint(tmp_path / "sam", "sam2_video")
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))
    with pytest.raises(ModelError, match=rf"{named}.*Fix: "):
        SamPropagator.load(str(folder))


def test_a_checkpoint_without_pixel_settings_is_refused(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "sam", "sam2_video")
    (folder / "preprocessor_config.json").unlink()
    with pytest.raises(ModelError, match="cannot be loaded as a tracker"):
        SamPropagator.load(str(folder))
