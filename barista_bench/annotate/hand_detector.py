"""Detects hands by MediaPipe, for `"detector": "mediapipe"` in project.json, and other things by another detector.

MediaPipe is optional. Its wheel requires an older numpy, but works with the newer numpy. So install MediaPipe without
its requirements (docs/plugins.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from barista_bench.annotate.proposals import Detection, Detector, ObjectDetector
from barista_bench.errors import ModelError
from barista_bench.models.base import ModelIdentity

_CONFIDENCE = 0.2
_MARGIN = 0.1
"""Growth of the box around the joints on each side, as a fraction of its longer side, since fingers extend further."""
_SIDES = {"left": "right", "right": "left"}
"""MediaPipe expects a mirrored picture such as a selfie, so its left hand is the right hand."""


FindHands: TypeAlias = Callable[[NDArray[np.uint8]], Any]
"""Has the signature of `mediapipe.solutions.hands.Hands.process`.

It returns the joints, as fractions of the picture, and the side of each hand.
"""


class HandDetector:
    """Finds the boxes of hands; if another detector is given, that detector finds all other things."""

    def __init__(self, find_hands: FindHands, revision: str, others: Detector | None = None) -> None:
        self._find_hands, self._others = find_hands, others
        settings: dict[str, str | int | float | bool | None] = {}
        if others:
            settings = {"others": others.identity.name, "others_revision": others.identity.revision}
        self.identity = ModelIdentity("mediapipe", revision, settings)
        self.finds_objects = others is not None

    def detect(self, picture: NDArray[np.uint8], labels: Sequence[str]) -> list[Detection]:
        """Return detections; see `Detector.detect`.

        A hand gets the label that names its side, or else the label `hand`.
        """
        hand_labels = [label for label in labels if "hand" in label.lower().split()]
        other_labels = [label for label in labels if label not in hand_labels]
        others = self._others.detect(picture, other_labels) if self._others and other_labels else []
        return [*(self._detections(picture, hand_labels) if hand_labels else ()), *others]

    @staticmethod
    def _side_of(label: str) -> str | None:
        return next((side for side in _SIDES if side in label.lower().split()), None)

    def _detections(self, picture: NDArray[np.uint8], labels: Sequence[str]) -> Iterator[Detection]:
        height, width = picture.shape[:2]
        found = self._find_hands(picture)
        for joints, sides in zip(found.multi_hand_landmarks or (), found.multi_handedness or (), strict=True):
            side = sides.classification[0]
            by_side = {self._side_of(label): label for label in labels}
            label = by_side.get(_SIDES[side.label.lower()], by_side.get(None))
            points = np.array([(joint.x * width, joint.y * height) for joint in joints.landmark])
            low, high = points.min(axis=0), points.max(axis=0)
            margin = _MARGIN * float((high - low).max())
            left, top = np.clip(low - margin, 0, (width, height)).tolist()
            right, bottom = np.clip(high + margin, 0, (width, height)).tolist()
            if label is not None and right > left and bottom > top:
                yield Detection(label, float(side.score), (left, top, right, bottom))


def mediapipe(rest: str) -> HandDetector:
    """Return the detector `mediapipe`, or `mediapipe:CHECKPOINT`, whose checkpoint finds all other things."""
    try:
        package = import_module("mediapipe")
    except ImportError as error:
        remedy = "pip install 'barista-bench[hands]', then pip install --no-deps mediapipe==0.10.21"
        raise ModelError(f"the detector mediapipe needs the package mediapipe ({error}). Fix: {remedy}") from error
    hands = package.solutions.hands.Hands(static_image_mode=True, max_num_hands=2, min_detection_confidence=_CONFIDENCE)
    return HandDetector(hands.process, package.__version__, ObjectDetector.load(rest) if rest else None)
