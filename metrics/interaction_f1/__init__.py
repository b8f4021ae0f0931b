"""Hand-object interactions per frame: precision, recall, F1, and the quality of the matched pairs."""

from .inputs import Interaction
from .scoring import (
    FrameScore,
    Pair,
    box_iou,
    greedy_pairs,
    hand_iou,
    interaction_f1,
    optimal_pairs,
    pool,
    score_frame,
    score_frames,
)

__all__ = [
    "FrameScore",
    "Interaction",
    "Pair",
    "box_iou",
    "greedy_pairs",
    "hand_iou",
    "interaction_f1",
    "optimal_pairs",
    "pool",
    "score_frame",
    "score_frames",
]
