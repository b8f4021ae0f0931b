"""Hand-object interactions per frame: precision, recall, F1, and the quality of the matched pairs."""

from .inputs import Interaction as Interaction
from .scoring import FrameScore as FrameScore
from .scoring import Pair as Pair
from .scoring import box_iou as box_iou
from .scoring import greedy_pairs as greedy_pairs
from .scoring import hand_iou as hand_iou
from .scoring import interaction_f1 as interaction_f1
from .scoring import optimal_pairs as optimal_pairs
from .scoring import pool as pool
from .scoring import score_frame as score_frame
from .scoring import score_frames as score_frames
