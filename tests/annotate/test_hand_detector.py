"""Boxes of hands by MediaPipe: their sides, their size, and the need for the optional package."""

import importlib.util
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from barista_bench.annotate.hand_detector import FindHands, HandDetector, mediapipe
from barista_bench.annotate.proposals import Detection
from barista_bench.annotate.stages import detector_of
from barista_bench.errors import ModelError
from barista_bench.media.video import open_reader
from barista_bench.models.base import ModelIdentity
from barista_bench.scene_graph import SceneGraph
from tests.conftest import SHARED

PICTURE = np.zeros((100, 200, 3), dtype=np.uint8)
IS_INSTALLED = importlib.util.find_spec("mediapipe") is not None
LABELS = ["left hand", "right hand", "cup"]


def finding(*hands: tuple[str, list[tuple[float, float]]]) -> FindHands:
    """Replaces MediaPipe: hands by (side in a mirrored picture, joints as fractions)."""
    joints = [SimpleNamespace(landmark=[SimpleNamespace(x=x, y=y) for x, y in points]) for _, points in hands]
    sides = [SimpleNamespace(classification=[SimpleNamespace(label=side, score=0.9)]) for side, _ in hands]
    return lambda _: SimpleNamespace(multi_hand_landmarks=joints or None, multi_handedness=sides or None)


class Cups:
    """Finds everything but hands."""

    identity = ModelIdentity("cups", "7")
    finds_objects = True

    def detect(self, picture: Any, labels: Any) -> list[Detection]:
        return [Detection(label, 0.5, (1.0, 2.0, 3.0, 4.0)) for label in labels]


def test_hands_get_the_side_opposite_to_a_mirrored_picture_and_a_margin_within_it() -> None:
    found = finding(("Left", [(0.5, 0.5), (0.6, 0.7)]), ("Right", [(0.0, 0.0), (0.1, 0.1)]))
    detections = HandDetector(found, "1").detect(PICTURE, LABELS)
    assert [(item.label, tuple(map(round, item.box))) for item in detections] == [
        ("right hand", (98, 48, 122, 72)),
        ("left hand", (0, 0, 22, 12)),
    ]
    assert [item.label for item in HandDetector(found, "1").detect(PICTURE, ["hand"])] == ["hand", "hand"]
    assert HandDetector(found, "1").detect(PICTURE, ["left hand"])[0].box[0] == 0
    assert HandDetector(finding(), "1").detect(PICTURE, LABELS) == []


def test_other_things_are_found_by_the_other_detector_and_only_then_is_there_a_contact_signal() -> None:
    alone, together = HandDetector(finding(), "1"), HandDetector(finding(), "1", Cups())
    assert [item.label for item in together.detect(PICTURE, LABELS)] == ["cup"]
    assert (alone.finds_objects, together.finds_objects) == (False, True)
    assert alone.identity != together.identity


@pytest.mark.skipif(IS_INSTALLED, reason="mediapipe is installed")
def test_without_the_package_the_message_says_how_to_install_it() -> None:
    with pytest.raises(ModelError, match=r"needs the package mediapipe.*Fix: pip install"):
        detector_of("mediapipe")


@pytest.mark.skipif(not IS_INSTALLED, reason="mediapipe is not installed: docs/plugins.md says how")
@pytest.mark.skipif(not (SHARED / "real").is_dir(), reason="real clips are not part of this repository")
def test_hands_of_a_real_clip_are_found_on_the_right_side() -> None:
    graph = SceneGraph(SHARED / "real")
    video, detector = graph["real_coffee_pour"], mediapipe("")
    frames = list(range(0, video.frame_count, 20))
    with open_reader(graph.video_path(video.video_id)) as reader:
        pictures = reader.read(frames)
    found = total = 0
    for frame, picture in zip(frames, pictures, strict=True):
        detections = {item.label: item.box for item in detector.detect(picture, ["left hand", "right hand"])}
        for item in video.objects_at(frame):
            if "hand" in item.category.split():
                x, y, width, height = video.boxes(frame)[item.id]
                total += 1
                left, top, right, bottom = detections.get(item.category, (0.0, 0.0, 0.0, 0.0))
                shared = max(0.0, min(x + width, right) - max(x, left)) * max(
                    0.0, min(y + height, bottom) - max(y, top)
                )
                union = width * height + (right - left) * (bottom - top) - shared
                found += shared >= 0.5 * union
    assert found >= 0.7 * total
