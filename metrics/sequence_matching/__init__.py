"""ViSTa's video-to-description matching, by standardised scores, macro-F1 per problem set and means over sets."""

from .inputs import LabelledScores as LabelledScores
from .rescaling import rescale as rescale
from .scoring import (
    SetScore as SetScore,
    macro_f1 as macro_f1,
    mean_with_interval as mean_with_interval,
    score_set as score_set,
    sequence_matching as sequence_matching,
)
