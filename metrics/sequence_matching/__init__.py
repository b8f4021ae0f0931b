"""ViSTa's video-to-description matching: standardised scores, macro-F1 per problem set, means over sets."""

from .inputs import LabelledScores
from .rescaling import rescale
from .scoring import SetScore, macro_f1, mean_with_interval, score_set, sequence_matching

__all__ = [
    "LabelledScores",
    "SetScore",
    "macro_f1",
    "mean_with_interval",
    "rescale",
    "score_set",
    "sequence_matching",
]
