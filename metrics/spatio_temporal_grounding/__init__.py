"""Spatio-temporal grounding: recognition, tIoU and vIoU of the objects that a task takes."""

from .parsing import PredictedObject, ReferenceObject, ReferenceTask, as_prediction, as_reference
from .scoring import (
    MEASURES,
    THRESHOLDS,
    TaskScore,
    box_iou,
    frame_ious,
    score_object,
    score_task,
    spatio_temporal_grounding,
    summarise,
    temporal_iou,
)

__all__ = [
    "MEASURES",
    "THRESHOLDS",
    "PredictedObject",
    "ReferenceObject",
    "ReferenceTask",
    "TaskScore",
    "as_prediction",
    "as_reference",
    "box_iou",
    "frame_ious",
    "score_object",
    "score_task",
    "spatio_temporal_grounding",
    "summarise",
    "temporal_iou",
]
