"""Spatio-temporal grounding: recognition, tIoU and vIoU of the objects that a task takes."""

from .parsing import PredictedObject, ReferenceObject, ReferenceTask
from .scoring import (
    MEASURES,
    TaskScore,
    add_up,
    box_iou,
    figures,
    frame_ious,
    object_sums,
    score_object,
    score_task,
    spatio_temporal_grounding,
    temporal_iou,
)

__all__ = [
    "MEASURES",
    "PredictedObject",
    "ReferenceObject",
    "ReferenceTask",
    "TaskScore",
    "add_up",
    "box_iou",
    "figures",
    "frame_ious",
    "object_sums",
    "score_object",
    "score_task",
    "spatio_temporal_grounding",
    "temporal_iou",
]
