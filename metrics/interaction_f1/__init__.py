"""Hand-object interactions per frame: precision, recall, F1, and the quality of the matched pairs."""

from .inputs import Interaction as Interaction
from .scoring import (
    FrameScore as FrameScore,
    Pair as Pair,
    box_iou as box_iou,
    greedy_pairs as greedy_pairs,
    hand_iou as hand_iou,
    interaction_f1 as interaction_f1,
    optimal_pairs as optimal_pairs,
    pool as pool,
    score_frame as score_frame,
    score_frames as score_frames,
)
