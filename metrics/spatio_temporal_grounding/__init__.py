"""Spatio-temporal grounding: recognition, tIoU and vIoU of the objects that a task takes."""

from .parsing import PredictedObject, ReferenceObject, ReferenceTask, as_prediction, as_reference
from .scoring import (
    MEASURES,
    THRESHOLDS,
    TaskScore,
    add_up,
    box_iou,
    figures,
    frame_ious,
    object_sums,
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
    "add_up",
    "as_prediction",
    "as_reference",
    "box_iou",
    "figures",
    "frame_ious",
    "object_sums",
    "score_object",
    "score_task",
    "spatio_temporal_grounding",
    "summarise",
    "temporal_iou",
]
