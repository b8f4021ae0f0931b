"""Optical flow carries masks over a scene with known masks."""

import importlib
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from barista_bench import annotate
from barista_bench.annotate import flow_propagation
from barista_bench.annotate.blending import NeighbourFlows, maps_to_keyframe
from barista_bench.annotate.flow_propagation import FlowPropagator
from barista_bench.annotate.propagation import CopyNearest, FrameMasks, Keyframes, Propagator
from barista_bench.errors import DataError, ModelError
from barista_bench.media.video import FrameReader, open_reader
from barista_bench.scene_graph.masks import mask_ious
from tests.annotate.scenes import HEIGHT, NOTHING, WIDTH, keyframes, reference, texture, write_scene


def run(propagator: Propagator, scene: FrameReader, given: Keyframes, span: range) -> list[FrameMasks]:
    return list(propagator.propagate(scene, given, span))


def agreement(results: list[FrameMasks], name: str) -> list[float]:
    """IoU with the reference, frame by frame."""
    return [mask_ious([result.masks[name].rle], [reference(result.frame)[name]])[0, 0] for result in results]


@pytest.mark.full
def test_moving_masks_are_followed_where_copies_are_lost(scene: FrameReader) -> None:
    given = keyframes(0, 20, 40)
    for name in ("box", "lid"):
        flow = agreement(run(FlowPropagator(), scene, given, range(41)), name)
        copied = agreement(run(CopyNearest(), scene, given, range(41)), name)
        assert min(flow) > 0.7
        assert np.mean(flow) > np.mean(copied) + 0.25


def test_frames_before_the_first_and_after_the_last_keyframe_are_followed(scene: FrameReader) -> None:
    results = run(FlowPropagator(), scene, keyframes(20), range(10, 31))
    assert min(agreement(results, "lid")) > 0.95
    confidence = [result.masks["lid"].confidence for result in results]
    assert confidence[10] == 1
    assert max(confidence[0], confidence[-1]) < confidence[9] < 1


def test_an_object_is_carried_over_keyframes_that_do_not_mention_it(scene: FrameReader) -> None:
    given = {frame: {"box": reference(frame)["box"]} for frame in (0, 10, 20, 30)} | {10: reference(10)}
    results = run(FlowPropagator(), scene, given, range(31))
    assert min(agreement(results, "lid")) > 0.95
    confidence = [result.masks["lid"].confidence for result in results]
    assert confidence[25] < confidence[15] < confidence[10] == 1


def test_an_absent_object_is_shown_where_its_own_side_weighs_more(scene: FrameReader) -> None:
    given = {0: reference(0), 20: reference(20) | {"lid": NOTHING}}
    shown = ["lid" in result.masks for result in run(FlowPropagator(), scene, given, range(21))]
    assert shown[0]
    assert shown[5]
    assert not any(shown[15:])
    assert shown == sorted(shown, reverse=True)


def test_masks_are_the_same_for_any_number_of_threads(scene: FrameReader) -> None:
    before = cv2.getNumThreads()
    results = []
    try:
        for threads in (1, 4):
            cv2.setNumThreads(threads)
            results.append(run(FlowPropagator(), scene, keyframes(0, 12), range(13)))
    finally:
        cv2.setNumThreads(before)
    assert results[0] == results[1]


def test_neighbours_are_compared_once_for_the_keyframes_on_both_sides(scene: FrameReader) -> None:
    grays = {frame: cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for frame, image in enumerate(scene.read(range(4)))}
    flows, compared = NeighbourFlows(grays), []
    calc = flows.method.calc

    class Counted:
        def calc(self, *pictures: object) -> object:
            compared.append(1)
            return calc(*pictures)

    flows.method = Counted()  # type: ignore[assignment]
    from_the_right = list(maps_to_keyframe(flows, range(3, -1, -1)))
    assert len(compared) == 9  # three pairs back and forth, and the rest of the correction
    list(maps_to_keyframe(flows, range(4)))
    assert len(compared) == 9 + 3
    (alone,) = [view for view in maps_to_keyframe(NeighbourFlows(grays), range(3, -1, -1)) if view.frame == 0]
    assert np.array_equal(alone.positions, from_the_right[-1].positions)


def test_keyframes_too_far_apart_are_refused(scene: FrameReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_propagation, "_LONGEST", 19)
    for given in (keyframes(0, 20), keyframes(20), keyframes(0)):
        with pytest.raises(DataError, match="no keyframe between frames 0 and 20"):
            run(FlowPropagator(), scene, given, range(21))
    assert len(run(FlowPropagator(), scene, keyframes(1, 20), range(21))) == 21


def test_flow_propagates_over_two_seconds() -> None:
    assert [FlowPropagator().reach(fps) for fps in (0.1, 29.97, 50)] == [1, 60, 100]


def test_annotate_without_opencv_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barista_bench.errors.find_spec", lambda library: None)
    with pytest.raises(ModelError, match=r"annotating videos needs cv2.*barista_bench\[annotate\]"):
        importlib.reload(annotate)


def test_a_correction_leaves_an_object_that_it_does_not_mention_and_that_later_vanishes(tmp_path: Path) -> None:
    folder = write_scene(tmp_path / "scene", 17)
    table = texture(0, HEIGHT, WIDTH)
    for frame in range(12, 17):  # box and lid are taken away
        Image.fromarray(table).save(folder / f"{frame:06d}.png")
    given = {0: reference(0), 8: {"lid": reference(8)["lid"]}, 16: {"box": NOTHING, "lid": NOTHING}}
    with open_reader(folder) as scene:
        corrected = run(FlowPropagator(), scene, given, range(17))
    assert min(agreement(corrected[:9], "box")) > 0.6
    assert "box" not in corrected[16].masks
